/* The gradient as the start vector of a probe. The weights of its Ritz values then show how the
 * squared norm of the gradient is distributed over the eigenvalues, which decides the next steps of
 * gradient descent. */
#ifndef KS_LANCZOS_GRADIENT_START_H
#define KS_LANCZOS_GRADIENT_START_H

#include "core/error.h"
#include "operators/operator_kinds.h"
#include "operators/team.h"

/* *start [n of the problem's selection] = the gradient g of the loss in the operator's coordinates:
 * D^-1/2 g for `preconditioned`, the tangential part of g for `manifold`, otherwise g; NULL if it
 * is zero. The caller frees it. All ranks of the team call it and get the same bits. Fails as
 * ks_gradient does; KS_NUMBER if the gradient is not finite. */
ks_status ks_gradient_start(const struct ks_problem *problem, const struct ks_team *team,
                            double **start);

#endif
