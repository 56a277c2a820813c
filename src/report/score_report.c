#include "report/study_report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "document/document.h"
#include "io/file.h"
#include "report/plots.h"
#include "report/summary_table.h"
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

/* "0.933 [0.928, 0.938]", "0.933 [-]" or "-". */
static struct ks_cell estimate_cell(const struct ks_estimate *e)
{
    char value[32], low[32], high[32], text[KS_CELL_PRINTED];

    ks_value_text(e->value, value);
    if (isnan(e->in.lower))
        snprintf(text, sizeof text, "%s [-]", value);
    else
        snprintf(text, sizeof text, "%s [%.20s, %.20s]", value, ks_value_text(e->in.lower, low),
                 ks_value_text(e->in.upper, high));
    return ks_cell_or(ks_cell_printed(text, e->value), "-");
}

static void fill_scores(const struct ks_score_summary *s, struct ks_table *out)
{
    ks_table_columns(out, "system,suite,tasks,runs,first_step,last_step,evaluations,iqm~,area~");
    for (size_t i = 0; i < s->n; i++) {
        const struct ks_score_line *line = &s->line[i];

        ks_table_cells(out, KS_TEXT(line->system), KS_TEXT(line->suite), KS_COUNT(line->tasks),
                       KS_COUNT(line->runs), KS_NUMBER(line->step[0]), KS_NUMBER(last_step(line)),
                       KS_COUNT(line->steps), KS_ESTIMATE(*ks_score_line_last(line)),
                       KS_ESTIMATE(line->area));
    }
}

static void fill_curves(const struct ks_score_summary *s, struct ks_table *out)
{
    ks_table_columns(out, "system,suite,env_step,iqm~");
    for (size_t i = 0; i < s->n; i++)
        for (size_t t = 0; t < s->line[i].steps; t++)
            ks_table_cells(out, KS_TEXT(s->line[i].system), KS_TEXT(s->line[i].suite),
                           KS_NUMBER(s->line[i].step[t]), KS_ESTIMATE(s->line[i].curve[t]));
}

/* With `dir` NULL: on standard output. */
static ks_status write_table(const struct ks_score_summary *s, const char *dir, const char *name,
                             void (*fill)(const struct ks_score_summary *s, struct ks_table *out))
{
    KS_CLEARED_BY(ks_table_free) struct ks_table table = {0};

    fill(s, &table);
    if (dir)
        return ks_table_write(&table, dir, name);
    KS_TRY(table.status);
    ks_table_print(&table, stdout);
    return KS_OK;
}

ks_status ks_scores_print(const struct ks_score_summary *s, bool csv)
{
    KS_CLEARED_BY(ks_document_clear) struct ks_document d = {.n = 0};

    if (csv)
        return write_table(s, NULL, "scores", fill_scores);
    ks_document_table(
        &d, "",
        KS_CELLS(ks_cell_name("system"), ks_cell_text("suite"), ks_cell_heading("tasks"),
                 ks_cell_heading("runs"), ks_cell_heading("last step"),
                 ks_cell_heading("iqm at the last step"), ks_cell_heading("area under the iqm")));
    for (size_t i = 0; i < s->n; i++) {
        const struct ks_score_line *line = &s->line[i];

        ks_document_cells(&d, ks_cell_name(line->system), ks_cell_text(line->suite),
                          ks_cell_count(line->tasks), ks_cell_count(line->runs),
                          ks_cell_digits(10, last_step(line)),
                          estimate_cell(ks_score_line_last(line)), estimate_cell(&line->area));
    }
    return ks_document_print(&d, KS_DOCUMENT_WIDTH, stdout);
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

ks_status ks_scores_warn(const struct ks_score_summary *s, const struct ks_score_rows *rows)
{
    const struct ks_score_line *first = NULL;
    KS_OWNED const char **system = NULL;
    size_t n;

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
    KS_TRY(ks_score_rows_names(rows, false, NULL, &n, &system));
    for (size_t i = 0; i < n; i++)
        warn_settings(rows, system[i]);
    return KS_OK;
}

/* --- files --- */

static bool has_suite(const struct ks_score_summary *s, const char *suite)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->line[i].suite, suite) == 0)
            return true;
    return false;
}

/* The words of plots/style.gp, a word per system, and the suites. Systems are numbered: the script
 * reads their names, which may contain anything, in the table. */
static ks_status list_words(const struct ks_score_summary *s, char **list)
{
    KS_OWNED struct ks_gnuplot_look *look = NULL;
    const char *suite;
    size_t size, n = 0;
    FILE *out;

    KS_TRY(ks_alloc(s->n, sizeof *look, &look));
    for (size_t i = 0; i < s->n; i++)
        if (i == 0 || !is_same_system(&s->line[i], &s->line[i - 1])) {
            const struct ks_architecture *a = ks_architecture_find(s->line[i].system);

            look[n++] = (struct ks_gnuplot_look){NULL, a ? a->normalization : "other",
                                                 a ? a->loss : "other", "-",
                                                 a && a->weight_normalization};
        }
    out = open_memstream(list, &size);
    if (out) {
        ks_gnuplot_print_looks(n, look, out);
        fputs("suites='", out);
        for (size_t i = 0; (suite = ks_score_suite_name(i)); i++)
            if (has_suite(s, suite))
                fprintf(out, "%s ", suite);
        fputs("'; ", out);
    }
    return ks_stream_close(out);
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
    KS_CLEARED_BY(ks_gnuplot_clear) struct ks_gnuplot gnuplot = {.dir = dir, .steps = 1};

    if (draw && !has_area(s)) {
        ks_say("warning: no bars: scores at one step have no area");
        draw = false;
    }
    if (draw)
        KS_TRY(ks_gnuplot_find(&gnuplot));
    ks_report_sweep(dir);
    KS_TRY(ks_folder_make("%s/tables", dir));
    KS_TRY(write_table(s, dir, "scores", fill_scores));
    KS_TRY(write_table(s, dir, "score_curves", fill_curves));
    if (draw) {
        KS_TRY(list_words(s, &gnuplot.panels));
        KS_TRY(ks_folder_make("%s/figures", dir));
    }
    return ks_gnuplot_update(&gnuplot, "scores", draw);
}
