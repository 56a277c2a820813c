/* What the report says about the paper's claims and theorems. */
#include "report/page.h"

#include <math.h>
#include <string.h>

#include "claims/claims.h"
#include "core/interval.h"
#include "document/html.h"

/* --- the claims' verdicts: a line per claim, which opens to the numbers --- */

static const struct {
    const char *title, *what;
} statistics[KS_CLAIM_STATISTICS] = {
    [KS_CLAIM_PAPER] = {"paper's statistic", "kappa for the condition number"},
    [KS_CLAIM_SOUND] = {"sound statistic", "kappa_q99 for the condition number"},
    [KS_CLAIM_SECOND] = {"second sound one", "directions_1e2"},
    [KS_CLAIM_CONTROL] = {"control", "BN over the rows of the loss alone"},
    [KS_CLAIM_REVISED] = {"revised rule", "written with results known"},
};
enum { IN_LINE = KS_CLAIM_CONTROL };

static const char *const classes[KS_VERDICTS] = {
    [KS_SUPPORTED] = "yes",         [KS_SAME_DIRECTION] = "yes", [KS_NOT_SUPPORTED] = "no",
    [KS_OPPOSITE_DIRECTION] = "no", [KS_NOT_DECIDED] = "open",   [KS_NOT_RESOLVED] = "open",
    [KS_RESULTS_KNOWN] = "open"};

/* The verdict by a statistic and, where there is none, why. `row`: NULL if there is none. */
static void print_verdict(const struct ks_claims *claims, const struct ks_claim_row *row, FILE *out)
{
    char reason[KS_CLAIM_REASON], starts[KS_CLAIM_STARTS_TEXT];

    if (!row) {
        fputs("<span class=\"open\">does not apply</span>", out);
        return;
    }
    fprintf(out, "<span class=\"%s\">%s</span>", classes[row->verdict],
            ks_verdict_names[row->verdict]);
    ks_claims_reason(claims, row, reason);
    if (*reason)
        ks_html_between(out, " <small>", reason, "</small>");
    ks_claims_starts(row, starts);
    if (*starts)
        ks_html_between(out, " <small>", starts, "</small>");
}

/* Whether the reason is the same by every statistic that the claim has: it is said once then. */
static bool is_one_reason(const struct ks_claims *claims, const struct ks_paper_claim *claim)
{
    char first[KS_CLAIM_REASON] = "", reason[KS_CLAIM_REASON];

    for (size_t k = 0; k < IN_LINE; k++) {
        const struct ks_claim_row *row = ks_claims_row(claims, claim, k);

        if (!row)
            continue;
        ks_claims_reason(claims, row, reason);
        if (!*reason || (*first && strcmp(reason, first) != 0))
            return false;
        memcpy(first, reason, sizeof first);
    }
    return *first;
}

/* The verdict in a column of the line. */
static void print_column(const struct ks_claims *claims, const struct ks_claim_row *row,
                         const char *class, const char *title, FILE *out)
{
    fprintf(out, "<span class=\"%s\" data-by=\"%s\">", class, title);
    print_verdict(claims, row, out);
    fputs("</span>", out);
}

static void print_line(const struct ks_claims *claims, const struct ks_paper_claim *claim,
                       FILE *out)
{
    ks_html_between(out, "<summary><span class=\"sentence\">", claim->sentence, "</span>");
    if (is_one_reason(claims, claim))
        print_column(claims, ks_claims_row(claims, claim, KS_CLAIM_PAPER), "all", "all statistics",
                     out);
    else
        for (size_t k = 0; k < IN_LINE; k++)
            print_column(claims, ks_claims_row(claims, claim, k), "one", statistics[k].title, out);
    fprintf(out, "<span data-by=\"the claim\">%s</span></summary>\n",
            ks_claims_survival(claims, claim));
}

/* --- what the line opens to --- */

static void print_cell(double value, const char *format, const char *none, FILE *out)
{
    fputs("<td>", out);
    fprintf(out, isnan(value) ? "%s" : "", none);
    if (!isnan(value))
        fprintf(out, format, value);
    fputs("</td>", out);
}

static void print_numbers(const struct ks_claims *claims, const struct ks_claim_row *row,
                          bool within, FILE *out)
{
    const struct ks_finding *f = &row->found;

    fprintf(out, "<tr><td>%s</td><td class=\"text\">", statistics[row->statistic].title);
    print_verdict(claims, row, out);
    fputs("</td>", out);
    if (f->effect_high > f->effect_low) /* an interval */
        fprintf(out, "<td>%.3g to %.3g</td>", f->effect_low, f->effect_high);
    else
        print_cell(isnan(f->effect_high) ? NAN : f->effect_low, "%.3g", "not known", out);
    print_cell(f->theta, "%.3g", "none", out);
    print_cell(row->p_holm, "%.2g", "no test", out);
    if (within)
        print_cell(f->within, "%.2g", "not known", out);
    fprintf(out, "<td>%zu</td><td>%zu</td></tr>\n", f->seeds, f->units);
}

static void print_claim(const struct ks_claims *claims, const struct ks_paper_claim *claim,
                        FILE *out)
{
    const bool within = claim->kind == KS_CLAIM_CORRELATION;
    char plot[KS_CLAIM_REASON];

    fputs("<details class=\"claim\">", out);
    print_line(claims, claim, out);
    fprintf(out,
            "<div class=\"scroll\" tabindex=\"0\"><table>\n<thead><tr><th>statistic</th>"
            "<th class=\"text\">verdict</th><th>effect</th><th>threshold</th>"
            "<th>adjusted <i>p</i></th>%s<th>seeds</th><th>units</th></tr></thead>\n<tbody>\n",
            within ? "<th>within normalizations</th>" : "");
    for (size_t k = 0; k < KS_CLAIM_STATISTICS; k++)
        if (ks_claims_row(claims, claim, k))
            print_numbers(claims, ks_claims_row(claims, claim, k), within, out);
    fprintf(out, "</tbody></table></div>\n<p class=\"note\"><code>%s</code>, seen in ",
            claim->name);
    ks_claims_plot(claim, plot);
    fprintf(out, "<a href=\"#plot-%s\">%s</a></p>\n</details>\n", ks_paper_claim_plot(claim), plot);
}

/* --- all claims --- */

/* How many claims of a family there are, and how many have each verdict. */
static void print_count(const struct ks_claims *claims, enum ks_claim_family family,
                        enum ks_claim_statistic statistic, const char *title, FILE *out)
{
    size_t all = 0, count[KS_VERDICTS] = {0};
    const char *before = ": ";

    for (size_t i = 0; i < claims->n; i++)
        if (claims->row[i].claim->family == family && claims->row[i].statistic == statistic) {
            count[claims->row[i].verdict]++;
            all++;
        }
    fprintf(out, "%s, %zu claim%s", title, all, all == 1 ? "" : "s");
    for (size_t k = 0; k < KS_VERDICTS; k++)
        if (count[k] > 0) {
            fprintf(out, "%s%zu %s", before, count[k], ks_verdict_names[k]);
            before = ", ";
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

/* Claims are in the order of their families. */
ks_status ks_page_verdicts(void *data, FILE *out)
{
    const struct ks_claims *claims = ((const struct ks_page *)data)->table->claims;

    for (size_t i = 0; i < claims->n; i++) {
        const struct ks_paper_claim *claim = claims->row[i].claim,
                                    *before = i > 0 ? claims->row[i - 1].claim : NULL;
        const bool new = !before || before->family != claim->family;

        if (before && new)
            fputs("</div>\n", out);
        if (new) {
            fprintf(out, "<h3>Rules of %s</h3>\n<p>", ks_claim_family_dates[claim->family]);
            print_count(claims, claim->family, KS_CLAIM_PAPER, "By the paper's statistics", out);
            fputs("; ", out);
            print_count(claims, claim->family, KS_CLAIM_SOUND, "by sound ones", out);
            fputs(".</p>\n<div class=\"claims\">\n", out);
            print_heads(out);
        }
        if (claim != before)
            print_claim(claims, claim, out);
    }
    fputs("</div>\n", out);
    return KS_OK;
}

/* --- how near the measurements come to what the paper proves: the largest numbers of every
 * architecture --- */

static double as_it_is(double x, int digits)
{
    (void)digits;
    return x;
}

/* Bounds are rounded to the side on which they stay bounds. */
static const struct {
    enum ks_theorem_number number;
    const char *title, *kind;
    double (*rounded)(double x, int digits);
} columns[] = {
    {KS_PROPOSITION_1_LARGEST, "Proposition 1", "largest |f - y| of any row: no bound", as_it_is},
    {KS_PROPOSITION_2_LARGEST, "Proposition 2", "largest |p - t| / sqrt 2 of any row", as_it_is},
    {KS_PROPOSITION_2_MEDIAN, "Proposition 2, median row", "largest median |p - t| / sqrt 2",
     as_it_is},
    {KS_LEMMA_1, "Lemma 1", "largest |g| / (sqrt 2 L_f): at most this", ks_round_up},
    {KS_LEMMA_1_MEDIAN, "Lemma 1, median row", "with the median over rows in place of L_f",
     ks_round_up},
    {KS_THEOREM_1, "Theorem 1", "largest |g_h| / (sqrt 2 L_h): at most this", ks_round_up},
    {KS_HIDDEN_RADIAL, "Cosine of theta_h, g_h", "0 for a scale-invariant f", as_it_is},
    {KS_WEIGHT_DECAY, "Weight decay", "mu^2 of the loss", as_it_is},
    {KS_WEIGHT_DECAY_NEEDED, "Proposition 4", "mu^2 would have to be more than this",
     ks_round_down},
};
enum { COLUMNS = sizeof columns / sizeof *columns };

static void add_architecture(const struct ks_page *page, size_t architecture, struct ks_document *d)
{
    const struct ks_theorems *t = &page->table->theorems;
    size_t checkpoints = 0;

    for (size_t i = 0; i < t->n; i++)
        checkpoints += t->row[i].architecture == architecture;
    if (checkpoints == 0)
        return;
    ks_document_row(d, KS_BLOCK_ROW,
                    KS_CELLS(ks_cell_name(page->results->study->architecture[architecture].name)));
    for (size_t c = 0; c < COLUMNS; c++) {
        const double largest = ks_theorems_largest(t, architecture, columns[c].number);
        struct ks_cell cell = ks_cell_digits(3, columns[c].rounded(largest, 3));

        cell.key = largest;
        ks_document_cell(d, ks_cell_or(cell, "not measured"));
    }
    ks_document_cell(d, ks_cell_count(checkpoints));
}

void ks_page_theorems(void *data, struct ks_document *d)
{
    const struct ks_page *page = data;

    ks_document_table(d, "table-theorems", KS_CELLS(ks_cell_name("architecture")));
    for (size_t c = 0; c < COLUMNS; c++)
        ks_document_cell(d, ks_cell_note(ks_cell_heading(columns[c].title), columns[c].kind));
    ks_document_cell(d, ks_cell_heading("checkpoints"));
    for (size_t a = 0; a < page->results->study->n_architectures; a++)
        add_architecture(page, a, d);
}
