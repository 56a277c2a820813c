/* What is drawn: marks, labels and crosses in the figures of a study, and which analysis they show.
 */
#include "studies.h"

/* How often a text stands in a figure. */
static size_t count(const char *figure, const char *text)
{
    char *svg;
    size_t n = 0;

    svg = file_text(text_of("figures/%s.svg", figure));
    for (const char *at = svg; (at = strstr(at, text)) != NULL; at += strlen(text))
        n++;
    return n;
}

/* Runs of two architectures that differ in batch normalization alone, with kappas two decades apart
 * in these analyses (NULL ends them; "": the standard one). */
static void make_pair(const char *seeds, size_t n, const char *more, const char *const *analyses)
{
    static const char *const architectures[] = {"bn+wn+ce", "ln+wn+ce"};

    write_text("study.study",
               text_of("[study]\nenv = toy\narchitectures = bn+wn+ce ln+wn+ce\nseeds = %s\n"
                       "steps = 12\n%s[train]\ncheckpoints = 3\nrandom_steps = 1\n"
                       "evaluations = 2\n",
                       seeds, more));
    for (size_t a = 0; a < 2; a++)
        for (size_t i = 0; i < n; i++) {
            for (size_t k = 0; k <= CHECKPOINTS; k++)
                for (size_t s = 0; analyses[s]; s++)
                    write_spectrum(&(struct place){architectures[a], i, STEP[k],
                                                   *analyses[s] ? analyses[s] : NULL},
                                   a == 0 ? 100 : 1e4, false);
            write_returns(
                architectures[a], i,
                text_of("env_step,update,return_mean,updates_per_second,critic_param_norm\n"
                        "0,0,5,nan,2\n6,4,6,3,3\n12,10,%zu,3,4\n",
                        100 * (a + 1) + i));
        }
}

static const char *const standard[] = {"", NULL}; /* analyses */

/* Every mark has a tooltip, whether it has an interval (three seeds) or not (one); every axis has
 * its labels and no others. */
TEST_IN_STUDY(test_marks_and_labels)
{
    static const struct {
        const char *figure;
        size_t marks;
    } expected[] = {{"kappa_return", 2 * 3 * 2}, /* columns, statistics, architectures */
                    {"sound_return", 2 * 2},     {"returns", 3 * 2}, {"spectra", 4 * 2},
                    {"directions", 4 * 2},       {"norms", 3 * 2},   {"efficiency", 2}};

    draw_svg_alone("");
    for (size_t three = 0; three < 2; three++) {
        make_pair(three ? "0..2" : "0", three ? 3 : 1, "", standard);
        plot_study(50);
        for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
            size_t found = count(expected[i].figure, "<g><title>");

            if (found != expected[i].marks)
                fail_msg("%s: %zu marks", expected[i].figure, found);
        }
        /* kappa: 10^2, 10^3, 10^4, lambda_max: 10^2, 10^3, in two columns */
        assert_int_equal(count("kappa_return", "10</tspan><tspan"), 2 * (3 + 2));
        /* Ritz values: 10^1, 10^-1 and their negatives; kappa: 10^2, 10^3, 10^4 */
        assert_int_equal(count("spectra", "10</tspan><tspan"), 4 + 3);
    }
}

/* Gives the standard spectra of an architecture's run this kappa and this noise floor. */
static void add_floor(const char *architecture, size_t seed, double kappa, double floor)
{
    for (size_t k = 0; k <= CHECKPOINTS; k++) {
        const struct place place = {architecture, seed, STEP[k], NULL};
        const char *path = scratch(spectrum_path(&place));
        struct ks_spectrum *s;

        write_spectrum(&place, kappa, false);
        s = read_spectrum(path);
        ks_attribute_add_number(&s->statistics, "noise_floor", floor);
        assert_ok(ks_spectrum_write(path, s));
    }
}

static const char CROSS[] = "gpPt1' "; /* point type 2 */
static const char SHADE[] = "#ece7dc";
static const char CROSS_NOTE[] = ">rounding moves κ by over 10%<";

/* Sets the column moved_by_rounding in the rows of both architectures; NULL: the table lacks it. */
static void set_moved(const char *table, const char *of_bn, const char *of_ln)
{
    static const char name[] = "moved_by_rounding";
    char text[8192] = "", *path = hold(strdup(text_of("tables/%s.csv", table)));
    const struct ks_csv *csv = read_csv(path);

    for (size_t row = 0; row <= csv->rows; row++) { /* row 0: the header */
        for (size_t c = 0; c < csv->columns; c++)
            if (strcmp(csv->name[c], name) != 0)
                snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", c ? "," : "",
                         row ? cell(csv, row - 1, csv->name[c]) : csv->name[c]);
        if (of_bn && row == 0)
            snprintf(text + strlen(text), sizeof text - strlen(text), ",%s", name);
        else if (of_bn)
            snprintf(text + strlen(text), sizeof text - strlen(text), ",%s",
                     *cell(csv, row - 1, "architecture") == 'b' ? of_bn : of_ln);
        snprintf(text + strlen(text), sizeof text - strlen(text), "\n");
    }
    write_text(path, text);
}

static void draw_with_moved(const char *of_bn, const char *of_ln)
{
    struct outcome *o = outcome_new(0);

    assert_ok(ks_tables_write(o->results, &o->table, 0));
    set_moved("kappa", of_bn, of_ln);
    set_moved("kappa_return", of_bn, of_ln);
    assert_ok(ks_plots_draw(o->results, &o->table, true));
}

/* Values above the largest eigenvalue over the noise floor are shaded, which says nothing of
 * rounding: of ln+wn+ce, kappa is 1e4 at a limit of 5e3, and of bn+wn+ce 100 at 500. */
TEST_IN_STUDY(test_shade)
{
    draw_svg_alone("");
    make_pair("0", 1, "", standard);
    plot_study(0);
    assert_int_equal(count("kappa_return", SHADE), 0);
    assert_int_equal(count("spectra", SHADE), 0);
    add_floor("bn+wn+ce", 0, 100, 0.1);
    add_floor("ln+wn+ce", 0, 1e4, 1);
    plot_study(0);
    assert_int_equal(count("spectra", SHADE), 2 + 2); /* a note: area and edge; two panels */
    assert_int_equal(count("kappa_steps", SHADE), 0); /* no kappa is that large */
    assert_int_equal(count("kappa_return", ">above what our bound certifies<"), 1);
    assert_int_equal(count("kappa_return", ", above what our bound certifies in 100% of"), 2);
    assert_int_equal(count("kappa_return", CROSS), 1); /* its definition */
    assert_int_equal(count("spectra", CROSS), 1);
}

/* Crosses only where it is measured, in more than half of the spectra, that rounding moves kappa.
 */
TEST_IN_STUDY(test_crosses)
{
    static const char *const none[][2] = {{NULL, NULL}, {"-", "-"}, {"0.5", "0"}};

    draw_svg_alone("");
    make_pair("0", 1, "", standard);
    add_floor("bn+wn+ce", 0, 1e4, 1);
    add_floor("ln+wn+ce", 0, 1e4, 1);
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        draw_with_moved(none[i][0], none[i][1]);
        assert_int_equal(count("kappa_return", CROSS), 1);
        assert_int_equal(count("spectra", CROSS), 1);
        assert_int_equal(count("spectra", CROSS_NOTE), 0);
        assert_int_equal(count("kappa_return", CROSS_NOTE), 0);
    }
    draw_with_moved("0.75", "-");
    assert_int_equal(count("kappa_return", CROSS), 1 + 1 + 2); /* a note; in two columns */
    assert_int_equal(count("spectra", CROSS), 1 + 1 + 4);      /* at four checkpoints */
    assert_int_equal(count("spectra", CROSS_NOTE), 1);
    assert_int_equal(count("kappa_return", CROSS_NOTE), 1);
    assert_int_equal(count("spectra", ", moved by more than 10% by rounding in 75% of the"), 4);
}

/* A cross is drawn before its mark, at the same place, and is larger: both are seen. */
TEST_IN_STUDY(test_crosses_behind_marks)
{
    const char *at, *place, *mark, *svg;
    double across, size;

    draw_svg_alone("");
    make_pair("0", 1, "", standard);
    draw_with_moved("1", "0");
    svg = file_text("figures/kappa_return.svg");
    for (at = svg; (mark = strstr(at + 1, "#gpPt1' transform=")) != NULL;)
        at = mark; /* the last one */
    assert_true(at != svg);
    place = strstr(at, "translate(");
    assert_int_equal(sscanf(strstr(place, "scale("), "scale(%lf", &across), 1);
    mark = strstr(place + 1, text_of("%.*s", (int)strcspn(place, ")"), place));
    assert_non_null(mark);
    assert_int_equal(sscanf(strstr(mark, "scale("), "scale(%lf", &size), 1);
    assert_true(across > 1.5 * size);
}

/* The plots of the paper's figures show its analysis, if there is one. */
TEST_IN_STUDY(test_paper_analysis)
{
    static const char *const both[] = {"", "xqc", NULL};

    draw_svg_alone("");
    make_pair("0", 1, "", standard);
    plot_study(0);
    assert_int_equal(count("kappa_return", "our analysis"), 3);
    assert_int_equal(count("spectra", "our analysis"), 1);
    make_pair("0", 1, "[analyze xqc]\ncompat = xqc\n", both);
    plot_study(0);
    assert_int_equal(count("kappa_return", "as in the published code"), 3);
    assert_int_equal(count("spectra", "as in the published code"), 1);
    assert_int_equal(count("kappa_return", "our analysis"), 0);
    add_floor("ln+wn+ce", 0, 1e4, 1); /* of the standard analysis, which is not drawn */
    plot_study(0);
    assert_int_equal(count("spectra", SHADE), 0);
}

/* Runs with one seed. */
static void make_runs(const char *list, const char *const *architectures)
{
    write_text("study.study",
               text_of("[study]\nenv = toy\narchitectures = %s\nseeds = 0\nsteps = 12\n"
                       "[train]\ncheckpoints = 3\nrandom_steps = 1\nevaluations = 2\n",
                       list));
    for (size_t a = 0; architectures[a]; a++) {
        for (size_t k = 0; k <= CHECKPOINTS; k++)
            write_spectrum(&(struct place){architectures[a], 0, STEP[k], NULL}, 100, false);
        write_returns(architectures[a], 0, text_of(RETURNS, 100));
    }
}

/* Without bn+ce, in the grid of losses, the column bn still has its name, at the squared error, and
 * the row of cross-entropy its title and the labels of its axis. */
TEST_IN_STUDY(test_gap_in_the_grid)
{
    static const char *const three[] = {"bn+wn+ce", "bn+mse", "bn+wn+mse", NULL};

    draw_svg_alone("");
    make_runs("bn+wn+ce bn+mse bn+wn+mse", three);
    plot_study(0);
    assert_int_equal(count("spectra", ">bn</"), 1);
    assert_int_equal(count("spectra", ">bn+wn</"), 1);
    assert_int_equal(count("spectra", ">cross-entropy</"), 2); /* title and note */
    assert_int_equal(count("spectra", ">Ritz values</"), 2);
    assert_int_equal(count("spectra", "10</tspan><tspan"), 2 * 4 + 2);
    assert_int_equal(count("kappa_steps", ">κ</"), 2);
}

/* Dashes are weight normalization, in the wide grid and in the other one, with the same notes. */
TEST_IN_STUDY(test_dashes)
{
    static const char *const wide[] = {"bn+ce", "bn+wn+ce", "bn+wn+mse", "ln+wn+ce", NULL},
                             *const apart[] = {"bn+ce", "ln+wn+mse", NULL};

    draw_svg_alone("");
    make_runs("bn+ce bn+wn+ce bn+wn+mse ln+wn+ce", wide);
    plot_study(0);
    assert_int_equal(count("spectra", ">bn+wn</"), 1);             /* it is wide */
    assert_int_equal(count("spectra", "stroke-dasharray"), 3 + 1); /* lines and a note */
    assert_int_equal(count("spectra", ">cross-entropy</"), 1 + 1); /* a title and a note */
    assert_int_equal(count("spectra", ">squared error</"), 1 + 1);
    assert_int_equal(count("spectra", ">weight normalization</"), 1);
    assert_int_equal(count("returns", "stroke-dasharray"), 3 + 2); /* notes: bn+wn, ln+wn */
    make_runs("bn+ce ln+wn+mse", apart);
    plot_study(0);
    assert_int_equal(count("spectra", ">ln+wn+mse</"), 1);
    assert_int_equal(count("spectra", "stroke-dasharray"), 1 + 1);
    assert_int_equal(count("spectra", ">cross-entropy</"), 1);
    assert_int_equal(count("spectra", ">squared error</"), 1);
    assert_int_equal(count("spectra", ">weight normalization</"), 1);
}

/* Older tables lack Definition 1's effective learning rate: the other three metrics are drawn. */
TEST_IN_STUDY(test_norms_of_older_tables)
{
    struct outcome *o;

    draw_svg_alone("");
    make_pair("0", 1, "", standard);
    plot_study(0);
    assert_int_equal(count("norms", "Definition 1"), 1);
    o = outcome_new(0);
    assert_ok(ks_tables_write(o->results, &o->table, 0));
    write_text("tables/norms.csv",
               "architecture,normalization,weight_normalization,loss,env_step,param_norm,"
               "param_norm_low,param_norm_high,grad_norm,grad_norm_low,grad_norm_high,"
               "effective_lr,effective_lr_low,effective_lr_high\n"
               "bn+wn+ce,bn,1,ce,4,1,-,-,2,-,-,3,-,-\nbn+wn+ce,bn,1,ce,8,2,-,-,3,-,-,4,-,-\n");
    assert_ok(ks_plots_draw(o->results, &o->table, true));
    assert_int_equal(count("norms", "Definition 1"), 0);
    assert_int_equal(count("norms", "<g><title>"), 3 * 2);
}
