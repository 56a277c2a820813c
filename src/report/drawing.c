/* Runs gnuplot on the tables. The scripts only draw, and compute nothing but the limits of their
 * axes. */
#include "report/plots.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "io/text.h"
#include "report/gnuplot.h"
#include "report/panels.h"

static const char *const formats[] = {"png", "pdf", "svg"};
enum { FORMATS = sizeof formats / sizeof *formats };

enum { NAME, NORM, WN, LOSS, BASE, WORDS };

/* Names, which study files limit to letters, digits and +-_, not paths. The base of an
 * architecture that is no variant is "-", and that of a variant "?" if the study lacks it. */
static const char *word_of(const struct ks_study *s, size_t architecture, int word)
{
    const struct ks_study_architecture *a = &s->architecture[architecture];
    size_t base = ks_study_base(s, architecture);

    return word == NAME                ? a->name
           : word == NORM              ? a->normalization
           : word == WN                ? (a->weight_normalization ? "1" : "0")
           : word == LOSS              ? a->loss
           : base < s->n_architectures ? s->architecture[base].name
                                       : (a->line > 0 ? "?" : "-");
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
    const struct ks_study_architecture *architecture[KS_STUDY_ARCHITECTURES];
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
