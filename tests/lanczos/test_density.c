/* The smoothed density: its integral, mean and units, and degenerate spectra. */

#include "core/rng.h"
#include "spectra.h"

static double integral(size_t n, const double *x, const double *y, int power)
{
    double sum = 0;

    for (size_t i = 1; i < n; i++)
        sum += (x[i] - x[i - 1]) * (y[i] * pow(x[i], power) + y[i - 1] * pow(x[i - 1], power)) / 2;
    return sum;
}

/* An exact spectrum with these values and equal weights. */
static struct ks_spectrum *spectrum_of(size_t n, const double *value)
{
    struct ks_spectrum *s = spectrum_new();

    s->probes = 1;
    s->order = n;
    s->ritz = malloc(n * sizeof(double));
    s->weight = malloc(n * sizeof(double));
    memcpy(s->ritz, value, n * sizeof(double));
    for (size_t i = 0; i < n; i++)
        s->weight[i] = 1 / (double)n;
    assert_ok(ks_density(s));
    return s;
}

static void check_integrals(const struct ks_spectrum *s)
{
    for (size_t i = 1; i < s->n_grid; i++) {
        assert_true(s->grid[i] > s->grid[i - 1]);
        assert_true(s->symlog_grid[i] > s->symlog_grid[i - 1]);
        assert_true(s->density[i] >= 0 && s->symlog_density[i] >= 0);
    }
    assert_close(integral(s->n_grid, s->grid, s->density, 0), 1, 1e-6);
    assert_close(integral(s->n_grid, s->symlog_grid, s->symlog_density, 0), 1, 1e-3);
}

TEST(test_integrals)
{
    static const struct {
        size_t n;
        double value[4];
    } cases[] = {{1, {0}},           {1, {1}},
                 {1, {-3e7}},        {2, {-1, 1}},
                 {2, {0, 1e-9}},     {3, {1 - 1e-16, 1, 1 + 2e-16}},
                 {4, {-1, 0, 0, 0}}, {4, {-1e-12, 1e-12, 1e-3, 1e3}}};

    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        struct ks_spectrum *s = spectrum_of(cases[k].n, cases[k].value);

        check_integrals(s);
    }
}

/* A long and wide spectrum: more eigenvalues than grid points, over twelve decades, of both
 * signs. */
TEST(test_many_values)
{
    enum { N = 3000 };
    static double value[N];
    struct ks_rng rng = ks_rng_start(3, 0);
    struct ks_spectrum *s;

    for (size_t i = 0; i < N; i++)
        value[i] = pow(10, ks_rng_uniform(&rng, -12, 0)) * (i % 4 == 0 ? -1 : 1);
    s = spectrum_of(N, value);
    check_integrals(s);
}

/* Smoothing with an even kernel keeps the mean and adds sigma^2 to the variance; sigma as
 * documented. */
TEST(test_moments)
{
    const double value[] = {-2, 1, 7};
    struct ks_spectrum *s = spectrum_of(3, value);
    double sigma = 9 / (3 * sqrt(8 * log(3)));

    assert_close(integral(s->n_grid, s->grid, s->density, 1), 2, 1e-6);
    assert_close(integral(s->n_grid, s->grid, s->density, 2), 18 + sigma * sigma, 1e-5);
}

/* Probes have equal weight, whatever their number of iterations; padding has no weight. */
TEST(test_probes)
{
    const double ritz[] = {0, NAN, 1, 3}, weight[] = {1, NAN, 0.5, 0.5};
    const int64_t steps[] = {1, 2};
    struct ks_spectrum *s = spectrum_new();

    s->probes = 2;
    s->order = 2;
    s->ritz = malloc(sizeof ritz);
    s->weight = malloc(sizeof weight);
    s->steps = malloc(sizeof steps);
    memcpy(s->ritz, ritz, sizeof ritz);
    memcpy(s->weight, weight, sizeof weight);
    memcpy(s->steps, steps, sizeof steps);
    assert_ok(ks_density(s));
    check_integrals(s);
    assert_close(integral(s->n_grid, s->grid, s->density, 1), 1, 1e-6);
}

/* Scaling the loss by c only scales the axis. */
TEST(test_scaling)
{
    const double value[] = {-0.3, 0, 1e-5, 0.01, 2};
    const double factors[] = {0x1p-40, 1e7};

    for (size_t f = 0; f < 2; f++) {
        double scaled[5], c = factors[f], bound = f == 0 ? 0 : 1e-9;
        struct ks_spectrum *s = spectrum_of(5, value), *t;

        for (size_t i = 0; i < 5; i++)
            scaled[i] = c * value[i];
        t = spectrum_of(5, scaled);
        for (size_t i = 0; i < s->n_grid; i++) {
            assert_close(t->grid[i] / c, s->grid[i], bound);
            assert_close(t->symlog_grid[i] / c, s->symlog_grid[i], bound);
            assert_close(t->density[i] * c, s->density[i], bound * (1 + s->density[i]));
            assert_close(t->symlog_density[i] * c, s->symlog_density[i],
                         bound * (1 + s->symlog_density[i]));
        }
    }
}

/* The Laplacian's density is 1 / (pi sqrt(x (4 - x))): the estimate agrees in the middle. */
TEST(test_laplacian)
{
    size_t n = 20000;
    struct ks_operator a = laplacian_operator(&n);
    struct slq slq = {.order = 60, .probes = 3, .seed = 2};
    struct ks_spectrum *s = spectrum_new();
    double inside = 0;

    assert_ok(slq_run(&a, &slq, s));
    assert_ok(ks_density(s));
    check_integrals(s);
    for (size_t i = 1; i < s->n_grid; i++)
        if (s->grid[i] > 1 && s->grid[i] < 3)
            inside += (s->grid[i] - s->grid[i - 1]) * s->density[i];
    assert_close(inside, 1. / 3, 0.02); /* (asin(1/2) - asin(-1/2)) / pi */
}
