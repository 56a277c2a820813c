/* The Lanczos basis in float32. */
#include "spectra.h"

static double value[20000];

static void fill_uniform(size_t n, double low, double high)
{
    for (size_t i = 0; i < n; i++)
        value[i] = low + (high - low) * (double)i / (double)(n - 1);
}

static struct ks_spectrum *estimate(const struct ks_operator *a, size_t order, bool single)
{
    struct ks_spectrum *s = spectrum_new();
    struct slq slq = {.order = order, .probes = 1, .seed = 7, .basis_f32 = single};

    assert_ok(slq_run(a, &slq, s));
    return s;
}

/* Vectors are rounded to float32, coefficients are not: the identities hold to the rounding of the
 * vectors, over several slices and blocks with a partial one at the end. */
TEST(test_identities)
{
    enum { M = 12 };
    struct diagonal d = {.n = 2 * 8192 + 517, .value = value};
    struct ks_operator a = diagonal_operator(&d);
    struct ks_lanczos *l;

    fill_uniform(d.n, -1, 1);
    l = lanczos_of(&a, M, true);
    ks_lanczos_start(l, 3, 0);
    while (l->steps < M)
        assert_ok(ks_lanczos_step(l));
    assert_null(l->basis);
    for (size_t i = 0; i <= M; i++)
        for (size_t j = 0; j <= i; j++) {
            double dot = 0;

            for (size_t k = 0; k < d.n; k++)
                dot += (double)l->rounded[i * d.n + k] * (double)l->rounded[j * d.n + k];
            assert_close(dot, i == j, FLT_EPSILON / 10); /* rounding errors cancel: eps / sqrt(n) */
        }
    for (size_t j = 0; j < M; j++)
        for (size_t k = 0; k < d.n; k++) {
            const float *q = l->rounded + j * d.n + k;
            double before = j > 0 ? l->beta[j - 1] * (double)*(q - d.n) : 0;

            assert_close(value[k] * (double)q[0],
                         before + l->alpha[j] * (double)q[0] + l->beta[j] * (double)q[d.n],
                         FLT_EPSILON / 10);
        }
}

/* Ritz values and weights agree with those of a basis in float64, and an outlier appears once. */
TEST(test_spectrum)
{
    enum { M = 60 };
    struct ks_operator a = DIAGONAL(1000, value);
    struct ks_spectrum *s, *t;
    double mean = 0;

    fill_uniform(1000, 0, 1);
    value[137] = 1000;
    s = estimate(&a, M, true);
    t = estimate(&a, M, false);
    assert_int_equal(s->steps[0], M);
    assert_close(s->ritz[M - 1], 1000, 1000 * FLT_EPSILON);
    /* in the bulk, which is 1000 times smaller */
    assert_close(s->ritz[M - 2], t->ritz[M - 2], 2e-3);
    assert_close(s->weight[M - 1], t->weight[M - 1], 1e-6);
    for (size_t i = 0; i < M - 1; i++) {
        assert_true(s->ritz[i] < 1.01);
        mean += s->weight[i] * s->ritz[i] - t->weight[i] * t->ritz[i];
    }
    assert_close(mean, 0, 1e-4);
}

/* As many iterations as there are different eigenvalues: the recurrence stops there. */
TEST(test_breakdowns)
{
    for (size_t different = 1; different <= 8; different++) {
        struct diagonal d = {.n = 10000, .value = value};
        struct ks_operator a = diagonal_operator(&d);
        struct ks_spectrum *s;

        for (size_t i = 0; i < d.n; i++)
            value[i] = (double)(i % different) - 2.5;
        s = estimate(&a, 30, true);
        assert_int_equal(s->steps[0], different);
        for (size_t i = 0; i < different; i++)
            assert_close(s->ritz[i], (double)i - 2.5, 1e-5);
    }
}

static int descending(const void *one, const void *two)
{
    const double a = *(const double *)one, b = *(const double *)two;

    return (a < b) - (a > b);
}

/* Cauchy's interlacing theorem: the k-th largest Ritz value is at most the k-th largest eigenvalue,
 * the k-th smallest at least the k-th smallest, to rounding: h of the counts is at least eight
 * times the eps of the basis. The iteration misses the end of the Krylov space, and goes on with
 * vectors of rounding errors. Measured: 0.13 eps. */
TEST(test_cauchy_in_float32)
{
    enum { M = 80 };

    for (size_t different = 10; different <= 50; different += 10) {
        struct diagonal d = {.n = 3000, .value = value};
        struct ks_operator a = diagonal_operator(&d);
        double sorted[3000], worst = 0;
        struct ks_spectrum *s;

        for (size_t i = 0; i < d.n; i++)
            value[i] = i < different ? 1 - (double)i / (2 * (double)different)
                                     : -1 / (1 + (double)(i % different));
        s = estimate(&a, M, true);
        memcpy(sorted, value, sizeof sorted);
        qsort(sorted, d.n, sizeof *sorted, descending);
        for (size_t k = 0; k < (size_t)s->steps[0]; k++) {
            worst = fmax(worst, s->ritz[(size_t)s->steps[0] - 1 - k] - sorted[k]);
            worst = fmax(worst, sorted[d.n - 1 - k] - s->ritz[k]);
        }
        assert_true(worst <= 8 * FLT_EPSILON);
    }
}
