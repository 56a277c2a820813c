/* The first lines of the report: what the study answers, from its numbers, and how far that goes.
 */
#include "report/page.h"

#include <math.h>

#include "claims/claim_findings.h"
#include "document/html.h"

enum { FEW_SEEDS = 3, ENOUGH_SEEDS = 5 };

/* A p-value up to this counts as a correlation; it is not adjusted, so the page says "p". */
#define LEVEL 0.05

/* --- whether policies have learned --- */

static double iqm_at(const struct ks_results *r, size_t architecture, size_t evaluation)
{
    const struct ks_result *run[KS_STUDY_SEEDS];
    size_t n = ks_results_runs(r, architecture, run);
    double value[KS_STUDY_SEEDS];

    for (size_t i = 0; i < n; i++)
        value[i] = run[i]->returns[evaluation];
    return ks_iqm(n, value);
}

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
        learned += row->value[KS_RETURN].value > 2 * iqm_at(r, row->architecture, first);
    }
    return learned;
}

static void print_not_learned(size_t n, size_t learned, FILE *out)
{
    fputs("<p class=\"headline\"><b>These runs cannot answer that</b>: ", out);
    if (learned == 0)
        fprintf(out, "none of the %zu architectures", n);
    else
        fprintf(out, "only %zu of the %zu architectures", learned, n);
    fputs(" ended with more than twice the return that they had at their first evaluation, so the "
          "critics belong to policies that have hardly learned.</p>\n",
          out);
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

static void print_correlation(const struct ks_correlation *c, FILE *out)
{
    fprintf(out, "%.2f (", c->spearman.value);
    if (!isnan(c->spearman.in.lower))
        fprintf(out, "90%% interval over seeds %.2f to %.2f, ", c->spearman.in.lower,
                c->spearman.in.upper);
    fprintf(out, "p = %.2g)", c->p);
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

static void print_answer(const struct cited *cited, FILE *out)
{
    int sign = sign_of(cited->lower, cited->upper);

    fprintf(out,
            "<p class=\"headline\"><b>%s</b>, if conditioning is measured by <i>kappa_q99</i>, the "
            "factor by which 99%% of the eigenvalues of the critic's loss are smaller than the "
            "largest",
            sign < 0   ? "Architectures with better conditioned critics had higher returns"
            : sign > 0 ? "Architectures with better conditioned critics had lower returns"
                       : "It is not decided whether better conditioned critics go with higher "
                         "returns");
    if (sign == 0)
        fprintf(
            out,
            ": its rank correlation with the return is %.2f for the lower ends of its intervals "
            "(<i>p</i> = %.2g) and %.2f for the upper ends (<i>p</i> = %.2g). It would be "
            "decided if both had one sign and a <i>p</i> of at most %g, by a two-sided "
            "permutation of the architectures; intervals over seeds, which may exclude 0, do "
            "not count",
            cited->lower->spearman.value, cited->lower->p, cited->upper->spearman.value,
            cited->upper->p, LEVEL);
    fputs(".", out);
    if (cited->paper && !isnan(cited->paper->spearman.value)) {
        fprintf(out, " With the paper's <i>kappa</i> the rank correlation is %.2f (<i>p</i> = %.2g",
                cited->paper->spearman.value, cited->paper->p);
        if (cited->starts > 1)
            fprintf(out, "; %.2f to %.2f over %zu start vectors", cited->least, cited->most,
                    cited->starts);
        fputs(").", out);
    }
    fputs("</p>\n", out);
}

static void print_evidence(const struct cited *cited, FILE *out)
{
    fprintf(out,
            "Over %zu architectures, the rank correlation of the last return with "
            "<i>kappa_q99</i> is ",
            cited->lower->n);
    print_correlation(cited->lower, out);
    fputs(" for the lower ends of its intervals and ", out);
    print_correlation(cited->upper, out);
    fputs(" for the upper ends", out);
    if (cited->kappa->n > 0) {
        fputs("; with <i>kappa</i> of the standard analysis it is ", out);
        print_correlation(cited->kappa, out);
    }
    fputs(". A verdict on this claim asks for more: a correlation of at most -0.5.", out);
}

/* --- highest and lowest return --- */

static void print_architecture(const struct ks_page *page, const char *word,
                               const struct ks_row *row, FILE *out)
{
    const struct ks_estimate *e = &row->value[KS_RETURN];
    char text[KS_INTERVAL_TEXT];

    fprintf(out, "%s return has ", word);
    ks_html_between(out, "<b>", page->results->study->architecture[row->architecture].name, "</b>");
    fprintf(out, " with %.4g", e->value);
    if (!isnan(e->in.lower))
        fprintf(out, " (90%% interval %.4g to %.4g)", e->in.lower, e->in.upper);
    if (row->range[KS_RANGE_Q99].n > 0) {
        ks_interval_text(row->range[KS_RANGE_Q99].median, KS_IN_WORDS, text);
        fprintf(out, "; its <i>kappa_q99</i> is %s", text);
    }
    fputs(". ", out);
}

static void print_extremes(const struct ks_page *page, FILE *out)
{
    const struct ks_row *row = page->table->row, *highest = row, *lowest = row;

    for (size_t i = 1; i < page->table->n_rows; i++) {
        if (row[i].value[KS_RETURN].value > highest->value[KS_RETURN].value)
            highest = &row[i];
        if (row[i].value[KS_RETURN].value < lowest->value[KS_RETURN].value)
            lowest = &row[i];
    }
    print_architecture(page, "The highest", highest, out);
    if (lowest != highest)
        print_architecture(page, "The lowest", lowest, out);
}

ks_status ks_page_limits(void *data, FILE *out)
{
    const struct ks_page *page = data;
    const struct ks_study *s = page->results->study;
    size_t least = s->n_seeds;

    for (size_t i = 0; i < page->table->n_rows; i++)
        least = page->table->row[i].runs < least ? page->table->row[i].runs : least;
    if (least == 1)
        fputs("A number from one seed has no interval over seeds: another seed may reverse "
              "what these runs show. ",
              out);
    else if (least < FEW_SEEDS)
        fputs("With two seeds the intervals over seeds are far too narrow. ", out);
    else if (least < ENOUGH_SEEDS)
        fprintf(out, "With %zu seeds the intervals over seeds are too narrow. ", least);
    return KS_OK;
}

ks_status ks_page_headline(void *data, FILE *out)
{
    const struct ks_page *page = data;
    size_t n = page->table->n_rows, learned = count_learned(page);
    struct cited cited;

    if (page->results->n_groups > 1)
        fputs("<p class=\"headline\"><b>These runs cannot answer that</b>: their spectra are not "
              "all comparable, so no correlation is computed (see the warnings).</p>\n",
              out);
    else if (2 * learned < n)
        print_not_learned(n, learned, out);
    else if (find_cited(page, &cited))
        print_answer(&cited, out);
    else
        fputs("<p class=\"headline\"><b>These runs cannot answer that</b>: too few architectures "
              "have <i>kappa_q99</i> for a rank correlation.</p>\n",
              out);
    return KS_OK;
}

ks_status ks_page_evidence(void *data, FILE *out)
{
    const struct ks_page *page = data;
    struct cited cited;

    fputs("<p>", out);
    print_extremes(page, out);
    if (page->results->n_groups == 1 && find_cited(page, &cited))
        print_evidence(&cited, out);
    fputs("</p>\n", out);
    return KS_OK;
}
