/* What the report says about the paper's claims and theorems. */
#include "report/page.h"

#include <math.h>

#include "claims/claims.h"
#include "core/interval.h"

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

static const enum ks_cell_look looks[KS_VERDICTS] = {
    [KS_SUPPORTED] = KS_CELL_YES,     [KS_SAME_DIRECTION] = KS_CELL_YES,
    [KS_NOT_SUPPORTED] = KS_CELL_NO,  [KS_OPPOSITE_DIRECTION] = KS_CELL_NO,
    [KS_NOT_DECIDED] = KS_CELL_TEXT,  [KS_NOT_RESOLVED] = KS_CELL_TEXT,
    [KS_RESULTS_KNOWN] = KS_CELL_TEXT};

/* Adds the verdict by a statistic and, where there is none, why. `row`: NULL if there is none. */
static void add_verdict(const struct ks_claims *claims, const struct ks_claim_row *row,
                        const char *name, struct ks_document *d)
{
    char reason[KS_CLAIM_REASON] = "", starts[KS_CLAIM_STARTS_TEXT] = "";
    char note[KS_CLAIM_REASON + KS_CLAIM_STARTS_TEXT];
    struct ks_cell cell = ks_cell_text(row ? ks_verdict_names[row->verdict] : "does not apply");

    if (row) {
        cell.look = looks[row->verdict];
        ks_claims_reason(claims, row, reason);
        ks_claims_starts(row, starts);
    }
    snprintf(note, sizeof note, "%s%s%s", reason, *reason && *starts ? "\n" : "", starts);
    ks_document_cell(d, ks_cell_link(ks_cell_note(cell, note), name));
}

static void add_numbers(const struct ks_claims *claims, const struct ks_claim_row *row, bool within,
                        struct ks_document *d)
{
    const struct ks_finding *f = &row->found;
    char effect[KS_CELL_PRINTED];

    snprintf(effect, sizeof effect, "%.3g to %.3g", f->effect_low, f->effect_high);
    ks_document_cells(d, ks_cell_text(statistics[row->statistic].title));
    add_verdict(claims, row, NULL, d);
    ks_document_cell(
        d, f->effect_high > f->effect_low /* an interval */
               ? ks_cell_printed(effect, f->effect_low)
               : ks_cell_or(ks_cell_digits(3, isnan(f->effect_high) ? NAN : f->effect_low),
                            "not known"));
    ks_document_cell(d, ks_cell_or(ks_cell_digits(3, f->theta), "none"));
    ks_document_cell(d, ks_cell_or(ks_cell_digits(2, row->p_holm), "no test"));
    if (within)
        ks_document_cell(d, ks_cell_or(ks_cell_digits(2, f->within), "not known"));
    ks_document_cell(d, ks_cell_count(f->seeds));
    ks_document_cell(d, ks_cell_count(f->units));
}

static void add_claim(const struct ks_claims *claims, const struct ks_paper_claim *claim,
                      struct ks_document *d)
{
    const bool within = claim->kind == KS_CLAIM_CORRELATION;
    char plot[KS_CLAIM_REASON];

    ks_document_add(d, KS_BLOCK_OPENS, "%s", claim->sentence);
    for (size_t k = 0; k < IN_LINE; k++)
        add_verdict(claims, ks_claims_row(claims, claim, k), statistics[k].title, d);
    ks_document_cell(d, ks_cell_link(ks_cell_text(ks_claims_survival(claims, claim)), "the claim"));
    ks_document_columns(d, "",
                        "statistic<, verdict<, effect, threshold, adjusted p%s, seeds, units",
                        within ? ", within normalizations" : "");
    for (size_t k = 0; k < KS_CLAIM_STATISTICS; k++)
        if (ks_claims_row(claims, claim, k))
            add_numbers(claims, ks_claims_row(claims, claim, k), within, d);
    ks_claims_plot(claim, plot);
    ks_document_add(d, KS_BLOCK_NOTE, "<code>%s</code>, seen in <a href='#plot-%s'>%s</a>",
                    claim->name, ks_paper_claim_plot(claim), plot);
}

/* --- all claims --- */

/* How many claims of a family there are, and how many have each verdict. */
static void add_count(const struct ks_claims *claims, enum ks_claim_family family,
                      enum ks_claim_statistic statistic, struct ks_document *d)
{
    size_t all = 0, count[KS_VERDICTS] = {0};
    const char *before = ": ";

    for (size_t i = 0; i < claims->n; i++)
        if (claims->row[i].claim->family == family && claims->row[i].statistic == statistic) {
            count[claims->row[i].verdict]++;
            all++;
        }
    ks_document_more(d, ", %zu claim%s", all, all == 1 ? "" : "s");
    for (size_t k = 0; k < KS_VERDICTS; k++)
        if (count[k] > 0) {
            ks_document_more(d, "%s%zu %s", before, count[k], ks_verdict_names[k]);
            before = ", ";
        }
}

static void start_family(const struct ks_claims *claims, enum ks_claim_family family,
                         struct ks_document *d)
{
    ks_document_add(d, KS_BLOCK_SUBSECTION, "Rules of %s", ks_claim_family_dates[family]);
    ks_document_add(d, KS_BLOCK_TEXT, "By the paper's statistics");
    add_count(claims, family, KS_CLAIM_PAPER, d);
    ks_document_more(d, "; by sound ones");
    add_count(claims, family, KS_CLAIM_SOUND, d);
    ks_document_more(d, ".");
    ks_document_add(d, KS_BLOCK_HEADS, "claim");
    for (size_t k = 0; k < IN_LINE; k++)
        ks_document_cell(d, ks_cell_note(ks_cell_heading(statistics[k].title), statistics[k].what));
    ks_document_cell(d, ks_cell_heading("the claim"));
}

/* Claims are in the order of their families. */
void ks_page_verdicts(void *data, struct ks_document *d)
{
    const struct ks_claims *claims = &((const struct ks_page *)data)->table->claims;

    for (size_t i = 0; i < claims->n; i++) {
        const struct ks_paper_claim *claim = claims->row[i].claim,
                                    *before = i > 0 ? claims->row[i - 1].claim : NULL;

        if (!before || before->family != claim->family)
            start_family(claims, claim->family, d);
        if (claim != before)
            add_claim(claims, claim, d);
    }
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
    ks_document_cells(d, ks_cell_name(page->results->study->architecture[architecture].name));
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

    if (page->table->theorems.n == 0)
        return;
    ks_document_table(d, "table-theorems", KS_CELLS(ks_cell_name("architecture")));
    for (size_t c = 0; c < COLUMNS; c++)
        ks_document_cell(d, ks_cell_note(ks_cell_heading(columns[c].title), columns[c].kind));
    ks_document_cell(d, ks_cell_heading("checkpoints"));
    for (size_t a = 0; a < page->results->study->n_architectures; a++)
        add_architecture(page, a, d);
}
