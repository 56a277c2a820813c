/* The verdicts on the paper's claims: a row per claim, a column per statistic, from claims.csv
 * (configs/claims.md). */
#include "study/page.h"

#include <math.h>
#include <string.h>

#include "study/html.h"

static const struct {
    const char *name, *title;
} statistics[] = {
    {"paper", "the paper's statistic"},
    {"sound", "sound statistic"},
    {"second", "second sound statistic"},
};
enum { STATISTICS = sizeof statistics / sizeof *statistics };

static bool is_row(const struct ks_csv *csv, size_t row, const char *claim, const char *statistic)
{
    return strcmp(ks_page_cell(csv, row, "claim"), claim) == 0 &&
           strcmp(ks_page_cell(csv, row, "statistic"), statistic) == 0;
}

/* The first row of a claim is its first mention. */
static bool is_first(const struct ks_csv *csv, size_t row)
{
    const char *claim = ks_page_cell(csv, row, "claim");

    for (size_t i = 0; i < row; i++)
        if (strcmp(ks_page_cell(csv, i, "claim"), claim) == 0)
            return false;
    return true;
}

static const char *class_of(const char *verdict)
{
    if (strcmp(verdict, "supported") == 0 || strcmp(verdict, "same direction") == 0)
        return "yes";
    return strcmp(verdict, "not supported") == 0 || strcmp(verdict, "opposite direction") == 0
               ? "no"
               : "open";
}

static void print_verdict(const struct ks_csv *csv, size_t row, FILE *out)
{
    const char *verdict = ks_page_cell(csv, row, "verdict");
    double low = ks_page_number(csv, row, "effect_low"),
           high = ks_page_number(csv, row, "effect_high"),
           theta = ks_page_number(csv, row, "theta"), p = ks_page_number(csv, row, "p_holm");

    fprintf(out, "<td class=\"text\"><span class=\"%s\">", class_of(verdict));
    ks_html_text(out, verdict);
    fputs("</span>", out);
    if (!isnan(low))
        fprintf(out, "<small>effect %.3g to %.3g, threshold %.3g</small>", low, high, theta);
    if (!isnan(p))
        fprintf(out, "<small>adjusted p = %.2g</small>", p);
    fprintf(out, "<small>%s seeds, %s units</small></td>", ks_page_cell(csv, row, "seeds"),
            ks_page_cell(csv, row, "units"));
}

static void print_claim(const struct ks_csv *csv, const char *claim, FILE *out)
{
    const char *plot = "-";

    fputs("<tr><td class=\"name\">", out);
    ks_html_text(out, claim);
    fputs("</td>", out);
    for (size_t k = 0; k < STATISTICS; k++) {
        size_t i = 0;

        while (i < csv->rows && !is_row(csv, i, claim, statistics[k].name))
            i++;
        if (i == csv->rows)
            fputs("<td class=\"none text\">does not apply</td>", out);
        else {
            print_verdict(csv, i, out);
            plot = ks_page_cell(csv, i, "plot");
        }
    }
    fputs("<td class=\"text\">", out);
    ks_html_text(out, plot);
    fputs("</td></tr>\n", out);
}

ks_status ks_page_verdicts(const struct ks_page *page, FILE *out)
{
    const struct ks_csv *csv = page->claims;

    fprintf(out, "<div class=\"scroll\" tabindex=\"0\"><table class=\"sortable\" "
                 "id=\"table-verdicts\">\n<thead><tr><th>claim</th>");
    for (size_t k = 0; k < STATISTICS; k++)
        fprintf(out, "<th class=\"text\">%s</th>", statistics[k].title);
    fprintf(out, "<th class=\"text\">plot</th></tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < csv->rows; i++)
        if (is_first(csv, i))
            print_claim(csv, ks_page_cell(csv, i, "claim"), out);
    fprintf(out, "</tbody></table></div>\n");
    return KS_OK;
}
