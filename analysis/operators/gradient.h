/* Gradients in the coordinates of an operator: of the loss, and of its single minibatches. */
#ifndef KS_OPERATORS_GRADIENT_H
#define KS_OPERATORS_GRADIENT_H

#include <stddef.h>

#include "core/error.h"
#include "operators/operator.h"

/* g [of the problem's selection] is a gradient in all parameters, block [n of the selection] the
 * same in the operator's coordinates: D^-1/2 g for `preconditioned`, the tangential component of g
 * for `manifold`, otherwise g. Changes g. */
void ks_gradient_coordinates(const struct ks_problem *problem, double *g, double *block);

/* The gradient as the start vector of a probe. The weights of its Ritz values then show how the
 * squared norm of the gradient is distributed over the eigenvalues, which decides the next steps of
 * gradient descent.
 *
 * *start [n of the problem's selection] = the gradient of the loss in the operator's coordinates;
 * NULL if it is zero. The caller frees it. Fails as ks_gradient does; KS_NUMBER if the gradient is
 * not finite. */
ks_status ks_gradient_start(const struct ks_problem *problem, double **start);

/* gram [N, N] = g_i'g_j for the gradients g_i of the N minibatches in the operator's coordinates:
 * the gradient of the loss is their mean. They are in float64, and at most `held` >= 1 of them are
 * in memory with one for each thread; the others are computed again for each `held` ones. `gram` is
 * not filled while objects are counted. KS_MEMORY; fails as ks_gradient does. */
ks_status ks_gradient_gram(const struct ks_problem *problem, size_t held, double *gram);

#endif
