/* improvement.csv, profile.csv and correlation.csv of three architectures with four seeds. */
#include "studies.h"

#include "core/memory.h"
#include "results/comparison.h"

/* From each architecture to the next, kappa is ten times larger and returns half as large: bn+wn+ce
 * has the returns 100, 200, 300, 400, ln+mse 50 to 200, dense+ce 25 to 100. */
static int make_three(void **state)
{
    static const char *const architectures[] = {"ln+mse", "dense+ce"};

    if (make_study(state) != 0)
        return -1;
    write_text("study.study",
               "[study]\nenv = toy\narchitectures = ln+mse bn+wn+ce dense+ce\nseeds = 0..3\n"
               "steps = 12\n[train]\ncheckpoints = 3\nrandom_steps = 1\nevaluations = 2\n");
    for (size_t a = 0; a < 2; a++)
        for (size_t i = 0; i < SEEDS; i++) {
            for (size_t k = 0; k <= CHECKPOINTS; k++)
                write_spectrum(&(struct place){architectures[a], i, STEP[k], NULL},
                               k == 0 ? 1 : KAPPA[i][k - 1] * (a == 0 ? 10 : 100), false);
            write_returns(architectures[a], i,
                          text_of(RETURNS, (int)((a == 0 ? 50 : 25) * (i + 1))));
        }
    return 0;
}

/* Writes the tables with this many resamples, as if the study's task were `env`, and reads one of
 * them. */
static const struct ks_csv *table(const char *name, const char *env, size_t resamples)
{
    struct outcome *o = outcome_new(0);
    /* the study itself is not const */
    char path[64], **held = (char **)(uintptr_t)&o->results->study->env;

    free(*held);
    assert_ok(ks_copy_string(env, held));
    assert_ok(ks_tables_write(o->results, &o->table, resamples));
    snprintf(path, sizeof path, "tables/%s.csv", name);
    return read_csv(path);
}

/* bn+wn+ce against ln+mse, over {100 200 300 400} x {50 100 150 200}: 100 wins once and ties once,
 * 200 wins three times and ties once, the others always win: (1 + 3 + 8 + 2/2) / 16. */
TEST_WITH(test_improvement, make_three, scratch_remove)
{
    static const char *const order[] = {"bn+wn+ce", "dense+ce", "ln+mse"};
    const struct ks_csv *csv = table("improvement", "toy", 500);
    size_t row = 0;

    assert_int_equal(csv->rows, 6);
    for (size_t i = 0; i < 3; i++)
        for (size_t j = 0; j < 3; j++)
            if (i != j) {
                assert_string_equal(cell(csv, row, "architecture"), order[i]);
                assert_string_equal(cell(csv, row++, "other"), order[j]);
            }
    assert_close(cell_number(csv, 1, "probability"), 13 / 16., 1e-9);
    assert_close(cell_number(csv, 4, "probability"), 3 / 16., 1e-9);
    assert_close(cell_number(csv, 1, "probability_low"),
                 1 - cell_number(csv, 4, "probability_high"), 1e-9);
    assert_close(cell_number(csv, 1, "probability_high"),
                 1 - cell_number(csv, 4, "probability_low"), 1e-9);
    assert_true(cell_number(csv, 1, "probability_low") < 13 / 16.);
    csv = table("improvement", "toy", 0);
    assert_string_equal(cell(csv, 1, "probability_low"), "-");
}

/* On walker-run, with the range 0 to 1000, the scores are 0.1 0.2 0.3 0.4. A task without a range
 * or with an unknown one gives only the header. */
TEST_WITH(test_profile, make_three, scratch_remove)
{
    const struct ks_csv *csv = table("profile", "walker-run", 100);

    assert_int_equal(csv->rows, 3 * 51);
    check_row(csv, 0, "architecture=bn+wn+ce fraction=1");
    check_row(csv, 11, "tau=0.22 fraction=0.5");
    assert_true(cell_number(csv, 11, "fraction_low") < 0.5);
    check_row(csv, 50, "tau=1 fraction=0");
    csv = table("profile", "toy", 0);
    assert_int_equal(csv->rows, 0);
    csv = table("profile", "HumanoidStandup-v4", 0);
    assert_int_equal(csv->rows, 0);
}

/* kappa rises as the return falls. Statistics that are equal for all architectures have no
 * correlation. An unresolved upper end is infinite. */
TEST_WITH(test_correlation, make_three, scratch_remove)
{
    static const char *const names[] = {"kappa",
                                        "kappa_effective_bound",
                                        "kappa_q99_lower",
                                        "kappa_q99_upper",
                                        "directions_1e2_lower",
                                        "directions_1e2_upper",
                                        "lambda_max",
                                        "kurtosis"};
    const struct ks_csv *csv = table("correlation", "toy", 200);

    assert_int_equal(csv->rows, 8);
    for (size_t k = 0; k < 8; k++) {
        assert_string_equal(cell(csv, k, "analysis"), "standard");
        assert_string_equal(cell(csv, k, "statistic"), names[k]);
        assert_string_equal(cell(csv, k, "scale"), k < 4 ? "log" : "linear");
        assert_close(cell_number(csv, k, "architectures"), 3, 0);
    }
    assert_close(cell_number(csv, 0, "spearman"), -1, 1e-9);
    assert_close(cell_number(csv, 0, "p"), 2 / 6., 1e-9);
    assert_true(cell_number(csv, 0, "spearman_low") >= -1);
    assert_true(cell_number(csv, 0, "spearman_high") > -1);
    check_row(csv, 1, "spearman=- p=-");
    assert_close(cell_number(csv, 6, "spearman"), -1, 1e-9); /* lambda_max is half of kappa */
}

/* Sets the statistic in all spectra of an architecture (its number in the study) to `even` for even
 * seeds, else to `odd`. */
static void set_all(struct ks_results *r, size_t architecture, const char *name, double even,
                    double odd)
{
    for (size_t i = 0; i < SEEDS; i++)
        for (size_t k = 0; k < r->study->n_checkpoints; k++) {
            struct ks_attributes *statistics =
                &r->run[architecture * SEEDS + i].spectrum[k]->statistics;

            for (size_t j = 0; j < statistics->n; j++)
                if (strcmp(statistics->list[j].name, name) == 0)
                    statistics->list[j].number = i % 2 ? odd : even;
        }
}

/* kappa is averaged on a logarithmic scale: 1 and 10,000 give 100, which is less than 1000. An
 * architecture whose upper ends are not resolved has an infinite value and keeps its point. */
TEST_WITH(test_how_points_are_made, make_three, scratch_remove)
{
    enum { LN, BN, DENSE };
    struct outcome *o = outcome_new(0);
    const struct ks_csv *csv;

    set_all(o->results, BN, "kappa", 1, 1e4);
    set_all(o->results, LN, "kappa", 1e3, 1e3);
    set_all(o->results, DENSE, "kappa", 1e5, 1e5);
    set_all(o->results, BN, "kappa_q99_upper", 20, 20);
    set_all(o->results, LN, "kappa_q99_upper", 200, 200);
    set_all(o->results, DENSE, "kappa_q99_upper", NAN, NAN);
    assert_ok(ks_tables_write(o->results, &o->table, 0));
    csv = read_csv("tables/correlation.csv");
    assert_close(cell_number(csv, 0, "spearman"), -1, 1e-9);
    check_row(csv, 3, "statistic=kappa_q99_upper architectures=3 spearman=-1");
}

/* An analysis that failed everywhere takes its architecture out of the correlation. */
TEST_WITH(test_lost_spectra, make_three, scratch_remove)
{
    const struct ks_csv *csv;

    remove_spectra("ln+mse");
    csv = table("correlation", "toy", 0);
    assert_int_equal(csv->rows, 8);
    check_row(csv, 0, "architectures=2 spearman=-");
    remove_spectra("bn+wn+ce");
    remove_spectra("dense+ce");
    csv = table("correlation", "toy", 0);
    assert_int_equal(csv->rows, 0);
}
