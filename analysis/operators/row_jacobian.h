/* The hidden layers of a critic, and the largest singular value of the Jacobian J of one row's
 * logits in the parameters of one critic.
 *
 * The latter is found by a few Lanczos steps on J J', whose Ritz values are at most sigma_max^2. In
 * training mode batch normalization makes the logits of one row depend on all rows of the
 * minibatch; J then contains the derivatives through the minibatch's statistics. */
#ifndef KS_OPERATORS_ROW_JACOBIAN_H
#define KS_OPERATORS_ROW_JACOBIAN_H

#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "operators/operator.h"

/* --- the hidden layers --- */

/* The hidden layers of a critic: those in whose parameters theta_h, all together, its outputs f are
 * scale-invariant, f(c theta_h) = f(theta_h) for c > 0, with the other parameters fixed. The XQC
 * paper's Definition 1 and Theorem 1 speak of such functions (Palenicek et al., ICLR 2026).
 *
 * A dense or a conv2d is one if only a normalization reads its output, and this normalization does
 * not depend on the scale of what it reads (scale_free in layer.h). Its output is proportional
 * to its kernel and bias taken together; a kernel that is a function of other parameters (norm=) is
 * left out. Batch normalization does so only in training mode. The normalizations' epsilon spoils
 * the invariance a little. By Euler's theorem theta_h' g_h = 0 for the gradient g_h of the loss
 * in theta_h where it is exact. */

/* The number of parameters in theta_h of one critic; 0 if it has no such layer. */
size_t ks_hidden_parameters(const struct ks_problem *problem);

/* The scalar product over theta_h of two vectors in the parameters of one critic. */
double ks_hidden_dot(const struct ks_problem *problem, const double *a, const double *b);

/* --- the Jacobian --- */

enum { KS_JACOBIAN_STEPS = 5 }; /* Lanczos steps */

struct ks_row {
    size_t critic, minibatch, row;
};

/* *all: at most sigma_max of the Jacobian; *hidden: at most sigma_max of its columns for the
 * parameters of the hidden layers, left as it is if there are none. Both in float64, from a start
 * that depends on `stream` alone. KS_MEMORY, KS_NUMBER, and as ks_primal_new fails. */
ks_status ks_row_jacobian(const struct ks_problem *problem, struct ks_row row, uint64_t stream,
                          double *all, double *hidden);

#endif
