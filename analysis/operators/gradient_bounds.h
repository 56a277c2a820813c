/* How near the gradient of a cross-entropy comes to its bounds (Palenicek et al., XQC, ICLR 2026,
 * Proposition 2 and Theorem 1).
 *
 * With p_i the softmax of row i's logits f_i and t_i its target, the gradient in the logits is
 * p_i - t_i, whose norm is at most sqrt 2. The gradient of one critic's loss on one minibatch is
 *
 *   g = 1/B sum_{i<B} J_i' (p_i - t_i),   so   |g| <= sqrt 2 L_f,   L_f = max_i sigma_max(J_i),
 *
 * With weights w_i of the rows, g is divided by their mean; then the inequality holds as well, as
 * |g| <= 1/B sum_i w_i |J_i'| |p_i - t_i|. Rows of weight 0 are left out.
 *
 * Here J_i is the Jacobian of row i's logits in the critic's parameters. In training mode, batch
 * normalization makes the logits of one row depend on all rows of the minibatch. J_i then contains
 * the derivatives through the minibatch's statistics, as g does; without them the inequality would
 * not hold.
 *
 * sigma_max(J_i) is found by a few Lanczos steps on J_i J_i', whose Ritz values are at most
 * sigma_max^2, and for a few rows only. So the largest number found is a lower bound of L_f. */
#ifndef KS_OPERATORS_GRADIENT_BOUNDS_H
#define KS_OPERATORS_GRADIENT_BOUNDS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "operators/operator.h"

enum {
    KS_JACOBIAN_ROWS = 4, /* rows whose sigma_max is found, spread over all */
    KS_JACOBIAN_STEPS = 5 /* Lanczos steps for each                         */
};

/* The sums over ranks of these arrays are complete: a rank fills in what it has, the rest is 0. */
struct ks_gradient_bounds {
    size_t rows, pairs; /* of all critics and minibatches; critics times minibatches */
    bool weighted;      /* the checkpoint has weights of rows                        */
    double *logit;      /* [rows] |p_i - t_i|, 0 for a row of weight 0; owned        */
    double *gradient;   /* [pairs] |g|, 0 where all weights are 0; owned             */
    double jacobian[KS_JACOBIAN_ROWS]; /* at most sigma_max(J_i)                    */
};

/* Whether there are such bounds: the loss is a cross-entropy, and not multiplied by 0. */
bool ks_gradient_bounds_exist(const struct ks_problem *problem);

/* Measures on this rank's minibatches, numbers rank, rank + size, ... of all (distribute.h), in
 * float64. The loss is neither scaled nor decayed, and its weight does not count. Fails as
 * ks_gradient does. The caller frees with ks_gradient_bounds_clear, also after a failure. */
ks_status ks_gradient_bounds_measure(const struct ks_problem *problem, size_t rank, size_t size,
                                     struct ks_gradient_bounds *bounds);
void ks_gradient_bounds_clear(struct ks_gradient_bounds *bounds);

/* Adds logit_gradient_, minibatch_gradient_ and logit_jacobian_, each with `largest` and `median`,
 * and logit_jacobian_rows; NaN if nothing was measured (all fields 0). Sorts the arrays. KS_MEMORY.
 */
ks_status ks_gradient_bounds_add(struct ks_gradient_bounds *bounds,
                                 struct ks_attributes *statistics);

#endif
