/* Operators with known spectra, for the tests of the code that takes an operator. */
#ifndef KS_TEST_OPERATORS_H
#define KS_TEST_OPERATORS_H

#include <math.h>
#include <stdlib.h>

#include "io/spectrum.h"
#include "lanczos/slq.h"
#include "operators/operator.h"

/* A new operator that is ready for products and may keep all intermediate results. */
static inline ks_status prepared(ks_status (*new)(const struct ks_problem *, struct ks_operator **),
                                 const struct ks_problem *problem, struct ks_operator **a)
{
    KS_TRY(new (problem, a));
    return ks_operator_prepare(*a, (size_t)1 << 24);
}

/* diag(value). Product number `fail_at` fails and number `nan_at` gives a NaN (0: never). */
struct diagonal {
    size_t n;
    const double *value;
    size_t products, fail_at, nan_at;
};

static inline ks_status diagonal_apply(void *self, const double *v, double *out)
{
    struct diagonal *d = self;

    d->products++;
    if (d->products == d->fail_at)
        return ks_fail(KS_IO, "the operator's own words");
    for (size_t i = 0; i < d->n; i++)
        out[i] = d->value[i] * v[i];
    if (d->products == d->nan_at)
        out[d->n - 1] = NAN;
    return KS_OK;
}

static inline struct ks_operator diagonal_operator(struct diagonal *d)
{
    return (struct ks_operator){.n = d->n, .self = d, .apply = diagonal_apply};
}

/* A symmetric matrix [n, n]. */
struct dense {
    size_t n;
    const double *matrix;
};

static inline ks_status dense_apply(void *self, const double *v, double *out)
{
    const struct dense *a = self;

    for (size_t i = 0; i < a->n; i++) {
        out[i] = 0;
        for (size_t j = 0; j < a->n; j++)
            out[i] += a->matrix[i * a->n + j] * v[j];
    }
    return KS_OK;
}

static inline struct ks_operator dense_operator(struct dense *a)
{
    return (struct ks_operator){.n = a->n, .self = a, .apply = dense_apply};
}

/* The 1-D Laplacian tridiag(-1, 2, -1): eigenvalues 2 - 2 cos(k pi / (n + 1)), k = 1 .. n. */
static inline ks_status laplacian_apply(void *self, const double *v, double *out)
{
    size_t n = *(const size_t *)self;

    for (size_t i = 0; i < n; i++)
        out[i] = 2 * v[i] - (i > 0 ? v[i - 1] : 0) - (i + 1 < n ? v[i + 1] : 0);
    return KS_OK;
}

static inline struct ks_operator laplacian_operator(size_t *n)
{
    return (struct ks_operator){.n = *n, .self = n, .apply = laplacian_apply};
}

static inline double laplacian_eigenvalue(size_t n, size_t k)
{
    return 2 - 2 * cos(3.14159265358979323846 * (double)k / ((double)n + 1));
}

/* An empty spectrum; ks_spectrum_free frees it. */
static inline struct ks_spectrum *spectrum_new(void)
{
    struct ks_spectrum *s = calloc(1, sizeof *s);

    if (!s)
        abort();
    return s;
}

/* Stochastic Lanczos quadrature of an operator, by the functions that the pipeline calls. */
struct slq {
    size_t order, probes;
    uint64_t seed;
    bool basis_f32, products_f32, published; /* as in struct ks_lanczos */
    const struct ks_team *team;
    const double *gradient; /* the start vector of one more probe; NULL: none */
    /* Called after each probe with a random start vector; may be NULL. */
    ks_status (*on_finished)(void *context, const struct ks_lanczos *lanczos);
    void *context;
};

static inline ks_status slq_probe(const struct ks_operator *a, const struct slq *slq,
                                  struct ks_lanczos *l, uint64_t probe)
{
    if (probe < slq->probes)
        ks_lanczos_start(l, slq->seed, probe);
    else
        KS_TRY(ks_lanczos_start_at(l, slq->gradient));
    while (l->steps < l->order && !l->exhausted)
        KS_TRY(ks_lanczos_step(l, a));
    return slq->on_finished && probe < slq->probes ? slq->on_finished(slq->context, l) : KS_OK;
}

static inline ks_status slq_run(const struct ks_operator *a, const struct slq *slq,
                                struct ks_spectrum *s)
{
    struct ks_lanczos *l = NULL;
    ks_status status = KS_OK;

    s->gradient = slq->gradient != NULL;
    KS_GO(ks_team_agree(slq->team, ks_slq_room(s, slq->probes + s->gradient, slq->order)));
    KS_GO(ks_team_agree(slq->team,
                        ks_lanczos_new(a->n, slq->order, slq->basis_f32, slq->team, &l)));
    l->products_f32 = slq->products_f32;
    l->published = slq->published;
    for (size_t probe = 0; probe < s->probes; probe++) {
        KS_GO(slq_probe(a, slq, l, probe));
        KS_GO(ks_team_agree(slq->team, ks_slq_store(l, probe, s)));
    }
done:
    ks_lanczos_free(l);
    return status;
}

#endif
