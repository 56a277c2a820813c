/* The tables of architectures. Every column says what its numbers are. */
#include "report/page.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "core/memory.h"
#include "report/plots.h"

enum kind { VALUE, BOUND, RANGE };

/* The columns in the order of the table, of which a narrow window shows the first ones. `index`: of
 * a column of the summary, or for a RANGE of ks_ranges. */
static const struct column {
    size_t index;
    const char *what; /* the numbers are; NULL: what the catalogue says of the statistic */
    enum kind kind;
    bool is_return; /* what a return is at most stands beside it */
} columns[] = {
    {KS_RETURN, "IQM", VALUE, true},
    {KS_KAPPA, NULL, VALUE, false},
    {KS_RANGE_Q99, "99% interval", RANGE, false},
    {KS_RANGE_DIRECTIONS, "99% interval", RANGE, false},
    {KS_LAMBDA_MAX, NULL, VALUE, false},
    {KS_KAPPA_EFFECTIVE_BOUND, NULL, BOUND, false},
    {KS_RANGE_GRADIENT, "99% interval", RANGE, false},
    {KS_KURTOSIS, NULL, VALUE, false},
    {KS_AREA, "mean height of the curve", VALUE, false},
    {KS_KAPPA_GEOMETRIC, "ratio of Ritz values, 10^IQM of logarithms", VALUE, false},
    {KS_KAPPA_LOWER_BOUND, NULL, BOUND, false},
};
enum { COLUMNS = sizeof columns / sizeof *columns };

static const char *value_text(double value, char text[32])
{
    return isinf(value) ? "infinite" : ks_value_text(value, text);
}

static void add_value(const struct ks_estimate *e, bool bound, struct ks_document *d)
{
    char value[32], low[32], high[32], shown[40], interval[80];
    struct ks_cell cell;

    if (bound && isfinite(e->value))
        snprintf(shown, sizeof shown, "≥ %s", ks_bound_text(e->value, value));
    else
        snprintf(shown, sizeof shown, "%s%s", bound ? "≥ " : "", value_text(e->value, value));
    snprintf(interval, sizeof interval, "[%s, %s]", value_text(e->in.lower, low),
             value_text(e->in.upper, high));
    cell = ks_cell_or(ks_cell_printed(shown, e->value), "undefined");
    ks_document_cell(d, isnan(e->in.lower) ? cell : ks_cell_note(cell, interval));
}

/* The combined interval, and in small print, with several runs, what all their intervals cover. */
static void add_range(const struct ks_seed_range *range, struct ks_document *d)
{
    const struct ks_interval *median = &range->median;
    const bool open = isinf(median->upper) && !isinf(median->lower);
    struct ks_cell cell = ks_cell_or(ks_cell_interval(*median, KS_IN_WORDS), "no interval");
    char all[KS_INTERVAL_TEXT], note[KS_INTERVAL_TEXT + 64];

    snprintf(note, sizeof note, "%s%s%s%s", open ? "upper end not resolved" : "",
             open && range->n > 1 ? "\n" : "", range->n > 1 ? "all seeds: " : "",
             range->n > 1 ? ks_interval_text(range->all, KS_IN_WORDS, all) : "");
    ks_document_cell(d, range->n > 0 ? ks_cell_note(cell, note) : cell);
}

/* The rows of one analysis. */
struct rows {
    const struct ks_page *page;
    const struct ks_row *row; /* [n] */
    size_t n;
};

static bool has_intervals(const struct rows *rows)
{
    for (size_t i = 0; i < rows->n; i++)
        for (size_t c = 0; c < KS_COLUMNS; c++)
            if (!isnan(rows->row[i].value[c].in.lower))
                return true;
    return false;
}

/* Whether a row has a number in this column: analyses differ in what they compute. */
static bool has_column(const struct rows *rows, const struct column *c)
{
    for (size_t i = 0; i < rows->n; i++)
        if (c->kind == RANGE ? rows->row[i].range[c->index].n > 0
                             : !isnan(rows->row[i].value[c->index].value))
            return true;
    return false;
}

static void add_headings(const struct rows *rows, const char *id, struct ks_document *d)
{
    const char *intervals = has_intervals(rows) ? "[90% interval]" : "no interval";

    ks_document_table(d, id, KS_CELLS(ks_cell_name("architecture")));
    for (size_t k = 0; k < COLUMNS; k++) {
        const struct column *c = &columns[k];
        const bool range = c->kind == RANGE;
        char kinds[128];

        if (!has_column(rows, c))
            continue;
        snprintf(kinds, sizeof kinds, "%s%s\n%s",
                 c->what ? c->what : ks_catalogue[ks_pooled[c->index]].pooled,
                 c->is_return ? ks_plots_most_return(rows->page->results->study) : "",
                 range ? "not pooled" : intervals);
        ks_document_cell(d,
                         ks_cell_note(ks_cell_heading(range ? ks_catalogue[ks_ranges[c->index]].name
                                                            : ks_column_name(c->index)),
                                      kinds));
    }
    ks_document_cell(d, ks_cell_heading("runs"));
}

/* Whether spectra of this analysis cannot be compared with those of others, or among themselves. */
static bool is_apart(const struct ks_results *r, const struct ks_row *row)
{
    const struct ks_comparability *of =
        &r->conditions[row->analysis * r->study->n_architectures + row->architecture];
    bool apart = false;

    for (enum ks_condition c = 0; c < KS_CONDITIONS; c++)
        apart = apart || of->differs[c];
    return apart;
}

/* Who trained it, beside runs that are trained here; and whether it is comparable. */
static const char *origin_of(const struct ks_results *r, const struct ks_row *row)
{
    const bool elsewhere = r->study->architecture[row->architecture].elsewhere &&
                           ks_study_trains(r->study);

    return is_apart(r, row) ? (elsewhere ? "trained elsewhere\nnot comparable" : "not comparable")
           : elsewhere      ? "trained elsewhere"
                            : NULL;
}

/* What makes rows incomparable, below the table: in it, the text would take the room of columns. */
static void add_apart(const struct rows *rows, struct ks_document *d)
{
    const struct ks_results *r = rows->page->results;
    size_t n = 0;

    for (size_t i = 0; i < rows->n && d->status == KS_OK; i++) {
        const size_t architecture = rows->row[i].architecture;
        KS_OWNED char *text = NULL;

        if (!rows->row[i].asked || !is_apart(r, &rows->row[i]))
            continue;
        d->status = ks_conditions_print(r, architecture, r->study->n_architectures, &text);
        if (n++ == 0)
            ks_document_add(d, KS_BLOCK_NOTE, "Not comparable: ");
        ks_document_more(d, "%s%s (%s)", n > 1 ? "; " : "",
                         r->study->architecture[architecture].name, text ? text : "");
    }
    if (n > 0)
        ks_document_more(d, ".");
}

static void add_row(const struct rows *rows, size_t i, struct ks_document *d)
{
    const struct ks_row *row = &rows->row[i];
    const struct ks_study_architecture *a =
        &rows->page->results->study->architecture[row->architecture];

    ks_document_cells(d, ks_cell_note(ks_cell_name(a->name), origin_of(rows->page->results, row)));
    for (size_t c = 0; c < COLUMNS; c++)
        if (!has_column(rows, &columns[c]))
            continue;
        else if (columns[c].kind == RANGE)
            add_range(&row->range[columns[c].index], d);
        else
            add_value(&row->value[columns[c].index], columns[c].kind == BOUND, d);
    ks_document_cell(d, ks_cell_count(row->runs));
    ks_document_cell(d, ks_cell_filter("normalization", a->normalization));
    ks_document_cell(d, ks_cell_filter("wn", a->weight_normalization ? "1" : "0"));
    ks_document_cell(d, ks_cell_filter("loss", a->loss));
}

/* From the highest return down; without a return at the end. */
static void sort_rows(const struct rows *rows, size_t order[KS_STUDY_ARCHITECTURES])
{
    for (size_t i = 0; i < rows->n; i++) {
        const double value = rows->row[i].value[KS_RETURN].value;
        size_t at = i;

        for (;
             at > 0 && !(rows->row[order[at - 1]].value[KS_RETURN].value >= value) && !isnan(value);
             at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
}

static void add_rows(const struct rows *rows, const char *id, struct ks_document *d)
{
    size_t dropped = 0, order[KS_STUDY_ARCHITECTURES];

    add_headings(rows, id, d);
    sort_rows(rows, order);
    for (size_t i = 0; i < rows->n; i++) {
        if (!rows->row[order[i]].asked)
            continue;
        add_row(rows, order[i], d);
        dropped += rows->row[order[i]].dropped;
    }
    add_apart(rows, d);
    if (dropped > 0)
        ks_document_add(d, KS_BLOCK_TEXT,
                        "%zu values of kappa are not numbers, or their analyses failed: they are "
                        "left out.",
                        dropped);
}

void ks_page_architectures(void *data, struct ks_document *d)
{
    const struct ks_page *page = data;
    const struct rows rows = {page, page->table->row, page->table->n_rows};

    add_rows(&rows, "table-architectures", d);
}

/* The table of each further analysis, behind its title. */
void ks_page_analyses(void *data, struct ks_document *d)
{
    static const char *const which[] = {"same checkpoints", "checkpoints after the first update",
                                        "last checkpoint"};
    const struct ks_page *page = data;

    for (size_t k = 1; k < page->table->n_analyses; k++) {
        const struct ks_study_analysis *a = &page->results->study->analysis[k];
        const struct rows rows = {page, page->table->row + k * page->table->n_rows,
                                  page->table->n_rows};
        char id[48];

        ks_document_add(d, KS_BLOCK_SUBSECTION, "Further analysis: %s", a->name);
        ks_document_add(d, KS_BLOCK_TEXT, "The %s, analyzed with ", which[a->scope.checkpoints]);
        ks_page_add_settings(a, d);
        ks_document_more(d, ".");
        snprintf(id, sizeof id, "table-analysis-%zu", k);
        add_rows(&rows, id, d);
    }
}
