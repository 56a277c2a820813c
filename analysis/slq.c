/* Stochastic Lanczos quadrature (Ubaru, Chen, Saad, SIAM J. Matrix Anal. Appl. 38, 2017): for a
 * random start vector the Ritz values and their weights are the Gauss quadrature of the spectral
 * measure that the vector sees; its mean over start vectors is the spectral density of the
 * operator. */
#include "ks/slq.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "ks/jacobi.h"
#include "ks/memory.h"

static ks_status allocate(struct ks_spectrum *s, size_t probes, size_t order)
{
    double **array[] = {&s->alpha, &s->beta, &s->ritz, &s->weight, &s->residual};
    size_t size = probes * order;

    assert(probes > 0 && order > 0 && !s->ritz);
    s->probes = probes;
    s->order = order;
    for (size_t k = 0; k < sizeof array / sizeof array[0]; k++) {
        KS_TRY(ks_alloc(size, sizeof(double), array[k]));
        for (size_t i = 0; i < size; i++)
            (*array[k])[i] = NAN; /* what a breakdown leaves open */
    }
    return ks_alloc(probes, sizeof *s->steps, &s->steps);
}

ks_status ks_slq(const struct ks_operator *a, const struct ks_slq *slq, struct ks_spectrum *s)
{
    ks_status status = KS_OK;
    struct ks_lanczos *l = NULL;

    KS_GO(allocate(s, slq->probes, slq->order));
    KS_GO(ks_lanczos_new(a->n, slq->order, &l));
    for (size_t probe = 0; probe < slq->probes; probe++) {
        size_t row = probe * s->order;

        ks_lanczos_start(l, slq->seed, probe);
        while (l->steps < l->order && !l->exhausted) {
            KS_GO(ks_lanczos_step(l, a));
            if (slq->watch)
                slq->watch(slq->context, l);
        }
        memcpy(s->alpha + row, l->alpha, l->steps * sizeof(double));
        memcpy(s->beta + row, l->beta, l->steps * sizeof(double));
        s->steps[probe] = (int64_t)l->steps;
        KS_GO(ks_jacobi_ritz(l->steps, l->alpha, l->beta, s->ritz + row, s->weight + row,
                             s->residual + row));
    }
done:
    ks_lanczos_free(l);
    return status;
}
