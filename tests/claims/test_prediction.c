/* Whether a statistic adds to what the factors say of the return: on studies where it does and
 * where it does not, and against fits by LAPACK that leave an architecture out. */
#include "claimed.h"

#include <lapacke.h>

enum { COEFFICIENTS = 6 };

static struct ks_prediction found;

static void predict(void)
{
    assert_ok(ks_prediction_find(study_results, &found));
}

/* The row of a statistic, in the analysis `xqc` or of an operator. */
static const struct ks_prediction_row *find_row(enum ks_statistic_id id,
                                                enum ks_statistic_part part, const char *analysis)
{
    for (size_t i = 0; i < found.n; i++)
        if (found.row[i].statistic.id == id && found.row[i].statistic.part == part &&
            strcmp(found.row[i].analysis, analysis) == 0)
            return &found.row[i];
    fail_msg("no row %s of %s", ks_catalogue[id].name, analysis);
    return NULL;
}

static const struct ks_prediction_row *of_kappa(void)
{
    return find_row(KS_STAT_KAPPA, KS_ITSELF, "xqc");
}

static double factors(size_t k)
{
    return 0.4 * is_of(k, KS_FACTOR_NORMALIZATION, KS_BN) +
           0.1 * is_of(k, KS_FACTOR_NORMALIZATION, KS_LN) +
           0.3 * is_of(k, KS_FACTOR_WEIGHT_NORMALIZATION, 1) +
           0.2 * is_of(k, KS_FACTOR_LOSS, KS_CE);
}

/* Numbers without a pattern in the factors. */
static double scatter(size_t k)
{
    static const double of[KS_TWELVE] = {0.31,  -0.22, 0.05,  0.47,  -0.4, 0.13,
                                         -0.35, 0.2,   -0.08, -0.27, 0.38, -0.11};

    return of[k];
}

/* log10 of the returns, and of kappa in decades. */
static void put_study(double (*y)(size_t), double (*x)(size_t))
{
    for (size_t k = 0; k < KS_TWELVE; k++)
        for (size_t i = 0; i < study_seeds; i++) {
            put_return(k, i, pow(10, y(k)));
            put_paper(k, i, "kappa", x(k));
        }
}

static double both(size_t k)
{
    return 1 + factors(k) - scatter(k);
}

static double noisy(size_t k)
{
    return 1 + factors(k) + 0.5 * scatter(k) + 0.1 * (double)(k * k % 7);
}

/* The return is the factors minus what kappa has beside them: kappa adds all that is missing. */
TEST_THREE_SEEDS(test_what_adds)
{
    put_study(both, scatter);
    predict();
    assert_true(found.factors.r2 < 0.9);
    assert_close(of_kappa()->with.r2, 1, 1e-12);
    assert_close(of_kappa()->with.q2, 1, 1e-12);
    assert_close(of_kappa()->partial, -1, 1e-12);
    assert_true(of_kappa()->p < 1e-4);
    assert_true(of_kappa()->p_family >= of_kappa()->p);
}

/* A kappa that is a sum of the factors adds nothing, and one without relation has a large p. */
TEST_THREE_SEEDS(test_what_does_not_add)
{
    put_study(both, factors);
    predict();
    assert_true(isnan(of_kappa()->with.q2));
    put_study(noisy, scatter);
    for (size_t i = 0; i < study_seeds; i++)
        put_paper(0, i, "kappa", -scatter(0) - 0.5);
    predict();
    assert_true(of_kappa()->p > 0.05);
}

/* The residual of architecture `out` (KS_TWELVE: of none) from the fit to the others. */
static double residual_without(size_t out, double (*y)(size_t), double (*x)(size_t), size_t of)
{
    double a[KS_TWELVE * COEFFICIENTS], b[KS_TWELVE], fitted = 0;
    lapack_int n = 0, columns = x ? COEFFICIENTS : COEFFICIENTS - 1;

    for (size_t k = 0; k < KS_TWELVE; k++) {
        const double row[] = {1,
                              is_of(k, KS_FACTOR_NORMALIZATION, KS_BN),
                              is_of(k, KS_FACTOR_NORMALIZATION, KS_LN),
                              is_of(k, KS_FACTOR_WEIGHT_NORMALIZATION, 1),
                              is_of(k, KS_FACTOR_LOSS, KS_CE),
                              x ? x(k) : 0};

        if (k == out)
            continue;
        memcpy(a + n * columns, row, (size_t)columns * sizeof *row);
        b[n++] = y(k);
    }
    assert_int_equal(LAPACKE_dgels(LAPACK_ROW_MAJOR, 'N', n, columns, 1, a, columns, b, 1), 0);
    fitted = b[0] + b[1] * is_of(of, KS_FACTOR_NORMALIZATION, KS_BN) +
             b[2] * is_of(of, KS_FACTOR_NORMALIZATION, KS_LN) +
             b[3] * is_of(of, KS_FACTOR_WEIGHT_NORMALIZATION, 1) +
             b[4] * is_of(of, KS_FACTOR_LOSS, KS_CE) + (x ? b[5] * x(of) : 0);
    return y(of) - fitted;
}

static void check_fit(struct ks_explained by, double (*x)(size_t))
{
    double left = 0, left_out = 0, all = 0, all_out = 0, sum = 0;

    for (size_t k = 0; k < KS_TWELVE; k++)
        sum += noisy(k);
    for (size_t k = 0; k < KS_TWELVE; k++) {
        left += pow(residual_without(KS_TWELVE, noisy, x, k), 2);
        left_out += pow(residual_without(k, noisy, x, k), 2);
        all += pow(noisy(k) - sum / KS_TWELVE, 2);
        all_out += pow(noisy(k) - (sum - noisy(k)) / (KS_TWELVE - 1), 2);
    }
    assert_close(by.r2, 1 - left / all, 1e-9);
    assert_close(by.q2, 1 - left_out / all_out, 1e-9);
}

TEST_THREE_SEEDS(test_fits_without_one)
{
    put_study(noisy, scatter);
    predict();
    check_fit(found.factors, NULL);
    check_fit(of_kappa()->with, scatter);
}

/* An upper end that one spectrum does not have gives no numbers, nor does a return of 0. */
TEST_THREE_SEEDS(test_missing)
{
    put_study(noisy, scatter);
    for (size_t k = 0; k < KS_TWELVE; k++)
        for (size_t i = 0; i < study_seeds; i++)
            put_sound(k, i, scatter(k), 1 + scatter(k));
    put((struct spot){STANDARD, LONE, 1, 3}, "kappa_q99_upper", NAN);
    predict();
    assert_true(isfinite(find_row(KS_STAT_KAPPA_Q99, KS_LOWER_END, "hessian")->with.q2));
    assert_true(isnan(find_row(KS_STAT_KAPPA_Q99, KS_UPPER_END, "hessian")->with.q2));
    for (size_t i = 0; i < study_seeds; i++)
        put_return(LONE, i, 0);
    predict();
    assert_int_equal(found.n, 0);
}

/* The factors come first; what is not resolved has no numbers. */
TEST_IN_FOLDER(test_rows_of_the_table)
{
    static const struct ks_summary_table results = {
        .prediction = {{0.5, 0.25},
                       2,
                       {{{KS_STAT_KAPPA, KS_ITSELF}, "xqc", {0.75, 0.625}, -0.5, 0.125, 0.375},
                        {{KS_STAT_KAPPA_Q99, KS_UPPER_END}, "ggn", {NAN, NAN}, NAN, NAN, NAN}}}};

    assert_string_equal(table_text("prediction", &results),
                        "statistic,analysis,r2,q2,partial,p,p_family\n"
                        "factors,-,0.5,0.25,-,-,-\nkappa,xqc,0.75,0.625,-0.5,0.125,0.375\n"
                        "kappa_q99_upper,ggn,-,-,-,-,-\n");
}
