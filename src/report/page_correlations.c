/* The rank correlations of the report, and what the analyzer states about single spectra. */
#include "report/page.h"

#include <math.h>
#include <string.h>

#include "document/html.h"

/* A statistic or an end of it, and what it is. */
static void print_statistic(struct ks_statistic_column column, FILE *out)
{
    const char *whole = ks_catalogue[column.id].of_spectra;

    fprintf(out, "<tr><td class=\"name\">%s<span class=\"kind\">%s</span></td>",
            ks_statistic_column_name(column),
            column.part == KS_LOWER_END   ? "lower ends of 99% intervals"
            : column.part == KS_UPPER_END ? "upper ends of 99% intervals"
            : whole                       ? whole
                                          : "");
}

static void print_correlation(const struct ks_study *study, const struct ks_correlation *c,
                              FILE *out)
{
    const struct ks_interval *in = &c->spearman.in;

    print_statistic(c->statistic, out);
    ks_html_between(out, "<td class=\"text\">", study->analysis[c->analysis].name, "</td>");
    ks_html_cell(out, c->spearman.value, "%.2f", c->spearman.value, "undefined");
    if (isnan(in->lower))
        fputs("<td class=\"none\">no interval</td>", out);
    else
        fprintf(out, "<td data-value=\"%.10g\">[%.2f, %.2f]</td>", in->lower, in->lower, in->upper);
    ks_html_cell(out, c->p, "%.2g", c->p, "undefined");
    fprintf(out, "<td data-value=\"%zu\">%zu</td></tr>\n", c->n, c->n);
}

ks_status ks_page_correlations(void *data, FILE *out)
{
    const struct ks_page *page = data;
    const struct ks_correlations *found = &page->table->correlations;

    fprintf(out, "<div class=\"scroll\" tabindex=\"0\"><table class=\"sortable\" "
                 "id=\"table-correlations\">\n<thead><tr><th>statistic</th><th class=\"text\">"
                 "analysis</th><th>Spearman's correlation</th><th>90%% interval over seeds</th>"
                 "<th><i>p</i></th><th>architectures</th></tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < found->n; i++)
        print_correlation(page->results->study, &found->row[i], out);
    fprintf(out, "</tbody></table></div>\n");
    return KS_OK;
}

/* --- what a statistic adds to the factors --- */

static void print_cells(size_t n, const double *value, const char *none, FILE *out)
{
    for (size_t k = 0; k < n; k++)
        ks_html_cell(out, value[k], "%.2g", value[k], none);
}

static void print_prediction(const struct ks_prediction_row *row, double alone, FILE *out)
{
    const double value[] = {row->with.r2, row->with.q2, row->partial, row->p, row->p_family};

    print_statistic(row->statistic, out);
    ks_html_between(out, "<td class=\"text\">", row->analysis, "</td>");
    print_cells(5, value, "not resolved", out);
    fprintf(out, "<td class=\"text\">%s</td></tr>\n",
            isnan(row->with.q2)    ? ""
            : row->with.q2 > alone ? "more"
                                   : "less");
}

ks_status ks_page_prediction(void *data, FILE *out)
{
    const struct ks_prediction *found = &((const struct ks_page *)data)->table->prediction;
    const double alone[] = {found->factors.r2, found->factors.q2, NAN, NAN, NAN};

    fputs(
        "<div class=\"scroll\" tabindex=\"0\"><table class=\"sortable\" id=\"table-prediction\">\n"
        "<thead><tr><th>statistic</th><th class=\"text\">analysis</th><th>explained</th>"
        "<th>of the one left out</th><th>partial correlation</th><th><i>p</i></th>"
        "<th><i>p</i> for all rows</th><th class=\"text\">than the "
        "factors</th></tr></thead>\n<tbody>\n"
        "<tr><td class=\"name\">factors<span class=\"kind\">BN, LN, WN, CE</span></td>"
        "<td class=\"text\">-</td>",
        out);
    print_cells(5, alone, "", out);
    fputs("<td class=\"text\"></td></tr>\n", out);
    for (size_t i = 0; i < found->n; i++)
        print_prediction(&found->row[i], found->factors.q2, out);
    fputs("</tbody></table></div>\n", out);
    return KS_OK;
}

/* The claim of the analyzer in the last spectrum of the first run of an architecture of the table;
 * NULL: none. */
static const char *find_statement(const struct ks_page *page, size_t row)
{
    const struct ks_results *r = page->results;
    const struct ks_result *run[KS_STUDY_SEEDS];
    const size_t k = ks_results_last(r, page->table->row[row].architecture);
    const struct ks_spectrum *s;

    if (!r->common_checkpoint[k] ||
        ks_results_runs(r, page->table->row[row].architecture, run) == 0)
        return NULL;
    s = ks_results_spectrum(r, run[0], 0, k);
    return s ? ks_attribute_text(&s->attributes, "claim") : NULL;
}

bool ks_page_has_statements(const void *data)
{
    const struct ks_page *page = data;

    for (size_t i = 0; i < page->table->n_rows; i++)
        if (find_statement(page, i))
            return true;
    return false;
}

ks_status ks_page_statements(void *data, FILE *out)
{
    const struct ks_page *page = data;

    fprintf(out, "<dl>\n");
    for (size_t i = 0; i < page->table->n_rows; i++) {
        const size_t architecture = page->table->row[i].architecture;
        const char *statement = find_statement(page, i);

        if (!statement)
            continue;
        ks_html_between(out, "<dt>", page->results->study->architecture[architecture].name,
                        "</dt>\n");
        ks_html_between(out, "<dd>", statement, "</dd>\n");
    }
    fprintf(out, "</dl>\n");
    return KS_OK;
}
