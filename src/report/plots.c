#include "report/plots.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "claims/claims.h"
#include "claims/theorems.h"
#include "core/memory.h"
#include "core/say.h"
#include "io/file.h"
#include "io/text.h"
#include "report/gnuplot.h"
#include "report/page.h"

/* --- the places of panels --- */

/* Columns: of normalizations, with and without weight normalization, of others, and of all. */
enum { WIDEST = 3, NAMED = 2 * WIDEST, OTHERS = 2, MOST = NAMED + OTHERS, LOOKS = 4 };

static size_t index_of(const char *word, const char *const *words, size_t n)
{
    size_t i = 0;

    while (i < n && strcmp(words[i], word) != 0)
        i++;
    return i;
}

/* Column and row in the full grid of the twelve architectures; false for any other, variants of
 * them included. */
static bool find_place(enum ks_panels_kind kind, const struct ks_study_architecture *a, size_t *x,
                       size_t *y)
{
    static const char *const norms[] = {"bn", "ln", "dense"}, *const losses[] = {"ce", "mse"};
    size_t loss = index_of(a->loss, losses, 2), norm = index_of(a->normalization, norms, WIDEST);
    bool wide = kind == KS_PANELS_NORMALIZATIONS_AND_WEIGHTS;

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

bool ks_panels_fill(enum ks_panels_kind kind, size_t n,
                    const struct ks_study_architecture *const *architecture,
                    struct ks_panels *panels)
{
    size_t others = 0, most = kind == KS_PANELS_NORMALIZATIONS ? 0 : OTHERS;
    bool taken[MOST][LOOKS] = {{false}};

    for (size_t i = 0; i < n; i++) {
        size_t x, y;

        if (!find_place(kind, architecture[i], &x, &y)) {
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
    if (ks_panels_fill(KS_PANELS_NORMALIZATIONS, n, architecture, panels))
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

static const char *const formats[] = {"png", "pdf", "svg"};
enum { FORMATS = sizeof formats / sizeof *formats };

enum { NAME, NORM, WN, LOSS, BASE, WORDS };

/* Names, which study files limit to letters, digits and +-_, not paths. The base of an
 * architecture that is no variant is "-", and that of a variant "?" if the study lacks it. */
static const char *word_of(const struct ks_study *s, size_t architecture, int word)
{
    const struct ks_study_architecture *a = &s->architecture[architecture];
    size_t base = ks_study_base(s, architecture);

    const char *const words[WORDS] = {
        [NAME] = a->name,
        [NORM] = a->normalization,
        [WN] = a->weight_normalization ? "1" : "0",
        [LOSS] = a->loss,
        [BASE] = base < s->n_architectures ? s->architecture[base].name
                 : a->line > 0             ? "?"
                                           : "-",
    };

    return words[word];
}

/* "archs='bn+ce ln+ce'; norms='bn ln'; ...": a word per architecture, in the order of the table. */
static void print_words(const struct ks_study *s, const struct ks_summary_table *table, FILE *out)
{
    static const char *const names[WORDS] = {"archs", "norms", "wns", "losses", "bases"};

    for (int word = 0; word < WORDS; word++) {
        fprintf(out, "%s='", names[word]);
        for (size_t i = 0; i < table->n_rows; i++)
            fprintf(out, "%s%s", i ? " " : "", word_of(s, table->row[i].architecture, word));
        fputs("'; ", out);
    }
}

static void print_places(const char *grid, char axis, size_t n, const size_t *place, FILE *out)
{
    fprintf(out, "%s_%c='", grid, axis);
    for (size_t i = 0; i < n; i++)
        fprintf(out, "%s%zu", i ? " " : "", place[i]);
    fputs("'; ", out);
}

static void print_panels(const char *grid, size_t n, const struct ks_panels *panels, FILE *out)
{
    print_places(grid, 'x', n, panels->x, out);
    print_places(grid, 'y', n, panels->y, out);
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

static ks_status list_panels(const struct ks_results *r, const struct ks_summary_table *table,
                             char **list)
{
    const struct ks_study_architecture *architecture[KS_STUDY_ARCHITECTURES] = {NULL};
    struct ks_panels panels;
    size_t size;
    FILE *out = open_memstream(list, &size);
    bool failed;

    if (!out)
        return ks_fail(KS_MEMORY, "out of memory");
    for (size_t i = 0; i < table->n_rows; i++)
        architecture[i] = &r->study->architecture[table->row[i].architecture];
    ks_panels_place(table->n_rows, architecture, &panels);
    print_words(r->study, table, out);
    print_panels("grid", table->n_rows, &panels, out);
    if (ks_panels_fill(KS_PANELS_NORMALIZATIONS_AND_WEIGHTS, table->n_rows, architecture, &panels))
        print_panels("wide", table->n_rows, &panels, out);
    fprintf(out, "checkpoint_gap=%zu; ", checkpoint_gap(r->study));
    failed = ferror(out) != 0;
    return fclose(out) != 0 || failed ? ks_fail(KS_MEMORY, "out of memory") : KS_OK;
}

ks_status ks_plots_draw(const struct ks_results *results, const struct ks_summary_table *table)
{
    struct ks_gnuplot gnuplot = {.dir = results->dir, .steps = results->study->end};
    ks_status status = KS_OK;

    KS_GO(ks_gnuplot_find(&gnuplot));
    KS_GO(list_panels(results, table, &gnuplot.panels));
    KS_GO(ks_folder_make_in(results->dir, "figures"));
    for (size_t i = 0; ks_plots[i].name; i++) {
        bool has_data;

        KS_GO(ks_plot_has_data(results, &ks_plots[i], &has_data));
        for (size_t f = 0; f < FORMATS; f++)
            KS_GO(has_data ? ks_gnuplot_draw(&gnuplot, ks_plots[i].name, formats[f])
                           : ks_gnuplot_remove(&gnuplot, ks_plots[i].name, formats[f]));
    }
done:
    ks_gnuplot_clear(&gnuplot);
    return status;
}

/* --- from a folder to its tables, plots and report --- */

static ks_status announce(const struct ks_results *r, const struct ks_summary_table *table)
{
    for (const struct ks_plot *p = ks_plots; p->name; p++) {
        bool has_data;

        KS_TRY(ks_plot_has_data(r, p, &has_data));
        if (has_data)
            printf("%s/figures/%s.png (and .pdf, .svg): %s\n", r->dir, p->name, p->title);
        else
            printf("%s: not drawn: %s\n", p->name, p->missing);
    }
    printf("%s/report.html: all plots and the table\n\n", r->dir);
    ks_summary_print(r, table, stdout);
    if (!isnan(table->spearman))
        printf("\nSpearman's rank correlation of 10^IQM(log10 kappa) with the return, over %zu "
               "architectures: %.2f\n",
               table->ranked, table->spearman);
    for (size_t k = 1; k < table->n_analyses; k++)
        printf("%s%s%s",
               k > 1 ? ", " : "\nFurther analyses, in tables/summary.csv and report.html: ",
               r->study->analysis[k].name, k + 1 < table->n_analyses ? "" : "\n");
    return KS_OK;
}

static ks_status plot(const struct ks_results *r, size_t resamples, struct ks_summary_table *table)
{
    struct ks_claims claims;

    KS_TRY(ks_summary_table(r, resamples, table));
    KS_TRY(ks_tables_write(r, table, resamples));
    KS_TRY(ks_claims_judge(r, resamples, &claims));
    KS_TRY(ks_claims_write(&claims, r->dir));
    KS_TRY(ks_theorems_write(r));
    if (table->n_rows == 0)
        return ks_fail(KS_FORMAT,
                       "%s: nothing to draw: no run has all its spectra and returns; the "
                       "tables contain the existing results",
                       r->dir);
    KS_TRY(ks_plots_draw(r, table));
    KS_TRY(ks_page_write(r, table));
    KS_TRY(announce(r, table));
    ks_claims_print(&claims, stdout);
    ks_theorems_print(r, stdout);
    return fflush(stdout) == 0 && !ferror(stdout)
               ? KS_OK
               : ks_fail(KS_FULL, "standard output: %s", strerror(errno));
}

/* Removes temporary files of plot programs that were killed. */
static ks_status sweep(const char *dir)
{
    static const char *const folders[] = {".", "tables", "figures"};

    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        char *path = NULL;

        KS_TRY(ks_print_string(&path, "%s/%s", dir, folders[i]));
        if (ks_path_exists(path))
            ks_folder_sweep(path); /* a failure does no harm */
        free(path);
    }
    return KS_OK;
}

ks_status ks_study_plot(const char *dir, const struct ks_study *study, size_t resamples, bool quiet)
{
    struct ks_summary_table table = {0};
    struct ks_results *results = NULL;
    ks_status status = KS_OK;

    KS_GO(ks_results_read(dir, study, &results));
    KS_GO(sweep(dir));
    if (resamples > 0)
        KS_GO(ks_results_warn_intervals(results));
    for (size_t i = 0; i < results->n_warnings; i++)
        ks_say("warning: %s", results->warning[i]);
    if (!quiet)
        ks_say("drawing the plots of %s", dir);
    KS_GO(plot(results, resamples, &table));
done:
    free(table.row);
    ks_results_free(results);
    return status;
}
