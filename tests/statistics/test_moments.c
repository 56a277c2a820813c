/* Outliers, and moments over all eigenvalues in which each outlier counts as one eigenvalue. */
#include "spectra.h"

#include "core/rng.h"

enum { N = 400 };
static double value[N];

/* m4 / m2^2 over all n values. */
static double kurtosis_of(size_t n)
{
    double mean = 0, m2 = 0, m4 = 0;

    for (size_t i = 0; i < n; i++)
        mean += value[i] / (double)n;
    for (size_t i = 0; i < n; i++) {
        m2 += pow(value[i] - mean, 2) / (double)n;
        m4 += pow(value[i] - mean, 4) / (double)n;
    }
    return m4 / (m2 * m2);
}

/* The moments by plain quadrature, for the first probe. */
static double quadrature_kurtosis(const struct ks_spectrum *s)
{
    size_t m = (size_t)s->steps[0];
    double mean = 0, m2 = 0, m4 = 0;

    for (size_t i = 0; i < m; i++)
        mean += s->weight[i] * s->ritz[i];
    for (size_t i = 0; i < m; i++) {
        m2 += s->weight[i] * pow(s->ritz[i] - mean, 2);
        m4 += s->weight[i] * pow(s->ritz[i] - mean, 4);
    }
    return m4 / (m2 * m2);
}

/* Ritz values count from both ends up to the first that has not converged; its limit is 1/1000 of
 * the distance to the next one inward. */
TEST(test_outliers_by_hand)
{
    const double ritz[] = {-50, -20, -3, 1, 2, 4, 10, 30},
                 w[8] = {1. / 8, 1. / 8, 1. / 8, 1. / 8, 1. / 8, 1. / 8, 1. / 8, 1. / 8};
    static const struct {
        double residual[8], outliers;
    } cases[] = {
        {{1, 1, 1, 1, 1, 1, 1, 1}, 0},
        {{0.03, 1, 1, 1, 1, 1, 0.006, 0.02}, 3}, /* at the limit */
        /* above the limit; values further inside do not count */
        {{0.031, 0, 1, 1, 1, 1, 0.0061, 0.02}, 1},
        {{0, 0, 0, 1, 1, 1, 1, 1}, 3}, /* at one end only */
        {{0, 0, 0, 0, 0, 0, 0, 1}, 7}, /* all but the last */
        {{0, 0, 0, 0, 0, 0, 0, 0}, 8}, /* all, each counted once */
    };

    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        struct ks_spectrum *s = exact_spectrum(8, ritz, w);

        memcpy(s->residual, cases[k].residual, sizeof cases[k].residual);
        compute_statistics(s, 1000);
        check_statistic(s, "outliers", cases[k].outliers);
        check_statistic(s, "outlier_gap", 30);
    }
}

/* diag(5, 4, 3, 0, ...) + Z Z' / n (Papyan, JMLR 21, 2020): three outliers above a bulk on [0, 4].
 * The negated operator has them below it. */
TEST(test_spiked)
{
    enum { SIZE = 200 };
    static double z[SIZE][SIZE], matrix[SIZE * SIZE];
    struct dense dense = {.n = SIZE, .matrix = matrix};
    struct ks_operator a = dense_operator(&dense);
    struct ks_rng rng = ks_rng_start(11, 0);

    for (size_t i = 0; i < SIZE; i++)
        for (size_t j = 0; j < SIZE; j++)
            z[i][j] = ks_rng_normal(&rng);
    for (int sign = 1; sign >= -1; sign -= 2) {
        struct ks_spectrum *s, *exact;

        for (size_t i = 0; i < SIZE; i++)
            for (size_t j = 0; j < SIZE; j++) {
                double sum = i == j && i < 3 ? 5 - (double)i : 0;

                for (size_t k = 0; k < SIZE; k++)
                    sum += z[i][k] * z[j][k] / SIZE;
                matrix[i * SIZE + j] = sign * sum;
            }
        exact = exact_with(&a, NULL);
        s = estimate_spectrum(&a, 40, 2);
        assert_true(ks_statistic(s, "outliers_m30") >= 3);
        assert_true(ks_statistic(s, "outliers") <= 5); /* the edges of the bulk begin to converge */
        check_statistic(exact, "outliers", SIZE);
        if (sign > 0)
            assert_close(ks_statistic(s, "outlier_gap"), ks_statistic(exact, "outlier_gap"),
                         0.02 * ks_statistic(exact, "outlier_gap"));
    }
}

/* All eigenvalues with weights 1/n: the moments of the list. */
TEST(test_kurtosis_exact)
{
    struct ks_operator a = DIAGONAL(N, value);
    struct ks_spectrum *s;

    for (size_t i = 0; i < N; i++)
        value[i] = i < 5 ? 100 * (double)(i + 1) : i < 200 ? 0 : sin((double)i);
    s = exact_with(&a, NULL);
    assert_close(ks_statistic(s, "kurtosis_spectral"), kurtosis_of(N), 1e-10 * kurtosis_of(N));
    check_statistic(s, "outliers", N);
}

/* Outliers above and below one repeated value. All Ritz values have converged. At zero the repeated
 * value is the bulk, and the moments are exact. Elsewhere there is no bulk, so the repeated value
 * is a multiple outlier and the weights are kept. */
TEST(test_kurtosis_of_point_masses)
{
    struct ks_operator a = DIAGONAL(N, value);

    for (int bulk = -1; bulk <= 1; bulk++)
        for (uint64_t seed = 0; seed < 20; seed++) {
            struct ks_spectrum *s;
            double trace = 0;

            for (size_t i = 0; i < N; i++)
                value[i] = i < 4 ? 50 * (double)(i + 1) : i < 6 ? -30 * (double)i : bulk;
            s = estimate_with(&a, 30, 1, seed, true);
            assert_int_equal(s->steps[0], 7);
            for (size_t i = 0; i < 7; i++)
                trace += N * s->weight[i] * s->ritz[i];
            if (bulk == 0) {
                assert_close(ks_statistic(s, "kurtosis_spectral"), kurtosis_of(N),
                             1e-10 * kurtosis_of(N));
                assert_close(ks_statistic(s, "trace"), 230, 1e-10);
            } else {
                assert_false(has_statistic(s, "kurtosis_spectral"));
                assert_close(ks_statistic(s, "trace"), trace, 1e-12 * fabs(trace));
            }
        }
}

/* Outliers above a wide bulk determine the moments, which are exact. Plain quadrature is off by a
 * factor that depends on the seed. */
TEST(test_kurtosis_with_outliers)
{
    struct ks_operator a = DIAGONAL(N, value);
    double plain = 0;

    for (size_t i = 0; i < N; i++)
        value[i] = i == 0 ? 40 : i == 1 ? 25 : i == 2 ? -30 : cos((double)i);
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct ks_spectrum *s = estimate_with(&a, 40, 1, seed, true);

        check_statistic(s, "outliers", 3);
        assert_close(ks_statistic(s, "kurtosis_spectral"), kurtosis_of(N), 0.03 * kurtosis_of(N));
        plain = fmax(plain, quadrature_kurtosis(s) / kurtosis_of(N));
    }
    assert_true(plain > 1.5);
}

/* No outliers, one value, two values with a given ratio, and all eigenvalues. */
TEST(test_kurtosis_otherwise)
{
    struct diagonal d = {.n = N, .value = value}, small = {.n = 12, .value = value};
    struct ks_operator a = diagonal_operator(&d), b = diagonal_operator(&small);
    struct ks_spectrum *s;

    for (size_t i = 0; i < N; i++)
        value[i] = (double)i;
    s = estimate_spectrum(&a, 30, 20);
    assert_close(ks_statistic(s, "kurtosis_spectral"), 1.8, /* of a uniform distribution */
                 4 * ks_statistic(s, "kurtosis_spectral_se"));
    for (size_t i = 0; i < N; i++)
        value[i] = 2.5;
    s = estimate_spectrum(&a, 30, 1);
    assert_true(isnan(ks_statistic(s, "kurtosis_spectral")));
    assert_true(isnan(ks_statistic(s, "outlier_gap")));
    check_statistic(s, "outliers", 0);
    for (size_t i = 0; i < N; i++)
        value[i] = i % 4 == 0 ? 1 : 7;
    s = estimate_spectrum(&a, 30, 50); /* no outlier here is a simple eigenvalue */
    assert_false(has_statistic(s, "kurtosis_spectral") || has_statistic(s, "kurtosis_spectral_se"));
    assert_close(ks_statistic(s, "trace"), 5.5 * N, 4 * ks_statistic(s, "trace_se"));
    for (size_t i = 0; i < 12; i++)
        value[i] = sin((double)(i * i));
    s = estimate_spectrum(&b, 30, 1);
    assert_close(ks_statistic(s, "kurtosis_spectral"), kurtosis_of(12), 1e-9);
    /* Several equal eigenvalues of each size, so that each weight fits more than one, and no bulk:
     * the weights are kept. */
    for (size_t i = 0; i < 12; i++)
        value[i] = i % 3 == 0 ? 1 : i % 3 == 1 ? 2 : 7;
    s = estimate_spectrum(&b, 30, 1);
    check_statistic(s, "kurtosis_spectral", quadrature_kurtosis(s));
}
