/* Spectra of diagonal operators with certificates, the known null space being coordinates. */
#ifndef KS_TEST_CERTIFIED_H
#define KS_TEST_CERTIFIED_H

#include <cblas.h>

#include "known_spectra.h"
#include "statistics/certificate.h"

struct certified {
    struct ks_null_basis *basis;
    struct ks_certificates certificates;
    struct ks_statistics_terms terms;
    struct ks_spectrum *s;
};

/* The basis of coordinates 0 .. d-1. */
static inline struct ks_null_basis *first_coordinates(size_t n, size_t d)
{
    struct ks_null_basis *b = calloc(1, sizeof *b);

    *b = (struct ks_null_basis){.n = n, .dimension = d, .n_dead = d};
    b->dead = calloc(d, sizeof *b->dead);
    for (size_t i = 0; i < d; i++)
        b->dead[i] = i;
    return b;
}

static inline ks_status take_certificates(void *context, const struct ks_lanczos *l)
{
    return ks_certificates_take(context, l);
}

/* The results of ks_certify for a diagonal operator. */
static inline void certify_diagonal(const struct diagonal *d, struct ks_certificates *c)
{
    double *image = calloc(d->n, sizeof *image);

    for (size_t k = 0; k < KS_CERTIFICATES; k++) {
        struct ks_certificate *y = &c->vector[k];
        double norm = cblas_dnrm2((int)d->n, y->y, 1);

        for (size_t i = 0; y->formed && i < d->n; i++)
            image[i] = d->value[i] * y->y[i];
        if (!y->formed)
            continue;
        y->quotient = cblas_ddot((int)d->n, y->y, 1, image, 1) / norm / norm;
        y->size = cblas_dnrm2((int)d->n, image, 1) / norm;
        y->data_se = NAN;
    }
    c->certified = true;
    free(image);
}

/* How Lanczos is run, and what is known of the operator. */
struct certified_run {
    size_t order, probes;
    uint64_t seed;
    const struct ks_null *null; /* NULL: no known null space       */
    size_t operator_rank;       /* a bound of it; 0: none is known  */
    bool certify;               /* forms the certificates' float64 products */
};

static inline struct certified *estimate_certified(struct diagonal *d,
                                                   const struct certified_run *how)
{
    const struct ks_null *null = how->null;
    struct certified *e = calloc(1, sizeof *e);
    struct ks_operator a = diagonal_operator(d);
    struct slq slq = {.order = how->order,
                         .probes = how->probes,
                         .seed = how->seed,
                         .on_finished = take_certificates,
                         .context = &e->certificates};

    if (null && null->dimension + null->dead > 0)
        e->basis = first_coordinates(d->n, null->dimension + null->dead);
    assert_ok(
        ks_certificates_new(&(struct ks_certificates_sizes){d->n, d->n, how->probes, how->order,
                                                            KS_STATISTICS_PART, e->basis},
                            &e->certificates));
    e->s = spectrum_new();
    assert_ok(slq_run(&a, &slq, e->s));
    if (how->certify)
        certify_diagonal(d, &e->certificates);
    e->terms = (struct ks_statistics_terms){.n = d->n,
                                            .epsilon = DBL_EPSILON,
                                            .basis_epsilon = DBL_EPSILON,
                                            .null = null,
                                            .operator_rank = how->operator_rank,
                                            .certificates = &e->certificates};
    assert_ok(ks_statistics(e->s, &e->terms));
    return e;
}

static inline void certified_free(struct certified *e)
{
    ks_spectrum_free(e->s);
    ks_certificates_clear(&e->certificates);
    ks_null_basis_free(e->basis);
    free(e);
}

#endif
