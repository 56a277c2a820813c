/* From a checkpoint to the operator: the loss, the coordinates, what the architecture says of the
 * null space, and the block of the operator on the coordinates. */
#include "pipeline/pipeline.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "lanczos/slq.h"
#include "net/arch.h"
#include "operators/primal.h"

ks_status ks_pipeline_name(const struct ks_pipeline *p, ks_status status)
{
    const struct ks_spectrum_options *o = p->options;
    const bool overflow = status == KS_NUMBER && o->products_f32 && !o->published;
    char text[1024];

    if (status == KS_OK)
        return status;
    snprintf(text, sizeof text, "%s", ks_error_text());
    return ks_fail(
        status, "%s: %s%s", p->path, text,
        overflow ? ": products are in float32, which overflows at 3e38; try --precision f64" : "");
}

/* --- the problem --- */

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

void ks_pipeline_fill_problem(struct ks_pipeline *p, int layer)
{
    const struct ks_spectrum_options *o = p->options;
    struct ks_problem *q = &p->problem;

    q->checkpoint = p->checkpoint;
    q->kind = o->kind;
    q->products_f32 = o->products_f32;
    q->products = o->products;
    q->evaluation = o->batchnorm == KS_BATCHNORM_EVAL;
    q->loss_rows_only = o->batchnorm == KS_BATCHNORM_LOSS;
    q->weight_decay = o->weight_decay;
    q->scale = o->scale;
    q->critic = o->critic;
    q->layer = layer;
    q->arrays = *o->arrays ? o->arrays : NULL;
}

ks_status ks_pipeline_pose_loss(struct ks_pipeline *p, int layer)
{
    const struct ks_spectrum_options *o = p->options;
    struct ks_problem *q = &p->problem;

    ks_pipeline_fill_problem(p, layer);
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

/* Also after the gradient, which has the scale of the loss. */
ks_status ks_pipeline_pose_products(struct ks_pipeline *p)
{
    if (p->options->published) /* the published code divides its products by N twice */
        p->problem.scale /= (double)ks_problem_minibatches(&p->problem);
    return ks_null_space_new(&p->problem, p->options->kind, p->selection, &p->space);
}

ks_status ks_pipeline_pose(struct ks_pipeline *p, int layer)
{
    KS_TRY(ks_pipeline_pose_loss(p, layer));
    return ks_pipeline_pose_products(p);
}

/* --- the operator --- */

/* The operator of the selected coordinates, by products of `full`, which the first call makes. */
ks_status ks_pipeline_make_block(struct ks_pipeline *p)
{
    if (!p->full)
        KS_TRY(ks_kind_new(p->options->kind, &p->problem, p->options->products_f32, &p->full));
    return ks_block_new(ks_operator_share(p->full), p->selection, &p->a);
}

ks_status ks_pipeline_make_operator(struct ks_pipeline *p)
{
    struct ks_budget *b = &p->budget;
    size_t limit;

    KS_TRY(ks_budget_divide(p));
    KS_TRY(ks_pipeline_make_block(p));
    ks_monitor_set(p);
    limit = b->kept;
    KS_TRY(ks_operator_prepare(p->a, limit));
    b->kept = ks_operator_kept(p->a);
    b->spare = limit > b->kept ? limit - b->kept : 0;
    return KS_OK;
}

/* --- what the statistics need --- */

bool ks_pipeline_is_short(const struct ks_pipeline *p)
{
    return p->early_error.excess > 1;
}

bool ks_pipeline_has_certificates(const struct ks_pipeline *p)
{
    return !p->options->exact && !p->options->published;
}

bool ks_pipeline_measures_rounding(const struct ks_spectrum_options *o)
{
    return o->published && o->certificates && !o->exact;
}

struct ks_statistics_inputs ks_pipeline_terms(const struct ks_pipeline *p)
{
    const struct ks_spectrum_options *o = p->options;
    const struct ks_operator_kind *kind = p->problem.kind;
    struct ks_statistics_inputs inputs = {
        .n = p->budget.dimension,
        .epsilon = o->products_f32 ? FLT_EPSILON : DBL_EPSILON,
        .basis_epsilon = p->budget.basis_f32 ? FLT_EPSILON : DBL_EPSILON,
        .exact_error = p->exact_error,
        .gradient = o->gradient_probe,
        .count_above = o->count_above,
        .certificates = ks_pipeline_has_certificates(p) ? &p->certificates : NULL,
        .trace = p->trace.rounds > 0 ? &p->trace : NULL,
        .published = o->published};

    if (kind) {
        inputs.minibatches = (double)ks_problem_minibatches(&p->problem);
        inputs.shift = p->space->shift;
        inputs.null = &p->null;
        inputs.operator_rank = kind->operator_rank ? kind->operator_rank(&p->problem) : 0;
    }
    return inputs;
}
