/* The first stages of an analysis: checkpoint, problem, operator. */
#include "ks/job.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "ks/describe.h"
#include "ks/distribute.h"
#include "ks/memory.h"
#include "ks/outputs.h"
#include "ks/primal.h"
#include "ks/say.h"
#include "ks/slq.h"

void ks_job_clear_block(struct ks_job *job)
{
    ks_watch_end(&job->watch);
    ks_spectrum_free(job->spectrum);
    free(job->gradient);
    ks_certificates_clear(&job->certificates);
    ks_null_basis_free(job->basis);
    ks_null_clear(&job->null);
    ks_null_space_free(job->space);
    ks_operator_free(job->a);
    ks_selection_free(job->selection);
    job->spectrum = NULL, job->gradient = NULL, job->basis = NULL, job->space = NULL;
    job->a = NULL, job->selection = NULL;
    job->certificates = (struct ks_certificates){.n = 0};
    job->null = (struct ks_null){.dimension = 0};
}

void ks_job_clear(struct ks_job *job)
{
    ks_job_clear_block(job);
    ks_operator_free(job->whole);
    free(job->rows);
    free(job->stem);
    free(job->key);
    ks_checkpoint_free(job->checkpoint);
    ks_team_leave(&job->team);
}

bool ks_job_leads(const struct ks_job *job)
{
    return ks_team_rank(job->world) == 0;
}

/* Leaves the targets that were asked for in the place of /batch/target's. */
static ks_status choose_targets(const struct ks_analysis *o, struct ks_job *job)
{
    struct ks_checkpoint *c = job->checkpoint;

    if (o->rewards == KS_REWARDS_RAW && !c->target_raw)
        return ks_fail(KS_FORMAT,
                       "%s: --rewards raw: expected the dataset /batch/target_raw, found none",
                       job->path);
    job->subject.raw = o->rewards != KS_REWARDS_NORMALIZED && c->target_raw;
    if (job->subject.raw) {
        free(c->target);
        c->target = c->target_raw;
    } else {
        free(c->target_raw);
    }
    c->target_raw = NULL;
    if (o->compat && !job->subject.raw && !job->quiet)
        ks_say("%s: --compat xqc: there is no /batch/target_raw with targets from raw rewards: "
               "those of /batch/target, from normalized rewards, are used instead",
               job->path);
    return KS_OK;
}

static ks_status read_checkpoint(const struct ks_analysis *o, struct ks_job *job, size_t *batches)
{
    double bytes;

    KS_TRY(ks_checkpoint_measure(job->path, &bytes));
    KS_TRY(ks_budget_check(o, job->world, job->path, bytes));
    KS_TRY(ks_checkpoint_read(job->path, &job->checkpoint));
    *batches = o->batches > 0 ? o->batches : job->checkpoint->minibatches;
    if (*batches > job->checkpoint->minibatches)
        return ks_fail(KS_USAGE, "%s: --batches: expected 1 to %zu, found %zu", job->path,
                       job->checkpoint->minibatches, o->batches);
    KS_TRY(choose_targets(o, job));
    return ks_sha256_file(job->path, job->subject.digest);
}

ks_status ks_job_read(const struct ks_analysis *o, struct ks_job *job)
{
    bool takes_steps = !o->exact && !o->apply && !o->gradient;
    size_t batches = 0, size = (size_t)ks_team_size(job->world);

    job->subject = (struct ks_subject){.path = job->path, .budget = &job->budget};
    KS_TRY(
        ks_team_agree(job->world, ks_job_leads(job) ? read_checkpoint(o, job, &batches) : KS_OK));
    ks_team_broadcast(job->world, 0, sizeof batches, &batches);
    ks_team_broadcast(job->world, 0, sizeof job->subject.digest, job->subject.digest);
    ks_team_broadcast(job->world, 0, sizeof job->subject.raw, &job->subject.raw);
    job->groups = ks_distribute_groups(size, takes_steps ? o->probes + o->gradient_probe : 1,
                                       batches);
    KS_TRY(ks_team_split(
        job->world, ks_slq_group(job->world, ks_team_rank(job->world), job->groups), &job->team));
    KS_TRY(ks_distribute_checkpoint(job->world, &job->team, batches, &job->checkpoint));
    job->subject.processes = ks_team_size(&job->team);
    job->subject.problem.minibatches = size > 1 ? job->checkpoint->minibatches : batches;
    job->subject.problem.elsewhere = batches - job->subject.problem.minibatches;
    return KS_OK;
}

ks_status ks_job_pose(const struct ks_analysis *o, struct ks_job *job)
{
    struct ks_subject *subject = &job->subject;
    struct ks_problem *problem = &subject->problem;

    problem->checkpoint = job->checkpoint;
    problem->follower = ks_team_rank(&job->team) > 0;
    problem->evaluation = o->evaluation;
    problem->weight_decay = o->weight_decay;
    problem->scale = o->scale;
    problem->critic = o->critic;
    problem->layer = o->layer;
    if (o->compat) /* the published product is divided by N twice */
        problem->scale /= (double)(problem->minibatches + problem->elsewhere);
    KS_TRY(ks_selection_new(problem, o->kind->moving, &job->selection));
    KS_TRY(ks_null_space_new(problem, o->kind, job->selection, &job->space));
    subject->dimension = job->selection->n;
    subject->normals = job->space->normals;
    if (o->exact && subject->dimension > KS_EXACT_LIMIT)
        return ks_fail(KS_USAGE,
                       "%s: --exact: expected at most %d parameters, found %zu; without it "
                       "the spectrum is estimated",
                       job->path, KS_EXACT_LIMIT, subject->dimension);
    return KS_OK;
}

ks_status ks_job_block(const struct ks_analysis *o, struct ks_job *job)
{
    struct ks_operator *shared = NULL, *block = NULL;

    if (!job->whole)
        KS_TRY(
            (o->single ? o->kind->new_f32 : o->kind->new_f64)(&job->subject.problem, &job->whole));
    KS_TRY(ks_operator_share(job->whole, &shared));
    KS_TRY(ks_block_new(shared, job->selection, &block));
    return ks_team_operator_new(block, &job->team, &job->a);
}

/* The operator, ready for products within what the budget leaves to it. `start`: ks_alloc_total()
 * before the checkpoint was read. */
ks_status ks_job_prepare(const struct ks_analysis *o, size_t start, struct ks_job *job)
{
    struct ks_budget *budget = &job->budget;
    size_t probes = (o->probes + o->gradient_probe + job->groups - 1) / job->groups;
    size_t n = job->subject.dimension;
    double least;

    KS_TRY(ks_team_agree(job->world, ks_primal_bytes(&job->subject.problem, o->single, &least)));
    budget->fixed = ks_alloc_total() - start + (size_t)fmin(least, 0x1p62);
    KS_TRY(ks_budget_divide(o, job->world, &job->team, &job->subject, budget)); /* may refuse */
    KS_TRY(ks_team_agree(job->world, ks_job_block(o, job)));
    budget->fixed = ks_alloc_total() - start;
    KS_TRY(ks_budget_divide(o, job->world, &job->team, &job->subject, budget));
    if (o->layers) /* `whole` stays while a layer's bounds are certified: half of it is for those */
        budget->kept /= 2;
    job->watch = (struct ks_watch){.checkpoint = job->path,
                                   .dimension = n,
                                   .products = (o->exact ? n : o->order * probes) +
                                               ks_null_products(job->space),
                                   .before = ks_null_products(job->space),
                                   .probes = o->probes,
                                   .order = o->order,
                                   .groups = job->groups,
                                   .budget = budget,
                                   .quiet = job->quiet};
    start = ks_alloc_total();
    KS_TRY(ks_team_agree(job->world, ks_operator_prepare(job->a, budget->kept)));
    budget->kept = ks_alloc_total() - start;
    return KS_OK;
}

ks_status ks_job_name_basis(const struct ks_analysis *o, struct ks_job *job)
{
    if (!o->keep_basis)
        return KS_OK;
    KS_TRY(ks_team_agree(job->world,
                         ks_job_leads(job) ? ks_output_stem(job->output, &job->stem) : KS_OK));
    KS_TRY(ks_team_broadcast_string(job->world, &job->stem));
    return ks_team_agree(job->world, ks_describe_key(o, &job->subject, &job->key));
}
