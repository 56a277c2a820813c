/* The values of runs by which claims are judged: levels, ranges and growths by hand, and which runs
 * count. */
#include "claimed.h"

/* --- summaries --- */

static struct ks_interval summarize(enum ks_claim_summary summary, size_t n, const double *low,
                                    const double *high)
{
    double of_low[16], of_high[16];

    memcpy(of_low, low, n * sizeof *low);
    memcpy(of_high, high, n * sizeof *high);
    return ks_claim_summarize(summary, n, of_low, of_high);
}

/* Of eight values two are cut at each end. */
TEST(test_level)
{
    const double low[] = {9, 1, 2, 3, 4, 0, -5, 8}, high[] = {9, 2, 3, 4, 5, 1, INFINITY, 9};
    struct ks_interval level = summarize(KS_CLAIM_LEVEL, 8, low, high);

    assert_close(level.lower, (1 + 2 + 3 + 4) / 4., 1e-15); /* -5 0 | 1 2 3 4 | 8 9 */
    assert_close(level.upper, (3 + 4 + 5 + 9) / 4., 1e-15); /* 1 2 | 3 4 5 9 | 9 inf */
}

TEST(test_range)
{
    const double low[] = {1, 2, 5, 3}, high[] = {2, 4, 6, 3.5};
    const double wide[] = {4, 5, 6, 7}, infinite[] = {1, 2, 3, INFINITY};
    const double all[] = {INFINITY, INFINITY, INFINITY, INFINITY};
    struct ks_interval range = summarize(KS_CLAIM_RANGE, 4, low, high);

    assert_close(range.lower, 5 - 2, 0);
    assert_close(range.upper, 6 - 1, 0);
    range = summarize(KS_CLAIM_RANGE, 4, low,
                      wide); /* the intervals overlap: perhaps no movement */
    assert_close(range.lower, 5 - 4, 0);
    range = summarize(KS_CLAIM_RANGE, 4, (double[]){1, 2, 1, 2}, wide);
    assert_close(range.lower, 0, 0);
    assert_close(range.upper, 6, 0);
    range = summarize(KS_CLAIM_RANGE, 4, infinite, infinite);
    assert_true(isinf(range.lower) && isinf(range.upper));
    range = summarize(KS_CLAIM_RANGE, 4, all, all);
    assert_true(isnan(range.lower) && isnan(range.upper)); /* infinity minus infinity */
}

/* Of five values a quarter is two of them, of nine three. */
TEST(test_growth)
{
    const double low[] = {1, 2, 9, 5, 7}, high[] = {2, 4, 9, 5.5, 8};
    const double nine[] = {3, 1, 2, 50, 60, 70, 10, 30, 20};
    struct ks_interval growth = summarize(KS_CLAIM_GROWTH, 5, low, high);

    assert_close(growth.lower, 6 - 3, 1e-15);      /* medians of 5 7 and of 2 4   */
    assert_close(growth.upper, 6.75 - 1.5, 1e-15); /* of 5.5 8 and of 1 2         */
    growth = summarize(KS_CLAIM_GROWTH, 9, nine, nine);
    assert_close(growth.lower, 20 - 2, 1e-15);
    assert_close(growth.upper, 20 - 2, 1e-15);
    growth = summarize(KS_CLAIM_GROWTH, 4, low, low);
    assert_close(growth.lower, 5 - 1, 0);
}

/* --- runs --- */

static struct ks_claim_values find(enum ks_claim_quantity quantity,
                                   enum ks_claim_statistic statistic)
{
    const struct ks_paper_claim claim = {.quantity = quantity, .summary = KS_CLAIM_LEVEL};
    const struct ks_claim_source source = {
        .claim = &claim,
        .statistic = statistic,
        .analyses = ks_claim_analyses(study_results->study, statistic)};
    struct ks_claim_values values;

    assert_ok(ks_claim_values_find(study_results, &source, &values));
    return values;
}

static bool counts(enum ks_claim_quantity quantity, enum ks_claim_statistic statistic,
                   size_t number)
{
    return find(quantity, statistic).counts[number][0];
}

static void check(enum ks_claim_quantity quantity, enum ks_claim_statistic statistic, double low,
                  double high)
{
    struct ks_claim_values values = find(quantity, statistic);
    struct ks_interval span = values.value[BEST][0];

    if (!(span.lower == low || fabs(span.lower - low) < 1e-12) ||
        !(span.upper == high || fabs(span.upper - high) < 1e-12))
        fail_msg("quantity %d: found [%g, %g], expected [%g, %g]", (int)quantity, span.lower,
                 span.upper, low, high);
}

/* Each statistic comes from its analysis. */
TEST_ONE_SEED(test_sources)
{
    for (size_t t = 0; t < TIMES; t++) {
        const struct spot paper = {XQC, BEST, 0, t}, sound = {STANDARD, BEST, 0, t};

        put(paper, "kappa", 1e5);
        put(paper, "lambda_max", 1e2);
        put(paper, "kurtosis", 1e3);
        put(paper, "kurtosis_spectral", 1e9);
        put(sound, "kappa", 1e9);
        put(sound, "kappa_q99_lower", 1e1);
        put(sound, "kappa_q99_upper", 1e2);
        put(sound, "directions_1e2_lower", 1e3);
        put(sound, "directions_1e2_upper", 1e4);
        put(sound, "lambda_max", 1e-1);
        put(sound, "lambda_max_upper", 1e1);
        put(sound, "kurtosis", 1e9);
        put(sound, "kurtosis_spectral", 1e6);
    }
    check(KS_CLAIM_KAPPA, KS_CLAIM_PAPER, 5, 5);
    check(KS_CLAIM_KAPPA, KS_CLAIM_SOUND, 1, 2);
    check(KS_CLAIM_KAPPA, KS_CLAIM_SECOND, -4, -3); /* more directions are better conditioned */
    check(KS_CLAIM_LAMBDA_MAX, KS_CLAIM_PAPER, 2, 2);
    check(KS_CLAIM_LAMBDA_MAX, KS_CLAIM_SOUND, -1, 1);
    check(KS_CLAIM_KURTOSIS, KS_CLAIM_PAPER, 3, 3);
    check(KS_CLAIM_KURTOSIS, KS_CLAIM_SOUND, 6, 6);
}

/* An upper end that is not resolved is infinite; a lower end that is missing means that the
 * statistic is missing. */
TEST_ONE_SEED(test_ends_that_are_missing)
{
    put_sound(BEST, 0, 1, 2);
    for (size_t t = 0; t < TIMES; t++) {
        put((struct spot){STANDARD, BEST, 0, t}, "kappa_q99_upper", NAN);
        put((struct spot){STANDARD, BEST, 0, t}, "directions_1e2_upper", NAN);
        put((struct spot){STANDARD, BEST, 0, t}, "lambda_max", -1);
        put((struct spot){XQC, BEST, 0, t}, "kappa", INFINITY);
    }
    check(KS_CLAIM_KAPPA, KS_CLAIM_PAPER, INFINITY, INFINITY);
    check(KS_CLAIM_KAPPA, KS_CLAIM_SOUND, 1, INFINITY);
    check(KS_CLAIM_KAPPA, KS_CLAIM_SECOND, -INFINITY, -2);
    assert_false(counts(KS_CLAIM_LAMBDA_MAX, KS_CLAIM_SOUND, BEST));
    for (size_t t = 0; t < TIMES; t++)
        put((struct spot){STANDARD, BEST, 0, t}, "kappa_q99_lower", NAN);
    assert_false(counts(KS_CLAIM_KAPPA, KS_CLAIM_SOUND, BEST));
    assert_true(counts(KS_CLAIM_KAPPA, KS_CLAIM_SECOND, BEST));
}

/* At least half of the checkpoints, and at least four. The spectrum at the first update does not
 * count. */
TEST_ONE_SEED(test_runs_that_count)
{
    for (size_t t = 0; t < 6; t++)
        put((struct spot){XQC, BEST, 0, t}, "kappa", NAN);
    assert_true(counts(KS_CLAIM_KAPPA, KS_CLAIM_PAPER, BEST));
    put((struct spot){XQC, BEST, 0, 6}, "kappa", NAN); /* five of twelve */
    assert_false(counts(KS_CLAIM_KAPPA, KS_CLAIM_PAPER, BEST));
    assert_true(counts(KS_CLAIM_KAPPA, KS_CLAIM_PAPER, LONE));
    for (size_t t = 0; t < 7; t++)
        lose_spectrum((struct spot){STANDARD, LONE, 0, t});
    assert_false(counts(KS_CLAIM_KAPPA, KS_CLAIM_SOUND, LONE));
    assert_true(counts(KS_CLAIM_KAPPA, KS_CLAIM_SOUND, BEST));
}

/* A study that is still running is judged up to its last spectrum. */
TEST_ONE_SEED(test_unfinished_study)
{
    assert_int_equal(ks_claim_checkpoints(study_results), TIMES);
    for (size_t k = 0; k < KS_TWELVE; k++)
        for (size_t t = 8; t < TIMES; t++)
            for (size_t a = 0; a < 2; a++)
                lose_spectrum((struct spot){a, k, 0, t});
    assert_int_equal(ks_claim_checkpoints(study_results), 8);
    for (size_t t = 0; t < 4; t++) /* half of the eight remain, a third of the twelve */
        put((struct spot){XQC, BEST, 0, t}, "kappa", NAN);
    assert_true(counts(KS_CLAIM_KAPPA, KS_CLAIM_PAPER, BEST));
    put((struct spot){XQC, BEST, 0, 4}, "kappa", NAN);
    assert_false(counts(KS_CLAIM_KAPPA, KS_CLAIM_PAPER, BEST));
    study_results->common_checkpoint[1] = false; /* grid = common */
    assert_int_equal(ks_claim_checkpoints(study_results), 7);
}

/* Rows up to the first update and after the end of the study are not used. */
TEST_ONE_SEED(test_rows_of_progress)
{
    const char *name = "runs/toy/bn+wn+ce/seed0/progress.csv";

    write_text(name, "env_step,critic_grad_norm\n2,1e9\n4,1e1\n8,1e2\n12,1e3\n16,1e4\n50,1e9\n");
    check(KS_CLAIM_GRAD_NORM, KS_CLAIM_PAPER, 2.5, 2.5);
    check(KS_CLAIM_GRAD_NORM, KS_CLAIM_SECOND, 2.5, 2.5);
    assert_false(counts(KS_CLAIM_PARAM_NORM, KS_CLAIM_PAPER, BEST)); /* no such column */
    write_text(name, "env_step,critic_grad_norm\n4,1\n6,nan\n8,1\n10,nan\n12,1\n16,1\n");
    assert_true(counts(KS_CLAIM_GRAD_NORM, KS_CLAIM_PAPER, BEST));
    write_text(name, "env_step,critic_grad_norm\n4,1\n6,nan\n8,1\n10,nan\n12,1\n16,nan\n");
    assert_false(counts(KS_CLAIM_GRAD_NORM, KS_CLAIM_PAPER, BEST));
    write_text(name, "env_step,critic_grad_norm\n4,1\n6,1\n8,1\n10,1\n12,x\n");
    assert_false(counts(KS_CLAIM_GRAD_NORM, KS_CLAIM_PAPER, BEST)); /* malformed */
    assert_false(counts(KS_CLAIM_GRAD_NORM, KS_CLAIM_PAPER, LONE)); /* no file */
}

static size_t only_analysis(enum ks_claim_statistic statistic)
{
    const struct ks_study_analyses found = ks_claim_analyses(study_results->study, statistic);

    assert_int_equal(found.n, 1);
    return found.index[0];
}

/* The analysis must make the published code's choices, not only have its name. */
TEST_ONE_SEED(test_analysis_of_the_paper)
{
    assert_int_equal(only_analysis(KS_CLAIM_PAPER), XQC);
    assert_int_equal(only_analysis(KS_CLAIM_SOUND), STANDARD);
    ks_results_free(study_results);
    claimed_new(ALL_TWELVE, 1, "[analyze xqc]\norder = 20\n");
    assert_int_equal(ks_claim_analyses(study_results->study, KS_CLAIM_PAPER).n, 0);
    assert_false(counts(KS_CLAIM_KAPPA, KS_CLAIM_PAPER, BEST));
}

/* The control is an analysis of the Hessian, not of another operator or of a part. */
TEST_ONE_SEED(test_analysis_of_the_control)
{
    ks_results_free(study_results);
    claimed_new(ALL_TWELVE, 1,
                "[analyze ggn-rows]\nbatchnorm = loss\noperator = ggn\n"
                "[analyze one-layer]\nbatchnorm = loss\nlayer = 1\n"
                "[analyze rows]\nbatchnorm = loss\n");
    assert_int_equal(only_analysis(KS_CLAIM_CONTROL), 3);
}

/* --- the table of claims --- */

TEST_ONE_SEED(test_numbers_of_the_twelve)
{
    char name[16];

    ks_twelve_name(BEST, name);
    assert_string_equal(name, "bn+wn+ce");
    ks_twelve_name(LONE, name);
    assert_string_equal(name, "dense+mse");
    for (size_t k = 0; k < KS_TWELVE; k++) {
        ks_twelve_name(k, name);
        assert_string_equal(name,
                            study_results->study->architecture[run_of(k, 0)->architecture].name);
    }
}

/* In a cell the other two factors are the same, and every architecture occurs at most once. */
TEST(test_cells)
{
    size_t larger[KS_CLAIM_CELLS], smaller[KS_CLAIM_CELLS];

    for (size_t i = 0; i < KS_CLAIMS; i++) {
        const struct ks_paper_claim *claim = &ks_paper_claims[i];
        bool used[KS_JUDGED] = {false};
        size_t n;

        if (claim->kind != KS_CLAIM_PAIRS)
            continue;
        n = ks_paper_claim_cells(claim, larger, smaller);
        assert_int_equal(n, claim->factor == KS_FACTOR_NORMALIZATION ? 4 : 6);
        if (claim->has_cell) {
            size_t of_cell = 0;

            for (size_t c = 0; c < n; c++)
                of_cell += larger[c] == claim->cell;
            assert_int_equal(of_cell, 1);
        }
        for (size_t c = 0; c < n; c++) {
            assert_true(is_of(larger[c], claim->factor, claim->larger));
            assert_true(is_of(smaller[c], claim->factor, claim->smaller));
            for (enum ks_claim_factor f = 0; f <= KS_FACTOR_LOSS; f++)
                for (size_t level = 0; f != claim->factor && level < 3; level++)
                    assert_int_equal(is_of(larger[c], f, level), is_of(smaller[c], f, level));
            assert_false(used[larger[c]] || used[smaller[c]]);
            used[larger[c]] = used[smaller[c]] = true;
        }
    }
}
