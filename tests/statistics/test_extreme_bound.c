/* The probabilistic upper bound on the largest eigenvalue: its distribution, its polynomial, and
 * how often it holds. */
#include "statistics/probe.h"

#include "spectra.h"

static const double PI = 3.14159265358979323846;
enum { MOST = 400 };
static double value[MOST];

/* The distribution has a closed form in two, three and four dimensions, and is normal in many. */
TEST(test_component)
{
    const double failures[] = {1e-6, 0.01, 0.3, 0.999};

    for (size_t k = 0; k < 4; k++) {
        double f = failures[k], d;

        assert_close(ks_extreme_bound_component(1, f), 1, 0);
        assert_close(ks_extreme_bound_component(2, f), sin(f * PI / 2), 1e-10 * f);
        assert_close(ks_extreme_bound_component(3, f), f, 1e-10 * f);
        d = ks_extreme_bound_component(4, f);
        assert_close(2 / PI * (asin(d) + d * sqrt(1 - d * d)), f, 1e-10 * f);
        d = ks_extreme_bound_component(100000000, f);
        assert_close(erf(d * sqrt(0.5e8)), f, 1e-6 * f);
    }
}

/* p_1 = (t - a) / b. For two Ritz values -+3 with beta 5, 2: p_2 = (t^2 - 9) / 10. */
TEST(test_by_hand)
{
    const double one[] = {7}, two[] = {-3, 3}, beta[] = {5, 2};

    assert_close(ks_extreme_bound_excess(1, one, beta, 7, 0.01), 500, 1e-11);
    assert_close(ks_extreme_bound_excess(2, two, beta, 3, 0.1), sqrt(109) - 3, 1e-13);
    assert_close(ks_extreme_bound_excess(2, two, beta, -3, 0.1), sqrt(109) - 3, 1e-13);
}

/* If the Krylov space has ended, no eigenvalue exceeds the largest Ritz value. */
TEST(test_breakdown)
{
    const double two[] = {-3, 3}, none[] = {5, 0}, noise[] = {5, 1e-15};

    assert_close(ks_extreme_bound_excess(2, two, none, 3, 1e-5), 0, 0);
    assert_close(ks_extreme_bound_excess(2, two, noise, 3, 1e-5), 5e-10 / 6, 1e-15);
    assert_close(ks_extreme_bound_excess(1, two, none + 1, -3, 1e-5), 0, 0); /* the zero matrix */
}

/* The fraction of seeds for which lambda_max_upper is less than `lambda_max`. */
static double failures(const struct ks_operator *a, size_t order, size_t probes, size_t seeds,
                       double lambda_max)
{
    size_t failed = 0;

    for (size_t seed = 0; seed < seeds; seed++) {
        struct ks_spectrum *s = estimate_with(a, order, probes, seed, true);

        failed += ks_statistic(s, "lambda_max_upper") < lambda_max;
    }
    return (double)failed / (double)seeds;
}

/* One iteration with an operator of rank one is the worst case: the bound fails exactly if the
 * start vector's component is too small. This happens in 0.25% of all runs, with one probe or
 * three; the standard error of the count is 0.065%. */
TEST(test_worst_case)
{
    struct ks_operator a = DIAGONAL(40, value);

    memset(value, 0, sizeof value);
    value[17] = 3;
    assert_close(failures(&a, 1, 1, 6000, 3), 0.0025, 0.002);
    assert_close(failures(&a, 1, 3, 6000, 3), 0.0025, 0.002);
}

/* The bound holds in at least 99% of many runs. It approaches the largest eigenvalue if that
 * converges, and also at the edge of a bulk, where it does not. */
TEST(test_it_holds)
{
    enum { SEEDS = 200 };
    struct ks_operator a = DIAGONAL(MOST, value);
    static const struct {
        size_t order;
        double furthest[2]; /* for the bulk [-1, 1] alone, and with an outlier at 2 */
    } cases[] = {{4, {20, 20}}, {10, {2.5, 3}}, {30, {1.16, 2.0001}}, {60, {1.05, 2 + 1e-12}}};

    for (int outlier = 0; outlier < 2; outlier++) {
        double top = outlier ? 2 : 1;

        for (size_t i = 0; i < MOST; i++)
            value[i] = -1 + 2 * (double)i / (MOST - 1);
        value[MOST - 1] = top;
        for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
            size_t below = 0;

            for (uint64_t seed = 0; seed < SEEDS; seed++) {
                struct ks_spectrum *s = estimate_with(&a, cases[k].order, 1, seed, true);
                double bound = ks_statistic(s, "lambda_max_upper");

                assert_true(bound >= ks_statistic(s, "lambda_max"));
                if (!(bound <= cases[k].furthest[outlier]))
                    fail_msg("order %zu: the bound is %g", cases[k].order, bound);
                below += bound < top * (1 - 1e-14);
            }
            assert_true(below <= SEEDS / 100);
        }
    }
}

/* At order n, and for an exact spectrum, the largest eigenvalue is known. */
TEST(test_whole_space)
{
    struct ks_operator a = DIAGONAL(30, value);
    struct ks_spectrum *s;

    for (size_t i = 0; i < 30; i++)
        value[i] = sin((double)i * (double)i);
    s = exact_with(&a, NULL);
    check_statistic(s, "lambda_max_upper", ks_statistic(s, "lambda_max"));
    s = estimate_spectrum(&a, 30, 1);
    assert_close(ks_statistic(s, "lambda_max_upper"), ks_statistic(s, "lambda_max"), 1e-13);
}
