/* The labels of plots, as they stand in their SVG: all are there, within the plot, and none lies on
 * another, for returns and names of any length. */
#include <sys/stat.h>

#include "results/scores.h"
#include "studies.h"

/* --- the texts of an SVG file, in its units --- */

struct label {
    char words[128];
    double left, right, top, bottom;
};
struct figure {
    char name[32];
    double width, height;
    size_t n;
    struct label label[1024];
};

/* The width of a character of DejaVu Sans, per mille of the font's size. */
static double width_of(unsigned char c)
{
    static const short widths[] = {
        318,  401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337,
        636,  636, 636, 636, 636, 636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 531,
        1000, 684, 686, 698, 770, 632, 575, 775, 752, 295, 295, 656, 557, 863, 748, 787,
        603,  787, 695, 635, 611, 732, 684, 989, 685, 611, 685, 390, 337, 390, 838, 500,
        500,  613, 635, 550, 635, 615, 352, 635, 634, 278, 278, 579, 278, 974, 634, 612,
        635,  635, 411, 521, 392, 634, 592, 818, 592, 592, 525, 636, 337, 636, 838};
    const bool within = (c & 0xc0) == 0x80; /* of a character with several bytes */

    return within ? 0 : c < ' ' || c > '~' ? 838 : widths[c - ' '];
}

/* The number of an attribute in a tag; `otherwise` if the tag has none. */
static double attribute(const char *tag, const char *end, const char *name, double otherwise)
{
    const char *at = strstr(tag, name);

    return at && at < end ? strtod(at + strlen(name), NULL) : otherwise;
}

/* Reads what stands between <text> and </text>; returns its width. Grows top and bottom, which are
 * relative to the base line. */
static double read_words(const char *at, double size, struct label *label)
{
    const char *const end = strstr(at, "</text>");
    double width = 0, base = 0, now = size;
    size_t n = 0;

    for (; at < end; at++) {
        if (*at == '<') {
            const char *close = strchr(at, '>');

            now = attribute(at, close, "font-size=\"", size);
            base += attribute(at, close, "dy=\"", 0);
            at = close;
            continue;
        }
        if (n == 0 && *at == ' ')
            continue;
        width += width_of((unsigned char)*at) / 1000 * now;
        label->top = fmin(label->top, base - 0.76 * now);
        label->bottom = fmax(label->bottom, base + 0.22 * now);
        if (n + 1 < sizeof label->words)
            label->words[n++] = *at;
        if (*at == '&') /* a reference to a character */
            at = strchr(at, ';');
    }
    return width;
}

/* Reads a text whose group has the attributes in `group`. */
static void read_label(const char *group, const char *text, struct label *label)
{
    double x = 0, y = 0, size = attribute(group, text, "font-size=\"", 8), width, from;
    bool upright;

    assert_int_equal(sscanf(group, "translate(%lf,%lf)", &x, &y), 2);
    upright = strncmp(strchr(group, ')'), ") rotate(270", 12) == 0;
    *label = (struct label){.top = 0};
    width = read_words(text + strlen("<text>"), size, label);
    from = strncmp(strstr(group, "text-anchor=\"") + 13, "end", 3) == 0      ? width
           : strncmp(strstr(group, "text-anchor=\"") + 13, "middle", 6) == 0 ? width / 2
                                                                             : 0;
    if (upright) {
        label->left = x + label->top;
        label->right = x + label->bottom;
        label->bottom = y + from;
        label->top = y + from - width;
    } else {
        label->left = x - from;
        label->right = x - from + width;
        label->top += y;
        label->bottom += y;
    }
}

static struct figure *read_figure(const char *name)
{
    static struct figure f;
    char *svg = file_text(text_of("figures/%s.svg", name)), *text = svg, *group = svg, *at;

    f = (struct figure){.n = 0};
    snprintf(f.name, sizeof f.name, "%s", name);
    at = strstr(svg, "viewBox=\"0 0 ");
    assert_non_null(at);
    assert_int_equal(sscanf(at, "viewBox=\"0 0 %lf %lf", &f.width, &f.height), 2);
    for (at = svg; (at = strstr(at, "_plot_")) != NULL; at++) /* ids, which no other plot has */
        assert_memory_equal(at - strlen(name) - strlen("\""), text_of("\"%s", name),
                            strlen(name) + 1);
    while ((text = strstr(text, "<text>")) != NULL) {
        for (; (at = strstr(group + 1, "translate(")) && at < text; group = at)
            ;
        assert_true(f.n < sizeof f.label / sizeof *f.label);
        read_label(group, text, &f.label[f.n]);
        f.n += *f.label[f.n].words != '\0';
        text++;
    }
    return &f;
}

/* --- what is expected of them --- */

static bool overlap(const struct label *a, const struct label *b)
{
    return a->left < b->right && b->left < a->right && a->top < b->bottom && b->top < a->bottom;
}

static void check_places(const struct figure *f)
{
    for (size_t i = 0; i < f->n; i++) {
        const struct label *a = &f->label[i];

        if (a->left < 0 || a->top < 0 || a->right > f->width || a->bottom > f->height)
            fail_msg("%s: '%s' at %g to %g, %g to %g is not within %g x %g", f->name, a->words,
                     a->left, a->right, a->top, a->bottom, f->width, f->height);
        for (size_t j = 0; j < i; j++)
            if (overlap(a, &f->label[j]))
                fail_msg("%s: '%s' at %g to %g, %g to %g lies on '%s'", f->name, a->words, a->left,
                         a->right, a->top, a->bottom, f->label[j].words);
    }
}

static size_t count(const struct figure *f, const char *words)
{
    size_t n = 0;

    for (size_t i = 0; i < f->n; i++)
        n += strcmp(f->label[i].words, words) == 0;
    return n;
}

/* Whether a label is the name, or its two ends where it has no room. */
static bool is_named(const struct figure *f, const char *name)
{
    for (size_t i = 0; i < f->n; i++) {
        const char *words = f->label[i].words, *cut = strstr(words, "…");
        const size_t head = cut ? (size_t)(cut - words) : strlen(words);

        if (cut ? head > 2 && strncmp(name, words, head) == 0 &&
                      ks_path_ends(name, cut + strlen("…"))
                : strcmp(name, words) == 0)
            return true;
    }
    return false;
}

static void check_named(const char *figure, size_t n, const char *const *name)
{
    const struct figure *f = read_figure(figure);

    for (size_t i = 0; i < n; i++)
        if (!is_named(f, name[i]))
            fail_msg("%s: no label is '%s'", figure, name[i]);
}

/* A figure has labels with these words, so many of each. */
static void check_words(const char *figure, size_t times, const char *words)
{
    const struct figure *f = read_figure(figure);

    if (count(f, words) != times)
        fail_msg("%s: %zu labels '%s', expected %zu", figure, count(f, words), words, times);
}

/* Draws the study in the folder, as SVG alone, which is faster, and with `more` settings of
 * gnuplot; checks all plots, and returns how many there are. */
static size_t check_study(const char *more)
{
    size_t n = 0;

    draw_svg_alone(more);
    plot_study(50);
    for (size_t i = 0; i < KS_PLOTS; i++)
        if (exists(text_of("figures/%s.svg", ks_plots[i].name))) {
            check_places(read_figure(ks_plots[i].name));
            n++;
        }
    return n;
}

/* --- studies --- */

/* Runs of an architecture, by one seed: kappas around this one, the last return, and norms. */
static void write_runs(const char *name, const char *architecture, double kappa, double last)
{
    for (size_t k = 0; k <= CHECKPOINTS; k++)
        write_spectrum_at(spectrum_path(&(struct place){name, 0, STEP[k], NULL}),
                          &(struct place){architecture, 0, STEP[k], NULL}, kappa * (double)(k + 1),
                          false);
    write_returns(name, 0,
                  text_of("env_step,update,return_mean,updates_per_second,critic_param_norm,"
                          "critic_grad_norm,critic_effective_lr,critic_definition_1_lr\n"
                          "0,0,%.17g,nan,2,0,0,nan\n6,4,%.17g,3,3,1e-7,1e-12,3e-4\n"
                          "12,10,%.17g,3e-3,%.17g,0.02,2,1e-5\n",
                          last / 4, last / 2, last, kappa));
}

/* A study of these named architectures, and of variants of bn+wn+ce with these names; last returns
 * go evenly from `low` to `high`, kappas from 100 up to 1e8. */
struct shape {
    size_t named, variants;
    const char *const *name, *const *variant;
    double low, high;
};

static void make_shape(const struct shape *s)
{
    const size_t n = s->named + s->variants;
    char text[4096] = "[study]\nenv = toy\narchitectures =";

    for (size_t i = 0; i < s->named; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), " %s", s->name[i]);
    snprintf(
        text + strlen(text), sizeof text - strlen(text),
        "\nseeds = 0\nsteps = 12\n[train]\ncheckpoints = 3\nrandom_steps = 1\naction_repeat = 2\n"
        "evaluations = 2\n");
    for (size_t i = 0; i < s->variants; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text),
                 "[variant %s]\narchitecture = bn+wn+ce\nutd = %zu\n", s->variant[i], i + 2);
    write_text("study.study", text);
    for (size_t i = 0; i < n; i++) {
        const double at = n > 1 ? (double)i / (double)(n - 1) : 1;

        write_runs(i < s->named ? s->name[i] : s->variant[i - s->named],
                   i < s->named ? s->name[i] : "bn+wn+ce", 100 * pow(1e6, at),
                   s->low + at * (s->high - s->low));
    }
}

static const char *const named[] = {"bn+wn+ce",  "bn+ce",       "ln+wn+ce",  "ln+ce",
                                    "dense+ce",  "dense+wn+ce", "bn+wn+mse", "bn+mse",
                                    "ln+wn+mse", "ln+mse",      "dense+mse", "dense+wn+mse"};
static const char *const variants[] = {"bn+wn+ce-width-1024-depth-6-utd-16-no-skip-connection",
                                       "wwww+mmmm+wwww+mmmm+wwww+mmmm",
                                       "bn+wn+ce-width-1024-depth-6-utd-16-no-head-bias",
                                       "wide",
                                       "deep",
                                       "utd-8",
                                       "replay_ratio-32",
                                       "without-reward-normalization"};

TEST_IN_FOLDER(test_one_architecture)
{
    make_shape(&(struct shape){1, 0, named, NULL, -10000, -10000});
    assert_int_equal(check_study(""), 11);
    check_words("kappa_return", 1, "last return");
    check_words("kappa_return", 1, "-10000");
    check_words("kappa_return", 1, "κ");
    check_words("kappa_return", 1, "largest eigenvalue");
    check_words("kappa_return", 1, "our analysis");
    check_words("returns", 1, "environment steps");
    check_words("returns", 1, "-10000");
    check_named("kappa_return", 1, named);
    check_named("kappa_steps", 1, named);
    check_words("spectra", 1, "bn+wn");
}

/* In the wide grid; returns of both signs. */
TEST_IN_FOLDER(test_all_architectures)
{
    make_shape(&(struct shape){12, 1, named, variants, -10000, 10000});
    assert_int_equal(check_study(""), 12);
    check_words("kappa_return", 3, "last return");
    check_words("kappa_return", 3, "-10000");
    check_words("kappa_return", 3, "10000");
    check_words("kappa_return", 1, "κ, our analysis");
    check_words("kappa_return", 1, "weight normalization");
    check_words("sound_return", 1, "-10000");
    check_words("efficiency", 1, "updates/s");
    check_words("returns", 1, "return");
    check_words("returns", 1, "10000");
    check_words("returns", 3, "steps");
    check_words("variants", 1, "-10000");
    check_words("spectra", 2, "cross-entropy"); /* title and note */
    check_words("spectra", 2, "Ritz values");
    check_words("spectra", 1, "dense+wn");
    check_words("norms", 1, "η/|θ|, Definition 1");
    check_named("kappa_return", 12, named);
    check_named("kappa_return", 1, variants);
    check_named("spectra", 1, variants);
    check_named("variants", 1, variants);
}

TEST_IN_FOLDER(test_long_names)
{
    static const char *const panels[] = {"kappa_steps", "directions", "distribution",
                                         "density",     "spectra",    "variants",
                                         "returns",     "norms",      "kappa_return"};
    static const char *const two[] = {"bn+wn+ce", "dense+mse"};

    make_shape(&(struct shape){2, 8, two, variants, 0, 9.5});
    assert_int_equal(check_study(""), 12);
    for (size_t i = 0; i < sizeof panels / sizeof *panels; i++)
        check_named(panels[i], 8, variants);
    check_named("kappa_return", 2, two);
}

TEST_IN_FOLDER(test_twenty_architectures)
{
    make_shape(&(struct shape){12, 8, named, variants, -1250, -0.5});
    assert_int_equal(check_study(""), 12);
    check_words("returns", 1, "-1000");
    check_words("kappa_return", 3, "-1000");
    check_named("sound_return", 12, named);
    check_named("sound_return", 8, variants);
    check_named("returns", 8, variants);
}

/* Plots of further analyses; a group of spectra that are not comparable; a family; many steps. */
TEST_IN_FOLDER(test_other_plots)
{
    static const char *const operators[] = {"hessian", "ggn", "residual", "preconditioned"};
    const struct shape shape = {2, 2, named, variants, -9999, 9999};
    char *study;

    make_shape(&shape);
    for (size_t i = 0; i < 4; i++) {
        study = hold(strdup(file_text("study.study")));
        write_text("study.study",
                   text_of("%s[analyze %s]\narchitectures = %s\n%s = %s\n", study, operators[i],
                           named[0], i == 0 ? "layer" : "operator", i == 0 ? "2" : operators[i]));
        write_operator(named[0], operators[i], operators[i], i == 0 ? 2 : -1);
    }
    assert_int_equal(
        check_study("steps = 2400000; families = '0 0 1 1'; group_count = 2; groups = '1 1 2 1'; "
                    "group_names = '\\\"\\\" \\\"number of minibatches 12345 against "
                    "16 and 17 and 18 in [analyze all] and rows 6 against 8\\\"'"),
        16);
    check_words("sound_return", 2, "-5000");
    check_words("sound_return", 1, "comparable");
    check_words("kappa_return", 1, "comparable");
    check_words("returns", 2, "environment steps (thousands)");
    check_words("returns", 2, "2000");
    check_named("returns", 2, variants);
    check_words("preconditioned_return", 1, "κ, of the preconditioned Hessian");
    check_words("layers", 2, "layer");
    check_words("operators", 2, "GGN");
    check_words("sharpness", 2, "environment steps (thousands)");
}

/* The most that a return can be stands beside the returns of dm_control's tasks, and of no others;
 * the folder of a run is named after the task. */
TEST_IN_FOLDER(test_most_return)
{
    static const struct {
        const char *task, *last, *over_training;
    } cases[] = {{"dog-trot", "last return (of 1,000)", "return (of 1,000)"},
                 {"Ant-v4", "last return", "return"}};
    const struct shape shape = {1, 1, named, variants, 100, 900};

    make_shape(&shape);
    for (size_t i = 0; i < 2; i++) {
        const char *before = i == 0 ? "toy" : cases[i - 1].task;
        const char *const runs = hold(strdup(scratch(text_of("runs/%s", before))));

        assert_int_equal(rename(runs, scratch(text_of("runs/%s", cases[i].task))), 0);
        write_text("study.study",
                   text_of("[study]\nenv = %s\n%s", cases[i].task,
                           strstr(hold(strdup(file_text("study.study"))), "architectures")));
        check_study("");
        check_words("kappa_return", 1, cases[i].last);
        check_words("sound_return", 1, cases[i].last);
        check_words("efficiency", 1, cases[i].last);
        check_words("returns", 1, cases[i].over_training);
        check_words("variants", 1, cases[i].over_training);
    }
}

/* The bars of scores over tasks: systems may have any name. */
TEST_IN_FOLDER(test_scores)
{
    static const char *const tasks[] = {"dog-trot", "fish-swim", "Ant-v4", "h1-walk-v0",
                                        "myo-key-turn"};
    char text[16384] = "system,task,seed,step,score\n";
    struct ks_score_rows rows = {0};
    struct ks_score_summary summary;

    for (size_t i = 0; i < 20; i++)
        for (size_t k = 0; k < 2 * 5; k++) /* the last task's scores are shares */
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s,%s,0,%zu,%g\n",
                     i < 12 ? named[i] : variants[i - 12], tasks[k % 5], k / 5,
                     (double)i * (k % 5 == 4 ? 0.04 : -100));
    write_text("scores.csv", text);
    assert_ok(ks_score_rows_add_csv(scratch("scores.csv"), &rows));
    assert_ok(
        ks_score_summary_new(&rows, &(struct ks_score_query){.normalize = true}, 0, &summary));
    assert_ok(ks_scores_write(&summary, scratch_folder, true));
    ks_score_summary_clear(&summary);
    ks_score_rows_free(&rows);
    check_places(read_figure("scores"));
    check_named("scores", 12, named);
    check_named("scores", 8, variants);
    check_words("scores", 1, "area under the IQM of");
    check_words("scores", 1, "normalized scores");
    check_words("scores", 3, "dm_control");
}
