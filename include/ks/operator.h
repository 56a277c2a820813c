/* Linear operators on double vectors: what Lanczos, --apply and --exact see. */
#ifndef KS_OPERATOR_H
#define KS_OPERATOR_H

#include <stdbool.h>
#include <stddef.h>

#include "ks/checkpoint.h"
#include "ks/error.h"

struct ks_operator {
    size_t n;   /* dimension */
    void *self; /* its own data */
    /* out = A v, both [n]. */
    ks_status (*apply)(void *self, const double *v, double *out);
    void (*free)(void *self);
};

ks_status ks_operator_apply(const struct ks_operator *a, const double *v, double *out);
void ks_operator_free(struct ks_operator *a); /* frees a->self and the struct; NULL is fine */

/* What of a checkpoint is analyzed:
 *
 *   L(theta) = scale * ( 1/N sum_n sum_e 1/B sum_{i<B} l(f_e(input[n])[i], target[n,i])
 *                        + weight_decay/2 |theta|^2 )
 *
 * N = `minibatches`, the first of the checkpoint's. */
struct ks_problem {
    const struct ks_checkpoint *checkpoint; /* outlives the operator */
    size_t minibatches;
    bool evaluation; /* batchnorm by running statistics */
    double weight_decay, scale;
    size_t memory; /* bytes to keep primal quantities in; minibatches beyond it are recomputed */
};

/* The Hessian of L at the checkpoint's theta, a forward-over-reverse product; all that depends on
 * theta alone is computed here, once, in float64, and kept in the product's precision. One thread a
 * minibatch, as many as OpenMP has. Results depend on the number of threads by rounding only. */
ks_status ks_hessian_new_f32(const struct ks_problem *problem, struct ks_operator **hessian);
ks_status ks_hessian_new_f64(const struct ks_problem *problem, struct ks_operator **hessian);

/* L and its gradient [E P], always in float64. */
ks_status ks_gradient(const struct ks_problem *problem, double *loss, double *gradient);

#endif
