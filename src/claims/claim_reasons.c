/* Why a claim is not resolved or not decided, in a few words. */
#include <stdio.h>

#include "claims/claims.h"

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
