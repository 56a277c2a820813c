/* The tables of architectures. Every column says what its numbers are. */
#include "report/page.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "document/html.h"
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
    {KS_KAPPA_GEOMETRIC, "as published, 10^IQM of logarithms", VALUE, false},
    {KS_KAPPA_LOWER_BOUND, NULL, BOUND, false},
};
enum { COLUMNS = sizeof columns / sizeof *columns };

static void print_number(double value, FILE *out)
{
    char text[32];

    ks_value_print(value, text);
    fputs(isinf(value) ? "infinite" : text, out);
}

/* The start of a cell; the key by which it is sorted. */
static void start_cell(double key, FILE *out)
{
    if (isnan(key))
        fputs("<td class=\"none\">", out);
    else if (isinf(key))
        fprintf(out, "<td data-value=\"%sInfinity\">", key < 0 ? "-" : "");
    else
        fprintf(out, "<td data-value=\"%.10g\">", key);
}

static void print_value(const struct ks_estimate *e, bool bound, FILE *out)
{
    start_cell(e->value, out);
    if (isnan(e->value))
        fputs("undefined", out);
    else {
        fputs(bound ? "≥ " : "", out);
        print_number(e->value, out);
    }
    if (!isnan(e->in.lower)) {
        fputs("<small>[", out);
        print_number(e->in.lower, out);
        fputs(", ", out);
        print_number(e->in.upper, out);
        fputs("]</small>", out);
    }
    fputs("</td>", out);
}

/* The combined interval, and in small print, with several runs, what all their intervals cover. */
static void print_range(const struct ks_seed_range *range, FILE *out)
{
    const struct ks_interval *median = &range->median;
    char text[KS_INTERVAL_TEXT];

    start_cell(median->lower, out);
    fputs(range->n ? ks_interval_text(*median, KS_IN_WORDS, text) : "no interval", out);
    if (range->n && isinf(median->upper) && !isinf(median->lower))
        fputs("<small>upper end not resolved</small>", out);
    if (range->n > 1)
        fprintf(out, "<small>all seeds: %s</small>",
                ks_interval_text(range->all, KS_IN_WORDS, text));
    fputs("</td>", out);
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

static void print_header(const struct rows *rows, FILE *out)
{
    const char *intervals = has_intervals(rows) ? "[90% interval]" : "no interval";

    fprintf(out, "<thead><tr><th>architecture</th>");
    for (size_t c = 0; c < COLUMNS; c++) {
        bool range = columns[c].kind == RANGE;

        if (has_column(rows, &columns[c]))
            fprintf(out,
                    "<th>%s<span class=\"kind\">%s%s</span><span class=\"kind\">%s</span></th>",
                    range ? ks_catalogue[ks_ranges[columns[c].index]].name
                          : ks_column_name(columns[c].index),
                    columns[c].what ? columns[c].what
                                    : ks_catalogue[ks_pooled[columns[c].index]].pooled,
                    columns[c].is_return ? ks_plots_most_return(rows->page->results->study) : "",
                    range ? "not pooled" : intervals);
    }
    fprintf(out, "<th>runs</th></tr></thead>\n");
}

/* Whether spectra of this analysis cannot be compared with those of others, or among themselves. */
static bool is_apart(const struct ks_results *r, const struct ks_row *row)
{
    const struct ks_conditions *of =
        &r->conditions[row->analysis * r->study->n_architectures + row->architecture];
    bool apart = false;

    for (enum ks_condition c = 0; c < KS_CONDITIONS; c++)
        apart = apart || of->differs[c];
    return apart;
}

/* Who trained it, beside runs that are trained here; and whether it is comparable. */
static void print_origin(const struct ks_results *r, const struct ks_row *row, FILE *out)
{
    if (r->study->architecture[row->architecture].elsewhere && ks_study_trains(r->study))
        fputs("<small>trained elsewhere</small>", out);
    if (is_apart(r, row))
        fputs("<small>not comparable</small>", out);
    fputs("</td>", out);
}

/* What makes rows incomparable, below the table: in it, the text would take the room of columns. */
static ks_status print_apart(const struct rows *rows, FILE *out)
{
    const struct ks_results *r = rows->page->results;
    const char *before = "<p class=\"note\">Not comparable: ";

    for (size_t i = 0; i < rows->n; i++) {
        const size_t architecture = rows->row[i].architecture;
        char *text = NULL;

        if (!rows->row[i].asked || !is_apart(r, &rows->row[i]))
            continue;
        KS_TRY(ks_conditions_print(r, architecture, r->study->n_architectures, &text));
        ks_html_between(out, before, r->study->architecture[architecture].name, " (");
        ks_html_between(out, "", text, ")");
        free(text);
        before = "; ";
    }
    fputs(*before == ';' ? ".</p>\n" : "", out);
    return KS_OK;
}

static void print_row(const struct rows *rows, size_t i, FILE *out)
{
    const struct ks_row *row = &rows->row[i];
    const struct ks_study_architecture *a =
        &rows->page->results->study->architecture[row->architecture];

    ks_html_between(out, "<tr data-normalization=\"", a->normalization, "\"");
    fprintf(out, " data-wn=\"%d\"", a->weight_normalization);
    ks_html_between(out, " data-loss=\"", a->loss, "\">");
    ks_html_between(out, "<td class=\"name\">", a->name, "");
    print_origin(rows->page->results, row, out);
    for (size_t c = 0; c < COLUMNS; c++)
        if (!has_column(rows, &columns[c]))
            continue;
        else if (columns[c].kind == RANGE)
            print_range(&row->range[columns[c].index], out);
        else
            print_value(&row->value[columns[c].index], columns[c].kind == BOUND, out);
    fprintf(out, "<td data-value=\"%zu\">%zu</td></tr>\n", row->runs, row->runs);
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

static ks_status print_rows(const struct rows *rows, const char *id, FILE *out)
{
    size_t dropped = 0, order[KS_STUDY_ARCHITECTURES];

    fprintf(out, "<div class=\"scroll\" tabindex=\"0\"><table class=\"sortable\" id=\"%s\">\n", id);
    print_header(rows, out);
    fprintf(out, "<tbody>\n");
    sort_rows(rows, order);
    for (size_t i = 0; i < rows->n; i++) {
        if (!rows->row[order[i]].asked)
            continue;
        print_row(rows, order[i], out);
        dropped += rows->row[order[i]].dropped;
    }
    fprintf(out, "</tbody></table></div>\n");
    KS_TRY(print_apart(rows, out));
    if (dropped > 0)
        fprintf(out,
                "<p>%zu values of kappa are not numbers, or their analyses failed: they are left "
                "out.</p>\n",
                dropped);
    return KS_OK;
}

static const char FILTERS[] =
    "<form class=\"filters\" data-table=\"table-architectures\" hidden>\n"
    "<label>Name contains <input type=\"search\" size=\"8\"></label>\n"
    "<label>Normalization <select name=\"normalization\"><option value=\"\">all"
    "<option value=\"bn\">batch<option value=\"ln\">layer<option value=\"dense\">none"
    "<option value=\"other\">other</select></label>\n"
    "<label>Weight normalization <select name=\"wn\"><option value=\"\">all"
    "<option value=\"1\">with<option value=\"0\">without</select></label>\n"
    "<label>Loss <select name=\"loss\"><option value=\"\">all<option value=\"ce\">cross-entropy"
    "<option value=\"mse\">squared error<option value=\"other\">other</select></label>\n"
    "<output></output>\n</form>\n";

ks_status ks_page_architectures(void *data, FILE *out)
{
    const struct ks_page *page = data;
    const struct rows rows = {page, page->table->row, page->table->n_rows};

    fputs(FILTERS, out);
    return print_rows(&rows, "table-architectures", out);
}

ks_status ks_page_analyses(void *data, FILE *out)
{
    static const char *const which[] = {"same checkpoints", "checkpoints after the first update",
                                        "last checkpoint"};
    const struct ks_page *page = data;

    for (size_t k = 1; k < page->table->n_analyses; k++) {
        const struct ks_study_analysis *a = &page->results->study->analysis[k];
        const struct rows rows = {page, page->table->row + k * page->table->n_rows,
                                  page->table->n_rows};
        char id[48];

        snprintf(id, sizeof id, "table-analysis-%zu", k);
        ks_html_between(out, "<h3>Further analysis: ", a->name, "</h3>\n");
        fprintf(out, "<p>The %s, analyzed with ", which[a->scope.checkpoints]);
        ks_page_print_settings(a, out);
        fputs(".</p>\n", out);
        KS_TRY(print_rows(&rows, id, out));
    }
    return KS_OK;
}
