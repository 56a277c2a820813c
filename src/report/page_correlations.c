/* The rank correlations of the report, and what the analyzer states about single spectra. */
#include "report/page.h"

#include <math.h>
#include <string.h>

#include "document/html.h"

/* What a column of statistics in correlation.csv is: the statistic itself, or an end of it. */
static const char *kind_of(const char *column)
{
    const enum ks_statistic_id id = ks_catalogue_of_column(column);
    const struct ks_statistic *row = &ks_catalogue[id];

    if (id == KS_STATISTICS)
        return "";
    if (strcmp(column, row->name) == 0)
        return row->of_spectra ? row->of_spectra : "";
    return row->lower && strcmp(column, row->lower) == 0 ? "lower ends of 99% intervals"
                                                         : "upper ends of 99% intervals";
}

static void print_correlation(const struct ks_table *t, size_t row, FILE *out)
{
    const char *statistic = ks_table_text(t, row, "statistic");
    double value = ks_table_value(t, row, "spearman"), p = ks_table_value(t, row, "p"),
           low = ks_table_value(t, row, "spearman_low"),
           n = ks_table_value(t, row, "architectures");

    ks_html_between(out, "<tr><td class=\"name\">", statistic, "<span class=\"kind\">");
    fprintf(out, "%s</span></td>", kind_of(statistic));
    ks_html_between(out, "<td class=\"text\">", ks_table_text(t, row, "analysis"), "</td>");
    ks_html_cell(out, value, "%.2f", value, "undefined");
    if (isnan(low))
        fputs("<td class=\"none\">no interval</td>", out);
    else
        fprintf(out, "<td data-value=\"%.10g\">[%.2f, %.2f]</td>", low, low,
                ks_table_value(t, row, "spearman_high"));
    ks_html_cell(out, p, "%.2g", p, "undefined");
    ks_html_cell(out, n, "%.0f", n, "");
    fputs("</tr>\n", out);
}

ks_status ks_page_correlations(void *data, FILE *out)
{
    const struct ks_table *t = ks_tables_find(((const struct ks_page *)data)->table, "correlation");

    fprintf(out, "<div class=\"scroll\" tabindex=\"0\"><table class=\"sortable\" "
                 "id=\"table-correlations\">\n<thead><tr><th>statistic</th><th class=\"text\">"
                 "analysis</th><th>Spearman's correlation</th><th>90%% interval over seeds</th>"
                 "<th><i>p</i></th><th>architectures</th></tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < ks_table_rows(t); i++)
        print_correlation(t, i, out);
    fprintf(out, "</tbody></table></div>\n");
    return KS_OK;
}

/* --- what a statistic adds to the factors, from prediction.csv --- */

static void print_prediction(const struct ks_table *t, size_t row, double alone, FILE *out)
{
    const char *statistic = ks_table_text(t, row, "statistic");
    const double q2 = ks_table_value(t, row, "q2");
    static const char *const rest[] = {"r2", "q2", "partial", "p", "p_family"};

    ks_html_between(out, "<tr><td class=\"name\">", statistic, "<span class=\"kind\">");
    fprintf(out, "%s</span></td>", row == 0 ? "BN, LN, WN, CE" : kind_of(statistic));
    ks_html_between(out, "<td class=\"text\">", ks_table_text(t, row, "analysis"), "</td>");
    for (size_t k = 0; k < sizeof rest / sizeof *rest; k++) {
        const double value = ks_table_value(t, row, rest[k]);

        ks_html_cell(out, value, "%.2g", value, row == 0 ? "" : "not resolved");
    }
    fprintf(out, "<td class=\"text\">%s</td></tr>\n",
            row == 0 || isnan(q2) ? ""
            : q2 > alone          ? "more"
                                  : "less");
}

ks_status ks_page_prediction(void *data, FILE *out)
{
    const struct ks_table *t = ks_tables_find(((const struct ks_page *)data)->table, "prediction");

    fputs(
        "<div class=\"scroll\" tabindex=\"0\"><table class=\"sortable\" id=\"table-prediction\">\n"
        "<thead><tr><th>statistic</th><th class=\"text\">analysis</th><th>explained</th>"
        "<th>of the one left out</th><th>partial correlation</th><th><i>p</i></th>"
        "<th><i>p</i> for all rows</th><th class=\"text\">than the "
        "factors</th></tr></thead>\n<tbody>\n",
        out);
    for (size_t i = 0; i < ks_table_rows(t); i++)
        print_prediction(t, i, ks_table_value(t, 0, "q2"), out);
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
