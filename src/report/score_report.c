#include "report/score_report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/say.h"
#include "io/text.h"
#include "report/gnuplot.h"
#include "report/plot_tables.h"
#include "train/architecture.h"

static double last_step(const struct ks_score_line *line)
{
    return line->step[line->steps - 1];
}

static bool is_same_system(const struct ks_score_line *a, const struct ks_score_line *b)
{
    return strcmp(a->system, b->system) == 0;
}

/* --- tables --- */

enum { CELL = 112 };

/* "0.933 [0.928, 0.938]", "0.933 [-]" or "-". */
static void estimate_text(const struct ks_estimate *e, char text[CELL])
{
    char value[32], low[32], high[32];

    ks_value_print(e->value, value);
    ks_value_print(e->in.lower, low);
    ks_value_print(e->in.upper, high);
    if (isnan(e->value))
        snprintf(text, CELL, "-");
    else if (isnan(e->in.lower))
        snprintf(text, CELL, "%s [-]", value);
    else
        snprintf(text, CELL, "%s [%s, %s]", value, low, high);
}

static int wider(int width, const char *name)
{
    int length = (int)strlen(name);

    return length > width ? length : width;
}

void ks_scores_print(const struct ks_score_summary *s, FILE *out)
{
    int system = wider(0, "system"), suite = wider(0, "suite");

    for (size_t i = 0; i < s->n; i++) {
        system = wider(system, s->line[i].system);
        suite = wider(suite, s->line[i].suite);
    }
    fprintf(out, "%-*s  %-*s  %5s  %4s  %9s  %24s  %24s\n", system, "system", suite, "suite",
            "tasks", "runs", "last step", "iqm at the last step", "area under the iqm");
    for (size_t i = 0; i < s->n; i++) {
        const struct ks_score_line *line = &s->line[i];
        char iqm[CELL], area[CELL];

        estimate_text(ks_score_line_last(line), iqm);
        estimate_text(&line->area, area);
        fprintf(out, "%-*s  %-*s  %5zu  %4zu  %9.10g  %24s  %24s\n", system, line->system, suite,
                line->suite, line->tasks, line->runs, last_step(line), iqm, area);
    }
}

void ks_scores_print_csv(const struct ks_score_summary *s, FILE *out)
{
    fprintf(out, "system,suite,tasks,runs,first_step,last_step,evaluations,iqm,iqm_low,iqm_high,"
                 "area,area_low,area_high\n");
    for (size_t i = 0; i < s->n; i++) {
        const struct ks_score_line *line = &s->line[i];

        fprintf(out, "%s,%s,%zu,%zu,%.10g,%.10g,%zu", line->system, line->suite, line->tasks,
                line->runs, line->step[0], last_step(line), line->steps);
        ks_table_estimate(out, ks_score_line_last(line));
        ks_table_estimate(out, &line->area);
        putc('\n', out);
    }
}

static void print_curves(const struct ks_score_summary *s, FILE *out)
{
    fprintf(out, "system,suite,env_step,iqm,iqm_low,iqm_high\n");
    for (size_t i = 0; i < s->n; i++)
        for (size_t t = 0; t < s->line[i].steps; t++) {
            fprintf(out, "%s,%s,%.10g", s->line[i].system, s->line[i].suite, s->line[i].step[t]);
            ks_table_estimate(out, &s->line[i].curve[t]);
            putc('\n', out);
        }
}

/* --- warnings --- */

/* The cautions of all lines of the system that begins at line `first`. */
static void warn_cautions(const struct ks_score_summary *s, size_t first)
{
    const char *system = s->line[first].system;
    unsigned cautions = 0;

    for (size_t i = first; i < s->n && is_same_system(&s->line[i], &s->line[first]); i++)
        cautions |= s->line[i].cautions;
    if (s->resamples > 0 && cautions & KS_SCORES_FEW_RUNS)
        ks_say("warning: %s: tasks with fewer than five seeds: their bootstrap intervals are too "
               "narrow",
               system);
    if (s->resamples > 0 && cautions & KS_SCORES_NO_INTERVAL)
        ks_say("warning: %s: a line whose tasks have one seed each has no interval", system);
    if (cautions & KS_SCORES_UNEQUAL_RUNS)
        ks_say("warning: %s: tasks have different numbers of seeds: those with more have more "
               "weight",
               system);
}

/* `line`: the total of a system; `first`: that of the first one. */
static void warn_comparison(const struct ks_score_summary *s, const struct ks_score_line *line,
                            const struct ks_score_line *first)
{
    size_t tasks = s->tasks - s->n_left_out;

    if (line->tasks < tasks)
        ks_say("warning: %s: %zu of %zu tasks: its total does not compare with that of other tasks",
               line->system, line->tasks, tasks);
    if (last_step(line) != last_step(first) || line->step[0] != first->step[0])
        ks_say("warning: %s: steps %.10g to %.10g, but %s: %.10g to %.10g: their scores do not "
               "compare",
               line->system, line->step[0], last_step(line), first->system, first->step[0],
               last_step(first));
}

void ks_scores_warn(const struct ks_score_summary *s)
{
    const struct ks_score_line *first = NULL;

    if (s->dropped > 0)
        ks_say("warning: --missing drop: runs left out: %zu", s->dropped);
    for (size_t i = 0; i < s->n_left_out; i++)
        ks_say("%zu of %zu tasks: %s is left out: no random and no target score is published by "
               "which its returns could be normalized",
               s->tasks - s->n_left_out, s->tasks, s->left_out[i]);
    for (size_t i = 0; i < s->n; i++) {
        if (i == 0 || !is_same_system(&s->line[i], &s->line[i - 1]))
            warn_cautions(s, i);
        if (strcmp(s->line[i].suite, KS_SCORE_TOTAL) == 0) {
            first = first ? first : &s->line[i];
            warn_comparison(s, &s->line[i], first);
        }
    }
}

/* The first setting in which a and b differ, and its length in each; both end with a blank. */
static void find_difference(const char **a, int *of_a, const char **b, int *of_b)
{
    while (*of_a = (int)strcspn(*a, " "), *of_b = (int)strcspn(*b, " "),
           *of_a == *of_b && memcmp(*a, *b, (size_t)*of_a) == 0) {
        *a += *of_a + 1;
        *b += *of_b + 1;
    }
}

static void warn_settings(const struct ks_score_rows *rows, const char *system)
{
    const struct ks_score_row *first = NULL;

    for (size_t k = 0; k < rows->n; k++) {
        const struct ks_score_row *row = &rows->row[k];
        const char *a, *b = row->settings;
        int of_a, of_b;

        if (row->system != system || !row->settings)
            continue;
        first = first ? first : row;
        if (row->settings == first->settings)
            continue;
        a = first->settings;
        find_difference(&a, &of_a, &b, &of_b);
        ks_say("warning: %s: %.*s in %s, but %.*s in %s", system, of_a, a, first->path, of_b, b,
               row->path);
        return;
    }
}

ks_status ks_scores_warn_settings(const struct ks_score_rows *rows)
{
    const char **system;
    size_t n;

    KS_TRY(ks_score_rows_systems(rows, &n, &system));
    for (size_t i = 0; i < n; i++)
        warn_settings(rows, system[i]);
    free(system);
    return KS_OK;
}

/* --- files --- */

static ks_status write_table(const struct ks_score_summary *s, const char *dir, const char *name,
                             void (*print)(const struct ks_score_summary *s, FILE *out))
{
    struct ks_text text = {0};
    char *path = NULL;
    ks_status status;

    KS_TRY(ks_print_string(&path, "%s/tables/%s.csv", dir, name));
    status = ks_text_open(path, &text);
    if (status == KS_OK)
        print(s, text.stream);
    free(path);
    return ks_text_close(&text, status);
}

static bool has_suite(const struct ks_score_summary *s, const char *suite)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->line[i].suite, suite) == 0)
            return true;
    return false;
}

enum { NUMBER, NORM, WN, LOSS, BASE, WORDS };

/* Systems are numbered: the script reads their names, which may contain anything, in the table. */
static void print_word(const char *system, size_t number, int word, FILE *out)
{
    const struct ks_architecture *a = ks_architecture_find(system);
    const char *const words[WORDS] = {
        [NORM] = a ? a->normalization : "other",
        [WN] = a && a->weight_normalization ? "1" : "0",
        [LOSS] = a ? a->loss : "other",
        [BASE] = "-",
    };

    if (word == NUMBER)
        fprintf(out, "%zu ", number);
    else
        fprintf(out, "%s ", words[word]);
}

/* The words of plots/style.gp, a word per system, and the suites. */
static ks_status list_words(const struct ks_score_summary *s, char **list)
{
    static const char *const names[WORDS] = {"archs", "norms", "wns", "losses", "bases"};
    const char *suite;
    size_t size;
    FILE *out = open_memstream(list, &size);
    bool failed;

    if (!out)
        return ks_fail(KS_MEMORY, "out of memory");
    for (int word = 0; word < WORDS; word++) {
        size_t number = 0;

        fprintf(out, "%s='", names[word]);
        for (size_t i = 0; i < s->n; i++)
            if (i == 0 || !is_same_system(&s->line[i], &s->line[i - 1]))
                print_word(s->line[i].system, ++number, word, out);
        fputs("'; ", out);
    }
    fputs("suites='", out);
    for (size_t i = 0; (suite = ks_score_suite_name(i)); i++)
        if (has_suite(s, suite))
            fprintf(out, "%s ", suite);
    fputs("'; ", out);
    failed = ferror(out) != 0;
    return fclose(out) != 0 || failed ? ks_fail(KS_MEMORY, "out of memory") : KS_OK;
}

static ks_status draw_bars(const struct ks_score_summary *s, bool draw, struct ks_gnuplot *g)
{
    static const char *const formats[] = {"png", "pdf", "svg"};

    if (draw) {
        KS_TRY(list_words(s, &g->panels));
        KS_TRY(ks_folder_make_in(g->dir, "figures"));
    }
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        KS_TRY(draw ? ks_gnuplot_draw(g, "scores", formats[i])
                    : ks_gnuplot_remove(g, "scores", formats[i]));
    return KS_OK;
}

static bool has_area(const struct ks_score_summary *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (!isnan(s->line[i].area.value))
            return true;
    return false;
}

ks_status ks_scores_write(const struct ks_score_summary *s, const char *dir, bool draw)
{
    struct ks_gnuplot gnuplot = {.dir = dir, .steps = 1};
    ks_status status = KS_OK;

    if (draw && !has_area(s)) {
        ks_say("warning: no bars: scores at one step have no area");
        draw = false;
    }
    if (draw)
        KS_GO(ks_gnuplot_find(&gnuplot));
    KS_GO(ks_folder_make_in(dir, "tables"));
    KS_GO(write_table(s, dir, "scores", ks_scores_print_csv));
    KS_GO(write_table(s, dir, "score_curves", print_curves));
    status = draw_bars(s, draw, &gnuplot);
done:
    ks_gnuplot_clear(&gnuplot);
    return status;
}
