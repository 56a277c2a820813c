/* The rank correlations of the report, and what the analyzer states about single spectra. */
#include "report/page.h"

#include <math.h>
#include <string.h>

#include "report/template.h"

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

static void print_correlation(const struct ks_csv *csv, size_t row, FILE *out)
{
    double value = ks_csv_value(csv, row, "spearman"), p = ks_csv_value(csv, row, "p"),
           low = ks_csv_value(csv, row, "spearman_low"),
           high = ks_csv_value(csv, row, "spearman_high");

    fputs("<tr><td class=\"name\">", out);
    ks_html_text(out, ks_csv_text(csv, row, "statistic"));
    fprintf(out, "<span class=\"kind\">%s</span></td><td class=\"text\">",
            kind_of(ks_csv_text(csv, row, "statistic")));
    ks_html_text(out, ks_csv_text(csv, row, "analysis"));
    if (isnan(value))
        fputs("</td><td class=\"none\">undefined</td>", out);
    else
        fprintf(out, "</td><td data-value=\"%.10g\">%.2f</td>", value, value);
    if (isnan(low))
        fputs("<td class=\"none\">no interval</td>", out);
    else
        fprintf(out, "<td data-value=\"%.10g\">[%.2f, %.2f]</td>", low, low, high);
    if (isnan(p))
        fputs("<td class=\"none\">undefined</td>", out);
    else
        fprintf(out, "<td data-value=\"%.10g\">%.2g</td>", p, p);
    fprintf(out, "<td data-value=\"%.0f\">%.0f</td></tr>\n",
            ks_csv_value(csv, row, "architectures"), ks_csv_value(csv, row, "architectures"));
}

ks_status ks_page_correlations(const struct ks_page *page, FILE *out)
{
    fprintf(out, "<div class=\"scroll\" tabindex=\"0\"><table class=\"sortable\" "
                 "id=\"table-correlations\">\n<thead><tr><th>statistic</th><th class=\"text\">"
                 "analysis</th><th>Spearman's correlation</th><th>90%% interval over seeds</th>"
                 "<th><i>p</i></th><th>architectures</th></tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < page->correlation->rows; i++)
        print_correlation(page->correlation, i, out);
    fprintf(out, "</tbody></table></div>\n");
    return KS_OK;
}

/* The claim of the analyzer in the last spectrum of the run that is aggregated; NULL: none. */
static const char *find_statement(const struct ks_results *r, const struct ks_result *run)
{
    for (size_t k = r->study->n_checkpoints; k-- > 0;) {
        const struct ks_spectrum *s = ks_results_spectrum(r, run, 0, k);
        const struct ks_attribute *a = s ? ks_attribute_find(&s->attributes, "claim") : NULL;

        if (r->common_checkpoint[k])
            return a && a->type == KS_ATTRIBUTE_STRING ? a->string : NULL;
    }
    return NULL;
}

/* The first run of an architecture of the table. */
static const struct ks_result *first_run(const struct ks_page *page, size_t row)
{
    const struct ks_result *run[KS_STUDY_SEEDS];

    return ks_results_runs(page->results, page->table->row[row].architecture, run) ? run[0] : NULL;
}

bool ks_page_has_statements(const struct ks_page *page)
{
    for (size_t i = 0; i < page->table->n_rows; i++) {
        const struct ks_result *run = first_run(page, i);

        if (run && find_statement(page->results, run))
            return true;
    }
    return false;
}

ks_status ks_page_statements(const struct ks_page *page, FILE *out)
{
    const struct ks_results *r = page->results;

    fprintf(out, "<dl>\n");
    for (size_t i = 0; i < page->table->n_rows; i++) {
        const struct ks_result *run = first_run(page, i);
        const char *statement = run ? find_statement(r, run) : NULL;

        if (!statement)
            continue;
        fputs("<dt>", out);
        ks_html_text(out, r->study->architecture[run->architecture].name);
        fputs("</dt>\n<dd>", out);
        ks_html_text(out, statement);
        fputs("</dd>\n", out);
    }
    fprintf(out, "</dl>\n");
    return KS_OK;
}
