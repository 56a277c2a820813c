#include "program/bounds.h"

#include <stdlib.h>

#include "core/memory.h"
#include "program/stages.h"

static bool has_statistics(const struct ks_analysis *a)
{
    return !a->options->compat && a->layer < 0;
}

static ks_status measure(struct ks_analysis *a)
{
    return ks_gradient_bounds_measure(&a->analyzed.problem, (size_t)ks_team_rank(&a->team),
                                      (size_t)ks_team_size(&a->team), &a->bounds);
}

/* Completes the arrays, each of which a rank has filled in for its minibatches. */
static ks_status sum(struct ks_analysis *a)
{
    struct ks_gradient_bounds *b = &a->bounds;
    double *scratch = NULL;
    ks_status status = ks_alloc(ks_team_scratch(&a->team, b->rows), sizeof *scratch, &scratch);

    KS_GO(ks_team_agree(a->world, ks_name_checkpoint(a, status)));
    ks_team_sum_vector(&a->team, b->rows, scratch, b->output);
    ks_team_sum(&a->team, b->pairs, b->gradient);
    ks_team_sum(&a->team, b->pairs, b->hidden);
    ks_team_sum(&a->team, b->pairs, b->radial);
    ks_team_sum(&a->team, KS_JACOBIAN_ROWS, b->jacobian);
    ks_team_sum(&a->team, KS_JACOBIAN_ROWS, b->hidden_jacobian);
done:
    free(scratch);
    return status;
}

ks_status ks_bounds_measure(struct ks_analysis *a)
{
    if (!has_statistics(a) || !ks_gradient_bounds_exist(&a->analyzed.problem))
        return KS_OK;
    KS_TRY(ks_on_all(a, measure));
    return sum(a);
}

ks_status ks_bounds_add(struct ks_analysis *a)
{
    return has_statistics(a)
               ? ks_gradient_bounds_add(&a->bounds, &a->measurement.spectrum->statistics)
               : KS_OK;
}
