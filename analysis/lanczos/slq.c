/* Stochastic Lanczos quadrature (Ubaru, Chen, Saad, SIAM J. Matrix Anal. Appl. 38, 2017): the Ritz
 * values and their weights are the Gauss quadrature rule for the spectral measure of the start
 * vector. The mean of that measure over random start vectors is the spectral density of the
 * operator. */
#include "lanczos/slq.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "core/memory.h"
#include "lanczos/jacobi.h"

ks_status ks_slq_room(struct ks_spectrum *s, size_t probes, size_t order)
{
    double **array[] = {&s->alpha, &s->beta, &s->ritz, &s->weight, &s->residual};
    size_t size = probes * order;

    assert(probes > 0 && order > 0 && !s->ritz);
    s->probes = probes;
    s->order = order;
    for (size_t k = 0; k < sizeof array / sizeof array[0]; k++) {
        KS_TRY(ks_alloc(size, sizeof(double), array[k]));
        for (size_t i = 0; i < size; i++)
            (*array[k])[i] = NAN; /* after a breakdown the last entries stay NaN */
    }
    KS_TRY(ks_alloc(probes, sizeof *s->start_norm2, &s->start_norm2));
    return ks_alloc(probes, sizeof *s->steps, &s->steps);
}

ks_status ks_slq_store(const struct ks_lanczos *l, size_t row, struct ks_spectrum *s)
{
    const struct ks_jacobi t = {l->steps, l->alpha, l->beta};
    size_t at = row * s->order;

    memcpy(s->alpha + at, l->alpha, l->steps * sizeof(double));
    memcpy(s->beta + at, l->beta, l->steps * sizeof(double));
    s->steps[row] = (int64_t)l->steps;
    s->start_norm2[row] = l->start_norm * l->start_norm;
    return ks_jacobi_ritz(&t, s->ritz + at, s->weight + at, s->residual + at);
}
