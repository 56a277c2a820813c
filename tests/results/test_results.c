/* The results of a study, read from its folder: statistics over runs, and incomplete or damaged
 * files. */
#include "studies.h"

TEST_IN_STUDY(test_pooled_statistics)
{
    struct outcome *o = outcome_new(0);
    const struct ks_row *bn = &o->table.row[0], *ln = &o->table.row[1];

    assert_int_equal(o->table.n_rows, 2); /* ce before mse */
    assert_string_equal(o->results->study->architecture[bn->architecture].name, "bn+wn+ce");
    assert_int_equal(bn->runs, SEEDS);
    assert_close(bn->value[KS_KAPPA].value, 266.6667, 5e-5);
    assert_close(bn->value[KS_KAPPA_GEOMETRIC].value, 244.949, 5e-4);
    assert_close(ln->value[KS_KAPPA].value, 2666.667, 5e-4);
    assert_close(bn->value[KS_LAMBDA_MAX].value, 0.5 * 266.6667, 5e-5);
    assert_close(bn->value[KS_KAPPA_LOWER_BOUND].value, 7, 0);
    assert_close(bn->value[KS_KAPPA_EFFECTIVE_BOUND].value, 9, 0);
    assert_close(bn->value[KS_RETURN].value, 250, 1e-12);
    assert_true(
        isnan(bn->value[KS_AREA].value)); /* "toy" has no scores of random and good policies */
    assert_true(isnan(bn->value[KS_KAPPA].in.lower));
    assert_true(isnan(o->table.spearman)); /* of two architectures */
}

/* With four seeds: the medians of the ends, with two unresolved or three infinite ones. With one
 * seed: its own interval. All at the last checkpoint. */
TEST_IN_STUDY(test_ranges)
{
    struct outcome *o = outcome_new(0);
    const struct ks_seed_range *range = o->table.row[0].range;

    assert_int_equal(range[KS_RANGE_DIRECTIONS].n, SEEDS);
    assert_close(range[KS_RANGE_DIRECTIONS].median.lower, 21.5, 0);
    assert_close(range[KS_RANGE_DIRECTIONS].median.upper, 33, 0);
    assert_close(range[KS_RANGE_DIRECTIONS].all.lower, 20, 0);
    assert_close(range[KS_RANGE_DIRECTIONS].all.upper, 36, 0);
    assert_close(range[KS_RANGE_Q99].median.lower, 123.45, 0);
    assert_true(isinf(range[KS_RANGE_Q99].median.upper) && isinf(range[KS_RANGE_Q99].all.upper));
    assert_int_equal(range[KS_RANGE_GRADIENT].n, SEEDS - 1); /* undefined for a zero gradient */
    assert_true(isinf(range[KS_RANGE_GRADIENT].median.lower));
    write_text("study.study", "[study]\nenv = toy\narchitectures = ln+mse bn+wn+ce\nseeds = 1\n"
                              "steps = 12\n[train]\ncheckpoints = 3\nrandom_steps = 1\n"
                              "evaluations = 2\n");
    o = outcome_new(0);
    range = o->table.row[0].range;
    assert_close(range[KS_RANGE_DIRECTIONS].median.lower, 21, 0);
    assert_close(range[KS_RANGE_DIRECTIONS].median.upper, 32, 0);
    assert_close(range[KS_RANGE_Q99].median.upper, 234.51, 0);
    assert_int_equal(range[KS_RANGE_GRADIENT].n, 0);
}

static void check_text(double lower, double upper, const char *expected)
{
    const struct ks_interval range = {lower, upper};
    char text[KS_INTERVAL_TEXT];

    assert_string_equal(ks_interval_text(range, KS_IN_WORDS, text), expected);
}

/* The printed text contains the interval: lower ends are rounded down, upper ends up. */
TEST_IN_STUDY(test_printed_ranges)
{
    check_text(209, 367, "209 to 367");
    check_text(51, 51, "51");
    check_text(12345, 99999, "12345 to 99999");
    check_text(4.5678, 4.5612e3, "4.56 to 4570");
    check_text(1.2351, 1.2349, "1.23 to 1.24");
    check_text(9.999, 9.999, "9.99 to 10");
    check_text(1.5, 123456789, "1.5 to 1.24e+08");
    check_text(1.5, 1.1e300, "1.5 to 1.10e+300");
    check_text(3.7, INFINITY, "3.7 or more");
    check_text(INFINITY, INFINITY, "infinite");
}

/* The bootstrap draws whole seeds: every digit of the return's interval, computed by hand from the
 * draws. */
TEST_IN_STUDY(test_intervals)
{
    const size_t runs[] = {SEEDS};
    struct ks_bootstrap bootstrap = {40, 0, 1, runs};
    double drawn[40];
    struct outcome *o = outcome_new(40);

    for (size_t b = 0; b < 40; b++) {
        size_t index[SEEDS];
        double value[SEEDS];

        ks_bootstrap_draw(&bootstrap, b, index);
        for (size_t i = 0; i < SEEDS; i++)
            value[i] = 100 * (double)(index[i] + 1);
        drawn[b] = ks_iqm(SEEDS, value);
    }
    ks_iqm(40, drawn); /* sorts */
    assert_close(o->table.row[0].value[KS_RETURN].in.lower, ks_quantile(40, drawn, 0.05), 1e-9);
    assert_close(o->table.row[0].value[KS_RETURN].in.upper, ks_quantile(40, drawn, 0.95), 1e-9);
    assert_true(o->table.row[0].value[KS_KAPPA].in.lower < 266);
    assert_int_equal(o->results->warnings.n, 0);
    assert_ok(ks_results_warn_intervals(o->results));
    assert_warned(o->results, "2 of 2 architectures have fewer than 5 runs");
}

TEST_IN_STUDY(test_lost_kappa)
{
    struct outcome *o;

    write_spectrum(&(struct place){"bn+wn+ce", 0, 4, NULL}, NAN, false);
    write_spectrum(&(struct place){"bn+wn+ce", 1, 4, NULL}, INFINITY, false);
    o = outcome_new(0); /* 10 20 | 200 300 300 300 400 800 1000 | 1e6 inf: of 11 values, two are cut
                           at each end */
    assert_int_equal(o->table.row[0].dropped, 1);
    assert_close(o->table.row[0].value[KS_KAPPA].value, (200 + 300 * 3 + 400 + 800 + 1000) / 7.,
                 1e-9);
}

TEST_IN_STUDY(test_partial_run_is_left_out)
{
    struct outcome *o;

    remove_spectrum(&(struct place){"ln+mse", 2, 8, NULL});
    o = outcome_new(0);
    assert_int_equal(o->table.n_rows, 2);
    assert_int_equal(o->table.row[1].runs, 3);
    assert_close(o->table.row[1].value[KS_RETURN].value, 700 / 3., 1e-9); /* 100 200 400 */
    assert_int_equal(o->results->warnings.n, 1);
    assert_warned(o->results,
                  "1 of 8 runs are not complete and left out: ln+mse, seed 2. The architectures "
                  "have unequal numbers of seeds, 3 to 4");
    set_study("grid = common\n");
    o = outcome_new(0);
    assert_int_equal(o->table.n_rows, 2);
    assert_int_equal(o->table.row[1].runs, 4);
    assert_warned(o->results, "only the steps that all runs have");
}

/* Failed analyses of a finished run are left out of its statistics and counted. */
TEST_IN_STUDY(test_failed_analysis_is_dropped)
{
    struct outcome *o;

    remove_spectrum(&(struct place){"bn+wn+ce", 0, 4, NULL});
    write_text("runs/toy/bn+wn+ce/seed0/run.json", "{\"state\": \"running\"}");
    o = outcome_new(0);
    assert_int_equal(o->table.row[0].runs, SEEDS - 1);
    write_text("runs/toy/bn+wn+ce/seed0/run.json", "{\"state\": \"finished\"}");
    o = outcome_new(0);
    assert_int_equal(o->table.n_rows, 2);
    assert_int_equal(o->table.row[0].runs, SEEDS);
    assert_int_equal(o->table.row[0].dropped, 1);
    assert_warned(o->results, "bn+wn+ce, seed 0: the run is over, but 1 of 4 spectra");
    assert_close(o->table.row[0].value[KS_KAPPA].value, (50 + 200 + 300 * 3 + 400 + 800) / 7.,
                 1e-9);
    remove_spectra("ln+mse");
    o = outcome_new(0);
    assert_int_equal(o->table.row[1].dropped, SEEDS * CHECKPOINTS);
    assert_true(isnan(o->table.row[1].value[KS_KAPPA].value));
    assert_close(o->table.row[1].value[KS_RETURN].value, 250, 1e-12);
    assert_int_equal(o->table.ranked, 1);
}

/* A run that was resumed under other conditions is used, and the report names it. */
TEST_IN_STUDY(test_changed_conditions)
{
    struct outcome *o;

    write_text(
        "runs/toy/bn+wn+ce/seed0/run.json",
        "{\"state\": \"finished\", \"changes\": [{\"env_step\": 16, \"what\": \"blas_kernel\", "
        "\"from\": \"Haswell\", \"to\": \"Zen\"}, {\"env_step\": 9, \"what\": \"threads\"}, "
        "{\"env_step\": 20, \"what\": \"threads\", \"from\": 2, \"to\": 1}]}");
    write_text("runs/toy/bn+wn+ce/seed1/run.json", "{\"state\": \"finished\", \"changes\": []}");
    o = outcome_new(0);
    assert_int_equal(o->results->warnings.n, 1);
    assert_warned(o->results, "bn+wn+ce, seed 0: the run was resumed under other conditions");
    assert_warned(o->results, ": from environment step 16 on, blas_kernel was \"Haswell\", is "
                              "\"Zen\"; from environment step 20 on, threads was 2, is 1");
    assert_int_equal(o->table.row[0].runs, SEEDS);
}

/* A spectrum that cannot be read is a failure, and nothing is written. */
TEST_IN_STUDY(test_malformed_spectrum_is_refused)
{
    struct ks_results *r = NULL;

    write_text(spectrum_path(&(struct place){"ln+mse", 2, 8, NULL}), "no HDF5");
    assert_fails(ks_results_read(scratch_folder, NULL, &r), KS_FORMAT,
                 "seed2/step_000000008.spectrum.h5");
    assert_null(r);
    assert_fails(ks_study_plot(scratch_folder, NULL, 0, true), KS_FORMAT,
                 "seed2/step_000000008.spectrum.h5");
    assert_false(exists("tables"));
}

TEST_IN_STUDY(test_nothing_to_draw)
{
    struct outcome *o;

    for (size_t i = 0; i < SEEDS; i++) {
        write_returns("bn+wn+ce", i, "env_step,update\n0,0\n");
        write_returns("ln+mse", i, "env_step,update\n0,0\n");
    }
    o = outcome_new(0);
    assert_warned(o->results, "8 of 8 runs are not complete and left out: ln+mse, all seeds; "
                              "bn+wn+ce, all seeds");
    assert_fails(ks_study_plot(scratch_folder, NULL, 0, true), KS_FORMAT, "nothing to draw");
    assert_true(exists("tables/checkpoints.csv"));
}

TEST_IN_STUDY(test_damaged_returns)
{
    struct outcome *o;

    write_returns("bn+wn+ce", 1, "env_step,update\n0,0\n");
    write_returns("ln+mse", 3, "env_step,return_mean\n0,1\n6,x\n12,3\n");
    o = outcome_new(0);
    assert_warned(o->results, "progress.csv:3: ");
    assert_warned(o->results, "progress.csv: expected a column 'return_mean'");
    assert_int_equal(o->table.n_rows, 2);
    assert_int_equal(o->table.row[0].runs, SEEDS - 1);
    assert_warned(o->results,
                  "2 of 8 runs are not complete and left out: ln+mse, seed 3; bn+wn+ce, "
                  "seed 1");
}

/* What damages the files of a run that is over does not make the run vanish. */
TEST_IN_STUDY(test_damaged_runs_that_are_over)
{
    static const struct {
        const char *run, *progress, *words; /* NULL: the file is missing */
    } cases[] = {
        {"{\"state\": \"finished\"}", "env_step,return_mean\n0,1\n6,x\n12,3\n", "progress.csv:3: "},
        {"{\"state\": \"finished\"}", "env_step,return_mean\n0,1\n6,2\n",
         "progress.csv: expected a return at step 12, as run.json says that the run is over"},
        {"{\"state\": \"finished\"}", "", "progress.csv: "},
        {"{\"state\": \"finished\"}", NULL, "progress.csv: cannot be opened: No such file"},
        {"{\"state\": \"fini", "env_step,return_mean\n0,1\n6,2\n12,3\n",
         "run.json: damaged: expected the state of a run"},
        {NULL, "env_step,return_mean\n0,1\n6,2\n12,3\n",
         "run.json: missing, although the run has spectra"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *folder = "runs/toy/ln+mse/seed3";
        struct ks_results *r = NULL;

        write_text(text_of("%s/run.json", folder), cases[i].run ? cases[i].run : "");
        write_text(text_of("%s/progress.csv", folder), cases[i].progress ? cases[i].progress : "");
        if (!cases[i].run)
            assert_int_equal(unlink(scratch(text_of("%s/run.json", folder))), 0);
        if (!cases[i].progress)
            assert_int_equal(unlink(scratch(text_of("%s/progress.csv", folder))), 0);
        assert_int_not_equal(ks_results_read(scratch_folder, NULL, &r), KS_OK);
        assert_contains(ks_error_text(), cases[i].words);
        assert_contains(ks_error_text(), folder);
    }
}

/* A spectrum that was moved from another checkpoint is refused. */
TEST_IN_STUDY(test_misplaced_spectrum)
{
    struct ks_results *r = NULL;

    assert_int_equal(rename(scratch(spectrum_path(&(struct place){"ln+mse", 2, 8, NULL})),
                            scratch(spectrum_path(&(struct place){"ln+mse", 2, 4, NULL}))),
                     0);
    assert_fails(ks_results_read(scratch_folder, NULL, &r), KS_FORMAT,
                 "env_step: expected 4, found 8");
}

TEST_IN_STUDY(test_returns_that_are_no_numbers)
{
    struct ks_results *r = NULL;
    struct outcome *o;

    write_returns("ln+mse", 3, "env_step,return_mean\n0,1\n6,nan\n12,3\n");
    assert_fails(ks_results_read(scratch_folder, NULL, &r), KS_FORMAT,
                 "toy, ln+mse, seed 3, step 6: the return is nan");
    assert_contains(ks_error_text(), "seed3/progress.csv");
    write_returns("ln+mse", 3, "env_step,return_mean\n0,1\n6,2\n12,inf\n");
    assert_fails(ks_results_read(scratch_folder, NULL, &r), KS_FORMAT,
                 "step 12: the return is inf");
    set_study("missing = drop\n");
    o = outcome_new(0);
    assert_int_equal(o->table.row[1].runs, 3);
    write_returns("ln+mse", 3, "env_step,return_mean\n0,1\n6,2\n6,2\n12,3\n");
    assert_fails(ks_results_read(scratch_folder, NULL, &r), KS_FORMAT,
                 "progress.csv:4: a second return at step 6");
    write_returns("ln+mse", 3,
                  "env_step,return_mean\n0,1\n6,2\n12,3\n12,\n14,"); /* still being written */
    o = outcome_new(0);
    assert_int_equal(o->table.row[1].runs, 4);
}

TEST_IN_STUDY(test_no_study)
{
    struct ks_results *r = NULL;

    assert_int_equal(unlink(scratch("study.study")), 0);
    assert_fails(ks_results_read(scratch_folder, NULL, &r), KS_IO, "study.study");
    assert_null(r);
}
