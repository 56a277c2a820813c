/* From a checkpoint to the operator: the loss, the coordinates, what the architecture says of the
 * null space, and the block of the operator on the coordinates. */
#include "pipeline/stages.h"

#include <math.h>
#include <string.h>

#include "core/memory.h"
#include "lanczos/slq.h"
#include "net/arch.h"
#include "operators/primal.h"

/* --layer 02_dense: the layer with this number must be a dense. */
static ks_status check_layer_kind(const struct ks_pipeline *p, int number)
{
    const struct KS(arch) *arch = p->checkpoint->critic.arch;
    const char *kind = p->options->layer_kind;

    for (size_t i = 0; kind && i < arch->n_layers; i++) {
        const struct KS(layer) *layer = &arch->layer[i];

        if (layer->kind->uncounted || (int)layer->number != number)
            continue;
        if (strcmp(layer->kind->name, kind) != 0)
            return ks_fail(KS_USAGE, "--layer: expected %02d_%s, found %02d_%s", number,
                           layer->kind->name, number, kind);
    }
    return KS_OK;
}

static ks_status pose_loss(struct ks_pipeline *p, int layer)
{
    const struct ks_spectrum_options *o = p->options;
    struct ks_problem *q = &p->problem;

    q->checkpoint = p->checkpoint;
    q->kind = o->kind;
    q->products_f32 = o->products_f32;
    q->omits_decay = ks_team_rank(p->team) > 0;
    q->evaluation = o->evaluation;
    q->loss_rows_only = o->loss_rows_only;
    q->weight_decay = o->weight_decay;
    q->scale = o->scale;
    q->critic = o->critic;
    q->layer = layer;
    KS_TRY(check_layer_kind(p, layer));
    KS_TRY(ks_selection_new(q, o->kind->moving, &p->selection));
    q->selection = p->selection;
    p->budget.dimension = p->selection->n;
    if (o->exact && p->selection->n > KS_EXACT_LIMIT)
        return ks_fail(KS_USAGE,
                       "--exact: expected at most %d parameters, found %zu: without --exact the "
                       "spectrum is estimated",
                       KS_EXACT_LIMIT, p->selection->n);
    return KS_OK;
}

ks_status ks_pipeline_pose_loss(struct ks_pipeline *p, int layer)
{
    return ks_pipeline_agree(p, pose_loss(p, layer));
}

/* Also after the gradient, which has the scale of the loss. */
ks_status ks_pipeline_pose_products(struct ks_pipeline *p)
{
    if (p->options->published) /* the published code divides its products by N twice */
        p->problem.scale /= (double)ks_problem_minibatches(&p->problem);
    return ks_pipeline_agree(
        p, ks_null_space_new(&p->problem, p->options->kind, p->selection, &p->space));
}

ks_status ks_pipeline_pose(struct ks_pipeline *p)
{
    KS_TRY(ks_pipeline_pose_loss(p, p->options->layer));
    return ks_pipeline_pose_products(p);
}

/* --- the operator --- */

/* Before the operator is made: the memory in use, plus the least that the operator will need. */
ks_status ks_pipeline_check_memory(struct ks_pipeline *p)
{
    double least = 0;

    KS_TRY(ks_pipeline_agree(p, ks_primal_bytes(&p->problem, p->options->products_f32, &least)));
    p->budget.fixed = ks_alloc_total() - p->allocated_before + (size_t)fmin(least, 0x1p62);
    return ks_budget_divide(p);
}

/* The operator of the selected coordinates, by products of `full`, which the first call makes. */
ks_status ks_pipeline_make_block(struct ks_pipeline *p)
{
    const struct ks_operator_kind *kind = p->options->kind;
    struct ks_operator *shared = NULL, *block = NULL;

    if (!p->full)
        KS_TRY((p->options->products_f32 ? kind->new_f32 : kind->new_f64)(&p->problem, &p->full));
    KS_TRY(ks_operator_share(p->full, &shared));
    KS_TRY(ks_block_new(shared, p->selection, &block));
    return ks_team_operator_new(block, p->team, &p->a);
}

static ks_status keep_activations(struct ks_pipeline *p)
{
    const size_t before = ks_alloc_total(), limit = p->budget.kept;

    KS_TRY(ks_operator_prepare(p->a, limit));
    p->budget.kept = ks_alloc_total() - before;
    p->budget.spare = limit > p->budget.kept ? limit - p->budget.kept : 0;
    return KS_OK;
}

ks_status ks_pipeline_make_operator(struct ks_pipeline *p)
{
    KS_TRY(ks_pipeline_check_memory(p));
    KS_TRY(ks_pipeline_agree(p, ks_pipeline_make_block(p)));
    p->budget.fixed = ks_alloc_total() - p->allocated_before;
    KS_TRY(ks_budget_divide(p));
    if (p->by_layers) /* `full` stays while a layer's bounds are certified: half is for products */
        p->budget.kept /= 2;
    ks_monitor_set(p);
    return ks_pipeline_agree(p, keep_activations(p));
}
