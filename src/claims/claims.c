#include "claims/claims.h"

#include <math.h>
#include <string.h>

#include "results/p_values.h"

const char *const ks_verdict_names[KS_VERDICTS] = {"supported",          "not supported",
                                                   "not decided",        "same direction",
                                                   "opposite direction", "not resolved"};

static const double LEVEL = 0.05; /* of the adjusted p */

static ks_status find(const struct ks_claim_question *q, struct ks_finding *f)
{
    static ks_status (*const find_by[])(const struct ks_claim_question *, struct ks_finding *) = {
        [KS_CLAIM_PAIRS] = ks_find_pairs,
        [KS_CLAIM_LOWEST] = ks_find_lowest,
        [KS_CLAIM_CORRELATION] = ks_find_correlation,
        [KS_CLAIM_CONSTANT] = ks_find_constancy,
        [KS_CLAIM_FAR_BELOW] = ks_find_far_below,
        [KS_CLAIM_NEAR] = ks_find_near,
        [KS_CLAIM_EXISTS] = ks_find_existence,
    };

    *f = (struct ks_finding){.effect_low = NAN,
                             .effect_high = NAN,
                             .theta = ks_paper_claim_theta(q->claim, q->statistic),
                             .p = NAN,
                             .within = NAN};
    return find_by[q->claim->kind](q, f);
}

static ks_status judge_one(const struct ks_results *r, size_t resamples, struct ks_claim_row *row)
{
    const struct ks_claim_source source = {row->claim->quantity, row->statistic,
                                           row->claim->summary};
    struct ks_claim_values values;
    const struct ks_claim_question question = {row->claim, row->statistic, r, resamples, &values};
    ks_status status = ks_claim_values_find(r, &source, &values);

    if (status == KS_OK)
        status = find(&question, &row->found);
    row->values = values.most;
    ks_claim_values_free(&values);
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

ks_status ks_claims_judge(const struct ks_results *r, size_t resamples, struct ks_claims *claims)
{
    size_t architecture[KS_JUDGED];

    *claims = (struct ks_claims){
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
            claims->skipped[c] = claims->skipped[c] || (needed[k] && claims->lacks[k]);
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
