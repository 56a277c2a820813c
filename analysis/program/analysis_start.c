/* The first stages of an analysis: checkpoint, problem, operator. */
#include "program/analysis.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/memory.h"
#include "core/say.h"
#include "lanczos/slq.h"
#include "operators/primal.h"
#include "program/distribute.h"
#include "program/outputs.h"
#include "program/provenance.h"

void ks_analysis_clear_block(struct ks_analysis *analysis)
{
    ks_monitor_end(&analysis->watch);
    ks_spectrum_free(analysis->spectrum);
    free(analysis->gradient);
    ks_certificates_clear(&analysis->certificates);
    ks_null_basis_free(analysis->basis);
    ks_null_clear(&analysis->null);
    ks_null_space_free(analysis->space);
    ks_operator_free(analysis->a);
    ks_selection_free(analysis->selection);
    analysis->spectrum = NULL, analysis->gradient = NULL, analysis->basis = NULL,
    analysis->space = NULL;
    analysis->a = NULL, analysis->selection = NULL;
    analysis->certificates = (struct ks_certificates){.n = 0};
    analysis->null = (struct ks_null){.dimension = 0};
}

void ks_analysis_clear(struct ks_analysis *analysis)
{
    ks_analysis_clear_block(analysis);
    ks_operator_free(analysis->whole);
    free(analysis->rows);
    free(analysis->stem);
    free(analysis->key);
    ks_checkpoint_free(analysis->checkpoint);
    ks_team_leave(&analysis->team);
}

bool ks_analysis_leads(const struct ks_analysis *analysis)
{
    return ks_team_rank(analysis->world) == 0;
}

/* Leaves the targets that were asked for in the place of /batch/target's. */
static ks_status choose_targets(const struct ks_options *o, struct ks_analysis *analysis)
{
    struct ks_checkpoint *c = analysis->checkpoint;

    if (o->rewards == KS_REWARDS_RAW && !c->target_raw)
        return ks_fail(KS_FORMAT,
                       "%s: --rewards raw: expected the dataset /batch/target_raw, found none",
                       analysis->path);
    analysis->subject.raw = o->rewards != KS_REWARDS_NORMALIZED && c->target_raw;
    if (analysis->subject.raw) {
        free(c->target);
        c->target = c->target_raw;
    } else {
        free(c->target_raw);
    }
    c->target_raw = NULL;
    if (o->compat && !analysis->subject.raw && !analysis->quiet)
        ks_say("%s: --compat xqc: there is no /batch/target_raw with targets from raw rewards: "
               "those of /batch/target, from normalized rewards, are used instead",
               analysis->path);
    return KS_OK;
}

static ks_status read_checkpoint(const struct ks_options *o, struct ks_analysis *analysis,
                                 size_t *batches)
{
    double bytes;

    KS_TRY(ks_checkpoint_measure(analysis->path, &bytes));
    KS_TRY(ks_budget_check(o, analysis->world, analysis->path, bytes));
    KS_TRY(ks_checkpoint_read_loss(analysis->path, &analysis->checkpoint));
    *batches = o->batches > 0 ? o->batches : analysis->checkpoint->minibatches;
    if (*batches > analysis->checkpoint->minibatches)
        return ks_fail(KS_USAGE, "%s: --batches: expected 1 to %zu, found %zu", analysis->path,
                       analysis->checkpoint->minibatches, o->batches);
    KS_TRY(choose_targets(o, analysis));
    return ks_sha256_file(analysis->path, analysis->subject.digest);
}

ks_status ks_analysis_read(const struct ks_options *o, struct ks_analysis *analysis)
{
    bool takes_steps = !o->exact && !o->apply && !o->gradient;
    size_t batches = 0, size = (size_t)ks_team_size(analysis->world);

    analysis->subject = (struct ks_subject){.path = analysis->path, .budget = &analysis->budget};
    KS_TRY(ks_team_agree(analysis->world, ks_analysis_leads(analysis)
                                              ? read_checkpoint(o, analysis, &batches)
                                              : KS_OK));
    ks_team_broadcast(analysis->world, 0, sizeof batches, &batches);
    ks_team_broadcast(analysis->world, 0, sizeof analysis->subject.digest,
                      analysis->subject.digest);
    ks_team_broadcast(analysis->world, 0, sizeof analysis->subject.raw, &analysis->subject.raw);
    analysis->groups = ks_distribute_groups(size, takes_steps ? o->probes + o->gradient_probe : 1,
                                            batches);
    KS_TRY(ks_team_split(
        analysis->world,
        ks_slq_group(analysis->world, ks_team_rank(analysis->world), analysis->groups),
        &analysis->team));
    KS_TRY(
        ks_distribute_checkpoint(analysis->world, &analysis->team, batches, &analysis->checkpoint));
    analysis->subject.processes = ks_team_size(&analysis->team);
    analysis->subject.problem.minibatches = size > 1 ? analysis->checkpoint->minibatches : batches;
    analysis->subject.problem.other_minibatches = batches - analysis->subject.problem.minibatches;
    return KS_OK;
}

ks_status ks_analysis_pose(const struct ks_options *o, struct ks_analysis *analysis)
{
    struct ks_subject *subject = &analysis->subject;
    struct ks_problem *problem = &subject->problem;

    problem->checkpoint = analysis->checkpoint;
    problem->omits_decay = ks_team_rank(&analysis->team) > 0;
    problem->evaluation = o->evaluation;
    problem->weight_decay = o->weight_decay;
    problem->scale = o->scale;
    problem->critic = o->critic;
    problem->layer = o->layer;
    if (o->compat) /* the published product is divided by N twice */
        problem->scale /= (double)ks_problem_minibatches(problem);
    KS_TRY(ks_selection_new(problem, o->kind->moving, &analysis->selection));
    KS_TRY(ks_null_space_new(problem, o->kind, analysis->selection, &analysis->space));
    subject->dimension = analysis->selection->n;
    subject->normals = analysis->space->normals;
    if (o->exact && subject->dimension > KS_EXACT_LIMIT)
        return ks_fail(KS_USAGE,
                       "%s: --exact: expected at most %d parameters, found %zu; without it "
                       "the spectrum is estimated",
                       analysis->path, KS_EXACT_LIMIT, subject->dimension);
    return KS_OK;
}

ks_status ks_analysis_block(const struct ks_options *o, struct ks_analysis *analysis)
{
    struct ks_operator *shared = NULL, *block = NULL;

    if (!analysis->whole)
        KS_TRY((o->single ? o->kind->new_f32 : o->kind->new_f64)(&analysis->subject.problem,
                                                                 &analysis->whole));
    KS_TRY(ks_operator_share(analysis->whole, &shared));
    KS_TRY(ks_block_new(shared, analysis->selection, &block));
    return ks_team_operator_new(block, &analysis->team, &analysis->a);
}

/* The operator, ready for products within what the budget leaves to it. `start`: ks_alloc_total()
 * before the checkpoint was read. */
ks_status ks_analysis_prepare(const struct ks_options *o, size_t start,
                              struct ks_analysis *analysis)
{
    struct ks_budget *budget = &analysis->budget;
    size_t probes = (o->probes + o->gradient_probe + analysis->groups - 1) / analysis->groups;
    size_t n = analysis->subject.dimension;
    double least;

    KS_TRY(ks_team_agree(analysis->world,
                         ks_primal_bytes(&analysis->subject.problem, o->single, &least)));
    budget->fixed = ks_alloc_total() - start + (size_t)fmin(least, 0x1p62);
    KS_TRY(ks_budget_divide(o, analysis->world, &analysis->team, &analysis->subject,
                            budget)); /* may refuse */
    KS_TRY(ks_team_agree(analysis->world, ks_analysis_block(o, analysis)));
    budget->fixed = ks_alloc_total() - start;
    KS_TRY(ks_budget_divide(o, analysis->world, &analysis->team, &analysis->subject, budget));
    if (o->layers) /* `whole` stays while a layer's bounds are certified: half of it is for those */
        budget->kept /= 2;
    analysis->watch = (struct ks_monitor){.checkpoint = analysis->path,
                                          .dimension = n,
                                          .products = (o->exact ? n : o->order * probes) +
                                                      ks_null_products(analysis->space),
                                          .before = ks_null_products(analysis->space),
                                          .probes = o->probes,
                                          .order = o->order,
                                          .groups = analysis->groups,
                                          .budget = budget,
                                          .quiet = analysis->quiet};
    start = ks_alloc_total();
    KS_TRY(ks_team_agree(analysis->world, ks_operator_prepare(analysis->a, budget->kept)));
    budget->kept = ks_alloc_total() - start;
    return KS_OK;
}

ks_status ks_analysis_name_basis(const struct ks_options *o, struct ks_analysis *analysis)
{
    if (!o->keep_basis)
        return KS_OK;
    KS_TRY(ks_team_agree(analysis->world, ks_analysis_leads(analysis)
                                              ? ks_output_stem(analysis->output, &analysis->stem)
                                              : KS_OK));
    KS_TRY(ks_team_broadcast_string(analysis->world, &analysis->stem));
    return ks_team_agree(analysis->world,
                         ks_provenance_fingerprint(o, &analysis->subject, &analysis->key));
}
