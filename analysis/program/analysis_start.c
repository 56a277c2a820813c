/* The first stages of an analysis: from the checkpoint's file to the operator. */
#include "program/stages.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/say.h"
#include "io/scout.h"
#include "lanczos/slq.h"
#include "operators/primal.h"
#include "program/distribute.h"
#include "program/foreign.h"
#include "program/reference_check.h"

bool ks_is_leader(const struct ks_analysis *a)
{
    return ks_team_rank(a->world) == 0;
}

ks_status ks_name_checkpoint(const struct ks_analysis *a, ks_status status)
{
    char text[1024];

    if (status == KS_OK)
        return KS_OK;
    snprintf(text, sizeof text, "%s", ks_error_text());
    return ks_fail(status, "%s: %s", a->path, text);
}

ks_status ks_on_all(struct ks_analysis *a, ks_stage *stage)
{
    return ks_team_agree(a->world, ks_name_checkpoint(a, stage(a)));
}

ks_status ks_on_leader(struct ks_analysis *a, ks_stage *stage)
{
    return ks_team_agree(a->world, ks_is_leader(a) ? stage(a) : KS_OK);
}

/* --- the checkpoint --- */

/* Moves the targets that the options ask for to `target`, and frees the others. */
static ks_status choose_targets(struct ks_analysis *a)
{
    const struct ks_options *o = a->options;
    struct ks_checkpoint *c = a->checkpoint;

    if (o->rewards == KS_REWARDS_RAW && !c->target_raw)
        return ks_fail(KS_FORMAT,
                       "%s: --rewards raw: expected the dataset /batch/target_raw, found none",
                       a->path);
    a->analyzed.raw = o->rewards != KS_REWARDS_NORMALIZED && c->target_raw;
    if (a->analyzed.raw) {
        free(c->target);
        c->target = c->target_raw;
    } else {
        free(c->target_raw);
    }
    c->target_raw = NULL;
    if (o->compat && !a->analyzed.raw && !a->quiet)
        ks_say("%s: --compat xqc: the checkpoint has no targets from raw rewards "
               "(/batch/target_raw): those from normalized rewards (/batch/target) are used",
               a->path);
    return KS_OK;
}

/* Has the files that the user gave read by a scout. */
static ks_status scout(const struct ks_analysis *a)
{
    const struct ks_options *o = a->options;
    const double memory = ks_budget_limit(o, a->world, 0);

    KS_TRY(ks_foreign_check(a->path));
    if (a->trusts_files)
        return KS_OK;
    KS_TRY(ks_scout(a->path, memory));
    return o->apply ? ks_scout(o->apply, memory) : KS_OK;
}

static ks_status read_file(struct ks_analysis *a)
{
    const size_t batches = a->options->batches;
    ks_status status;
    double bytes;

    KS_TRY(scout(a));
    KS_TRY(ks_checkpoint_bytes(a->path, &bytes));
    KS_TRY(ks_budget_check(a->options, a->world, a->path, bytes));
    status = ks_checkpoint_read_loss(a->path, &a->checkpoint);
    if (status == KS_MEMORY) /* an allocation does not know for which file it is */
        return ks_name_checkpoint(a, status);
    KS_TRY(status);
    a->minibatches = batches > 0 ? batches : a->checkpoint->minibatches;
    if (a->minibatches > a->checkpoint->minibatches)
        return ks_fail(KS_USAGE, "%s: --batches: expected 1 to %zu, found %zu", a->path,
                       a->checkpoint->minibatches, batches);
    status = ks_reference_check(a, bytes);
    if (status == KS_MEMORY)
        return ks_name_checkpoint(a, status);
    KS_TRY(status);
    KS_TRY(choose_targets(a));
    return ks_sha256_file(a->path, a->analyzed.digest);
}

/* The probes that groups of ranks can work on side by side; with tolerances they follow each
 * other. */
static size_t count_probes(const struct ks_options *o)
{
    return o->exact || o->apply || o->gradient || o->eigenvectors > 0 || o->tolerances.n > 0
               ? 1
               : o->probes + o->gradient_probe;
}

ks_status ks_analysis_read(struct ks_analysis *a)
{
    const size_t size = (size_t)ks_team_size(a->world);
    struct ks_analyzed *analyzed = &a->analyzed;

    a->allocated_before = ks_alloc_total();
    a->layer = a->options->layer;
    *analyzed = (struct ks_analyzed){.path = a->path,
                                     .kind = a->options->kind,
                                     .single = a->options->single,
                                     .published = a->options->compat};
    KS_TRY(ks_on_leader(a, read_file));
    ks_team_broadcast(a->world, 0, sizeof a->minibatches, &a->minibatches);
    ks_team_broadcast(a->world, 0, sizeof analyzed->digest, analyzed->digest);
    ks_team_broadcast(a->world, 0, sizeof analyzed->raw, &analyzed->raw);
    a->groups = ks_distribute_groups(size, count_probes(a->options), a->minibatches);
    KS_TRY(ks_team_split(a->world, ks_slq_group(a->world, ks_team_rank(a->world), a->groups),
                         &a->team));
    KS_TRY(ks_name_checkpoint(
        a, ks_distribute_checkpoint(a->world, &a->team, a->minibatches, &a->checkpoint)));
    analyzed->ranks = ks_team_size(&a->team);
    analyzed->problem.minibatches = size > 1 ? a->checkpoint->minibatches : a->minibatches;
    analyzed->problem.other_minibatches = a->minibatches - analyzed->problem.minibatches;
    return KS_OK;
}

/* --- the problem --- */

/* --layer 02_dense: the layer with this number must be a dense. */
static ks_status check_layer_kind(const struct ks_analysis *a)
{
    const struct KS(arch) *arch = a->checkpoint->critic.arch;
    const char *kind = a->options->layer_kind;

    for (size_t i = 0; kind && i < arch->n_layers; i++) {
        const struct KS(layer) *layer = &arch->layer[i];

        if (layer->kind->uncounted || (int)layer->number != a->layer)
            continue;
        if (strcmp(layer->kind->name, kind) != 0)
            return ks_fail(KS_USAGE, "--layer: expected %02d_%s, found %02d_%s", a->layer,
                           layer->kind->name, a->layer, kind);
    }
    return KS_OK;
}

static ks_status pose_loss(struct ks_analysis *a)
{
    const struct ks_options *o = a->options;
    struct ks_problem *problem = &a->analyzed.problem;

    problem->checkpoint = a->checkpoint;
    problem->omits_decay = ks_team_rank(&a->team) > 0;
    problem->evaluation = o->evaluation;
    problem->loss_rows_only = o->loss_rows_only;
    problem->weight_decay = o->weight_decay;
    problem->scale = o->scale;
    problem->critic = o->critic;
    problem->layer = a->layer;
    KS_TRY(check_layer_kind(a));
    KS_TRY(ks_selection_new(problem, o->kind->moving, &a->analyzed.selection));
    a->budget.dimension = a->analyzed.selection->n;
    if (o->exact && a->analyzed.selection->n > KS_EXACT_LIMIT)
        return ks_fail(KS_USAGE,
                       "--exact: expected at most %d parameters, found %zu: without --exact the "
                       "spectrum is estimated",
                       KS_EXACT_LIMIT, a->analyzed.selection->n);
    return KS_OK;
}

ks_status ks_analysis_pose(struct ks_analysis *a)
{
    return ks_on_all(a, pose_loss);
}

static ks_status pose_products(struct ks_analysis *a)
{
    struct ks_problem *problem = &a->analyzed.problem;

    if (a->options->compat) /* the published code divides its products by N twice */
        problem->scale /= (double)ks_problem_minibatches(problem);
    return ks_null_space_new(problem, a->options->kind, a->analyzed.selection, &a->analyzed.space);
}

ks_status ks_analysis_pose_products(struct ks_analysis *a)
{
    return ks_on_all(a, pose_products);
}

/* --- the operator --- */

static ks_status make_block(struct ks_analysis *a)
{
    const struct ks_options *o = a->options;
    struct ks_operator *shared = NULL, *block = NULL;

    if (!a->full)
        KS_TRY((o->single ? o->kind->new_f32 : o->kind->new_f64)(&a->analyzed.problem, &a->full));
    KS_TRY(ks_operator_share(a->full, &shared));
    KS_TRY(ks_block_new(shared, a->analyzed.selection, &block));
    return ks_team_operator_new(block, &a->team, &a->block);
}

ks_status ks_analysis_make_block(struct ks_analysis *a)
{
    return ks_on_all(a, make_block);
}

/* Before the operator is made: the memory in use, plus the least that the operator will need. */
static ks_status estimate_fixed(struct ks_analysis *a)
{
    double least;

    KS_TRY(ks_primal_bytes(&a->analyzed.problem, a->options->single, &least));
    a->budget.fixed = ks_alloc_total() - a->allocated_before + (size_t)fmin(least, 0x1p62);
    return KS_OK;
}

static ks_status keep_activations(struct ks_analysis *a)
{
    const size_t before = ks_alloc_total(), limit = a->budget.kept;

    KS_TRY(ks_operator_prepare(a->block, limit));
    a->budget.kept = ks_alloc_total() - before;
    a->budget.spare = limit > a->budget.kept ? limit - a->budget.kept : 0;
    return KS_OK;
}

/* The monitor of one spectrum. --layers and --apply set another number of products. */
static struct ks_monitor new_monitor(const struct ks_analysis *a)
{
    const struct ks_options *o = a->options;
    const size_t n = a->budget.dimension, null_products = ks_null_products(a->analyzed.space);
    const size_t probes = (o->probes + o->gradient_probe + a->groups - 1) / a->groups;

    return (struct ks_monitor){.checkpoint = a->path,
                               .dimension = n,
                               .products = (o->exact ? n : o->order * probes) + null_products,
                               .null_products = null_products,
                               .probes = o->probes,
                               .minibatches = a->analyzed.problem.minibatches,
                               .order = o->order,
                               .groups = a->groups,
                               .budget = &a->budget,
                               .at_most = o->tolerances.n > 0 || o->eigenvectors > 0,
                               .quiet = a->quiet};
}

ks_status ks_analysis_check_memory(struct ks_analysis *a)
{
    KS_TRY(ks_on_all(a, estimate_fixed));
    return ks_budget_divide(a->options, a->world, &a->team, &a->analyzed, &a->budget);
}

ks_status ks_analysis_make_operator(struct ks_analysis *a)
{
    const struct ks_options *o = a->options;

    KS_TRY(ks_analysis_check_memory(a));
    KS_TRY(ks_analysis_make_block(a));
    a->budget.fixed = ks_alloc_total() - a->allocated_before;
    KS_TRY(ks_budget_divide(o, a->world, &a->team, &a->analyzed, &a->budget));
    if (o->layers) /* `full` stays while a layer's bounds are certified: half is for the products */
        a->budget.kept /= 2;
    a->monitor = new_monitor(a);
    return ks_on_all(a, keep_activations);
}

/* --- the end --- */

void ks_analysis_clear_block(struct ks_analysis *a)
{
    ks_monitor_end(&a->monitor);
    ks_measurement_clear(&a->measurement);
    ks_gradient_bounds_clear(&a->bounds);
    a->bounds = (struct ks_gradient_bounds){.rows = 0};
    ks_operator_free(a->block);
    a->block = NULL;
    ks_analyzed_clear(&a->analyzed);
}

void ks_analysis_clear(struct ks_analysis *a)
{
    ks_analysis_clear_block(a);
    ks_operator_free(a->full);
    free(a->rows);
    ks_checkpoint_free(a->checkpoint);
    ks_team_leave(&a->team);
}
