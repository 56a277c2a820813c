/* Critics whose Hessian has a prescribed spectrum. */
#ifndef KS_TEST_SPECTRA_CRITICS_H
#define KS_TEST_SPECTRA_CRITICS_H

#include <math.h>
#include <stdlib.h>

#include "memory_critics.h"

/* One critic and one minibatch of `rows` rows; weights, inputs and targets are 0. */
static inline struct ks_checkpoint *one_minibatch(const char *text, size_t in, size_t rows)
{
    return blank_critic(text, (struct critic_sizes){1, in, 1, rows, rows});
}

/* Linear regression on `n` orthogonal rows: H = X'X / n = diag(value), with value[i] >= 0. */
static inline struct ks_checkpoint *diagonal_critic(size_t n, const double *value)
{
    struct ks_checkpoint *c = one_minibatch("dense 1 bias=no\nloss mse\n", n, n);

    for (size_t i = 0; i < n; i++) {
        c->input[i * n + i] = sqrt((double)n) * sqrt(value[i]);
        c->target[i] = 1;
    }
    return c;
}

/* f = sum_k w_2k w_1k x_k at w = 0, where row k is x_k. The only nonzero entries of the Hessian are
 * d2L/dw_1k dw_2k = -x_k t_k / n, so its eigenvalues are +-value[k], k < n. */
static inline struct ks_checkpoint *symmetric_critic(size_t n, const double *value)
{
    char text[128];
    struct ks_checkpoint *c;

    snprintf(text, sizeof text, "dense %zu groups=%zu bias=no\ndense 1 bias=no\nloss mse\n", n, n);
    c = one_minibatch(text, n, n);
    for (size_t i = 0; i < n; i++) {
        c->input[i * n + i] = (double)n * value[i];
        c->target[i] = 1;
    }
    return c;
}

#endif
