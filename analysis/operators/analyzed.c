#include "operators/analyzed.h"

ks_status ks_analyzed_wide(const struct ks_analyzed *analyzed, const struct ks_team *team,
                           size_t memory, struct ks_operator **wide)
{
    struct ks_operator *full = NULL, *block = NULL;
    ks_status status;

    *wide = NULL;
    KS_TRY(analyzed->kind->new_f64(&analyzed->problem, &full));
    KS_TRY(ks_block_new(full, analyzed->selection, &block));
    KS_TRY(ks_team_operator_new(block, team, wide));
    status = ks_operator_prepare(*wide, memory);
    if (status != KS_OK) {
        ks_operator_free(*wide);
        *wide = NULL;
    }
    return status;
}

void ks_analyzed_clear(struct ks_analyzed *analyzed)
{
    ks_null_space_free(analyzed->space);
    ks_selection_free(analyzed->selection);
    analyzed->space = NULL, analyzed->selection = NULL;
}
