/* How near the gradient of a cross-entropy comes to its bounds, and how large the unbounded
 * gradient of a squared error is (Palenicek et al., XQC, ICLR 2026, Propositions 1 and 2, Lemma 1,
 * Theorem 1).
 *
 * With p_i the softmax of row i's logits f_i and t_i its target, the gradient in the logits is
 * p_i - t_i, whose norm is at most sqrt 2 (Proposition 2). The gradient of one critic's loss on one
 * minibatch is
 *
 *   g = 1/B sum_{i<B} J_i' (p_i - t_i),   so   |g| <= sqrt 2 L_f,   L_f = max_i sigma_max(J_i),
 *
 * which is Lemma 1 with Proposition 2. With weights w_i of the rows, g is divided by their mean;
 * then the inequality holds as well, as |g| <= 1/B sum_i w_i |J_i'| |p_i - t_i|. Rows of weight 0
 * are left out.
 *
 * Here J_i is the Jacobian of row i's logits in the critic's parameters. In training mode, batch
 * normalization makes the logits of one row depend on all rows of the minibatch. J_i then contains
 * the derivatives through the minibatch's statistics, as g does; without them the inequality would
 * not hold.
 *
 * Theorem 1 bounds the effective update eta |g| / |theta| of a scale-invariant f by eta sqrt 2 L_f
 * / |theta|. It is evaluated in the parameters theta_h of the hidden layers (see below), for
 * which f is scale-invariant: g_h and L_h are g and L_f with the derivatives by all other
 * parameters left out, and |g_h| / |theta_h| <= sqrt 2 L_h / |theta_h|.
 *
 * sigma_max(J_i) is bounded from below (row_jacobian.c) and for a few rows only. So the largest
 * number found is a lower bound of L_f, and likewise of L_h.
 *
 * The gradient of a squared error (f_i - y_i)^2 / 2 in the prediction is f_i - y_i, which is not
 * bounded (Proposition 1). Of this loss nothing else is computed. */
#ifndef KS_OPERATORS_GRADIENT_BOUNDS_H
#define KS_OPERATORS_GRADIENT_BOUNDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "core/memory.h"
#include "operators/operator.h"

enum { KS_JACOBIAN_ROWS = 4 }; /* rows whose sigma_max is found, spread over all */

struct ks_gradient_bounds {
    size_t rows, pairs;       /* of all critics and minibatches; critics times minibatches */
    bool weighted;            /* the checkpoint has weights of rows                        */
    bool squared;             /* the loss is a squared error: only `output` is used        */
    size_t hidden_parameters; /* in theta_h of one critic; 0: its g_h and L_h are 0  */
    double hidden_norm;       /* the smallest |theta_h| of the critics               */
    double *output;           /* [rows] |p_i - t_i| or |f_i - y_i|, 0 for a row of weight 0 */
    double *gradient;         /* [pairs] |g|, 0 where all weights are 0              */
    double *hidden;           /* [pairs] |g_h|, likewise                             */
    double *radial;           /* [pairs] |theta_h' g_h| / (|theta_h| |g_h|), or 0 */
    double jacobian[KS_JACOBIAN_ROWS];        /* at most sigma_max(J_i)              */
    double hidden_jacobian[KS_JACOBIAN_ROWS]; /* likewise in theta_h                 */
    struct ks_arena arena;                    /* of `output` to `radial`             */
};

/* Whether there are gradient bounds: the loss is a cross-entropy or a squared error, and not
 * multiplied by 0. */
bool ks_gradient_bounds_exist(const struct ks_problem *problem);

/* Measures on the problem's minibatches, in float64. The loss is neither scaled nor decayed, and
 * its weight does not count. Fails as ks_gradient does. The caller frees `pool`, also after a
 * failure.
 */
ks_status ks_gradient_bounds_measure(const struct ks_problem *problem,
                                     struct ks_gradient_bounds *bounds);
/* Adds logit_gradient_, minibatch_gradient_ and logit_jacobian_, each with `largest` and `median`,
 * logit_jacobian_rows, minibatch_gradient_hidden_ and logit_jacobian_hidden_, again with both,
 * hidden_norm, hidden_radial_largest, and prediction_error_ with both. What was not computed is
 * NaN; all of them if all fields are 0. Sorts the arrays. */
void ks_gradient_bounds_add(struct ks_gradient_bounds *bounds, struct ks_attributes *statistics);

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

/* --- the largest singular value of the Jacobian J of one row's logits in the parameters of one
 * critic, by a few Lanczos steps on J J', whose Ritz values are at most sigma_max^2. In training
 * mode batch normalization makes the logits of one row depend on all rows of the minibatch; J then
 * contains the derivatives through the minibatch's statistics. --- */

enum { KS_JACOBIAN_STEPS = 5 }; /* Lanczos steps */

struct ks_jacobian_row {
    size_t critic, minibatch, row;
};

/* *all: at most sigma_max of the Jacobian; *hidden: at most sigma_max of its columns for the
 * parameters of the hidden layers, left as it is if there are none. Both in float64, from a start
 * that depends on `stream` alone. KS_MEMORY, KS_NUMBER, and as ks_primal_new fails. */
ks_status ks_row_jacobian(const struct ks_problem *problem, struct ks_jacobian_row row,
                          uint64_t stream, double *all, double *hidden);

#endif
