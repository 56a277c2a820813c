/* The verdicts on the paper's claims: a row per claim, a column per statistic, from claims.csv
 * (configs/claims.md). */
#include "report/page.h"

#include <math.h>
#include <string.h>

#include "claims/paper_claims.h"
#include "report/html.h"
#include "report/plots.h"

static const struct {
    const char *name, *title, *what;
} statistics[] = {
    {"paper", "paper's statistic", "kappa for the condition number"},
    {"sound", "sound statistic", "kappa_q99 for the condition number"},
    {"second", "second sound one", "directions_1e2"},
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

/* An interval, or a number where both ends are the same. */
static void print_effect(const struct ks_csv *csv, size_t row, FILE *out)
{
    double low = ks_page_number(csv, row, "effect_low"),
           high = ks_page_number(csv, row, "effect_high");

    if (isnan(low) || isnan(high)) {
        fputs("<small>no effect known</small>", out);
        return;
    }
    fprintf(out, "<small>effect %.3g", low);
    if (high > low)
        fprintf(out, " to %.3g", high);
    fprintf(out, "</small><small>threshold %.3g</small>", ks_page_number(csv, row, "theta"));
}

static void print_verdict(const struct ks_csv *csv, size_t row, FILE *out)
{
    const char *verdict = ks_page_cell(csv, row, "verdict");
    double p = ks_page_number(csv, row, "p_holm"), within = ks_page_number(csv, row, "within");

    fprintf(out, "<td class=\"text\"><span class=\"%s\">", class_of(verdict));
    ks_html_text(out, verdict);
    fputs("</span>", out);
    print_effect(csv, row, out);
    if (isnan(p))
        fputs("<small>no test</small>", out);
    else
        fprintf(out, "<small>adjusted p = %.2g</small>", p);
    if (!isnan(within))
        fprintf(out, "<small>within normalizations: %.2g</small>", within);
    fprintf(out, "<small>seeds: %.0f, units: %.0f</small></td>", ks_page_number(csv, row, "seeds"),
            ks_page_number(csv, row, "units"));
}

static const struct ks_paper_claim *find_claim(const char *name)
{
    for (size_t i = 0; i < KS_CLAIMS; i++)
        if (strcmp(ks_paper_claims[i].name, name) == 0)
            return &ks_paper_claims[i];
    return NULL;
}

/* What the claim says, and its name in claims.csv. */
static void print_sentence(const char *name, FILE *out)
{
    const struct ks_paper_claim *claim = find_claim(name);

    fputs("<tr><td class=\"sentence\">", out);
    ks_html_text(out, claim ? claim->sentence : name);
    fputs("<small>", out);
    ks_html_text(out, name);
    fputs("</small></td>", out);
}

/* Where to see it: the paper's figure and our plot, with a link if the page has that plot. */
static void print_plot(const struct ks_csv *csv, size_t row, FILE *out)
{
    const struct ks_paper_claim *claim = find_claim(ks_page_cell(csv, row, "claim"));
    const struct ks_plot *plot = ks_plots;

    while (plot->name && !(claim && claim->plot && strcmp(claim->plot, plot->name) == 0))
        plot++;
    fputs("<td class=\"text\">", out);
    if (plot->name)
        fprintf(out, "<a href=\"#plot-%s\">", plot->name);
    ks_html_text(out, ks_page_cell(csv, row, "plot"));
    fputs(plot->name ? "</a></td>" : "</td>", out);
}

static void print_claim(const struct ks_csv *csv, size_t first, FILE *out)
{
    const char *claim = ks_page_cell(csv, first, "claim");

    print_sentence(claim, out);
    for (size_t k = 0; k < STATISTICS; k++) {
        size_t i = first;

        while (i < csv->rows && !is_row(csv, i, claim, statistics[k].name))
            i++;
        if (i == csv->rows)
            fputs("<td class=\"none text\">does not apply</td>", out);
        else
            print_verdict(csv, i, out);
    }
    fputs("<td class=\"text\">", out);
    ks_html_text(out, ks_page_cell(csv, first, "survives"));
    fputs("</td>", out);
    print_plot(csv, first, out);
    fputs("</tr>\n", out);
}

ks_status ks_page_verdicts(const struct ks_page *page, FILE *out)
{
    const struct ks_csv *csv = page->claims;

    fprintf(out, "<div class=\"scroll\" tabindex=\"0\"><table class=\"sortable\" "
                 "id=\"table-verdicts\">\n<thead><tr><th>claim</th>");
    for (size_t k = 0; k < STATISTICS; k++)
        fprintf(out, "<th class=\"text\">%s<span class=\"kind\">%s</span></th>",
                statistics[k].title, statistics[k].what);
    fprintf(out, "<th class=\"text\">the claim</th><th class=\"text\">seen in</th></tr></thead>\n"
                 "<tbody>\n");
    for (size_t i = 0; i < csv->rows; i++)
        if (is_first(csv, i))
            print_claim(csv, i, out);
    fprintf(out, "</tbody></table></div>\n");
    return KS_OK;
}
