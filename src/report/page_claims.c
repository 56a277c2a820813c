/* What the report says about the paper's claims and theorems. */
#include "report/page.h"

#include <math.h>
#include <string.h>

#include "claims/claims.h"
#include "core/interval.h"
#include "report/plots.h"
#include "report/template.h"

/* --- the claims' verdicts, from claims.csv: a line per claim, which opens to the numbers --- */

static const struct {
    const char *name, *title, *what;
} statistics[] = {
    {"paper", "paper's statistic", "kappa for the condition number"},
    {"sound", "sound statistic", "kappa_q99 for the condition number"},
    {"second", "second sound one", "directions_1e2"},
    {"control", "control", "BN over the rows of the loss alone"},
};
enum { STATISTICS = sizeof statistics / sizeof *statistics, IN_LINE = STATISTICS - 1 };

/* The row of a claim by a statistic; csv->rows: none. */
static size_t find_row(const struct ks_csv *csv, const char *claim, const char *statistic)
{
    size_t i = 0;

    while (i < csv->rows && !(strcmp(ks_csv_text(csv, i, "claim"), claim) == 0 &&
                              strcmp(ks_csv_text(csv, i, "statistic"), statistic) == 0))
        i++;
    return i;
}

/* Whether no row above has the same text in this column. */
static bool is_first(const struct ks_csv *csv, size_t row, const char *column)
{
    for (size_t i = 0; i < row; i++)
        if (strcmp(ks_csv_text(csv, i, column), ks_csv_text(csv, row, column)) == 0)
            return false;
    return true;
}

static const struct ks_paper_claim *find_claim(const char *name)
{
    for (size_t i = 0; i < KS_CLAIMS; i++)
        if (strcmp(ks_paper_claims[i].name, name) == 0)
            return &ks_paper_claims[i];
    return NULL;
}

/* --- the line of a claim --- */

static const char *class_of(const char *verdict)
{
    if (strcmp(verdict, "supported") == 0 || strcmp(verdict, "same direction") == 0)
        return "yes";
    return strcmp(verdict, "not supported") == 0 || strcmp(verdict, "opposite direction") == 0
               ? "no"
               : "open";
}

/* The verdict by a statistic and, where there is none, why. */
static void print_verdict(const struct ks_csv *csv, size_t row, FILE *out)
{
    const char *verdict, *reason;

    if (row == csv->rows) {
        fputs("<span class=\"open\">does not apply</span>", out);
        return;
    }
    verdict = ks_csv_text(csv, row, "verdict");
    reason = ks_csv_text(csv, row, "reason");
    fprintf(out, "<span class=\"%s\">", class_of(verdict));
    ks_html_text(out, verdict);
    fputs("</span>", out);
    if (strcmp(reason, "-") != 0) {
        fputs(" <small>", out);
        ks_html_text(out, reason);
        fputs("</small>", out);
    }
}

/* Whether the reason is the same by every statistic that the claim has: it is said once then. */
static bool is_one_reason(const struct ks_csv *csv, size_t first)
{
    const char *name = ks_csv_text(csv, first, "claim"),
               *reason = ks_csv_text(csv, first, "reason");

    for (size_t k = 0; k < IN_LINE; k++) {
        size_t row = find_row(csv, name, statistics[k].name);

        if (row < csv->rows && strcmp(ks_csv_text(csv, row, "reason"), reason) != 0)
            return false;
    }
    return strcmp(reason, "-") != 0;
}

/* The verdict of a row (csv->rows: none) in a column of the line. */
static void print_column(const struct ks_csv *csv, size_t row, const char *class, const char *title,
                         FILE *out)
{
    fprintf(out, "<span class=\"%s\" data-by=\"%s\">", class, title);
    print_verdict(csv, row, out);
    fputs("</span>", out);
}

static void print_line(const struct ks_csv *csv, size_t first, FILE *out)
{
    const char *name = ks_csv_text(csv, first, "claim");
    const struct ks_paper_claim *claim = find_claim(name);

    fputs("<summary><span class=\"sentence\">", out);
    ks_html_text(out, claim ? claim->sentence : name);
    fputs("</span>", out);
    if (is_one_reason(csv, first))
        print_column(csv, first, "all", "all statistics", out);
    else
        for (size_t k = 0; k < IN_LINE; k++)
            print_column(csv, find_row(csv, name, statistics[k].name), "one", statistics[k].title,
                         out);
    fputs("<span data-by=\"the claim\">", out);
    ks_html_text(out, ks_csv_text(csv, first, "survives"));
    fputs("</span></summary>\n", out);
}

/* --- what the line opens to --- */

static void print_cell(double value, const char *format, const char *none, FILE *out)
{
    fputs("<td>", out);
    if (isnan(value))
        fputs(none, out);
    else
        fprintf(out, format, value);
    fputs("</td>", out);
}

/* An interval, or a number where both ends are the same. */
static void print_effect(const struct ks_csv *csv, size_t row, FILE *out)
{
    double low = ks_csv_value(csv, row, "effect_low"), high = ks_csv_value(csv, row, "effect_high");

    if (isnan(low) || isnan(high))
        fputs("<td>not known</td>", out);
    else if (high > low)
        fprintf(out, "<td>%.3g to %.3g</td>", low, high);
    else
        fprintf(out, "<td>%.3g</td>", low);
}

static void print_numbers(const struct ks_csv *csv, size_t row, bool within, FILE *out)
{
    fputs("<td class=\"text\">", out);
    print_verdict(csv, row, out);
    fputs("</td>", out);
    print_effect(csv, row, out);
    print_cell(ks_csv_value(csv, row, "theta"), "%.3g", "none", out);
    print_cell(ks_csv_value(csv, row, "p_holm"), "%.2g", "no test", out);
    if (within)
        print_cell(ks_csv_value(csv, row, "within"), "%.2g", "not known", out);
    print_cell(ks_csv_value(csv, row, "seeds"), "%.0f", "-", out);
    print_cell(ks_csv_value(csv, row, "units"), "%.0f", "-", out);
    fputs("</tr>\n", out);
}

static void print_table(const struct ks_csv *csv, const char *name, bool within, FILE *out)
{
    fprintf(out,
            "<div class=\"scroll\" tabindex=\"0\"><table>\n<thead><tr><th>statistic</th>"
            "<th class=\"text\">verdict</th><th>effect</th><th>threshold</th>"
            "<th>adjusted <i>p</i></th>%s<th>seeds</th><th>units</th></tr></thead>\n<tbody>\n",
            within ? "<th>within normalizations</th>" : "");
    for (size_t k = 0; k < STATISTICS; k++) {
        size_t row = find_row(csv, name, statistics[k].name);

        if (row == csv->rows)
            continue;
        fprintf(out, "<tr><td>%s</td>", statistics[k].title);
        print_numbers(csv, row, within, out);
    }
    fputs("</tbody></table></div>\n", out);
}

/* Where to see it: the paper's figure and our plot, with a link if the page has that plot. */
static void print_plot(const struct ks_csv *csv, size_t row, FILE *out)
{
    const struct ks_paper_claim *claim = find_claim(ks_csv_text(csv, row, "claim"));
    const struct ks_plot *plot = ks_plots;

    while (plot->name && !(claim && claim->plot && strcmp(claim->plot, plot->name) == 0))
        plot++;
    if (plot->name)
        fprintf(out, "<a href=\"#plot-%s\">", plot->name);
    ks_html_text(out, ks_csv_text(csv, row, "plot"));
    fputs(plot->name ? "</a>" : "", out);
}

static void print_claim(const struct ks_csv *csv, size_t first, FILE *out)
{
    const char *name = ks_csv_text(csv, first, "claim");
    const struct ks_paper_claim *claim = find_claim(name);

    fputs("<details class=\"claim\">", out);
    print_line(csv, first, out);
    print_table(csv, name, claim && claim->kind == KS_CLAIM_CORRELATION, out);
    fputs("<p class=\"note\"><code>", out);
    ks_html_text(out, name);
    fputs("</code>, seen in ", out);
    print_plot(csv, first, out);
    fputs("</p>\n</details>\n", out);
}

/* --- all claims --- */

/* The claims that are judged by the rules of one date; "-": by those of an older version. */
struct rules {
    const struct ks_csv *csv;
    const char *date;
};

static bool is_of(const struct rules *rules, size_t row)
{
    return strcmp(ks_csv_text(rules->csv, row, "rules"), rules->date) == 0;
}

/* `verdict`: NULL for any. */
static size_t count_verdicts(const struct rules *rules, const char *statistic, const char *verdict)
{
    size_t n = 0;

    for (size_t i = 0; i < rules->csv->rows; i++)
        n += is_of(rules, i) && strcmp(ks_csv_text(rules->csv, i, "statistic"), statistic) == 0 &&
             (!verdict || strcmp(ks_csv_text(rules->csv, i, "verdict"), verdict) == 0);
    return n;
}

static void print_count(const struct rules *rules, const char *statistic, const char *title,
                        FILE *out)
{
    const char *before = ": ";
    size_t all = count_verdicts(rules, statistic, NULL);

    fprintf(out, "%s, %zu claim%s", title, all, all == 1 ? "" : "s");
    for (size_t k = 0; k < KS_VERDICTS; k++) {
        size_t n = count_verdicts(rules, statistic, ks_verdict_names[k]);

        if (n > 0) {
            fprintf(out, "%s%zu %s", before, n, ks_verdict_names[k]);
            before = ", ";
        }
    }
}

/* The heads of the columns. Where there is no room for columns, the style hides them and puts a
 * title before each verdict. */
static void print_heads(FILE *out)
{
    fputs("<p class=\"heads\" aria-hidden=\"true\"><span>claim</span>", out);
    for (size_t k = 0; k < IN_LINE; k++)
        fprintf(out, "<span>%s<span class=\"kind\">%s</span></span>", statistics[k].title,
                statistics[k].what);
    fputs("<span>the claim</span></p>\n", out);
}

static void print_rules(const struct rules *rules, FILE *out)
{
    if (strcmp(rules->date, "-") != 0)
        fputs("<h3>Rules of ", out), ks_html_text(out, rules->date), fputs("</h3>\n", out);
    fputs("<p>", out);
    print_count(rules, "paper", "By the paper's statistics", out);
    fputs("; ", out);
    print_count(rules, "sound", "by sound ones", out);
    fputs(".</p>\n<div class=\"claims\">\n", out);
    print_heads(out);
    for (size_t i = 0; i < rules->csv->rows; i++)
        if (is_of(rules, i) && is_first(rules->csv, i, "claim"))
            print_claim(rules->csv, i, out);
    fputs("</div>\n", out);
}

ks_status ks_page_verdicts(const struct ks_page *page, FILE *out)
{
    const struct ks_csv *csv = page->claims;

    for (size_t i = 0; i < csv->rows; i++) {
        const struct rules rules = {csv, ks_csv_text(csv, i, "rules")};

        if (is_first(csv, i, "rules"))
            print_rules(&rules, out);
    }
    return KS_OK;
}

/* --- how near the measurements come to what the paper proves, from theorems.csv: the largest
 * numbers of every architecture --- */

static const struct {
    const char *name, *title, *kind;
} columns[] = {
    {"proposition_1_largest", "Proposition 1", "largest |f - y| of any row: no bound"},
    {"proposition_2_largest", "Proposition 2", "largest |p - t| / sqrt 2 of any row"},
    {"proposition_2_median", "Proposition 2, median row", "largest median |p - t| / sqrt 2"},
    {"lemma_1", "Lemma 1", "largest |g| / (sqrt 2 L_f): at most this"},
    {"lemma_1_median", "Lemma 1, median row", "with the median over rows in place of L_f"},
    {"theorem_1", "Theorem 1", "largest |g_h| / (sqrt 2 L_h): at most this"},
    {"hidden_radial", "Cosine of theta_h, g_h", "0 for a scale-invariant f"},
    {"weight_decay", "Weight decay", "mu^2 of the loss"},
    {"weight_decay_needed", "Proposition 4", "mu^2 would have to be more than this"},
};
enum { COLUMNS = sizeof columns / sizeof *columns };

static const char *architecture_of(const struct ks_csv *csv, size_t row)
{
    return ks_csv_text(csv, row, "architecture");
}

/* The largest number in a column over the rows of an architecture, NaN if none has one; the number
 * of rows into *n. */
static double find_largest(const struct ks_csv *csv, const char *architecture, const char *column,
                           size_t *n)
{
    double largest = NAN;

    *n = 0;
    for (size_t i = 0; i < csv->rows; i++)
        if (strcmp(architecture_of(csv, i), architecture) == 0) {
            largest = fmax(largest, ks_csv_value(csv, i, column));
            ++*n;
        }
    return largest;
}

/* Bounds are rounded to the side on which they stay bounds. */
static double rounded(const char *column, double x)
{
    if (strncmp(column, "lemma_1", 7) == 0 || strcmp(column, "theorem_1") == 0)
        return ks_round_up(x, 3);
    return strcmp(column, "weight_decay_needed") == 0 ? ks_round_down(x, 3) : x;
}

static void print_row(const struct ks_csv *csv, const char *architecture, FILE *out)
{
    size_t n = 0;

    fputs("<tr><td class=\"name\">", out);
    ks_html_text(out, architecture);
    fputs("</td>", out);
    for (size_t c = 0; c < COLUMNS; c++) {
        double largest = find_largest(csv, architecture, columns[c].name, &n);

        if (isnan(largest))
            fputs("<td class=\"none\">not measured</td>", out);
        else
            fprintf(out, "<td data-value=\"%.10g\">%.3g</td>", largest,
                    rounded(columns[c].name, largest));
    }
    fprintf(out, "<td data-value=\"%zu\">%zu</td></tr>\n", n, n);
}

ks_status ks_page_theorems(const struct ks_page *page, FILE *out)
{
    const struct ks_csv *csv = page->theorems;

    fprintf(out, "<div class=\"scroll\" tabindex=\"0\"><table class=\"sortable\" "
                 "id=\"table-theorems\">\n<thead><tr><th>architecture</th>");
    for (size_t c = 0; c < COLUMNS; c++)
        fprintf(out, "<th>%s<span class=\"kind\">%s</span></th>", columns[c].title,
                columns[c].kind);
    fprintf(out, "<th>checkpoints</th></tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < csv->rows; i++)
        if (is_first(csv, i, "architecture"))
            print_row(csv, architecture_of(csv, i), out);
    fprintf(out, "</tbody></table></div>\n");
    return KS_OK;
}
