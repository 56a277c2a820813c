/* Aggregates compared with values computed by hand. test_published.c has published ones. */
#include "test.h"

#include "core/number.h"
#include "results/aggregate.h"
#include "results/correlation.h"

static double iqm(size_t n, const double *values)
{
    double copy[16];

    memcpy(copy, values, n * sizeof *copy);
    return ks_iqm(n, copy);
}

TEST(test_iqm_by_hand)
{
    const double ten[] = {9, 1, 8, 2, 7, 3, 6, 4, 5, 0}, eight[] = {7, 6, 5, 4, 3, 2, 1, 0};

    assert_close(iqm(1, (double[]){3}), 3, 0);
    assert_close(iqm(2, (double[]){1, 5}), 3, 0);
    assert_close(iqm(3, (double[]){1, 2, 9}), 4, 0);
    assert_close(iqm(4, (double[]){0, 100, 0, 0}), 0, 0);
    assert_close(iqm(5, (double[]){100, 4, 1, 3, 2}), 3, 0);
    assert_close(iqm(8, eight), 3.5, 0);
    assert_close(iqm(10, ten), 4.5, 0);
}

TEST(test_doubled)
{
    assert_true(ks_has_doubled(10, 21) && !ks_has_doubled(10, 20) && ks_has_doubled(0, 1));
    assert_true(ks_has_doubled(-290, 1) && !ks_has_doubled(-290, -10));
    assert_false(ks_has_doubled(-290, -310) || ks_has_doubled(NAN, 1) || ks_has_doubled(1, NAN));
}

TEST(test_infinite_and_undefined_values)
{
    double values[] = {
        NAN, 4, INFINITY, 2,
        3,   1, NAN}; /* of the five finite or infinite values, 1 and inf are cut off */

    assert_close(ks_iqm_drop(7, values), 3, 0);
    assert_true(isinf(iqm(5, (double[]){1, INFINITY, 2, INFINITY, 3})));
    assert_true(isnan(iqm(2, (double[]){1, NAN})));
    assert_true(isnan(ks_iqm(0, NULL)));
}

TEST(test_quantiles_interpolate)
{
    const double x[] = {1, 2, 4, INFINITY, INFINITY};

    assert_close(ks_quantile(5, x, 0), 1, 0);
    assert_close(ks_quantile(5, x, 0.125), 1.5, 0);
    assert_close(ks_quantile(5, x, 0.5), 4, 0);
    assert_true(isinf(ks_quantile(5, x, 0.9)));
    assert_true(isinf(ks_quantile(5, x, 1)));
}

TEST(test_generator)
{
    const size_t below_ten[] = {8, 4, 0, 9, 1, 3, 1, 7, 2, 9};

    assert_true(ks_splitmix(0, 0) == 0xe220a8397b1dcdafu);
    assert_true(ks_splitmix(0, 1) == 0x6e789e6aa1b965f4u);
    assert_true(ks_splitmix(0, 2) == 0x06c45d188009454fu);
    for (size_t k = 0; k < 10; k++)
        assert_int_equal(ks_splitmix_index(0, k, 10), below_ten[k]);
    for (uint64_t k = 0; k < 1000;
         k++) /* the high half of u n, compared with the compiler's 128-bit product */
        assert_true(
            ks_splitmix_index(5, k, SIZE_MAX) ==
            (size_t)(((__extension__(unsigned __int128) ks_splitmix(5, k)) * SIZE_MAX) >> 64));
}

/* The IQM of the bootstrap's resample number b of n values. */
static double iqm_of_resample(const struct ks_bootstrap *bootstrap, size_t b, size_t n,
                              const double *value)
{
    size_t index[16];
    double drawn[16];

    ks_bootstrap_draw(bootstrap, b, index);
    for (size_t i = 0; i < n; i++)
        drawn[i] = value[index[i]];
    return ks_iqm(n, drawn);
}

TEST(test_one_stratum)
{
    const double value[] = {1, 2, 3, 4, 5}, step[] = {0};
    const double expected[] = {10 / 3., 11 / 3., 3, 13 / 3., 4 / 3.};
    const size_t runs[] = {5};
    struct ks_bootstrap bootstrap = {1000, 1, 1, runs};
    struct ks_scores scores = {1, runs, 1, step, value};
    struct ks_estimate e, area;

    for (size_t b = 0; b < 5; b++)
        assert_close(iqm_of_resample(&bootstrap, b, 5, value), expected[b], 1e-12);
    assert_ok(ks_iqm_curve(&scores, 1000, 1, &e, &area));
    assert_close(e.value, 3, 1e-12);
    assert_close(e.in.lower, 5 / 3., 1e-12);
    assert_close(e.in.upper, 13 / 3., 1e-12);
    assert_true(isnan(area.value));
}

TEST(test_two_strata)
{
    const double value[] = {0, 1, 2, 3, 10, 20, 30, 40, 50}, step[] = {0};
    const double expected[] = {11, 21.2, 13, 11.2};
    const size_t runs[] = {4, 5}, first[] = {1, 0, 3, 2, 4 + 2, 4 + 1, 4 + 2, 4 + 1, 4 + 0};
    struct ks_bootstrap bootstrap = {2000, 7, 2, runs};
    struct ks_scores scores = {2, runs, 1, step, value};
    struct ks_estimate e;
    size_t index[9];

    assert_int_equal(ks_bootstrap_runs(&bootstrap), 9);
    ks_bootstrap_draw(&bootstrap, 0, index);
    assert_memory_equal(index, first, sizeof first);
    for (size_t b = 0; b < 4; b++)
        assert_close(iqm_of_resample(&bootstrap, b, 9, value), expected[b], 1e-12);
    assert_ok(ks_iqm_curve(&scores, 2000, 7, &e, NULL));
    assert_close(e.value, 13, 1e-12);
    assert_close(e.in.lower, 8.2, 1e-9);
    assert_close(e.in.upper, 22.2, 1e-9);
}

TEST(test_interval_that_is_undefined)
{
    const double value[] = {1, 2, NAN, NAN}, step[] = {0, 1};
    const size_t one[] = {1, 1}, two[] = {2};
    struct ks_scores scores = {2, one, 1, step, value};
    struct ks_estimate e[2], area;

    assert_ok(ks_iqm_curve(&scores, 100, 0, e, NULL)); /* one run in every stratum */
    assert_close(e[0].value, 1.5, 0);
    assert_true(isnan(e[0].in.lower) && isnan(e[0].in.upper));
    scores = (struct ks_scores){1, two, 1, step, value};
    assert_ok(ks_iqm_curve(&scores, 0, 0, e, NULL)); /* no resamples */
    assert_true(isnan(e[0].in.lower) && isnan(e[0].in.upper));
    scores.steps = 2; /* rows {1 2}, {nan nan}: a resample may consist of NaNs only */
    assert_ok(ks_iqm_curve(&scores, 100, 0, e, &area));
    assert_close(e[1].value, 2, 0);
    assert_true(isnan(e[1].in.lower) && isnan(area.in.lower));
    assert_close(area.value, 1.5, 0);
}

/* Every bit of the interval, against IQMs of sorted resamples: values with ties, infinities and
 * NaNs, at two steps. */
TEST(test_curve_against_sorting)
{
    enum { RUNS = 11, B = 400 };
    const double third = 1 / 3.;
    const double value[RUNS][2] = {{third, 5}, {0.1, NAN}, {third, 2},        {0.7, -INFINITY},
                                   {-2, 0.3},  {8, 7},     {0.1, 7},          {0.2, 0.9},
                                   {11, NAN},  {-0.4, 3},  {0.123456789, 1e9}};
    const size_t runs[] = {4, 7};
    const double step[] = {0, 1};
    const struct ks_bootstrap bootstrap = {B, 2, 2, runs};
    const struct ks_scores scores = {2, runs, 2, step, &value[0][0]};
    struct ks_estimate curve[2];
    double drawn[2][B];

    assert_ok(ks_iqm_curve(&scores, B, 2, curve, NULL));
    for (size_t b = 0; b < B; b++) {
        size_t index[RUNS];

        ks_bootstrap_draw(&bootstrap, b, index);
        for (size_t t = 0; t < 2; t++) {
            double resample[RUNS];

            for (size_t i = 0; i < RUNS; i++)
                resample[i] = value[index[i]][t];
            drawn[t][b] = ks_iqm_drop(RUNS, resample);
        }
    }
    for (size_t t = 0; t < 2; t++) {
        qsort(drawn[t], B, sizeof(double), ks_ascending);
        assert_true(curve[t].in.lower == ks_quantile(B, drawn[t], 0.5 * (1 - KS_BOOTSTRAP_LEVEL)));
        assert_true(curve[t].in.upper ==
                    ks_quantile(B, drawn[t], 1 - 0.5 * (1 - KS_BOOTSTRAP_LEVEL)));
    }
}

TEST(test_area)
{
    const double t[] = {0, 0.25, 0.5, 1}, y[] = {0, 0.2, 0.5, 0.9};

    assert_close(ks_curve_area(4, t, y), 0.4625, 1e-15);
}

TEST(test_spearman)
{
    const double x[] = {1, 2, 3, 4, 5}, up[] = {-2, 1e9, 1e10, 1e11, INFINITY},
                 down[] = {5, 4, 3, 2, 1}, tied[] = {1, 2, 2, 3, 3};
    double r = 0;

    assert_ok(ks_spearman(5, x, up, &r));
    assert_close(r, 1, 1e-15);
    assert_ok(ks_spearman(5, x, down, &r));
    assert_close(r, -1, 1e-15);
    assert_ok(ks_spearman(5, x, tied, &r)); /* ranks 1 2.5 2.5 4.5 4.5: 9 / sqrt(10 * 9) */
    assert_close(r, 9 / sqrt(90), 1e-15);
    assert_ok(ks_spearman(2, x, (double[]){1, 1}, &r));
    assert_true(isnan(r));
    assert_ok(ks_spearman(1, x, x, &r));
    assert_true(isnan(r));
}
