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

static ks_status run_probe(struct ks_lanczos *l, const struct ks_operator *a,
                           const struct ks_slq *slq, uint64_t probe)
{
    if (probe < slq->probes)
        ks_lanczos_start(l, slq->seed, probe);
    else
        KS_TRY(ks_lanczos_start_at(l, slq->gradient));
    while (l->steps < l->order && !l->exhausted) {
        KS_TRY(ks_lanczos_step(l, a));
        if (slq->on_step)
            slq->on_step(slq->context, l);
    }
    return slq->on_finished && probe < slq->probes ? slq->on_finished(slq->finished_context, l)
                                                   : KS_OK;
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

/* Runs the probes of this rank's group. */
static ks_status run_probes(const struct ks_operator *a, const struct ks_slq *slq,
                            struct ks_spectrum *s)
{
    size_t groups = slq->groups > 0 ? slq->groups : 1;
    ks_status status = KS_OK;
    struct ks_lanczos *l = NULL;

    KS_GO(ks_team_agree(slq->team, ks_lanczos_new(a->n, slq->order, slq->single, slq->team, &l)));
    l->xqc = slq->xqc;
    l->single_products = slq->single_products;
    for (size_t probe = slq->group; probe < s->probes; probe += groups) {
        KS_GO(run_probe(l, a, slq, probe));
        KS_GO(ks_team_agree(slq->team, ks_slq_store(l, probe, s)));
    }
done:
    ks_lanczos_free(l);
    return status;
}

size_t ks_slq_group(const struct ks_team *world, int rank, size_t groups)
{
    return (size_t)rank * groups / (size_t)ks_team_size(world);
}

int ks_slq_first(const struct ks_team *world, size_t probe, size_t groups)
{
    int first = 0;

    while (ks_slq_group(world, first, groups) != probe % groups)
        first++;
    return first;
}

/* Sends the results of every probe from the first rank of its group to all ranks. */
static void collect(const struct ks_slq *slq, struct ks_spectrum *s)
{
    double *const arrays[] = {s->alpha, s->beta, s->ritz, s->weight, s->residual};

    for (size_t probe = 0; probe < s->probes && slq->groups > 1; probe++) {
        int first = ks_slq_first(slq->world, probe, slq->groups);

        ks_team_broadcast(slq->world, first, sizeof *s->steps, s->steps + probe);
        ks_team_broadcast(slq->world, first, sizeof(double), s->start_norm2 + probe);
        for (size_t k = 0; k < sizeof arrays / sizeof *arrays; k++)
            ks_team_broadcast(slq->world, first, s->order * sizeof(double),
                              arrays[k] + probe * s->order);
    }
}

ks_status ks_slq(const struct ks_operator *a, const struct ks_slq *slq, struct ks_spectrum *s)
{
    s->gradient = slq->gradient != NULL;
    KS_TRY(ks_team_agree(slq->world, ks_slq_room(s, slq->probes + s->gradient, slq->order)));
    KS_TRY(ks_team_agree(slq->world, run_probes(a, slq, s)));
    collect(slq, s);
    return KS_OK;
}
