/* Spectra with known statistics. */
#ifndef KS_TEST_KNOWN_SPECTRA_H
#define KS_TEST_KNOWN_SPECTRA_H

#include <float.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lanczos/slq.h"
#include "operators.h"
#include "operators/null_space.h"
#include "statistics/statistics.h"
#include "test.h"

/* An exact spectrum with these values and weights. */
static inline struct ks_spectrum *spectrum_of(size_t n, const double *ritz, const double *weight)
{
    struct ks_spectrum *s = spectrum_new();

    s->probes = 1;
    s->order = n;
    s->ritz = malloc(n * sizeof(double));
    s->weight = malloc(n * sizeof(double));
    s->residual = calloc(n, sizeof(double));
    memcpy(s->ritz, ritz, n * sizeof(double));
    memcpy(s->weight, weight, n * sizeof(double));
    return s;
}

static inline void compute_statistics(struct ks_spectrum *s, size_t n)
{
    assert_ok(ks_statistics(s, &(struct ks_statistics_terms){.n = n, .epsilon = DBL_EPSILON}));
}

/* By Lanczos. `null`: known null directions, which enter the statistics; may be NULL. */
static inline struct ks_spectrum *estimate_with(const struct ks_operator *a, size_t order,
                                                size_t probes, uint64_t seed,
                                                const struct ks_null *null)
{
    struct ks_spectrum *s = spectrum_new();
    struct slq slq = {.order = order, .probes = probes, .seed = seed};
    struct ks_statistics_terms terms = {
        .n = a->n, .epsilon = DBL_EPSILON, .basis_epsilon = DBL_EPSILON, .null = null};

    assert_ok(slq_run(a, &slq, s));
    assert_ok(ks_statistics(s, &terms));
    return s;
}

static inline struct ks_spectrum *estimate(const struct ks_operator *a, size_t order, size_t probes)
{
    return estimate_with(a, order, probes, 5, NULL);
}

/* The spectrum with all eigenvalues. */
static inline struct ks_spectrum *exact_with(const struct ks_operator *a,
                                             const struct ks_null *null)
{
    struct ks_spectrum *s = spectrum_new();
    struct ks_statistics_terms terms = {
        .n = a->n, .epsilon = DBL_EPSILON, .basis_epsilon = DBL_EPSILON, .null = null};

    assert_ok(ks_exact(a, NULL, NULL, s));
    assert_ok(ks_statistics(s, &terms));
    return s;
}

static inline void check(const struct ks_spectrum *s, const char *name, double expected)
{
    double found = ks_statistic(s, name);

    if (!(fabs(found - expected) <= 1e-13 * (1 + fabs(expected))))
        fail_msg("%s = %.17g, expected %.17g", name, found, expected);
}

static inline bool has_statistic(const struct ks_spectrum *s, const char *name)
{
    for (size_t i = 0; i < s->statistics.n; i++)
        if (strcmp(s->statistics.list[i].name, name) == 0)
            return true;
    return false;
}

#endif
