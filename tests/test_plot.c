/* From a study's folder to tables, figures and page. The folders are made here: spectra with
 * figures by hand. */
#include "tree.h"

#include <fcntl.h>

#include "ks/csv.h"
#include "ks/figures.h"
#include "ks/memory.h"
#include "ks/place.h"
#include "ks/schedule.h"
#include "ks/spectrum.h"

enum { SEEDS = 4, CHECKPOINTS = 3 };

/* The four seeds and three checkpoints of statistics' hand values, and one before the first update,
 * which is not pooled. */
static const double KAPPA[SEEDS][CHECKPOINTS] = {
    {100, 200, 400}, {50, 1000, 800}, {10, 20, 1e6}, {300, 300, 300}};
static const size_t STEP[CHECKPOINTS + 1] = {2, 4, 8, 12}; /* as the schedule has them */

static const char STUDY[] =
    "[study]\nenv = toy\narchitectures = ln+mse bn+wn+ce\nseeds = 0..3\n"
    "steps = 12\n%s[train]\ncheckpoints = 3\nrandom_steps = 1\nevaluations = 2\n";

static void set_number(struct ks_attribute *a, const char *name, double value)
{
    snprintf(a->name, sizeof a->name, "%s", name);
    a->type = KS_ATTRIBUTE_NUMBER;
    a->number = value;
}

static void set_integer(struct ks_attribute *a, const char *name, int64_t value)
{
    snprintf(a->name, sizeof a->name, "%s", name);
    a->type = KS_ATTRIBUTE_INTEGER;
    a->integer = value;
}

static void set_string(struct ks_attribute *a, const char *name, const char *value)
{
    snprintf(a->name, sizeof a->name, "%s", name);
    a->type = KS_ATTRIBUTE_STRING;
    a->string = (char *)(uintptr_t)value; /* not freed with the spectrum, which is on the stack */
}

struct place {
    const char *architecture;
    size_t seed, step;
};

static void spectrum_path(const struct place *place, char path[256])
{
    snprintf(path, 256, "runs/toy/%s/seed%zu/step_%09zu.spectrum.h5", place->architecture,
             place->seed, place->step);
}

static void write_spectrum(const struct place *place, double kappa)
{
    double ritz[] = {-0.5, 0, 2, 50}, weight[] = {0.25, 0.5, 0.125, 0.125}, zero[4] = {0};
    double grid[] = {-1, 0, 50}, density[] = {0, 0.5, 0};
    int64_t steps = 4;
    struct ks_attribute attribute[20] = {0}, summary[5] = {0}, *a = attribute;
    struct ks_spectrum s = {.n_attributes = 20,
                            .n_summary = 5,
                            .attribute = attribute,
                            .summary = summary,
                            .probes = 1,
                            .order = 4,
                            .alpha = zero,
                            .beta = zero,
                            .steps = &steps,
                            .ritz = ritz,
                            .weight = weight,
                            .residual = zero,
                            .n_grid = 3,
                            .grid = grid,
                            .density = density,
                            .symlog_grid = grid,
                            .symlog_density = density};
    char path[256];

    set_string(a++, "checkpoint", "some.h5");
    set_string(a++, "checkpoint_sha256",
               "0000000000000000000000000000000000000000000000000000000000000000");
    set_string(a++, "operator", "hessian");
    set_string(a++, "batchnorm", "train");
    set_string(a++, "precision", "f64");
    set_integer(a++, "order", 4);
    set_integer(a++, "probes", 1);
    set_integer(a++, "probe_seed", 0);
    set_integer(a++, "dimension", 100);
    set_number(a++, "weight_decay", 0);
    set_number(a++, "scale", 1);
    set_integer(a++, "batches", 1);
    set_integer(a++, "critic", -1);
    set_integer(a++, "layer", -1);
    set_string(a++, "env", "toy");
    set_string(a++, "architecture", place->architecture);
    set_integer(a++, "seed", (int64_t)place->seed);
    set_integer(a++, "env_step", (int64_t)place->step);
    set_integer(a++, "update", place->step > 2 ? (int64_t)place->step - 2 : 0);
    set_number(a++, "return_mean", 1);
    set_number(&summary[0], "kappa", kappa);
    set_number(&summary[1], "kappa_lower_bound", 7);
    set_number(&summary[2], "kappa_q90", 9);
    set_number(&summary[3], "lambda_max", 0.5 * kappa);
    set_number(&summary[4], "kurtosis", 3);
    spectrum_path(place, path);
    tree_write(path, ""); /* its folder */
    assert_ok(ks_spectrum_write(tree_path(path), &s));
}

static const char RETURNS[] = "env_step,update,critic_loss,return_mean\n"
                              "0,0,nan,10\n2,0,nan,nan\n4,2,0.5,\n6,4,0.5,20\n8,6,0.5,nan\n"
                              "12,10,0.5,%d\n";

static void write_returns(const char *architecture, size_t seed, const char *text)
{
    char path[256];

    snprintf(path, sizeof path, "runs/toy/%s/seed%zu/progress.csv", architecture, seed);
    tree_write(path, text);
}

/* A study that is done: its last returns are 100, 200, 300, 400. */
static int make_study(void **state)
{
    static const char *const architectures[] = {"ln+mse", "bn+wn+ce"};
    char text[1024];

    if (tree_make(state) != 0)
        return -1;
    snprintf(text, sizeof text, STUDY, "");
    tree_write("study.study", text);
    for (size_t a = 0; a < 2; a++)
        for (size_t i = 0; i < SEEDS; i++) {
            for (size_t k = 0; k <= CHECKPOINTS; k++)
                write_spectrum(&(struct place){architectures[a], i, STEP[k]},
                               k == 0 ? 1e9 : KAPPA[i][k - 1] * (a == 0 ? 10 : 1));
            snprintf(text, sizeof text, RETURNS, (int)(100 * (i + 1)));
            write_returns(architectures[a], i, text);
        }
    return 0;
}

static void set_study(const char *more)
{
    char text[1024];

    snprintf(text, sizeof text, STUDY, more);
    tree_write("study.study", text);
}

struct outcome {
    struct ks_results *results;
    struct ks_summary_table table;
};

static struct outcome outcome_new(size_t resamples)
{
    struct outcome o = {NULL, {0}};

    assert_ok(ks_results_read(tree, &o.results));
    assert_ok(ks_summary_table(o.results, resamples, &o.table));
    return o;
}

static void outcome_free(struct outcome *o)
{
    free(o->table.row);
    ks_results_free(o->results);
}

static void assert_warned(const struct ks_results *r, const char *words)
{
    for (size_t i = 0; i < r->n_warnings; i++)
        if (strstr(r->warning[i], words))
            return;
    fail_msg("no warning says '%s'", words);
}

static void test_schedule_of_the_fixture(void **state)
{
    struct ks_study *s = NULL;

    (void)state;
    assert_ok(ks_study_read(tree_path("study.study"), false, &s));
    assert_int_equal(s->n_checkpoints, CHECKPOINTS + 1);
    for (size_t i = 0; i <= CHECKPOINTS; i++)
        assert_int_equal(s->checkpoint[i], STEP[i]);
    ks_study_free(s);
}

static void test_pooled_figures(void **state)
{
    struct outcome o = outcome_new(0);
    const struct ks_row *bn = &o.table.row[0], *ln = &o.table.row[1];

    (void)state;
    assert_int_equal(o.table.n_rows, 2); /* ce before mse */
    assert_string_equal(o.results->study->architecture[bn->architecture].name, "bn+wn+ce");
    assert_int_equal(bn->runs, SEEDS);
    assert_close(bn->value[KS_KAPPA].value, 266.6667, 5e-5);
    assert_close(bn->value[KS_KAPPA_GEOMETRIC].value, 244.949, 5e-4);
    assert_close(ln->value[KS_KAPPA].value, 2666.667, 5e-4);
    assert_close(bn->value[KS_LAMBDA_MAX].value, 0.5 * 266.6667, 5e-5);
    assert_close(bn->value[KS_KAPPA_LOWER_BOUND].value, 7, 0);
    assert_close(bn->value[KS_RETURN].value, 250, 1e-12);
    assert_close(bn->value[KS_AREA].value, (0.5 * (10 + 20) + 0.5 * (20 + 250)) / 2 / 1000, 1e-12);
    assert_true(isnan(bn->value[KS_KAPPA].low));
    assert_true(isnan(o.table.spearman)); /* of two architectures */
    outcome_free(&o);
}

/* Seeds are drawn whole: of the return's interval every digit, by hand through the draws. */
static void test_intervals(void **state)
{
    const size_t runs[] = {SEEDS};
    struct ks_bootstrap bootstrap = {40, 0, KS_BOOTSTRAP_LEVEL, 1, runs};
    double drawn[40];
    struct outcome o = outcome_new(40);

    (void)state;
    for (size_t b = 0; b < 40; b++) {
        size_t index[SEEDS];
        double value[SEEDS];

        ks_bootstrap_draw(&bootstrap, b, index);
        for (size_t i = 0; i < SEEDS; i++)
            value[i] = 100 * (double)(index[i] + 1);
        drawn[b] = ks_iqm(SEEDS, value);
    }
    ks_iqm(40, drawn); /* sorts */
    assert_close(o.table.row[0].value[KS_RETURN].low, ks_quantile(40, drawn, 0.05), 1e-9);
    assert_close(o.table.row[0].value[KS_RETURN].high, ks_quantile(40, drawn, 0.95), 1e-9);
    assert_true(o.table.row[0].value[KS_KAPPA].low < 266);
    assert_warned(o.results, "too narrow");
    outcome_free(&o);
}

static void test_lost_kappa(void **state)
{
    struct outcome o;

    (void)state;
    write_spectrum(&(struct place){"bn+wn+ce", 0, 4}, NAN);
    write_spectrum(&(struct place){"bn+wn+ce", 1, 4}, INFINITY);
    o = outcome_new(
        0); /* 10 20 | 200 300 300 300 400 800 1000 | 1e6 inf: of 11, two go at each end */
    assert_int_equal(o.table.row[0].dropped, 1);
    assert_close(o.table.row[0].value[KS_KAPPA].value, (200 + 300 * 3 + 400 + 800 + 1000) / 7.,
                 1e-9);
    outcome_free(&o);
}

static void test_partial_run_is_left_out(void **state)
{
    char path[256];
    struct outcome o;

    (void)state;
    spectrum_path(&(struct place){"ln+mse", 2, 8}, path);
    assert_int_equal(unlink(tree_path(path)), 0);
    o = outcome_new(0);
    assert_int_equal(o.table.n_rows, 1);
    assert_warned(o.results,
                  "ln+mse, seed 2: the architecture is left out: 1 of 4 spectra and 0 of 3");
    outcome_free(&o);
    set_study("missing = drop\n");
    o = outcome_new(0);
    assert_int_equal(o.table.n_rows, 2);
    assert_int_equal(o.table.row[1].runs, 3);
    assert_close(o.table.row[1].value[KS_RETURN].value, 700 / 3., 1e-9); /* 100 200 400 */
    assert_warned(o.results, "1 of 8 runs are left out");
    outcome_free(&o);
    set_study("grid = common\n");
    o = outcome_new(0);
    assert_int_equal(o.table.n_rows, 2);
    assert_int_equal(o.table.row[1].runs, 4);
    assert_warned(o.results, "only the steps that all runs have");
    outcome_free(&o);
}

static void test_malformed_files_are_named(void **state)
{
    char path[256];
    struct outcome o;

    (void)state;
    spectrum_path(&(struct place){"ln+mse", 2, 8}, path);
    tree_write(path, "no HDF5");
    write_returns("bn+wn+ce", 1, "env_step,update\n0,0\n");
    o = outcome_new(0);
    assert_int_equal(o.table.n_rows, 0);
    assert_warned(o.results, "step_000000008.spectrum.h5");
    assert_warned(o.results, "progress.csv: expected a column 'return_mean'");
    assert_fails(ks_study_plot(tree, 0, true), KS_FORMAT, "nothing to draw");
    assert_true(tree_has("tables/checkpoints.csv"));
    outcome_free(&o);
}

/* A spectrum that was moved from another place. */
static void test_misplaced_spectrum(void **state)
{
    char from[256], to[256];
    struct outcome o;

    (void)state;
    spectrum_path(&(struct place){"ln+mse", 2, 8}, from);
    spectrum_path(&(struct place){"ln+mse", 2, 4}, to);
    assert_int_equal(rename(tree_path(from), tree_path(to)), 0);
    o = outcome_new(0);
    assert_warned(o.results, "env_step: expected 4, found 8");
    outcome_free(&o);
}

static void test_returns_that_are_no_numbers(void **state)
{
    struct ks_results *r = NULL;
    struct outcome o;

    (void)state;
    write_returns("ln+mse", 3, "env_step,return_mean\n0,1\n6,nan\n12,3\n");
    assert_fails(ks_results_read(tree, &r), KS_FORMAT,
                 "toy, ln+mse, seed 3, step 6: the return is nan");
    assert_non_null(strstr(ks_error_text(), "seed3/progress.csv"));
    write_returns("ln+mse", 3, "env_step,return_mean\n0,1\n6,2\n12,inf\n");
    assert_fails(ks_results_read(tree, &r), KS_FORMAT, "step 12: the return is inf");
    set_study("missing = drop\n");
    o = outcome_new(0);
    assert_int_equal(o.table.row[1].runs, 3);
    outcome_free(&o);
    write_returns("ln+mse", 3, "env_step,return_mean\n0,1\n6,2\n6,2\n12,3\n");
    assert_fails(ks_results_read(tree, &r), KS_FORMAT, "progress.csv:4: a second return at step 6");
    write_returns("ln+mse", 3,
                  "env_step,return_mean\n0,1\n6,2\n12,3\n12,\n14,"); /* being written */
    o = outcome_new(0);
    assert_int_equal(o.table.row[1].runs, 4);
    outcome_free(&o);
}

static void test_no_study(void **state)
{
    struct ks_results *r = NULL;

    (void)state;
    assert_int_equal(unlink(tree_path("study.study")), 0);
    assert_fails(ks_results_read(tree, &r), KS_IO, "study.study");
    assert_null(r);
}

/* --- tables, figures, page --- */

static void test_tables(void **state)
{
    struct outcome o = outcome_new(0);
    struct ks_csv *csv = NULL;
    size_t column = 0;
    double value = 0;

    (void)state;
    assert_ok(ks_tables_write(o.results, &o.table, 0));
    assert_ok(ks_csv_read(tree_path("tables/checkpoints.csv"), false, &csv));
    assert_int_equal(csv->rows, 2 * SEEDS * (CHECKPOINTS + 1));
    assert_ok(ks_csv_column(csv, "kappa", &column));
    assert_ok(ks_csv_number(csv, 1, column, &value));
    assert_close(value, 1000, 0); /* ln+mse, seed 0, the first pooled checkpoint */
    ks_csv_free(csv);
    assert_ok(ks_csv_read(tree_path("tables/returns.csv"), false, &csv));
    assert_int_equal(csv->rows, 2 * SEEDS * 3);
    ks_csv_free(csv);
    assert_ok(ks_csv_read(tree_path("tables/kappa.csv"), false, &csv));
    assert_int_equal(csv->rows, 2 * (CHECKPOINTS + 1));
    for (size_t k = 0; k < CHECKPOINTS; k++) { /* the IQM over seeds at each checkpoint */
        static const double expected[] = {75, 250, 600};

        assert_ok(ks_csv_number(csv, 1 + k, 5, &value));
        assert_close(value, expected[k], 1e-9);
    }
    ks_csv_free(csv);
    assert_ok(ks_csv_read(tree_path("tables/summary.csv"), false, &csv));
    assert_int_equal(csv->rows, 2);
    assert_ok(ks_csv_column(csv, "kappa_low", &column));
    assert_string_equal(ks_csv_cell(csv, 0, column), "-"); /* undefined */
    ks_csv_free(csv);
    assert_ok(ks_csv_read(tree_path("tables/staircase.csv"), false, &csv));
    assert_ok(ks_csv_number(csv, 3, 2, &value));
    assert_close(value, 1, 1e-12);
    ks_csv_free(csv);
    outcome_free(&o);
}

static void test_printed_table(void **state)
{
    struct outcome o = outcome_new(0);
    FILE *out = fopen(tree_path("table"), "w");
    const char *text;
    size_t width;

    (void)state;
    assert_non_null(out);
    ks_summary_print(o.results, &o.table, out);
    assert_int_equal(fclose(out), 0);
    text = tree_text("table");
    width = strcspn(text, "\n");
    assert_non_null(strstr(text, "266.7"));
    for (; *text; text += width + 1) /* all lines are of one width */
        assert_int_equal(strcspn(text, "\n"), width);
    outcome_free(&o);
}

static ks_status make_tables(void)
{
    struct ks_summary_table table = {0};
    struct ks_results *results = NULL;
    ks_status status = KS_OK;

    KS_GO(ks_results_read(tree, &results));
    KS_GO(ks_summary_table(results, 0, &table));
    KS_GO(ks_tables_write(results, &table, 0));
done:
    free(table.row);
    ks_results_free(results);
    return status;
}

/* The first failures one by one, later ones in longer and longer strides. */
static void test_tables_without_memory(void **state)
{
    ks_status status = KS_MEMORY;

    (void)state;
    for (size_t n = 1; status != KS_OK; n += 1 + n / 20) {
        ks_alloc_fail_at(n);
        status = make_tables();
        ks_alloc_fail_at(0);
        assert_true(status == KS_OK || status == KS_MEMORY);
    }
}

static bool have_gnuplot(void)
{
    char *path = NULL;
    bool there = ks_place_program("gnuplot", &path) == KS_OK;

    free(path);
    return there;
}

static void assert_starts(const char *name, const char *magic)
{
    FILE *file = fopen(tree_path(name), "rb");
    char start[8] = "";

    assert_non_null(file);
    assert_int_equal(fread(start, 1, 4, file), 4);
    fclose(file);
    assert_memory_equal(start, magic, 4);
}

/* Standard output into the file "said"; back again. */
static int divert_output(void)
{
    int output, file = open(tree_path("said"), O_WRONLY | O_CREAT, 0666);

    fflush(stdout);
    output = dup(STDOUT_FILENO);
    assert_true(file >= 0 && output >= 0);
    assert_int_equal(dup2(file, STDOUT_FILENO), STDOUT_FILENO);
    close(file);
    return output;
}

static void restore_output(int output)
{
    fflush(stdout);
    dup2(output, STDOUT_FILENO);
    close(output);
}

static void test_figures_and_page(void **state)
{
    const char *page;
    ks_status status;
    int output;

    (void)state;
    if (!have_gnuplot())
        skip();
    output = divert_output();
    status = ks_study_plot(tree, 50, true);
    restore_output(output);
    assert_ok(status);
    assert_non_null(strstr(tree_text("said"), "figures/kappa_return.png"));
    assert_non_null(strstr(tree_text("said"), "266.7"));
    for (size_t i = 0; ks_figures[i].name; i++) {
        char name[64];

        snprintf(name, sizeof name, "figures/%s.png", ks_figures[i].name);
        assert_starts(name, "\x89PNG");
        snprintf(name, sizeof name, "figures/%s.pdf", ks_figures[i].name);
        assert_starts(name, "%PDF");
    }
    page = tree_text("report.html");
    assert_non_null(strstr(page, "<td>bn+wn+ce</td><td>266.7<br><small>["));
    assert_non_null(strstr(page, "<b>normalized</b> rewards"));
    assert_non_null(strstr(page, "data:image/png;base64,iVBORw0KGgo")); /* a PNG's first bytes */
    assert_null(strstr(page, "<script"));
}

/* A script that fails leaves the old figure, and gnuplot's words are in the message. */
static void test_figure_that_fails(void **state)
{
    struct outcome o = outcome_new(0);

    (void)state;
    if (!have_gnuplot())
        skip();
    assert_ok(ks_tables_write(o.results, &o.table, 0));
    tree_write("figures/spectra.png", "old");
    assert_int_equal(unlink(tree_path("tables/kappa.csv")), 0);
    assert_fails(ks_figures_draw(o.results, &o.table), KS_RUN, "spectra.gp: gnuplot failed");
    assert_string_equal(tree_text("figures/spectra.png"), "old");
    assert_int_equal(rmdir(tree_path("figures")), -1);
    assert_int_equal(unlink(tree_path("figures/spectra.png")), 0);
    assert_int_equal(rmdir(tree_path("figures")), 0); /* nothing else was left there */
    outcome_free(&o);
}

int main(void)
{
#define IN_STUDY(test) cmocka_unit_test_setup_teardown(test, make_study, tree_remove)
    const struct CMUnitTest tests[] = {
        IN_STUDY(test_schedule_of_the_fixture),
        IN_STUDY(test_pooled_figures),
        IN_STUDY(test_intervals),
        IN_STUDY(test_lost_kappa),
        IN_STUDY(test_partial_run_is_left_out),
        IN_STUDY(test_malformed_files_are_named),
        IN_STUDY(test_misplaced_spectrum),
        IN_STUDY(test_returns_that_are_no_numbers),
        IN_STUDY(test_no_study),
        IN_STUDY(test_tables),
        IN_STUDY(test_printed_table),
        IN_STUDY(test_tables_without_memory),
        IN_STUDY(test_figure_that_fails),
        IN_STUDY(test_figures_and_page),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
