/* The tails and quantiles of the beta distribution: closed forms and large parameters. */
#include "statistics/beta_distribution.h"

#include "test.h"

static const double PI = 3.14159265358979323846;

struct tails {
    double lower, upper;
};

static void check_tails(double a, double b, double x, struct tails expected, double bound)
{
    assert_close(ks_beta_lower_tail(a, b, x) / expected.lower, 1, bound);
    assert_close(ks_beta_upper_tail(a, b, x) / expected.upper, 1, bound);
    assert_close(ks_beta_lower_tail(b, a, 1 - x) / expected.upper, 1, bound);
}

/* I_x(a, 1) = x^a; I_x(1/2, 1/2) = 2/pi asin(sqrt(x)); for integers, the binomial sum. */
TEST(test_closed_forms)
{
    for (double x = 1.0 / 64; x < 1; x += 1.0 / 64) {
        double sum = 0, term = pow(1 - x, 12); /* at least 5 of 12 trials succeed: I_x(5, 8) */

        for (int k = 0; k < 5; k++) {
            sum += term;
            term *= (12.0 - k) / (k + 1.0) * x / (1 - x);
        }
        check_tails(3.7, 1, x, (struct tails){pow(x, 3.7), -expm1(3.7 * log(x))}, 1e-13);
        check_tails(0.5, 0.5, x, (struct tails){2 / PI * asin(sqrt(x)), 2 / PI * acos(sqrt(x))},
                    1e-13);
        check_tails(5, 8, x, (struct tails){1 - sum, sum}, x > 0.1 ? 1e-11 : 1e-7);
    }
}

/* Reference values: quadrature of the density with 40 digits (mpmath 1.4). */
TEST(test_large_parameters)
{
    static const double known[][5] = {
        {2.5, 3.5, 0.25, 0.20928433186343012, 0.79071566813656988},
        {10, 10000, 0.0003, 0.0011073581608229233, 0.99889264183917708},
        {10, 10000, 0.0025, 0.99978465338990621, 0.00021534661009378916},
        {20000, 800, 0.9583, 0.0087192032333572624, 0.99128079676664274},
        {5e6, 5e6, 0.4996, 0.0057060126391839668, 0.99429398736081603},
        {3e6, 7e6, 0.2995, 0.00027891276320275744, 0.99972108723679724},
        {1.5, 2e7, 1e-8, 0.059757506606675593, 0.94024249339332441},
    };

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const double *k = known[i];

        assert_close(ks_beta_lower_tail(k[0], k[1], k[2]) / k[3], 1, 1e-11);
        assert_close(ks_beta_upper_tail(k[0], k[1], k[2]) / k[4], 1, 1e-11);
    }
}

/* At the mean, where the continued fraction converges most slowly, and far out in the tails, where
 * underflow must not lead to the wrong side. */
TEST(test_extremes)
{
    assert_close(ks_beta_lower_tail(5e7, 5e7, 0.5), 0.5, 1e-10);
    assert_close(ks_beta_lower_tail(5e7, 5e7, 0.4), 0, 0);
    assert_close(ks_beta_upper_tail(5e7, 5e7, 0.4), 1, 0);
    assert_close(ks_beta_lower_tail(0.5, 1e7, 1e-300) / (sqrt(1e-300 * 1e7 / PI) * 2), 1, 1e-7);
}

TEST(test_constants)
{
    assert_close(ks_beta_lower_tail(0, 3, 0), 1, 0);
    assert_close(ks_beta_lower_tail(0, 3, -1e-12), 0, 0);
    assert_close(ks_beta_upper_tail(0, 3, 0), 0, 0);
    assert_close(ks_beta_lower_tail(3, 0, 1 - 1e-12), 0, 0);
    assert_close(ks_beta_upper_tail(3, 0, 1 - 1e-12), 1, 0);
    assert_close(ks_beta_lower_tail(3, 2, 0), 0, 0);
    assert_close(ks_beta_lower_tail(3, 2, 1.5), 1, 0);
    assert_close(ks_beta_upper_tail(3, 2, -0.5), 1, 0);
    assert_close(ks_beta_lower_point(0, 3, 0.1), 0, 0);
    assert_close(ks_beta_lower_point(3, 0, 0.1), 1, 0);
    assert_close(ks_beta_upper_point(0, 3, 0.1), 0, 0);
    assert_close(ks_beta_upper_point(3, 0, 0.1), 1, 0);
}

TEST(test_points)
{
    static const double parameter[] = {0.5, 1, 7, 300, 1e5, 2e7};

    for (size_t i = 0; i < 6; i++)
        for (size_t j = 0; j < 6; j++) {
            double a = parameter[i], b = parameter[j];
            double low = ks_beta_lower_point(a, b, 0.0025);
            double high = ks_beta_upper_point(a, b, 0.0025);

            assert_true(low <= high);
            assert_true(ks_beta_lower_tail(a, b, low) <= 0.0025);
            assert_true(ks_beta_lower_tail(a, b, low + 2e-15) >= 0.0025 * (1 - 1e-7));
            assert_true(ks_beta_upper_tail(a, b, high) <= 0.0025 * (1 + 1e-7));
            assert_true(ks_beta_upper_tail(a, b, high - 2e-15) >= 0.0025 * (1 - 1e-7));
        }
}
