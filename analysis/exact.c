/* The whole spectrum of a small operator, to check the estimates by: A e_j for all j gives the
 * dense matrix, whose symmetric part (rounding makes the difference) goes to LAPACK. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include <lapacke.h>

#include "ks/memory.h"
#include "ks/slq.h"

static ks_status dense(const struct ks_operator *a, void (*watch)(void *, size_t), void *context,
                       double *matrix)
{
    ks_status status = KS_OK;
    size_t n = a->n;
    double *unit = NULL;

    KS_TRY(ks_alloc(n, sizeof(double), &unit));
    for (size_t j = 0; j < n; j++) {
        unit[j] = 1;
        KS_GO(ks_operator_apply(a, unit, matrix + j * n));
        unit[j] = 0;
        for (size_t i = 0; i < n; i++)
            if (!isfinite(matrix[j * n + i])) {
                status = ks_fail(KS_NUMBER,
                                 "product %zu of %zu with a unit vector holds a NaN or an "
                                 "infinity",
                                 j + 1, n);
                goto done;
            }
        if (watch)
            watch(context, j + 1);
    }
    for (size_t j = 0; j < n; j++)
        for (size_t i = 0; i < j; i++)
            matrix[i * n + j] = matrix[j * n + i] = (matrix[i * n + j] + matrix[j * n + i]) / 2;
done:
    free(unit);
    return status;
}

ks_status ks_exact(const struct ks_operator *a, void (*watch)(void *context, size_t products),
                   void *context, struct ks_spectrum *s)
{
    ks_status status = KS_OK;
    size_t n = a->n;
    double *matrix = NULL;
    lapack_int info;

    assert(n > 0 && !s->ritz);
    if (n > KS_EXACT_LIMIT)
        return ks_fail(KS_USAGE,
                       "--exact: expected at most %d parameters, found %zu; leave it out to "
                       "estimate the spectrum",
                       KS_EXACT_LIMIT, n);
    KS_GO(ks_alloc(n * n, sizeof(double), &matrix));
    KS_GO(ks_alloc(n, sizeof(double), &s->ritz));
    KS_GO(ks_alloc(n, sizeof(double), &s->weight));
    KS_GO(ks_alloc(n, sizeof(double), &s->residual)); /* all 0 */
    s->probes = 1;
    s->order = n;
    KS_GO(dense(a, watch, context, matrix));
    info = LAPACKE_dsyevd(LAPACK_COL_MAJOR, 'N', 'U', (lapack_int)n, matrix, (lapack_int)n,
                          s->ritz);
    if (info != 0) {
        status = ks_fail(KS_NUMBER, "LAPACK's dsyevd failed with info = %d", (int)info);
        goto done;
    }
    for (size_t i = 0; i < n; i++)
        s->weight[i] = 1 / (double)n;
done:
    free(matrix);
    return status;
}
