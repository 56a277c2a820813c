/* From a study's folder to plots and a report, also if numbers are infinite, undefined or 0. */
#include "studies.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include "core/memory.h"

/* A plot has a file of each of the first n formats if its tables have data, else none. Returns the
 * number of plots. */
static size_t check_plots(size_t n)
{
    static const char *const start[][2] = {{"svg", "<?xm"}, {"png", "\x89PNG"}, {"pdf", "%PDF"}};
    struct outcome *o = outcome_new(0);
    size_t drawn = 0;

    assert_ok(ks_tables_write(o->results, &o->table, 0));
    for (size_t i = 0; i < KS_PLOTS; i++) {
        const bool has_data = o->table.drawn[i];

        drawn += has_data;
        for (size_t f = 0; f < n; f++) {
            const char *name = text_of("figures/%s.%s", ks_plots[i].name, start[f][0]);

            if (has_data)
                assert_starts(name, start[f][1]);
            assert_int_equal(exists(name), has_data);
        }
    }
    return drawn;
}

TEST_IN_STUDY(test_plots_and_report)
{
    char *page;

    need_gnuplot();
    plot_study(50);
    assert_contains(file_text("said"), "figures/kappa_return.svg");
    assert_contains(file_text("said"), "266.7");
    assert_contains(file_text("said"), "28 of the paper's 28 claims cannot be judged");
    assert_true(exists("tables/claims.csv") && exists("tables/theorems.csv"));
    assert_contains(file_text("said"), "operators: not drawn: the study has no");
    assert_int_equal(check_plots(3), 9);
    page = file_text("report.html");
    assert_contains(page, "<td class=\"name\">bn+wn+ce</td>");
    assert_contains(page, "<td data-value=\"266.6666667\">266.7<small>[");
    assert_contains(page, "<figure id=\"plot-kappa_return\">");
    assert_contains(page, "<title>bn+wn+ce"); /* the value of a point */
    assert_contains(page, "<b>normalized</b> rewards");
    assert_contains(page, "bootstrap intervals are too narrow");
}

/* Gives the spectrum at a place a resolved conditioning along the gradient. */
static void write_finite_gradient(const struct place *place)
{
    const char *path = scratch(spectrum_path(place));
    struct ks_spectrum *s = read_spectrum(path);

    for (size_t j = 0; j < s->statistics.n; j++)
        if (strncmp(s->statistics.list[j].name, "kappa_gradient_90", 17) == 0)
            s->statistics.list[j].number = 40 + (double)j;
    assert_ok(ks_spectrum_write(path, s));
}

/* A study that has the data of all plots, with several seeds: every script draws. */
TEST_IN_STUDY(test_every_plot)
{
    static const char *const architectures[] = {"ln+mse", "bn+wn+ce"};
    char *svg;

    need_gnuplot();
    set_study("[analyze g]\noperator = ggn\n[analyze r]\noperator = residual\n"
              "[analyze p]\noperator = preconditioned\n[analyze l]\nlayer = 2\n"
              "[variant v]\narchitecture = bn+wn+ce\nutd = 4\n");
    write_variant("v", "bn+wn+ce");
    for (size_t a = 0; a < 2; a++) {
        write_operator(architectures[a], "g", "ggn", -1);
        write_operator(architectures[a], "r", "residual", -1);
        write_operator(architectures[a], "p", "preconditioned", -1);
        write_operator(architectures[a], "l", "hessian", 2);
        for (size_t i = 0; i < SEEDS; i++) {
            struct place last = {architectures[a], i, STEP[CHECKPOINTS], NULL};

            write_finite_gradient(&last);
            write_returns(
                architectures[a], i,
                text_of(
                    "env_step,update,return_mean,updates_per_second,critic_param_norm,"
                    "critic_grad_norm,critic_effective_lr\n0,0,5,nan,2,0,0\n6,4,6,3,3,0.%zu,0.01\n"
                    "12,10,%zu,3,4,0.2,0.02\n",
                    i + 1, 100 * i));
        }
    }
    plot_study(50);
    assert_int_equal(check_plots(3), 17);
    svg = file_text("figures/kappa_return.svg");
    assert_contains(svg, "<title>bn+wn+ce: ");
    assert_contains(svg, ">bn+wn+ce<"); /* a name, as text */
    assert_null(strstr(svg, "onmousemove"));
}

/* The report has a table of each further analysis. */
TEST_IN_STUDY(test_further_analysis)
{
    char *page;

    draw_nothing();
    set_study("[analyze xqc]\ncompat = xqc\n");
    for (size_t i = 0; i < SEEDS; i++)
        for (size_t k = 0; k <= CHECKPOINTS; k++) {
            write_spectrum(&(struct place){"ln+mse", i, STEP[k], "xqc"}, 1e30, false);
            write_spectrum(&(struct place){"bn+wn+ce", i, STEP[k], "xqc"}, 3, false);
        }
    plot_study(0);
    assert_contains(file_text("said"), "Further analyses, in tables/summary.csv and "
                                       "report.html: xqc\n");
    page = file_text("report.html");
    assert_contains(page, "<h3>Further analysis: xqc</h3>");
    assert_contains(page, "compat = xqc");
    assert_contains(page, "<td data-value=\"1e+30\">1.00e+30</td>");
}

TEST_IN_STUDY(test_no_intervals)
{
    char *page;

    draw_nothing();
    plot_study(0);
    page = file_text("report.html");
    assert_null(strstr(page, "intervals are too narrow"));
    assert_contains(page, "no interval");
}

/* If a script fails, the old plot stays and the message contains gnuplot's. */
TEST_IN_STUDY(test_plot_that_fails)
{
    struct outcome *o = outcome_new(0);

    need_gnuplot();
    assert_ok(ks_tables_write(o->results, &o->table, 0));
    write_text("figures/spectra.png", "old");
    assert_int_equal(unlink(scratch("tables/kappa.csv")), 0);
    assert_fails(ks_plots_draw(o->results, &o->table, true), KS_RUN, "spectra.gp: gnuplot failed");
    assert_string_equal(file_text("figures/spectra.png"), "old");
    for (size_t i = 0; i < 3; i++) /* drawn before */
        for (size_t f = 0; f < 3; f++) {
            static const char *const before[] = {"kappa_return", "sound_return", "returns"};
            static const char *const formats[] = {"png", "pdf", "svg"};

            assert_int_equal(unlink(scratch(text_of("figures/%s.%s", before[i], formats[f]))), 0);
        }
    assert_int_equal(unlink(scratch("figures/spectra.png")), 0);
    assert_int_equal(rmdir(scratch("figures")), 0); /* no temporary file is left */
}

/* gnuplot does not notice a limit on file sizes or a full disk. An incomplete plot does not replace
 * the old one. */
TEST_IN_STUDY(test_plot_that_is_cut)
{
    struct outcome *o = outcome_new(0);
    struct rlimit old, small;
    ks_status status;

    need_gnuplot();
    assert_ok(ks_tables_write(o->results, &o->table, 0));
    write_text("figures/kappa_return.png", "old");
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = 5000;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    status = ks_plots_draw(o->results, &o->table, true);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(status, KS_FULL);
    assert_contains(ks_error_text(), "figures/kappa_return.png: gnuplot wrote an incomplete");
    assert_string_equal(file_text("figures/kappa_return.png"), "old");
    assert_int_equal(unlink(scratch("figures/kappa_return.png")), 0);
    assert_int_equal(rmdir(scratch("figures")), 0); /* no temporary file is left */
}

/* Plots whose data have gone are removed. */
TEST_IN_STUDY(test_data_that_goes)
{
    struct outcome *o = outcome_new(0);

    draw_nothing();
    assert_ok(ks_tables_write(o->results, &o->table, 0));
    write_text("figures/layers.svg", "old");
    assert_ok(ks_plots_draw(o->results, &o->table, true));
    assert_false(exists("figures/layers.svg"));
}

/* A gnuplot that can draw only SVG leaves no PNG of older tables. One that draws nothing is a
 * failure. */
TEST_IN_STUDY(test_gnuplot_without_cairo)
{
    struct outcome *o = outcome_new(0);

    draw_svg_alone("");
    assert_ok(ks_tables_write(o->results, &o->table, 0));
    write_text("figures/returns.png", "old");
    assert_ok(ks_plots_draw(o->results, &o->table, true));
    assert_true(exists("figures/returns.svg"));
    assert_false(exists("figures/returns.png") || exists("figures/returns.pdf"));
    replace_gnuplot("exit 3\n");
    assert_fails(ks_plots_draw(o->results, &o->table, true), KS_RUN,
                 "gnuplot failed (exit status 3): no message");
}

/* The next call removes temporary files of a killed one. */
TEST_IN_STUDY(test_leftovers)
{
    static const char *const folders[] = {".", "tables", "figures"};
    const char *path[3];
    char name[64];

    draw_nothing();
    name_leftover(scratch("new"), name);
    for (size_t i = 0; i < 3; i++) {
        path[i] = text_of("%s/%s", folders[i], name);
        write_text(path[i], "x");
    }
    plot_study(0);
    for (size_t i = 0; i < 3; i++)
        assert_false(exists(path[i]));
}

/* --- legal numbers that an axis cannot show --- */

/* Computes the tables and draws the plots. */
static void assert_drawn(void)
{
    struct outcome *o;

    draw_svg_alone("");
    o = outcome_new(0);
    assert_ok(ks_tables_write(o->results, &o->table, 0));
    assert_ok(ks_plots_draw(o->results, &o->table, true));
    check_plots(1);
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

/* Kappas that are infinite for some seeds or all, all equal, almost equal, or spread over almost
 * the whole range; undefined ones; spectra of zeros. Each row changes what the rows before it left.
 */
TEST_IN_STUDY(test_unusual_kappas)
{
    static const struct {
        const char *architecture; /* NULL: both */
        size_t step;              /* 0: all */
        double kappa;
        bool zero;
    } changes[] = {{"bn+wn+ce", 8, INFINITY, false},
                   {"bn+wn+ce", 0, INFINITY, false},
                   {"ln+mse", 0, INFINITY, false},
                   {NULL, 0, 1000, false},
                   {"bn+wn+ce", 0, 1000.000000001, false},
                   {NULL, 0, 1e6, false},
                   {"bn+wn+ce", 0, 1.1e6, false},
                   {"bn+wn+ce", 0, 1e300, false},
                   {"ln+mse", 0, 1, false},
                   {"ln+mse", 0, NAN, false},
                   {NULL, 0, NAN, false},
                   {NULL, 0, 50, false},
                   {"ln+mse", 0, 0, true},
                   {NULL, 0, NAN, true}};

    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        rewrite_spectra(changes[i].architecture, changes[i].step, changes[i].kappa,
                        changes[i].zero);
        assert_drawn();
        if (isnan(changes[i].kappa) && !changes[i].architecture)
            assert_contains(file_text("tables/kappa.csv"), "ln,0,mse,standard,2,-,-,-");
    }
}

TEST_IN_STUDY(test_returns_of_one_value)
{
    static const char *const texts[] = {"env_step,return_mean\n0,0\n6,0\n12,0\n",
                                        "env_step,return_mean\n0,-1\n6,-1\n12,-1\n"};

    for (size_t t = 0; t < 2; t++) {
        for (size_t i = 0; i < SEEDS; i++) {
            write_returns("ln+mse", i, texts[t]);
            write_returns("bn+wn+ce", i, texts[t]);
        }
        assert_drawn();
    }
}

/* No checkpoint after the first update: no statistic can be pooled. */
TEST_IN_STUDY(test_study_without_updates)
{
    write_text("study.study", "[study]\nenv = toy\narchitectures = ln+mse bn+wn+ce\nseeds = 0..3\n"
                              "steps = 12\n[train]\ncheckpoints = 1\nrandom_steps = 7\n"
                              "evaluations = 2\n");
    assert_drawn();
    assert_contains(file_text("tables/summary.csv"), "ln+mse,ln,0,mse,standard,4,0,-,-,-,");
}

TEST_IN_STUDY(test_no_spectra_at_all)
{
    remove_spectra("ln+mse");
    assert_drawn();
    remove_spectra("bn+wn+ce");
    assert_drawn();
}

TEST_IN_STUDY(test_settings_of_the_user)
{
    write_text(".gnuplot", "exit error 'mine'\n");
    set_variable("HOME", scratch_folder);
    assert_drawn();
}
