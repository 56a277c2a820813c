#include "trials.h"

#include <lapacke.h>

#include "statistics/certificate.h"

static void orthogonalize(size_t n, size_t count, const double *basis, double *w)
{
    double *product = malloc(count * sizeof *product);

    if (!product)
        abort();
    for (size_t turn = 0; turn < 2; turn++) {
        cblas_dgemv(CblasRowMajor, CblasNoTrans, (int)count, (int)n, 1, basis, (int)n, w, 1, 0,
                    product, 1);
        cblas_dgemv(CblasRowMajor, CblasTrans, (int)count, (int)n, -1, basis, (int)n, product, 1, 1,
                    w, 1);
    }
    free(product);
}

size_t run_lanczos(struct lanczos_run *run, double *alpha, double *beta, bool *ended)
{
    size_t n = run->n, steps = 0;
    double *own = run->basis ? NULL : malloc((run->most + 1) * n * sizeof *own), size = 0;
    double *basis = run->basis ? run->basis : own, *first = basis + run->kept * n, norm;

    if (!basis)
        abort();
    memcpy(first, run->start, n * sizeof *first);
    if (run->kept > 0)
        orthogonalize(n, run->kept, basis, first);
    norm = sqrt(dot(n, first, first));
    for (size_t i = 0; i < n; i++)
        first[i] /= norm;
    *ended = false;
    while (steps < run->most && !*ended) {
        double *q = first + steps * n, *w = q + n;

        for (size_t i = 0; i < n; i++)
            w[i] = run->value[i] * q[i] +
                   (run->noise > 0 ? run->noise * ks_rng_normal(&run->rng) : 0);
        alpha[steps] = dot(n, q, w);
        orthogonalize(n, run->kept + steps + 1, basis, w);
        beta[steps] = sqrt(dot(n, w, w));
        size = fmax(size, fmax(fabs(alpha[steps]), beta[steps]));
        *ended = beta[steps] <= run->breakdown * size;
        for (size_t i = 0; i < n; i++)
            w[i] /= beta[steps];
        steps++;
    }
    free(own);
    return steps;
}

static void fill_power_law(struct spectrum *s)
{
    static const double outliers[] = {30, 12, 10, -4, 3.5};

    for (size_t i = 0; i < N; i++)
        s->value[i] = i < 5 ? outliers[i] : (i % 4 == 0 ? -1 : 1) * pow((double)i - 3, -1.5);
}

/* No eigenvalue is zero, but nearly all are small. */
static void fill_small_bulk(struct spectrum *s)
{
    for (size_t i = 0; i < N; i++)
        s->value[i] = i < 8 ? 1 - (double)i / 10
                            : (i % 2 == 0 ? 1e-4 : -1e-4) * (1 + (double)i / (2 * N));
}

static void fill_clusters(struct spectrum *s)
{
    static const double centre[] = {10, 5, 1, 0.05, 1e-3, -0.3, -1e-6, 1e-8};
    struct ks_rng rng = ks_rng_start(71, 0);

    for (size_t i = 0; i < N; i++)
        s->value[i] = centre[(i * i / 7) % 8] * (1 + 1e-3 * ks_rng_normal(&rng));
}

static void fill_unknown_zeros(struct spectrum *s)
{
    for (size_t i = 0; i < N; i++)
        s->value[i] = i < 400 ? 0 : (i % 3 == 0 ? -1 : 1) * exp(-(double)(i - 400) / 60);
}

/* Of 400 zeros, 350 are known as vectors and 380 by their number. */
static void fill_known_zeros(struct spectrum *s)
{
    fill_unknown_zeros(s);
    s->null = 350;
    s->least_nullity = 380;
}

void fill_all_zeros_known(struct spectrum *s)
{
    for (size_t i = 0; i < N; i++)
        s->value[i] = i < 700 ? 0 : 1 / ((double)i - 699);
    s->null = 700;
}

const struct spectra spectra[SPECTRA] = {
    {"power law", fill_power_law},     {"small bulk", fill_small_bulk},
    {"clusters", fill_clusters},       {"unknown zeros", fill_unknown_zeros},
    {"known zeros", fill_known_zeros}, {"all zeros known", fill_all_zeros_known}};

/* Bounds beyond all Ritz values; each fails with probability 0.25%. */
static void bound_ends(const struct trial *t, const struct ks_radau *r, double *low, double *high)
{
    double component = ks_extreme_bound_component(N, pow(0.0025, 1 / (double)t->in.probes));
    double first = r->theta[0], last = r->theta[r->m - 1];

    *low = fmin(*low, first - ks_extreme_bound_excess(r->m, r->theta, r->beta, first, component));
    *high = fmax(*high, last + ks_extreme_bound_excess(r->m, r->theta, r->beta, last, component));
}

/* Runs probe p, in the complement of `kept` rows of `basis` (NULL: none, as in lanczos_run). */
static void run_probe(const struct spectrum *s, size_t p, uint64_t seed, double noise,
                      double *basis, size_t kept, struct trial *t)
{
    double start[N];
    struct ks_rng rng = ks_rng_start(seed, p);
    struct lanczos_run run = {.n = N,
                              .most = ORDER,
                              .value = s->value,
                              .start = start,
                              .breakdown = 1e-14,
                              .noise = noise,
                              .rng = ks_rng_start(seed, 100 + p),
                              .basis = basis,
                              .kept = kept};
    struct ks_share_probe *probe = &t->probe[p];

    for (size_t i = 0; i < N; i++)
        start[i] = ks_rng_normal(&rng);
    *probe = (struct ks_share_probe){
        .alpha = t->alpha[p], .beta = t->beta[p], .start_norm2 = dot(N, start, start)};
    probe->null_weight = dot(s->null, start, start) / probe->start_norm2;
    probe->steps = run_lanczos(&run, t->alpha[p], t->beta[p], &probe->ended);
}

static void make(const struct spectrum *s, size_t probes, uint64_t seed, double noise,
                 double *basis, struct trial *t)
{
    double low = INFINITY, high = -INFINITY;

    t->in = (struct ks_shares_input){.n = N,
                                     .n_null = s->null,
                                     .least_nullity = s->least_nullity,
                                     .probes = probes,
                                     .probe = t->probe};
    for (size_t p = 0; p < probes; p++) {
        struct ks_share_probe *probe = &t->probe[p];
        struct ks_radau *r;

        run_probe(s, p, seed, noise, p == 0 ? basis : NULL, 0, t);
        assert_ok(ks_radau_new(probe->steps, probe->alpha, probe->beta, probe->ended, &r));
        bound_ends(t, r, &low, &high);
        t->in.abs_max_lower = fmax(t->in.abs_max_lower, r->size);
        ks_radau_free(r);
    }
    t->in.abs_max_upper = fmax(fabs(low), fabs(high));
    t->in.h = fmax(1e-13 * t->in.abs_max_lower, 4 * noise * sqrt(N));
}

void make_trial(const struct spectrum *s, size_t probes, uint64_t seed, double noise,
                struct trial *t)
{
    make(s, probes, seed, noise, NULL, t);
}

double null_weight_beside(size_t d, size_t m, size_t stride, const double *vectors,
                          const double *next, size_t *touched, double *last)
{
    const size_t k = d < m ? d : m;
    double *part = malloc(d * m * sizeof *part), *u = malloc(d * k * sizeof *u),
           *vt = malloc(k * m * sizeof *vt);
    double *sigma = malloc(k * sizeof *sigma), weight = dot(d, next, next);

    if (!part || !u || !vt || !sigma)
        abort();
    for (size_t j = 0; j < m; j++)
        memcpy(part + j * d, vectors + j * stride, d * sizeof *part);
    assert_int_equal(LAPACKE_dgesdd(LAPACK_COL_MAJOR, 'S', (int)d, (int)m, part, (int)d, sigma, u,
                                    (int)d, vt, (int)k),
                     0);
    for (*touched = 0; *touched < k && sigma[*touched] > KS_NULL_TOUCHED; ++*touched)
        weight -= pow(dot(d, u + *touched * d, next), 2);
    *last = 0;
    for (size_t i = *touched; i < k; i++)
        *last = hypot(*last, sigma[i] * vt[(m - 1) * k + i]);
    free(part), free(u), free(vt), free(sigma);
    return weight;
}

void make_trial_with_complement(const struct spectrum *s, size_t probes, uint64_t seed,
                                double noise, struct trial *t)
{
    double *basis = malloc((2 * (size_t)ORDER + 1) * N * sizeof *basis);
    size_t touched = 0;

    if (!basis)
        abort();
    make(s, probes, seed, noise, basis, t);
    run_probe(s, MOST_PROBES, seed, noise, basis, t->probe[0].steps, t);
    if (s->null > 0)
        t->probe[MOST_PROBES].null_weight = null_weight_beside(s->null, t->probe[0].steps, N, basis,
                                                               basis + t->probe[0].steps * N,
                                                               &touched, &t->in.null_last);
    t->in.n_null_beside = s->null - touched;
    t->in.complement = &t->probe[MOST_PROBES];
    free(basis);
}

int by_size(const void *a, const void *b)
{
    double x = fabs(*(const double *)a), y = fabs(*(const double *)b);

    return (x > y) - (x < y);
}

struct ks_shares truth_of(const struct spectrum *s, double h, double count_above)
{
    struct ks_shares truth;
    double size[N], zero = 0, negative = 0;

    truth.above.value = 0;
    memcpy(size, s->value, sizeof size);
    qsort(size, N, sizeof *size, by_size);
    for (size_t i = 0; i < N; i++) {
        size[i] = fabs(size[i]);
        zero += size[i] <= 2 * h;
        truth.above.value += size[i] > count_above;
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
