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
#ifndef KS_OPERATORS_HIDDEN_H
#define KS_OPERATORS_HIDDEN_H

#include <stddef.h>

#include "operators/operator.h"

/* The number of parameters in theta_h of one critic; 0 if it has no such layer. */
size_t ks_hidden_parameters(const struct ks_problem *problem);

/* The scalar product over theta_h of two vectors in the parameters of one critic. */
double ks_hidden_dot(const struct ks_problem *problem, const double *a, const double *b);

/* Sets the entries of such a vector for all other parameters to 0. */
void ks_hidden_project(const struct ks_problem *problem, double *v);

#endif
