/* Whether a statistic adds to what the factors say of the return: on studies where it does and
 * where it does not, and against fits by LAPACK that leave an architecture out. */
#include "claimed.h"

#include <lapacke.h>

#include "claims/prediction.h"
#include "io/table.h"

enum { COEFFICIENTS = 6 };

static struct ks_table table;

static void predict(void)
{
    ks_table_free(&table);
    table = (struct ks_table){0};
    ks_table_columns(&table, "statistic,analysis,r2,q2,partial,p,p_family");
    assert_ok(ks_prediction_fill(study_results, &table));
}

static int end_prediction(void **state)
{
    ks_table_free(&table);
    table = (struct ks_table){0};
    return claimed_end(state);
}

static double value(const char *statistic, const char *analysis, const char *column)
{
    for (size_t i = 0; i < ks_table_rows(&table); i++)
        if (strcmp(ks_table_text(&table, i, "statistic"), statistic) == 0 &&
            strcmp(ks_table_text(&table, i, "analysis"), analysis) == 0)
            return ks_table_value(&table, i, column);
    fail_msg("no row %s of %s", statistic, analysis);
    return NAN;
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
            run_of(k, i)->returns[study_results->study->n_evaluations - 1] = pow(10, y(k));
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
TEST_WITH(test_what_adds, make_three, end_prediction)
{
    put_study(both, scatter);
    predict();
    assert_true(value("factors", "-", "r2") < 0.9);
    assert_close(value("kappa", "xqc", "r2"), 1, 1e-12);
    assert_close(value("kappa", "xqc", "q2"), 1, 1e-12);
    assert_close(value("kappa", "xqc", "partial"), -1, 1e-12);
    assert_true(value("kappa", "xqc", "p") < 1e-4);
    assert_true(value("kappa", "xqc", "p_family") >= value("kappa", "xqc", "p"));
}

/* A kappa that is a sum of the factors adds nothing, and one without relation has a large p. */
TEST_WITH(test_what_does_not_add, make_three, end_prediction)
{
    put_study(both, factors);
    predict();
    assert_true(isnan(value("kappa", "xqc", "q2")));
    put_study(noisy, scatter);
    for (size_t i = 0; i < study_seeds; i++)
        put_paper(0, i, "kappa", -scatter(0) - 0.5);
    predict();
    assert_true(value("kappa", "xqc", "p") > 0.05);
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

static void check_fit(const char *statistic, const char *analysis, double (*x)(size_t))
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
    assert_close(value(statistic, analysis, "r2"), 1 - left / all, 1e-9);
    assert_close(value(statistic, analysis, "q2"), 1 - left_out / all_out, 1e-9);
}

TEST_WITH(test_fits_without_one, make_three, end_prediction)
{
    put_study(noisy, scatter);
    predict();
    check_fit("factors", "-", NULL);
    check_fit("kappa", "xqc", scatter);
}

/* An upper end that one spectrum does not have gives no numbers; a return of 0 no table. */
TEST_WITH(test_missing, make_three, end_prediction)
{
    put_study(noisy, scatter);
    for (size_t k = 0; k < KS_TWELVE; k++)
        for (size_t i = 0; i < study_seeds; i++)
            put_sound(k, i, scatter(k), 1 + scatter(k));
    put((struct spot){STANDARD, LONE, 1, 3}, "kappa_q99_upper", NAN);
    predict();
    assert_true(isfinite(value("kappa_q99_lower", "hessian", "q2")));
    assert_true(isnan(value("kappa_q99_upper", "hessian", "q2")));
    for (size_t i = 0; i < study_seeds; i++)
        run_of(LONE, i)->returns[study_results->study->n_evaluations - 1] = 0;
    predict();
    assert_int_equal(ks_table_rows(&table), 0);
}
