/* The statistics of a spectrum: by hand, against all eigenvalues, and for prefixes. */
#include "spectra.h"

#include "core/memory.h"

enum { N = 400 };
static double value[N];

TEST(test_by_hand)
{
    const double ritz[] = {-4, -1, 2, 8}, weight[] = {0.05, 0.4, 0.5, 0.05};
    struct ks_spectrum *s = exact_spectrum(4, ritz, weight);

    compute_statistics(s, 100);
    check_statistic(s, "lambda_max", 8);
    check_statistic(s, "lambda_min", -4);
    check_statistic(s, "lambda_max_residual", 0);
    check_statistic(s, "kappa", 8);
    assert_close(ks_statistic(s, "kappa_lower_bound"), 8, 1e-12);
    check_statistic(s, "trace", 100 * (-0.2 - 0.4 + 1 + 0.4));
    check_statistic(s, "trace_square", 100 * (0.8 + 0.4 + 2 + 3.2));
    check_statistic(s, "stable_rank", 10);
    /* mean 1.25; deviations -5.25, -2.25, 0.75, 6.75 */
    check_statistic(s, "kurtosis",
                    4 * (pow(5.25, 4) + pow(2.25, 4) + pow(0.75, 4) + pow(6.75, 4)) /
                        pow(5.25 * 5.25 + 2.25 * 2.25 + 0.75 * 0.75 + 6.75 * 6.75, 2));
    check_statistic(s, "kurtosis_excess", ks_statistic(s, "kurtosis") - 3);
    assert_false(has_statistic(s, "kappa_se"));
    assert_false(has_statistic(s, "kappa_m30"));
    assert_true(isnan(ks_statistic(s, "kappa_se")));
}

/* lambda_abs_max over the ceil(q n)-th smallest size, to rounding: ties on both sides of zero, and
 * a quantile that only the largest size reaches. */
static void check_quantile(const struct ks_spectrum *s, const char *name, double expected)
{
    for (int upper = 0; upper < 2; upper++) {
        double found;

        found = ks_statistic(s, text_of("%s_%s", name, upper ? "upper" : "lower"));
        assert_close(found, expected, 1e-12 * expected);
        assert_true(upper ? found >= expected : found <= expected);
    }
    assert_false(has_statistic(s, name)); /* the statistic is absent */
}

TEST(test_quantiles)
{
    const double ritz[] = {-2, -1, 1, 2}, weight[] = {0.25, 0.25, 0.25, 0.25};
    double tenth[10], tenths[10];
    struct ks_spectrum *s = exact_spectrum(4, ritz, weight), *t;

    compute_statistics(s, 4);
    check_quantile(s, "kappa_q50", 2);
    check_quantile(s, "kappa_q90", 1);
    check_statistic(s, "directions_1e1", 4);
    for (size_t i = 0; i < 10; i++) {
        tenth[i] = (double)i + 0.95;
        tenths[i] = 0.1;
    }
    t = exact_spectrum(10, tenth, tenths);
    compute_statistics(t, 10);
    check_quantile(t, "kappa_q99", 1);
    check_quantile(t, "kappa_q90", 9.95 / 8.95);
    check_quantile(t, "kappa_q50", 9.95 / 4.95);
    check_statistic(t, "directions_1e1", 9); /* 0.95 is less than a tenth of 9.95 */
    check_statistic(t, "directions_1e1_lower", 9);
    check_statistic(t, "directions_1e1_upper", 9);
}

/* Two probes by hand: T = (a) with residual norm b, one iteration each. */
TEST(test_two_probes)
{
    struct ks_spectrum *s = spectrum_new();
    const double alpha[] = {3, -6}, beta[] = {4, 8}, one[] = {1, 1};
    const int64_t steps[] = {1, 1};

    s->probes = 2;
    s->order = 1;
    s->alpha = malloc(sizeof alpha);
    s->beta = malloc(sizeof beta);
    s->steps = malloc(sizeof steps);
    s->ritz = malloc(sizeof alpha);
    s->weight = malloc(sizeof one);
    s->residual = malloc(sizeof beta);
    memcpy(s->alpha, alpha, sizeof alpha);
    memcpy(s->beta, beta, sizeof beta);
    memcpy(s->steps, steps, sizeof steps);
    memcpy(s->ritz, alpha, sizeof alpha);
    memcpy(s->weight, one, sizeof one);
    memcpy(s->residual, beta, sizeof beta);
    compute_statistics(s, 10);
    check_statistic(s, "lambda_max", 3);
    check_statistic(s, "lambda_max_residual", 4);
    check_statistic(s, "lambda_min", -6);
    check_statistic(s, "lambda_min_residual", 8);
    check_statistic(s, "kappa", 1);
    assert_close(ks_statistic(s, "kappa_lower_bound"), 0.6, 1e-14); /* 3/5 and 6/10 */
    check_statistic(s, "directions_1e1_upper", 10);
    check_statistic(s, "trace", -15);
    check_statistic(s, "trace_se", 45);      /* 30 and -60 */
    check_statistic(s, "trace_square", 225); /* 90 and 360 */
    check_statistic(s, "stable_rank", 225. / 36);
    assert_false(has_statistic(s, "lambda_max_residual_se"));
    assert_true(isnan(ks_statistic(s, "kurtosis"))); /* a single value: 0/0 */
}

/* Like check, but NaN equals NaN. */
static void check_same(const struct ks_spectrum *s, const char *name, double expected)
{
    if (!isnan(expected) || !isnan(ks_statistic(s, name)))
        check_statistic(s, name, expected);
}

/* The statistics of a prefix equal the statistics of a run that stops there. */
TEST(test_prefixes)
{
    struct ks_operator a = DIAGONAL(N, value);
    struct ks_spectrum *full, *prefix;
    size_t repeated = 0;

    for (size_t i = 0; i < N; i++)
        value[i] = sin((double)i) + 0.3;
    full = estimate_spectrum(&a, 90, 3);
    prefix = estimate_spectrum(&a, 60, 3);
    for (size_t i = 0; i < prefix->statistics.n; i++) {
        char name[96];
        const char *found = prefix->statistics.list[i].name;

        snprintf(name, sizeof name, "%s_m60", found);
        if (has_statistic(full, name)) {
            check_same(full, name, prefix->statistics.list[i].number);
            repeated++;
        }
        if (strstr(found, "_m30"))
            check_same(full, found, prefix->statistics.list[i].number);
    }
    assert_int_equal(repeated, 41);
    assert_true(has_statistic(full, "kappa_m30") && has_statistic(full, "trace_se"));
    /* these are not means over probes */
    assert_false(has_statistic(full, "kappa_se") || has_statistic(full, "lambda_max_se"));
    assert_false(has_statistic(full, "kappa_m90") || has_statistic(prefix, "kappa_m60"));
    /* these do not depend on m */
    assert_false(has_statistic(full, "trace_m30") || has_statistic(full, "null_dimension_m30"));
    assert_false(has_statistic(full, "noise_floor_se")); /* does not depend on any probe */
    assert_true(fabs(ks_statistic(full, "kappa_m30") / ks_statistic(full, "kappa") - 1) > 1e-3);
}

/* A probe that broke down before the order of the prefix counts with the iterations it
 * has. */
TEST(test_prefix_of_a_breakdown)
{
    struct ks_operator a = DIAGONAL(N, value);
    struct ks_spectrum *s;

    for (size_t i = 0; i < N; i++)
        value[i] = i % 2 == 0 ? 1 : -5;
    s = estimate_spectrum(&a, 40, 2);
    assert_int_equal(s->steps[0], 2);
    check_statistic(s, "kappa", 5);
    check_statistic(s, "kappa_m30", 5);
    assert_close(ks_statistic(s, "kappa_lower_bound"), 5, 1e-13);
}

/* m iterations at order n find everything that --exact does. The trace needs many probes and is not
 * compared. */
TEST(test_against_exact)
{
    const char *const names[] = {"lambda_max",        "lambda_min", "kappa",
                                 "kappa_lower_bound", "kurtosis",   "kurtosis_excess"};
    struct ks_operator a = DIAGONAL(120, value);
    struct ks_spectrum *s, *exact;

    for (size_t i = 0; i < 120; i++)
        value[i] = 2.1 * sin((double)i) + 0.2;
    exact = exact_with(&a, NULL);
    s = estimate_spectrum(&a, 120, 1);
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
        double expected = ks_statistic(exact, names[k]);

        assert_close(ks_statistic(s, names[k]), expected, 1e-9 * fabs(expected));
    }
}

/* Hutchinson's estimate lies within a few of its standard errors. */
TEST(test_trace)
{
    struct ks_operator a = DIAGONAL(N, value);
    struct ks_spectrum *s;
    double trace = 0, square = 0;

    for (size_t i = 0; i < N; i++) {
        value[i] = 1.5 * cos((double)i) + 1;
        trace += value[i];
        square += value[i] * value[i];
    }
    s = estimate_spectrum(&a, 10, 40);
    assert_close(ks_statistic(s, "trace"), trace, 4 * ks_statistic(s, "trace_se"));
    assert_close(ks_statistic(s, "trace_square"), square, 4 * ks_statistic(s, "trace_square_se"));
    assert_true(ks_statistic(s, "trace_se") < 0.05 * trace);
}

/* +-[1, 2]: the condition number is 2. At odd m a Ritz value falls into the gap around zero, and
 * `kappa` is arbitrary; the bound holds at every m. */
TEST(test_condition_two)
{
    struct ks_operator a = DIAGONAL(N, value);

    for (size_t i = 0; i < N; i++)
        value[i] = (i % 2 == 0 ? 1 : -1) * (1 + (double)(i / 2) / (N / 2 - 1));
    for (size_t m = 1; m <= 60; m++) {
        struct ks_spectrum *s = estimate_spectrum(&a, m, 2);
        double bound = ks_statistic(s, "kappa_lower_bound");

        assert_true(bound <= 2 * (1 + 1e-12));
        if (m >= 20)
            assert_true(bound > 1.9);
        if (m % 2 == 1 && m > 1)
            assert_true(ks_statistic(s, "kappa") > 10);
    }
}

/* Scaling by c scales eigenvalues, trace and residuals, and leaves ratios unchanged. */
TEST(test_scaling)
{
    static double scaled[N];
    struct diagonal d = {.n = N, .value = value}, e = {.n = N, .value = scaled};
    struct ks_operator a = diagonal_operator(&d), b = diagonal_operator(&e);
    const double c = 0x1p-300; /* so small that its fourth power underflows to zero */
    struct ks_spectrum *s, *t;

    for (size_t i = 0; i < N; i++) {
        value[i] = cos((double)i) + 0.1;
        scaled[i] = c * value[i];
    }
    s = estimate_spectrum(&a, 31, 2);
    t = estimate_spectrum(&b, 31, 2);
    for (size_t i = 0; i < s->statistics.n; i++) {
        const char *name = s->statistics.list[i].name;
        bool square = strncmp(name, "trace_square", 12) == 0;
        bool linear = strncmp(name, "lambda", 6) == 0 || strncmp(name, "trace", 5) == 0 ||
                      strncmp(name, "noise", 5) == 0;

        assert_string_equal(name, t->statistics.list[i].name);
        if (isnan(s->statistics.list[i].number)) /* null directions were not computed */
            assert_true(isnan(t->statistics.list[i].number) &&
                        (strstr(name, "_dimension") || strstr(name, "null_") ||
                         strstr(name, "_data_se") || strstr(name, "_error") ||
                         strncmp(name, "kappa_q", strlen("kappa_q")) == 0));
        else if (square)
            check_statistic(t, name, c * (c * s->statistics.list[i].number));
        else if (linear)
            assert_close(t->statistics.list[i].number / c, s->statistics.list[i].number,
                         1e-12 * fabs(s->statistics.list[i].number));
        else
            assert_close(t->statistics.list[i].number, s->statistics.list[i].number,
                         1e-9 * fabs(s->statistics.list[i].number));
    }
}

/* Three probes with two Ritz values each: the median differs from the mean, and the extremes come
 * from different probes. */
TEST(test_three_probes)
{
    const double ritz[] = {1, 2, -1, 10, 2, 6}, half[] = {0.5, 0.5, 0.5, 0.5, 0.5, 0.5};
    struct ks_spectrum *s = exact_spectrum(6, ritz, half);

    s->probes = 3;
    s->order = 2;
    compute_statistics(s, 2);
    check_statistic(s, "kappa", 3);
    assert_false(has_statistic(s, "kappa_se")); /* kappa is a median */
    assert_close(ks_statistic(s, "kappa_lower_bound"), 10, 1e-12);
    check_statistic(s, "lambda_max", 10);
    check_statistic(s, "lambda_min", -1);
    check_statistic(s, "trace", (3. + 9 + 8) / 3);
    check_statistic(s, "kurtosis", 1); /* for any two values */
}

static struct ks_spectrum *published_spectrum(const struct ks_operator *a, size_t order)
{
    struct ks_spectrum *s = spectrum_new();
    struct slq slq = {.order = order, .probes = 2, .seed = 5};
    struct ks_statistics_inputs inputs = {.n = a->n, .epsilon = FLT_EPSILON, .published = true};

    assert_ok(slq_run(a, &slq, s));
    ks_statistics_unweight(s);
    assert_ok(ks_statistics(s, &inputs));
    return s;
}

/* Uniform weights, in the full run and in its prefixes. */
TEST(test_unweighted)
{
    struct ks_operator a = DIAGONAL(N, value);
    struct ks_spectrum *full, *prefix;

    for (size_t i = 0; i < N; i++)
        value[i] = i == 0 ? 10 : cos((double)i);
    full = published_spectrum(&a, 31);
    prefix = published_spectrum(&a, 30);
    for (size_t i = 0; i < 60; i++)
        assert_close(prefix->weight[i], 1. / 30, 1e-16);
    assert_false(has_statistic(prefix, "trace"));
    assert_false(has_statistic(prefix, "directions_1e2") ||
                 has_statistic(prefix, "kappa_q99_lower"));
    check_statistic(full, "kappa_m30", ks_statistic(prefix, "kappa"));
    check_statistic(full, "kurtosis_m30", ks_statistic(prefix, "kurtosis"));
}

/* For the zero matrix and the identity, statistics are defined, or NaN if they are 0/0. */
TEST(test_degenerate)
{
    struct ks_operator a = DIAGONAL(N, value);
    struct ks_spectrum *s;

    memset(value, 0, sizeof value);
    s = estimate_spectrum(&a, 40, 2);
    check_statistic(s, "lambda_max", 0);
    check_statistic(s, "trace_square", 0);
    check_statistic(s, "lambda_max_upper", 0);
    check_statistic(s, "zero_mass", 1);
    check_statistic(s, "directions_1e2_upper", 0);
    check_statistic(s, "outliers", 0);
    check_statistic(s, "noise_floor", 0);
    assert_true(isnan(ks_statistic(s, "kappa")));
    assert_true(isnan(ks_statistic(s, "kappa_effective_bound")));
    assert_true(isnan(ks_statistic(s, "kappa_lower_bound")));
    for (size_t i = 0; i < N; i++)
        value[i] = -3;
    s = estimate_spectrum(&a, 40, 2);
    check_statistic(s, "kappa", 1);
    assert_close(ks_statistic(s, "kappa_lower_bound"), 1, 1e-13);
    check_quantile(s, "kappa_q50", 1);
    check_statistic(s, "zero_mass", 0);
    check_statistic(s, "negative_mass", 1);
    assert_close(ks_statistic(s, "lambda_max_upper"), -3, 1e-10);
    check_statistic(s, "trace", -3 * N);
    check_statistic(s, "stable_rank", N);
    assert_true(isnan(ks_statistic(s, "kurtosis")));
    value[0] = 0; /* singular */
    s = estimate_spectrum(&a, 40, 1);
    assert_true(ks_statistic(s, "kappa_lower_bound") > 1e13);
}

TEST(test_out_of_memory)
{
    struct ks_operator a = DIAGONAL(N, value);
    struct slq slq = {.order = 31, .probes = 2, .seed = 5};
    struct ks_statistics_inputs inputs = {.n = N, .epsilon = DBL_EPSILON};
    struct starved turn = {.least = 8};

    for (size_t i = 0; i < N; i++)
        value[i] = cos((double)i);
    while (starving(&turn)) {
        struct ks_spectrum *s = spectrum_new();

        ks_alloc_fail_at(0);
        assert_ok(slq_run(&a, &slq, s));
        ks_alloc_fail_at(turn.n);
        turn.status = ks_statistics(s, &inputs);
    }
}

/* The band of the cumulative distribution contains the true one: of `n` ascending eigenvalues, with
 * 16 points per decade on both sides, and no wider than `widest` at sizes above 1. */
static void check_band(const struct ks_spectrum *s, size_t n, const double *eigenvalue,
                       double widest)
{
    assert_int_equal(s->n_band, 2 * (6 * 16 + 1));
    for (size_t i = 0; i < s->n_band; i++) {
        double below = 0;

        for (size_t j = 0; j < n; j++)
            below += eigenvalue[j] <= s->band_at[i];
        assert_true(s->band_lower[i] * (double)n <= below + 1e-9);
        assert_true(s->band_upper[i] * (double)n >= below - 1e-9);
        if (fabs(s->band_at[i]) > 1)
            assert_true(s->band_upper[i] - s->band_lower[i] <= widest);
        if (i > 0)
            assert_true(s->band_at[i] > s->band_at[i - 1]);
    }
    assert_close(s->band_at[s->n_band - 1] / s->band_at[s->n_band - 17], 10, 1e-9);
}

TEST(test_band)
{
    struct ks_spectrum *s;
    struct ks_operator a = DIAGONAL(N, value);
    double largest = 0;

    for (size_t i = 0; i < N; i++) /* 400 eigenvalues from -3 to 100, most of them small */
        value[i] = i < 40 ? -3 + 0.07 * (double)i : pow(100, ((double)i - 219) / 180);
    s = exact_with(&a, NULL);
    check_band(s, N, value, 1. / N + 1e-9);
    for (size_t i = 0; i < s->n_band; i++)
        largest = fmax(largest, s->band_upper[i] - s->band_lower[i]);
    assert_close(largest, 1. / N, 1e-9); /* rounding may have moved 0.0316 beyond a point */
    s = estimate_spectrum(&a, 60, 2);
    check_band(s, N, value, 0.25);
    assert_true(s->band_at[s->n_band - 1] >= 100);
    memset(value, 0, sizeof value);
    s = estimate_spectrum(&a, 5, 1); /* zero: no band */
    assert_int_equal(s->n_band, 0);
}
