/* Simulated runs of the analyzer on known spectra, for the tests of the statements about them: N
 * eigenvalues, ORDER iterations, one or more probes. */
#ifndef KS_TEST_TRIALS_H
#define KS_TEST_TRIALS_H

#include <string.h>

#include "core/rng.h"
#include "measures.h"
#include "statistics/extreme_bound.h"
#include "statistics/radau.h"
#include "statistics/shares.h"
#include "test.h"

enum { N = 1200, ORDER = 40, MOST_PROBES = 3, SPECTRA = 6 };

/* The first `null` eigenvalues are known to be zero; at least `least_nullity` of all are zero. */
struct spectrum {
    double value[N];
    size_t null, least_nullity;
};

static inline void fill_power_law(struct spectrum *s)
{
    static const double outliers[] = {30, 12, 10, -4, 3.5};

    for (size_t i = 0; i < N; i++)
        s->value[i] = i < 5 ? outliers[i] : (i % 4 == 0 ? -1 : 1) * pow((double)i - 3, -1.5);
}

/* No eigenvalue is zero, but nearly all are small. */
static inline void fill_small_bulk(struct spectrum *s)
{
    for (size_t i = 0; i < N; i++)
        s->value[i] = i < 8 ? 1 - (double)i / 10
                            : (i % 2 == 0 ? 1e-4 : -1e-4) * (1 + (double)i / (2 * N));
}

static inline void fill_clusters(struct spectrum *s)
{
    static const double centre[] = {10, 5, 1, 0.05, 1e-3, -0.3, -1e-6, 1e-8};
    struct ks_rng rng = ks_rng_start(71, 0);

    for (size_t i = 0; i < N; i++)
        s->value[i] = centre[(i * i / 7) % 8] * (1 + 1e-3 * ks_rng_normal(&rng));
}

static inline void fill_unknown_zeros(struct spectrum *s)
{
    for (size_t i = 0; i < N; i++)
        s->value[i] = i < 400 ? 0 : (i % 3 == 0 ? -1 : 1) * exp(-(double)(i - 400) / 60);
}

/* Of 400 zeros, 350 are known as vectors and 380 by their number. */
static inline void fill_known_zeros(struct spectrum *s)
{
    fill_unknown_zeros(s);
    s->null = 350;
    s->least_nullity = 380;
}

static inline void fill_all_zeros_known(struct spectrum *s)
{
    for (size_t i = 0; i < N; i++)
        s->value[i] = i < 700 ? 0 : 1 / ((double)i - 699);
    s->null = 700;
}

static const struct {
    const char *name;
    void (*fill)(struct spectrum *s);
} spectra[SPECTRA] = {{"power law", fill_power_law},     {"small bulk", fill_small_bulk},
                      {"clusters", fill_clusters},       {"unknown zeros", fill_unknown_zeros},
                      {"known zeros", fill_known_zeros}, {"all zeros known", fill_all_zeros_known}};

/* The results of one simulated run. */
struct trial {
    struct ks_share_probe probe[MOST_PROBES];
    double alpha[MOST_PROBES][ORDER], beta[MOST_PROBES][ORDER];
    struct ks_shares_input in;
};

/* Bounds beyond all Ritz values; each fails with probability 0.25%. */
static inline void bound_ends(const struct trial *t, const struct ks_radau *r, double *low,
                              double *high)
{
    double component = ks_extreme_bound_component(N, pow(0.0025, 1 / (double)t->in.probes));
    double first = r->theta[0], last = r->theta[r->m - 1];

    *low = fmin(*low, first - ks_extreme_bound_excess(r->m, r->theta, r->beta, first, component));
    *high = fmax(*high, last + ks_extreme_bound_excess(r->m, r->theta, r->beta, last, component));
}

/* Runs Lanczos from `probes` start vectors; `noise` as in struct lanczos_run. */
static inline void make_trial(const struct spectrum *s, size_t probes, uint64_t seed, double noise,
                              struct trial *t)
{
    double low = INFINITY, high = -INFINITY;

    t->in = (struct ks_shares_input){.n = N,
                                     .n_null = s->null,
                                     .least_nullity = s->least_nullity,
                                     .probes = probes,
                                     .probe = t->probe};
    for (size_t p = 0; p < probes; p++) {
        double start[N];
        struct ks_rng rng = ks_rng_start(seed, p);
        struct lanczos_run run = {.n = N,
                                  .most = ORDER,
                                  .value = s->value,
                                  .start = start,
                                  .breakdown = 1e-14,
                                  .noise = noise,
                                  .rng = ks_rng_start(seed, 100 + p)};
        struct ks_share_probe *probe = &t->probe[p];
        struct ks_radau *r;

        for (size_t i = 0; i < N; i++)
            start[i] = ks_rng_normal(&rng);
        *probe = (struct ks_share_probe){
            .alpha = t->alpha[p], .beta = t->beta[p], .start_norm2 = dot(N, start, start)};
        probe->null_weight = dot(s->null, start, start) / probe->start_norm2;
        probe->steps = run_lanczos(&run, t->alpha[p], t->beta[p], &probe->ended);
        assert_ok(ks_radau_new(probe->steps, probe->alpha, probe->beta, probe->ended, &r));
        bound_ends(t, r, &low, &high);
        t->in.abs_max_lower = fmax(t->in.abs_max_lower, r->size);
        ks_radau_free(r);
    }
    t->in.abs_max_upper = fmax(fabs(low), fabs(high));
    t->in.h = fmax(1e-13 * t->in.abs_max_lower, 4 * noise * sqrt(N));
}

static inline int by_size(const void *a, const void *b)
{
    double x = fabs(*(const double *)a), y = fabs(*(const double *)b);

    return (x > y) - (x < y);
}

/* The true values for a spectrum, with the resolution h. */
static inline struct ks_shares truth_of(const struct spectrum *s, double h)
{
    struct ks_shares truth;
    double size[N], zero = 0, negative = 0;

    memcpy(size, s->value, sizeof size);
    qsort(size, N, sizeof *size, by_size);
    for (size_t i = 0; i < N; i++) {
        size[i] = fabs(size[i]);
        zero += size[i] <= 2 * h;
        negative += s->value[i] < -2 * h;
    }
    for (size_t k = 0; k < KS_DIRECTIONS; k++) {
        truth.directions[k].value = 0;
        for (size_t i = 0; i < N; i++)
            truth.directions[k].value += size[i] > size[N - 1] / ks_direction_factor[k];
    }
    for (size_t k = 0; k < KS_QUANTILES; k++)
        truth.kappa_q[k].lower = size[N - 1] / size[N / 100 * ks_quantile_percent[k] - 1];
    truth.zero_mass.value = zero / N;
    truth.negative_mass.value = negative / N;
    return truth;
}

#endif
