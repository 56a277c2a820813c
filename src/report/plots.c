#include "report/plots.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/line.h"
#include "core/memory.h"
#include "core/progress.h"
#include "env/env.h"
#include "io/file.h"

/* --- the places of panels --- */

/* Columns: of normalizations, with and without weight normalization, of others, and of all. */
enum { WIDEST = 3, NAMED = 2 * WIDEST, OTHERS = 2, MOST = NAMED + OTHERS, LOOKS = 4 };

/* Column and row in the full grid of the twelve architectures; false for any other, variants of
 * them included. */
static bool find_place(bool wide, const struct ks_study_architecture *a, size_t *x, size_t *y)
{
    static const char *const norms[] = {"bn", "ln", "dense"}, *const losses[] = {"ce", "mse"};
    size_t loss = ks_word_index(a->loss, 2, losses),
           norm = ks_word_index(a->normalization, WIDEST, norms);

    *x = wide ? 2 * norm + a->weight_normalization : norm;
    *y = wide ? loss : 2 * loss + a->weight_normalization;
    return norm < WIDEST && loss < 2 && a->line == 0;
}

/* Closes up: empty columns and rows are left out. Returns the number of places that are used. */
static size_t close_up(size_t n, size_t *place, size_t places)
{
    size_t used = 0;

    for (size_t p = 0; p < places; p++) {
        bool found = false;

        for (size_t i = 0; i < n; i++)
            if (place[i] == p) {
                found = true;
                place[i] = used;
            }
        used += found;
    }
    return used;
}

bool ks_panels_fill(bool wide, size_t n, const struct ks_study_architecture *const *architecture,
                    struct ks_panels *panels)
{
    size_t others = 0, most = wide ? OTHERS : 0;
    bool taken[MOST][LOOKS] = {{false}};

    for (size_t i = 0; i < n; i++) {
        size_t x, y;

        if (!find_place(wide, architecture[i], &x, &y)) {
            if (others == most)
                return false;
            x = NAMED + others++;
            if (i > 0 && strcmp(architecture[i]->loss, "other") == 0)
                y = panels->y[0];
        }
        if (taken[x][y])
            return false;
        taken[x][y] = true;
        panels->x[i] = x;
        panels->y[i] = y;
    }
    panels->columns = close_up(n, panels->x, MOST);
    panels->rows = close_up(n, panels->y, LOOKS);
    return n > others && 3 * (n - others) >= 2 * (panels->columns - others) * panels->rows;
}

void ks_panels_place(size_t n, const struct ks_study_architecture *const *architecture,
                     struct ks_panels *panels)
{
    if (ks_panels_fill(false, n, architecture, panels))
        return;
    panels->columns = n == 4 ? 2 : n < WIDEST ? n : WIDEST;
    assert(panels->columns > 0); /* as n >= 1 */
    panels->rows = (n + panels->columns - 1) / panels->columns;
    for (size_t i = 0; i < n; i++) {
        panels->x[i] = i % panels->columns;
        panels->y[i] = i / panels->columns;
    }
}

/* --- drawing: scripts only draw, and compute nothing but the limits of their axes --- */

/* Names, which study files limit to letters, digits and +-_, not paths. The base of an architecture
 * that is no variant is "-", and that of a variant "?" if the study lacks it. */
static struct ks_gnuplot_look look_of(const struct ks_study *s, size_t architecture)
{
    const struct ks_study_architecture *a = &s->architecture[architecture];
    size_t base = ks_study_base(s, architecture);

    return (struct ks_gnuplot_look){a->name, a->normalization, a->loss,
                                    base < s->n_architectures ? s->architecture[base].name
                                    : a->line > 0             ? "?"
                                                              : "-",
                                    a->weight_normalization};
}

/* "NAME='0 1 2'; " */
static void print_numbers(const char *name, size_t n, const size_t *number, FILE *out)
{
    fprintf(out, "%s='", name);
    for (size_t i = 0; i < n; i++)
        fprintf(out, "%s%zu", i ? " " : "", number[i]);
    fputs("'; ", out);
}

static void print_panels(const char *grid, size_t n, const struct ks_panels *panels, FILE *out)
{
    fprintf(out, "%s_", grid);
    print_numbers("x", n, panels->x, out);
    fprintf(out, "%s_", grid);
    print_numbers("y", n, panels->y, out);
    fprintf(out, "%s_columns=%zu; %s_rows=%zu; ", grid, panels->columns, grid, panels->rows);
}

/* The smallest number of steps between two checkpoints; with one checkpoint, its step. */
static size_t checkpoint_gap(const struct ks_study *s)
{
    size_t gap = s->end;

    for (size_t i = 1; i < s->n_checkpoints; i++)
        if (s->checkpoint[i] - s->checkpoint[i - 1] < gap)
            gap = s->checkpoint[i] - s->checkpoint[i - 1];
    return gap;
}

/* What a group of comparable spectra differs in, by the first of its architectures: a word of
 * gnuplot, in quotes. */
static ks_status print_group(const struct ks_results *r, const struct ks_summary_table *table,
                             size_t group, FILE *out)
{
    KS_OWNED char *text = NULL;
    size_t i = 0;

    while (i < table->n_rows && r->conditions[table->row[i].architecture].group != group)
        i++;
    if (i == table->n_rows)
        return KS_OK;
    KS_TRY(ks_conditions_print(r, table->row[i].architecture, r->study->n_architectures, &text));
    for (char *c = text; *c; c++)
        *c = strchr("'\"\\", *c) ? '-' : *c;
    fprintf(out, "\"%s\" ", text);
    return KS_OK;
}

/* Groups of colours, and of comparable spectra with what they differ in. */
static ks_status print_names(const struct ks_results *r, const struct ks_summary_table *table,
                             FILE *out)
{
    size_t family[KS_STUDY_ARCHITECTURES], group[KS_STUDY_ARCHITECTURES];

    for (size_t i = 0; i < table->n_rows; i++) {
        family[i] = r->study->architecture[table->row[i].architecture].family;
        group[i] = r->conditions[table->row[i].architecture].group;
    }
    print_numbers("families", table->n_rows, family, out);
    print_numbers("groups", table->n_rows, group, out);
    fputs("group_names='", out);
    for (size_t g = 1; g <= r->n_groups; g++)
        KS_TRY(print_group(r, table, g, out));
    fprintf(out, "'; group_of(i)=int(word(groups,i)); group_count=%zu; ", r->n_groups);
    return KS_OK;
}

const char *ks_plots_most_return(const struct ks_study *study)
{
    struct ks_env_about about;

    return ks_env_about_task(study->env, &about) && strcmp(about.suite, "dm_control") == 0
               ? " (of 1,000)"
               : "";
}

static ks_status list_panels(const struct ks_results *r, const struct ks_summary_table *table,
                             char **list)
{
    const struct ks_study_architecture *architecture[KS_STUDY_ARCHITECTURES] = {NULL};
    struct ks_gnuplot_look look[KS_STUDY_ARCHITECTURES];
    struct ks_panels panels;
    size_t size;
    FILE *out = open_memstream(list, &size);
    ks_status status, closed;

    if (!out)
        return ks_stream_close(out);
    for (size_t i = 0; i < table->n_rows; i++) {
        architecture[i] = &r->study->architecture[table->row[i].architecture];
        look[i] = look_of(r->study, table->row[i].architecture);
    }
    ks_panels_place(table->n_rows, architecture, &panels);
    ks_gnuplot_print_looks(table->n_rows, look, out);
    print_panels("grid", table->n_rows, &panels, out);
    if (ks_panels_fill(true, table->n_rows, architecture, &panels))
        print_panels("wide", table->n_rows, &panels, out);
    status = print_names(r, table, out);
    fprintf(out, "checkpoint_gap=%zu; of_most='%s'; ", checkpoint_gap(r->study),
            ks_plots_most_return(r->study));
    closed = ks_stream_close(out);
    return status == KS_OK ? closed : status;
}

ks_status ks_plots_draw(const struct ks_results *results, const struct ks_summary_table *table,
                        bool quiet)
{
    KS_CLEARED_BY(ks_gnuplot_clear)
    struct ks_gnuplot gnuplot = {.dir = results->dir, .steps = results->study->end};
    KS_CLEARED_BY(ks_progress_line_clear) struct ks_progress_line progress;

    ks_progress_line_start(&progress, quiet);

    KS_TRY(ks_gnuplot_find(&gnuplot));
    KS_TRY(list_panels(results, table, &gnuplot.panels));
    KS_TRY(ks_folder_make("%s/figures", results->dir));
    for (size_t i = 0; i < KS_PLOTS; i++) {
        char text[96];

        snprintf(text, sizeof text, "%zu of %d plots; %s", i, KS_PLOTS, ks_plots[i].name);
        if (ks_progress_line_due(&progress))
            ks_progress_line_print(&progress, text);
        KS_TRY(ks_gnuplot_update(&gnuplot, ks_plots[i].name, table->drawn[i]));
    }
    return KS_OK;
}
