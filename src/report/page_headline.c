/* The first lines of the report: what the study answers, from its numbers, and how far that goes.
 */
#include "report/page.h"

#include <math.h>

#include "claims/claim_findings.h"

enum { FEW_SEEDS = 3, ENOUGH_SEEDS = 5 };

/* A p-value up to this counts as a correlation; it is not adjusted, so the page says "p". */
#define LEVEL 0.05

/* --- whether policies have learned --- */

/* The architectures whose last return (IQM over seeds) is above twice their first one
 * (configs/claims.md). */
static size_t count_learned(const struct ks_page *page)
{
    const struct ks_results *r = page->results;
    size_t learned = 0;

    for (size_t i = 0; i < page->table->n_rows; i++) {
        const struct ks_row *row = &page->table->row[i];
        size_t first = 0;

        while (first + 1 < r->study->n_evaluations &&
               !ks_results_has_return(r, row->architecture, first))
            first++;
        if (r->study->architecture[row->architecture].elsewhere &&
            r->study->evaluation[first] > 0) {
            learned++; /* the return before training is not known */
            continue;
        }
        learned += ks_has_doubled(ks_comparison_return(r, row->architecture, first),
                                  row->value[KS_RETURN].value);
    }
    return learned;
}

/* --- the correlation --- */

/* The correlation of a statistic in an analysis; NaN if there is none. */
static const struct ks_correlation *find_correlation(const struct ks_page *page, size_t analysis,
                                                     enum ks_statistic_id id,
                                                     enum ks_statistic_part part)
{
    static const struct ks_correlation none = {.spearman = {NAN, {NAN, NAN}}, .p = NAN};
    const struct ks_correlations *all = &page->table->correlations;

    for (size_t i = 0; i < all->n; i++)
        if (all->row[i].analysis == analysis && all->row[i].statistic.id == id &&
            all->row[i].statistic.part == part)
            return &all->row[i];
    return &none;
}

/* -1 or 1: the sign that both correlations have, each with p <= LEVEL; 0: undecided. */
static int sign_of(const struct ks_correlation *a, const struct ks_correlation *b)
{
    bool both = a->p <= LEVEL && b->p <= LEVEL;

    return both && a->spearman.value < 0 && b->spearman.value < 0   ? -1
           : both && a->spearman.value > 0 && b->spearman.value > 0 ? 1
                                                                    : 0;
}

static void add_correlation(const struct ks_correlation *c, struct ks_document *d)
{
    ks_document_more(d, "%.2f (", c->spearman.value);
    if (!isnan(c->spearman.in.lower))
        ks_document_more(d, "90%% interval over seeds %.2f to %.2f, ", c->spearman.in.lower,
                         c->spearman.in.upper);
    ks_document_more(d, "p = %.2g)", c->p);
}

/* What the headline cites: kappa_q99 is known by its intervals only; the paper's kappa from several
 * start vectors, the first of which counts. */
struct cited {
    const struct ks_correlation *lower, *upper, *kappa;
    const struct ks_correlation *paper; /* NULL: the study lacks its analysis */
    double least, most;                 /* of the paper's, over the start vectors */
    size_t starts;
};

static void find_paper(const struct ks_page *page, struct cited *cited)
{
    const struct ks_study_analyses starts = ks_claim_analyses(page->results->study,
                                                              KS_CLAIM_REVISED);

    cited->least = cited->most = NAN;
    for (size_t i = 0; i < starts.n; i++) {
        const struct ks_correlation *found = find_correlation(page, starts.index[i], KS_STAT_KAPPA,
                                                              KS_ITSELF);

        cited->paper = i == 0 ? found : cited->paper;
        cited->least = fmin(cited->least, found->spearman.value);
        cited->most = fmax(cited->most, found->spearman.value);
        cited->starts += !isnan(found->spearman.value);
    }
}

static bool find_cited(const struct ks_page *page, struct cited *cited)
{
    *cited = (struct cited){.lower = find_correlation(page, 0, KS_STAT_KAPPA_Q99, KS_LOWER_END),
                            .upper = find_correlation(page, 0, KS_STAT_KAPPA_Q99, KS_UPPER_END),
                            .kappa = find_correlation(page, 0, KS_STAT_KAPPA, KS_ITSELF)};
    find_paper(page, cited);
    return !isnan(cited->lower->spearman.value) && !isnan(cited->upper->spearman.value);
}

static void add_answer(const struct cited *cited, struct ks_document *d)
{
    const int sign = sign_of(cited->lower, cited->upper);
    const struct ks_correlation *paper = cited->paper;

    ks_document_add(
        d, KS_BLOCK_TEXT,
        "<b>%s</b>, if conditioning is measured by <i>kappa_q99</i>, the factor by which 99%% of "
        "the eigenvalues of the critic's loss are smaller than the largest",
        sign < 0   ? "Architectures with better conditioned critics had higher returns"
        : sign > 0 ? "Architectures with better conditioned critics had lower returns"
                   : "It is not decided whether better conditioned critics go with "
                     "higher returns");
    if (sign == 0)
        ks_document_more(
            d,
            ": its rank correlation with the return is %.2f for the lower ends of its intervals "
            "(<i>p</i> = %.2g) and %.2f for the upper ends (<i>p</i> = %.2g). It would be decided "
            "if both had one sign and a <i>p</i> of at most %g, by a two-sided permutation of the "
            "architectures; intervals over seeds, which may exclude 0, do not count",
            cited->lower->spearman.value, cited->lower->p, cited->upper->spearman.value,
            cited->upper->p, LEVEL);
    ks_document_more(d, ".");
    if (!paper || isnan(paper->spearman.value))
        return;
    ks_document_more(d,
                     " With the paper's <i>kappa</i> the rank correlation is %.2f (<i>p</i> = %.2g",
                     paper->spearman.value, paper->p);
    if (cited->starts > 1)
        ks_document_more(d, "; %.2f to %.2f over %zu start vectors", cited->least, cited->most,
                         cited->starts);
    ks_document_more(d, ").");
}

static void add_evidence(const struct cited *cited, struct ks_document *d)
{
    ks_document_more(
        d,
        "Over %zu architectures, the rank correlation of the last return with <i>kappa_q99</i> is ",
        cited->lower->n);
    add_correlation(cited->lower, d);
    ks_document_more(d, " for the lower ends of its intervals and ");
    add_correlation(cited->upper, d);
    ks_document_more(d, " for the upper ends");
    if (cited->kappa->n > 0) {
        ks_document_more(d, "; with <i>kappa</i> of the standard analysis it is ");
        add_correlation(cited->kappa, d);
    }
    ks_document_more(d, ". A verdict on this claim asks for more: a correlation of at most -0.5.");
}

/* --- highest and lowest return --- */

static void add_architecture(const struct ks_page *page, const char *word, const struct ks_row *row,
                             struct ks_document *d)
{
    const struct ks_estimate *e = &row->value[KS_RETURN];
    char text[KS_INTERVAL_TEXT];

    ks_document_more(d, "%s return has <b>%s</b> with %.4g", word,
                     page->results->study->architecture[row->architecture].name, e->value);
    if (!isnan(e->in.lower))
        ks_document_more(d, " (90%% interval %.4g to %.4g)", e->in.lower, e->in.upper);
    if (row->range[KS_RANGE_Q99].n > 0)
        ks_document_more(d, "; its <i>kappa_q99</i> is %s",
                         ks_interval_text(row->range[KS_RANGE_Q99].median, KS_IN_WORDS, text));
    ks_document_more(d, ". ");
}

static void add_extremes(const struct ks_page *page, struct ks_document *d)
{
    const struct ks_row *row = page->table->row, *highest = row, *lowest = row;

    for (size_t i = 1; i < page->table->n_rows; i++) {
        if (row[i].value[KS_RETURN].value > highest->value[KS_RETURN].value)
            highest = &row[i];
        if (row[i].value[KS_RETURN].value < lowest->value[KS_RETURN].value)
            lowest = &row[i];
    }
    add_architecture(page, "The highest", highest, d);
    if (lowest != highest)
        add_architecture(page, "The lowest", lowest, d);
}

void ks_page_evidence(void *data, struct ks_document *d)
{
    const struct ks_page *page = data;
    struct cited cited;

    ks_document_add(d, KS_BLOCK_TEXT, "%s", "");
    add_extremes(page, d);
    if (page->results->n_groups == 1 && find_cited(page, &cited))
        add_evidence(&cited, d);
}

/* --- the answer, and how far it goes --- */

void ks_page_headline(void *data, struct ks_document *d)
{
    const struct ks_page *page = data;
    const size_t n = page->table->n_rows, learned = count_learned(page);
    const bool comparable = page->results->n_groups <= 1;
    struct cited cited;

    if (comparable && 2 * learned >= n && find_cited(page, &cited)) {
        add_answer(&cited, d);
        return;
    }
    ks_document_add(d, KS_BLOCK_TEXT, "<b>These runs cannot answer that</b>: ");
    if (!comparable)
        ks_document_more(d, "their spectra are not all comparable, so no correlation is computed "
                            "(see the warnings).");
    else if (2 * learned >= n)
        ks_document_more(d,
                         isnan(cited.lower->spearman.value)
                             ? "too few architectures have <i>kappa_q99</i> for a rank correlation."
                             : "the upper ends of <i>kappa_q99</i> are not resolved, so they have "
                               "no rank correlation.");
    else if (learned == 0)
        ks_document_more(d, "none");
    else
        ks_document_more(d, "only %zu", learned);
    if (comparable && 2 * learned < n)
        ks_document_more(
            d,
            " of the %zu architectures ended with more than twice the return that they had at "
            "their first evaluation, so the critics belong to policies that have hardly learned.",
            n);
}

/* What one or few seeds mean. */
static void add_limits(const struct ks_page *page, struct ks_document *d)
{
    size_t least = page->results->study->n_seeds;

    for (size_t i = 0; i < page->table->n_rows; i++)
        least = page->table->row[i].runs < least ? page->table->row[i].runs : least;
    if (least == 1)
        ks_document_more(d, " A number from one seed has no interval over seeds: another seed may "
                            "reverse what these runs show.");
    else if (least < FEW_SEEDS)
        ks_document_more(d, " With two seeds the intervals over seeds are far too narrow.");
    else if (least < ENOUGH_SEEDS)
        ks_document_more(d, " With %zu seeds the intervals over seeds are too narrow.", least);
}

void ks_page_extent(void *data, struct ks_document *d)
{
    const struct ks_page *page = data;
    const struct ks_study *s = page->results->study;
    size_t n = page->table->n_rows;

    ks_document_add(
        d, KS_BLOCK_TEXT, "%zu architecture%s, %zu seed%s, %zu environment steps per run", n,
        n == 1 ? "" : "s", s->n_seeds, s->n_seeds == 1 ? "" : "s", s->stop ? s->end : s->steps);
    if (s->stop)
        ks_document_more(d, ": <b>stopped early</b>, of %zu planned", s->steps);
    if (s->has_checkpoint)
        ks_document_more(d, ". Checkpoints up to step %zu are not pooled. %s", s->first_update,
                         ks_study_trains(s) ? "Some runs were trained elsewhere."
                                            : "Trained elsewhere.");
    else
        ks_document_more(
            d, ". %zu checkpoint%s per run, of which those at the first update are not pooled.",
            s->n_checkpoints, s->n_checkpoints == 1 ? "" : "s");
    if (n < s->n_architectures)
        ks_document_more(
            d, " <b>%zu of the study's %zu architectures are left out</b>: see the warnings.",
            s->n_architectures - n, s->n_architectures);
    add_limits(page, d);
}
