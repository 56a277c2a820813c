#include "claims/claims.h"

#include <stdio.h>

#include "results/correlation.h"

const char *const ks_verdict_names[KS_VERDICTS] = {"supported",          "not supported",
                                                   "not decided",        "same direction",
                                                   "opposite direction", "not resolved"};

static const double LEVEL = 0.05; /* of the adjusted p */

static ks_status judge_one(const struct ks_results *r, size_t resamples, struct ks_claim_row *row)
{
    const struct ks_claim_source source = {row->claim->quantity, row->statistic,
                                           row->claim->summary};
    struct ks_claim_values values;
    const struct ks_claim_question question = {row->claim, row->statistic, r, resamples, &values};
    ks_status status = ks_claim_values_find(r, &source, &values);

    if (status == KS_OK)
        status = ks_claim_find(&question, &row->found);
    row->values = values.most;
    return status;
}

/* Holm's adjustment over the rows of a family and statistic. */
static ks_status adjust(struct ks_claims *claims, enum ks_claim_family family,
                        enum ks_claim_statistic statistic)
{
    double p[KS_CLAIMS], adjusted[KS_CLAIMS];
    struct ks_claim_row *row[KS_CLAIMS];
    size_t n = 0;

    for (size_t i = 0; i < claims->n; i++)
        if (claims->row[i].claim->family == family && claims->row[i].statistic == statistic) {
            row[n] = &claims->row[i];
            p[n++] = claims->row[i].found.p;
        }
    KS_TRY(ks_holm(n, p, adjusted));
    for (size_t i = 0; i < n; i++)
        row[i]->p_holm = adjusted[i];
    return KS_OK;
}

/* The word; a claim that no seed can judge goes by the seeds of the study. */
static enum ks_verdict find_verdict(const struct ks_claim_row *row, size_t seeds_of_study)
{
    const struct ks_finding *f = &row->found;
    size_t seeds = f->seeds > 0 ? f->seeds : seeds_of_study;
    bool significant = row->p_holm <= LEVEL; /* false for NaN */

    if (seeds < KS_CLAIM_SEEDS)
        return f->in_favour ? KS_SAME_DIRECTION
               : f->against ? KS_OPPOSITE_DIRECTION
                            : KS_NOT_RESOLVED;
    return f->in_favour && (significant || f->proved)           ? KS_SUPPORTED
           : f->against && (significant || !f->against_needs_p) ? KS_NOT_SUPPORTED
                                                                : KS_NOT_DECIDED;
}

/* Whether its spectra are not comparable with the spectra of the first group. */
static bool is_apart(const struct ks_results *r, size_t architecture)
{
    return r->conditions && r->conditions[architecture].group > 1;
}

ks_status ks_claims_judge(const struct ks_results *r, size_t resamples, struct ks_claims *claims)
{
    size_t architecture[KS_JUDGED];

    *claims = (struct ks_claims){
        .elsewhere = !ks_study_trains(r->study),
        .seeds = r->study->n_seeds,
        .checkpoints = ks_claim_checkpoints(r),
        .has_control = ks_claim_analysis(r->study, KS_CLAIM_CONTROL) < r->study->n_analyses,
        .has_paper = ks_claim_analysis(r->study, KS_CLAIM_PAPER) < r->study->n_analyses};
    ks_twelve_find(r->study, architecture);
    for (size_t k = 0; k < KS_JUDGED; k++)
        claims->lacks[k] = architecture[k] == r->study->n_architectures;
    for (size_t c = 0; c < KS_CLAIMS; c++) {
        const struct ks_paper_claim *claim = &ks_paper_claims[c];
        bool needed[KS_JUDGED];

        ks_paper_claim_needs(claim, needed);
        for (size_t k = 0; k < KS_JUDGED; k++)
            claims->skipped[c] = claims->skipped[c] ||
                                 (needed[k] && (claims->lacks[k] || is_apart(r, architecture[k])));
        for (enum ks_claim_statistic s = 0; s < KS_CLAIM_STATISTICS; s++) {
            if (claims->skipped[c] || !ks_paper_claim_has(claim, s) ||
                (s == KS_CLAIM_CONTROL && !claims->has_control))
                continue;
            claims->row[claims->n] = (struct ks_claim_row){.claim = claim, .statistic = s};
            KS_TRY(judge_one(r, resamples, &claims->row[claims->n++]));
        }
    }
    for (enum ks_claim_family f = 0; f < KS_CLAIM_FAMILIES; f++)
        for (enum ks_claim_statistic s = 0; s < KS_CLAIM_STATISTICS; s++)
            KS_TRY(adjust(claims, f, s));
    for (size_t i = 0; i < claims->n; i++)
        claims->row[i].verdict = find_verdict(&claims->row[i], r->study->n_seeds);
    return KS_OK;
}

const struct ks_claim_row *ks_claims_row(const struct ks_claims *claims,
                                         const struct ks_paper_claim *claim,
                                         enum ks_claim_statistic statistic)
{
    for (size_t i = 0; i < claims->n; i++)
        if (claims->row[i].claim == claim && claims->row[i].statistic == statistic)
            return &claims->row[i];
    return NULL;
}

const char *ks_claims_survival(const struct ks_claims *claims, const struct ks_paper_claim *claim)
{
    const struct ks_claim_row *paper = ks_claims_row(claims, claim, KS_CLAIM_PAPER),
                              *sound = ks_claims_row(claims, claim, KS_CLAIM_SOUND);

    if (!paper || !sound || paper->verdict != KS_SUPPORTED)
        return "open";
    return sound->verdict == KS_SUPPORTED       ? "survives"
           : sound->verdict == KS_NOT_SUPPORTED ? "does not survive"
                                                : "open";
}

/* --- why a claim is not resolved or not decided, in a few words --- */

/* No seed has all the runs that the claim needs. */
static void explain_nothing(const struct ks_claims *claims, const struct ks_claim_row *row,
                            char text[KS_CLAIM_REASON])
{
    static const char *const numbers[KS_CLAIM_VALUES] = {"no", "one", "two", "three"};
    bool number = ks_claim_is_number(row->claim->quantity);

    if (row->statistic == KS_CLAIM_PAPER && !number && !claims->has_paper)
        snprintf(text, KS_CLAIM_REASON, "no analysis with compat = xqc");
    else if (row->values < KS_CLAIM_VALUES && row->claim->quantity != KS_CLAIM_RETURN)
        snprintf(text, KS_CLAIM_REASON, "%s %s%s%s; needs four", numbers[row->values],
                 number ? "row" : "checkpoint", row->values == 1 ? "" : "s",
                 number ? " of progress.csv" : "");
    else
        snprintf(text, KS_CLAIM_REASON, "no seed is complete");
}

void ks_claims_reason(const struct ks_claims *claims, const struct ks_claim_row *row,
                      char text[KS_CLAIM_REASON])
{
    const struct ks_finding *f = &row->found;
    const char *seeds = f->seeds == 1 ? "one seed" : "two seeds";

    *text = '\0';
    if (row->verdict != KS_NOT_RESOLVED && row->verdict != KS_NOT_DECIDED)
        return;
    if (f->seeds == 0)
        explain_nothing(claims, row, text);
    else if (f->seeds < KS_CLAIM_SEEDS)
        snprintf(text, KS_CLAIM_REASON,
                 claims->seeds < KS_CLAIM_SEEDS ? "%s; direction unclear" : "%s; needs three",
                 seeds);
    else if (f->in_favour || f->against)
        snprintf(text, KS_CLAIM_REASON, "adjusted p above 0.05");
    else if (f->effect_low < f->theta && f->theta <= f->effect_high)
        snprintf(text, KS_CLAIM_REASON, "threshold inside the interval");
}

/* --- claims.csv --- */

void ks_claims_plot(const struct ks_paper_claim *claim, char text[KS_CLAIM_REASON])
{
    snprintf(text, KS_CLAIM_REASON, "Figure %zu and %s", claim->figure, ks_paper_claim_plot(claim));
}

void ks_claims_fill(const struct ks_claims *claims, struct ks_table *out)
{
    for (size_t i = 0; i < claims->n; i++) {
        const struct ks_claim_row *row = &claims->row[i];
        const struct ks_finding *f = &row->found;
        char plot[KS_CLAIM_REASON], reason[KS_CLAIM_REASON];

        ks_claims_plot(row->claim, plot);
        ks_claims_reason(claims, row, reason);
        ks_table_cells(
            out, KS_TEXT(row->claim->name), KS_TEXT(ks_claim_statistic_names[row->statistic]),
            KS_COUNT(f->seeds), KS_COUNT(f->units), KS_NUMBER(f->effect_low),
            KS_NUMBER(f->effect_high), KS_NUMBER(f->theta), KS_NUMBER(f->p), KS_NUMBER(row->p_holm),
            KS_TEXT(ks_verdict_names[row->verdict]), KS_TEXT(plot), KS_NUMBER(f->within),
            KS_TEXT(ks_claims_survival(claims, row->claim)),
            KS_TEXT(ks_claim_family_dates[row->claim->family]), KS_TEXT(*reason ? reason : "-"));
    }
}

/* --- standard output --- */

static const char *word_of(const struct ks_claims *claims, const struct ks_paper_claim *claim,
                           enum ks_claim_statistic statistic)
{
    const struct ks_claim_row *row = ks_claims_row(claims, claim, statistic);

    return row ? ks_verdict_names[row->verdict] : "-";
}

/* Prints the names of the claims that cannot be judged, and of the architectures that are missing.
 */
static void print_skipped(const struct ks_claims *claims, size_t skipped, FILE *out)
{
    const char *between = "";

    fprintf(out, "%zu of the paper's %d claims cannot be judged, because the study lacks ", skipped,
            KS_CLAIMS);
    for (size_t k = 0; k < KS_JUDGED; k++) {
        char name[16];

        ks_twelve_name(k, name);
        if (claims->lacks[k]) {
            fprintf(out, "%s%s", between, name);
            between = ", ";
        }
    }
    between = ": ";
    for (size_t i = 0; i < KS_CLAIMS && skipped < KS_CLAIMS; i++)
        if (claims->skipped[i]) {
            fprintf(out, "%s%s", between, ks_paper_claims[i].name);
            between = ", ";
        }
    fputs(".\n", out);
}

static void print_missing(const struct ks_claims *claims, FILE *out)
{
    size_t skipped = 0;

    for (size_t i = 0; i < KS_CLAIMS; i++)
        skipped += claims->skipped[i];
    if (skipped > 0 && !claims->elsewhere)
        print_skipped(claims, skipped, out);
    if (claims->n == 0)
        return;
    if (claims->seeds < KS_CLAIM_SEEDS)
        fprintf(out, "With fewer than %d seeds there are directions and no verdicts.\n",
                KS_CLAIM_SEEDS);
    if (claims->checkpoints < KS_CLAIM_VALUES)
        fprintf(out,
                "A run counts if it has %d checkpoints after the first update; the study has "
                "%zu so far.\n",
                KS_CLAIM_VALUES, claims->checkpoints);
    if (!claims->has_paper)
        fputs("The paper's statistic is that of an analysis [analyze xqc] with compat = xqc, which "
              "the study lacks.\n",
              out);
}

static void print_control(const struct ks_claims *claims, FILE *out)
{
    if (!claims->has_control || claims->n == 0)
        return;
    fputs("The sound statistic with batch normalization over the rows of the loss alone:\n", out);
    for (size_t i = 0; i < claims->n; i++)
        if (claims->row[i].statistic == KS_CLAIM_CONTROL)
            fprintf(out, "  %s: %s\n", claims->row[i].claim->name,
                    ks_verdict_names[claims->row[i].verdict]);
}

void ks_claims_print(const struct ks_claims *claims, FILE *out)
{
    enum { NAME = 29, WORD = 18 };

    if (claims->n == 0 && claims->elsewhere)
        return;
    putc('\n', out);
    if (claims->n > 0)
        fprintf(out, "%-*s  %-*s  %-*s  %-*s  %s\n", NAME, "claim of the paper", WORD,
                "paper's statistic", WORD, "sound statistic", WORD, "second sound one",
                "the claim");
    for (size_t i = 0; i < KS_CLAIMS && claims->n > 0; i++) {
        const struct ks_paper_claim *claim = &ks_paper_claims[i];

        if (!claims->skipped[i])
            fprintf(out, "%-*s  %-*s  %-*s  %-*s  %s\n", NAME, claim->name, WORD,
                    word_of(claims, claim, KS_CLAIM_PAPER), WORD,
                    word_of(claims, claim, KS_CLAIM_SOUND), WORD,
                    word_of(claims, claim, KS_CLAIM_SECOND), ks_claims_survival(claims, claim));
    }
    print_control(claims, out);
    print_missing(claims, out);
}
