/* From a study's folder to plots and a report, also if numbers are infinite, undefined or 0. */
#include "finished_study.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>

#include "io/text.h"
#include "leftover.h"
#include "study/locate.h"

static bool have_gnuplot(void)
{
    char *path = NULL;
    bool there = ks_locate_program("gnuplot", &path) == KS_OK;

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

/* Redirect standard output to the file "said"; restore it. */
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

/* A file's bytes, followed by a zero; the caller frees. */
static char *file_bytes(const char *name, size_t *size)
{
    char *bytes = NULL;

    assert_ok(ks_text_read(tree_path(name), &bytes, size));
    return bytes;
}

static void plot_study(size_t resamples)
{
    int output = divert_output();
    ks_status status = ks_study_plot(tree, NULL, resamples, true);

    restore_output(output);
    assert_ok(status);
}

static void test_plots_and_report(void **state)
{
    char *page;

    (void)state;
    if (!have_gnuplot())
        skip();
    plot_study(50);
    assert_non_null(strstr(tree_text("said"), "figures/kappa_return.png"));
    assert_non_null(strstr(tree_text("said"), "266.7"));
    assert_non_null(strstr(tree_text("said"), "18 of the paper's 18 claims cannot be judged"));
    assert_true(tree_has("tables/claims.csv") && tree_has("tables/theorems.csv"));
    for (size_t i = 0; ks_plots[i].name; i++) {
        char name[64];

        snprintf(name, sizeof name, "figures/%s.png", ks_plots[i].name);
        assert_starts(name, "\x89PNG");
        snprintf(name, sizeof name, "figures/%s.pdf", ks_plots[i].name);
        assert_starts(name, "%PDF");
    }
    page = file_bytes("report.html", NULL);
    assert_non_null(strstr(page, "<td class=\"name\">bn+wn+ce</td>"));
    assert_non_null(strstr(page, "<td data-value=\"266.6666667\">266.7<small>["));
    assert_non_null(strstr(page, "<b>normalized</b> rewards"));
    assert_non_null(strstr(page, "bootstrap intervals are too narrow"));
    free(page);
}

/* Plots show the standard analysis; the report also has a table of the further analysis. */
static void test_further_analysis(void **state)
{
    char *before, *after, *page;
    size_t size, size_after;

    (void)state;
    if (!have_gnuplot())
        skip();
    plot_study(0);
    before = file_bytes("figures/kappa_return.png", &size);
    set_study("[analyze xqc]\ncompat = xqc\n");
    for (size_t i = 0; i < SEEDS; i++)
        for (size_t k = 0; k <= CHECKPOINTS; k++) {
            write_spectrum(&(struct place){"ln+mse", i, STEP[k], "xqc"}, 1e30, false);
            write_spectrum(&(struct place){"bn+wn+ce", i, STEP[k], "xqc"}, 3, false);
        }
    plot_study(0);
    assert_non_null(strstr(tree_text("said"), "Further analyses, in tables/summary.csv and "
                                              "report.html: xqc\n"));
    after = file_bytes("figures/kappa_return.png", &size_after);
    assert_int_equal(size_after, size);
    assert_memory_equal(after, before, size);
    free(before);
    free(after);
    page = file_bytes("report.html", NULL);
    assert_non_null(strstr(page, "<h3>Further analysis: xqc</h3>"));
    assert_non_null(strstr(page, "<code>compat = xqc</code>"));
    assert_non_null(strstr(page, "<td data-value=\"1e+30\">1.00e+30</td>"));
    free(page);
}

static void test_no_intervals(void **state)
{
    char *page;

    (void)state;
    if (!have_gnuplot())
        skip();
    plot_study(0);
    page = file_bytes("report.html", NULL);
    assert_null(strstr(page, "intervals are too narrow"));
    assert_non_null(strstr(page, "no interval"));
    free(page);
}

/* If a script fails, the old plot stays and the message contains gnuplot's. */
static void test_plot_that_fails(void **state)
{
    struct outcome o = outcome_new(0);

    (void)state;
    if (!have_gnuplot())
        skip();
    assert_ok(ks_tables_write(o.results, &o.table, 0));
    tree_write("figures/spectra.png", "old");
    assert_int_equal(unlink(tree_path("tables/kappa.csv")), 0);
    assert_fails(ks_plots_draw(o.results, &o.table), KS_RUN, "spectra.gp: gnuplot failed");
    assert_string_equal(tree_text("figures/spectra.png"), "old");
    assert_int_equal(rmdir(tree_path("figures")), -1);
    assert_int_equal(unlink(tree_path("figures/spectra.png")), 0);
    assert_int_equal(rmdir(tree_path("figures")), 0); /* no temporary file is left */
    outcome_free(&o);
}

/* gnuplot does not notice a limit on file sizes or a full disk. An incomplete plot does not replace
 * the old one. */
static void test_plot_that_is_cut(void **state)
{
    struct outcome o = outcome_new(0);
    struct rlimit old, small;
    ks_status status;

    (void)state;
    if (!have_gnuplot())
        skip();
    assert_ok(ks_tables_write(o.results, &o.table, 0));
    tree_write("figures/spectra.png", "old");
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = 5000;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    status = ks_plots_draw(o.results, &o.table);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(status, KS_FULL);
    assert_non_null(strstr(ks_error_text(), "figures/spectra.png: gnuplot wrote an incomplete"));
    assert_string_equal(tree_text("figures/spectra.png"), "old");
    assert_int_equal(unlink(tree_path("figures/spectra.png")), 0);
    assert_int_equal(rmdir(tree_path("figures")), 0); /* no temporary file is left */
    outcome_free(&o);
}

/* The next call removes temporary files of a killed one. */
static void test_leftovers(void **state)
{
    static const char *const folders[] = {".", "tables", "figures"};
    char name[64], path[3][128];

    (void)state;
    if (!have_gnuplot())
        skip();
    name_leftover(tree_path("new"), name);
    for (size_t i = 0; i < 3; i++) {
        snprintf(path[i], sizeof path[i], "%s/%s", folders[i], name);
        tree_write(path[i], "x");
    }
    plot_study(0);
    for (size_t i = 0; i < 3; i++)
        assert_false(tree_has(path[i]));
}

/* --- legal numbers that an axis cannot show --- */

/* Computes the tables and draws all plots. */
static void assert_drawn(void)
{
    struct outcome o;

    if (!have_gnuplot())
        skip();
    o = outcome_new(0);
    assert_ok(ks_tables_write(o.results, &o.table, 0));
    assert_ok(ks_plots_draw(o.results, &o.table));
    for (size_t i = 0; ks_plots[i].name; i++) {
        char name[64];

        snprintf(name, sizeof name, "figures/%s.png", ks_plots[i].name);
        assert_starts(name, "\x89PNG");
        assert_int_equal(unlink(tree_path(name)), 0);
    }
    outcome_free(&o);
}

/* Changes the spectra of all runs of an architecture (NULL: of both), at a step (0: at all). */
static void rewrite_spectra(const char *architecture, size_t step, double kappa, bool zero)
{
    static const char *const architectures[] = {"ln+mse", "bn+wn+ce"};

    for (size_t a = 0; a < 2; a++)
        for (size_t i = 0; i < SEEDS; i++)
            for (size_t k = 0; k <= CHECKPOINTS; k++)
                if ((!architecture || strcmp(architecture, architectures[a]) == 0) &&
                    (step == 0 || step == STEP[k]))
                    write_spectrum(&(struct place){architectures[a], i, STEP[k], NULL}, kappa,
                                   zero);
}

static void test_infinite_kappa(void **state)
{
    (void)state;
    rewrite_spectra("bn+wn+ce", 8, INFINITY, false);
    assert_drawn();
    rewrite_spectra("bn+wn+ce", 0, INFINITY, false);
    assert_drawn();
    rewrite_spectra("ln+mse", 0, INFINITY, false);
    assert_drawn();
}

/* Kappas that are all equal, almost equal, or spread over almost the whole range. */
static void test_narrow_and_wide_kappas(void **state)
{
    static const double pairs[][2] = {
        {1000, 1000}, {1000, 1000.000000001}, {1e6, 1.1e6}, {1, 1e300}};

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        rewrite_spectra("ln+mse", 0, pairs[i][0], false);
        rewrite_spectra("bn+wn+ce", 0, pairs[i][1], false);
        assert_drawn();
    }
}

static void test_undefined_kappa(void **state)
{
    (void)state;
    rewrite_spectra("ln+mse", 0, NAN, false);
    assert_drawn();
    rewrite_spectra("bn+wn+ce", 0, NAN, false);
    assert_drawn();
    assert_non_null(strstr(tree_text("tables/kappa.csv"), "ln,0,mse,2,-,-,-"));
}

static void test_spectra_of_zeros(void **state)
{
    (void)state;
    rewrite_spectra("ln+mse", 0, 0, true);
    assert_drawn();
    rewrite_spectra(NULL, 0, NAN, true);
    assert_drawn();
}

static void test_returns_of_one_value(void **state)
{
    static const char *const texts[] = {"env_step,return_mean\n0,0\n6,0\n12,0\n",
                                        "env_step,return_mean\n0,-1\n6,-1\n12,-1\n"};

    (void)state;
    for (size_t t = 0; t < 2; t++) {
        for (size_t i = 0; i < SEEDS; i++) {
            write_returns("ln+mse", i, texts[t]);
            write_returns("bn+wn+ce", i, texts[t]);
        }
        assert_drawn();
    }
}

/* No checkpoint after the first update: no statistic can be pooled. */
static void test_study_without_updates(void **state)
{
    (void)state;
    tree_write("study.study", "[study]\nenv = toy\narchitectures = ln+mse bn+wn+ce\nseeds = 0..3\n"
                              "steps = 12\n[train]\ncheckpoints = 1\nrandom_steps = 7\n"
                              "evaluations = 2\n");
    assert_drawn();
    assert_non_null(strstr(tree_text("tables/summary.csv"), "ln+mse,ln,0,mse,standard,4,0,-,-,-,"));
}

static void test_no_spectra_at_all(void **state)
{
    (void)state;
    remove_spectra("ln+mse");
    assert_drawn();
    remove_spectra("bn+wn+ce");
    assert_drawn();
}

static void test_settings_of_the_user(void **state)
{
    const char *old = getenv("HOME");
    char home[512] = "";

    (void)state;
    snprintf(home, sizeof home, "%s", old ? old : "");
    tree_write(".gnuplot", "exit error 'mine'\n");
    assert_int_equal(setenv("HOME", tree, 1), 0);
    assert_drawn();
    if (old)
        setenv("HOME", home, 1);
    else
        unsetenv("HOME");
}

int main(void)
{
#define IN_STUDY(test) cmocka_unit_test_setup_teardown(test, make_study, tree_remove)
    const struct CMUnitTest tests[] = {
        IN_STUDY(test_plot_that_fails),      IN_STUDY(test_plots_and_report),
        IN_STUDY(test_infinite_kappa),       IN_STUDY(test_narrow_and_wide_kappas),
        IN_STUDY(test_undefined_kappa),      IN_STUDY(test_spectra_of_zeros),
        IN_STUDY(test_returns_of_one_value), IN_STUDY(test_study_without_updates),
        IN_STUDY(test_no_spectra_at_all),    IN_STUDY(test_settings_of_the_user),
        IN_STUDY(test_no_intervals),         IN_STUDY(test_further_analysis),
        IN_STUDY(test_plot_that_is_cut),     IN_STUDY(test_leftovers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
