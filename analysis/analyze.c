/* kappascope-analyze: from a checkpoint to the spectrum of its loss's curvature. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#include <omp.h>

#include "ks/analysis.h"
#include "ks/apply.h"
#include "ks/arch.h"
#include "ks/blas.h"
#include "ks/budget.h"
#include "ks/certificate.h"
#include "ks/density.h"
#include "ks/describe.h"
#include "ks/distribute.h"
#include "ks/gradient_start.h"
#include "ks/h5.h"
#include "ks/layers.h"
#include "ks/memory.h"
#include "ks/null.h"
#include "ks/options.h"
#include "ks/outputs.h"
#include "ks/primal.h"
#include "ks/program.h"
#include "ks/report.h"
#include "ks/say.h"
#include "ks/slq.h"
#include "ks/stability.h"
#include "ks/summary.h"
#include "ks/watch.h"

/* One checkpoint's work; job_clear frees what it owns. */
struct job {
    const char *path;   /* of the checkpoint */
    const char *output; /* of the spectrum   */
    bool quiet;
    const struct ks_team *world; /* all processes                              */
    struct ks_team team;         /* those that work on the same probes */
    size_t groups;               /* how many such teams there are */
    struct ks_checkpoint *checkpoint;
    struct ks_subject subject;
    struct ks_budget budget;
    char *stem, *key; /* of --keep-basis; NULL without it */
    struct ks_selection *selection;
    struct ks_operator *whole; /* of all coordinates: it has what depends on theta alone */
    struct ks_operator *a;     /* of the selected coordinates, by products of `whole` */
    struct ks_null_space *space;
    struct ks_null null;
    struct ks_null_basis *basis; /* of the null space; NULL: nothing of it is known */
    struct ks_certificates certificates;
    double *gradient;   /* the start vector of the last probe; NULL: there is none */
    double exact_error; /* of the products of --exact */
    struct ks_spectrum *spectrum;
    struct ks_watch watch;
    size_t n_rows, done; /* of --layers: layers; products of those that are done */
    struct ks_layer_row *rows;
};

/* What belongs to one block of the operator. */
static void block_clear(struct job *job)
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

static void job_clear(struct job *job)
{
    block_clear(job);
    ks_operator_free(job->whole);
    free(job->rows);
    free(job->stem);
    free(job->key);
    ks_checkpoint_free(job->checkpoint);
    ks_team_leave(&job->team);
}

/* Process 0 reads and writes; the others compute. */
static bool leads(const struct job *job)
{
    return ks_team_rank(job->world) == 0;
}

/* Leaves the targets that were asked for in the place of /batch/target's. */
static ks_status choose_targets(const struct ks_analysis *o, struct job *job)
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

static ks_status read_checkpoint(const struct ks_analysis *o, struct job *job, size_t *batches)
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

/* Gives every process its group, and its part of the checkpoint. */
static ks_status get_checkpoint(const struct ks_analysis *o, struct job *job)
{
    bool takes_steps = !o->exact && !o->apply && !o->gradient;
    size_t batches = 0, size = (size_t)ks_team_size(job->world);

    job->subject = (struct ks_subject){.path = job->path, .budget = &job->budget};
    KS_TRY(ks_team_agree(job->world, leads(job) ? read_checkpoint(o, job, &batches) : KS_OK));
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

static ks_status pose_problem(const struct ks_analysis *o, struct job *job)
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

static ks_status new_operator(const struct ks_analysis *o, struct job *job)
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
static ks_status make_operator(const struct ks_analysis *o, size_t start, struct job *job)
{
    struct ks_budget *budget = &job->budget;
    size_t probes = (o->probes + o->gradient_probe + job->groups - 1) / job->groups;
    size_t n = job->subject.dimension;
    double least;

    KS_TRY(ks_team_agree(job->world, ks_primal_bytes(&job->subject.problem, o->single, &least)));
    budget->fixed = ks_alloc_total() - start + (size_t)fmin(least, 0x1p62);
    KS_TRY(ks_budget_divide(o, job->world, &job->team, &job->subject, budget)); /* may refuse */
    KS_TRY(ks_team_agree(job->world, new_operator(o, job)));
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

/* For --keep-basis: where the steps are kept, and what they depend on. */
static ks_status name_basis(const struct ks_analysis *o, struct job *job)
{
    if (!o->keep_basis)
        return KS_OK;
    KS_TRY(ks_team_agree(job->world, leads(job) ? ks_output_stem(job->output, &job->stem) : KS_OK));
    KS_TRY(ks_team_broadcast_string(job->world, &job->stem));
    return ks_team_agree(job->world, ks_describe_key(o, &job->subject, &job->key));
}

static void say_breakdowns(const struct job *job)
{
    const struct ks_spectrum *s = job->spectrum;

    if (job->rows) /* the table of layers has a column for it */
        return;
    for (size_t i = 0; !job->quiet && i < s->probes; i++)
        if ((size_t)s->steps[i] < s->order)
            ks_say("%s: probe %zu: the Krylov space ends after %lld of %zu steps", job->path, i,
                   (long long)s->steps[i], s->order);
}

/* The layer that holds a coordinate of a critic's parameters. */
static const struct ks_layer *find_layer(const struct ks_arch *arch, size_t parameter)
{
    for (size_t k = 0; k < arch->n_layers; k++) {
        const struct ks_layer *l = &arch->layer[k];

        if (parameter >= l->offset && parameter - l->offset < l->parameters)
            return l;
    }
    return NULL;
}

/* Where float32 products are wrong, and where most. */
static void say_product_error(const struct ks_analysis *o, const struct job *job)
{
    const struct ks_arch *arch = job->checkpoint->critic.arch;
    const size_t *index = job->selection->index;
    double error = ks_summary_get(job->spectrum, "product_error");
    size_t at = job->certificates.worst;
    char name[32] = "?";

    if (job->quiet || !o->single || !(error > KS_WRONG_PRODUCT))
        return;
    at = index ? index[at] : at;
    if (find_layer(arch, at % arch->parameters))
        KS(arch_group)(find_layer(arch, at % arch->parameters), name);
    ks_say("%s: float32 products are wrong by %.2g of the largest |eigenvalue|, most of all in "
           "layer %s of critic %zu: use --precision f64",
           job->path, error, name, at / arch->parameters);
}

static void watch_null(void *context, size_t products)
{
    struct job *job = context;

    ks_watch_product(&job->watch, job->done + products);
}

static void watch_exact(void *context, size_t products)
{
    struct job *job = context;

    ks_watch_product(&job->watch, job->watch.before + products);
}

static ks_status start_spectrum(struct job *job)
{
    KS_TRY(ks_alloc(1, sizeof *job->spectrum, &job->spectrum));
    return ks_watch_start(&job->watch);
}

/* With a weight decay what is null for the loss is not for the operator: it is counted only. */
static ks_status find_basis(struct job *job)
{
    ks_null_basis_free(job->basis);
    KS_TRY(ks_null_basis_new(job->space, job->null.is_dead, &job->basis));
    ks_null_basis_recount(job->basis, &job->null);
    if (job->space->shift != 0) {
        ks_null_basis_free(job->basis);
        job->basis = NULL;
    }
    return KS_OK;
}

/* What the null space is, before the probes run: their vectors are certified off it. */
static ks_status find_null_space(const struct ks_analysis *o, struct job *job)
{
    ks_status status = ks_null_measure(job->space, job->a, watch_null, job, &job->null);
    char text[512];

    if (status == KS_NUMBER && !o->exact) {
        snprintf(text, sizeof text, "%s", ks_error_text());
        return ks_fail(status, "before Lanczos step 1 of %zu: %s", o->order, text);
    }
    KS_TRY(status);
    return find_basis(job);
}

/* The published code's Lanczos vectors are not orthogonal, so nothing is certified by them. */
static bool takes_vectors(const struct ks_analysis *o)
{
    return !o->exact && !o->compat;
}

static ks_status start_probes(const struct ks_analysis *o, struct job *job)
{
    size_t first, length;

    if (!takes_vectors(o))
        return KS_OK;
    ks_team_slice(&job->team, job->subject.dimension, &first, &length);
    return ks_certificates_new(job->subject.dimension, length, o->probes, o->order, KS_SUMMARY_PART,
                               job->basis, &job->certificates);
}

static ks_status finish_probe(void *context, const struct ks_lanczos *lanczos)
{
    return ks_certificates_take(&((struct job *)context)->certificates, lanczos);
}

static ks_status run_probes(const struct ks_analysis *o, struct job *job)
{
    struct ks_slq slq = {.order = o->order,
                         .probes = o->probes,
                         .seed = o->seed,
                         .single = job->budget.single_basis,
                         .single_products = o->single,
                         .xqc = o->compat,
                         .keep = job->stem,
                         .key = job->key,
                         .world = job->world,
                         .team = &job->team,
                         .group = ks_slq_group(job->world, ks_team_rank(job->world), job->groups),
                         .groups = job->groups,
                         .finished = takes_vectors(o) ? finish_probe : NULL,
                         .finished_context = job,
                         .resumed = ks_watch_resumed,
                         .watch = ks_watch_step,
                         .context = &job->watch};

    if (o->gradient_probe)
        KS_TRY(ks_gradient_start(&job->subject.problem, o->kind, job->selection, &job->team,
                                 &job->gradient));
    slq.gradient = job->gradient;
    KS_TRY(o->exact ? ks_exact(job->a, watch_exact, job, job->spectrum)
                    : ks_slq(job->a, &slq, job->spectrum));
    return takes_vectors(o)
               ? ks_certificates_collect(&job->certificates, job->world, &job->team, job->groups)
               : KS_OK;
}

/* --exact with float32 products: how far they are from those in float64, and which coordinates are
 * dead there. One that is zero by underflow is not. */
static ks_status check_exact(const struct ks_analysis *o, struct job *job)
{
    struct ks_operator *whole = NULL, *block = NULL, *wide = NULL;
    struct ks_null null = {.is_dead = NULL};
    ks_status status = KS_OK;

    if (!o->single)
        return KS_OK;
    KS_GO(o->kind->new_f64(&job->subject.problem, &whole));
    KS_GO(ks_block_new(whole, job->selection, &block));
    KS_GO(ks_team_operator_new(block, &job->team, &wide));
    KS_GO(ks_operator_prepare(wide, job->budget.kept));
    KS_GO(ks_exact_error(job->a, wide, &job->exact_error));
    KS_GO(ks_null_measure(job->space, wide, NULL, NULL, &null));
    ks_null_take_dead(&job->null, &null);
    KS_GO(find_basis(job));
done:
    ks_null_clear(&null);
    ks_operator_free(wide);
    return status;
}

/* The run's operator is not needed any more, but by other layers: its activations make room for
 * those in float64. */
static ks_status certify(const struct ks_analysis *o, struct job *job)
{
    size_t memory = job->budget.kept / (size_t)omp_get_max_threads();

    if (o->exact)
        return check_exact(o, job);
    if (!takes_vectors(o) || !o->certificates)
        return KS_OK;
    job->certificates.gradient = job->gradient;
    ks_operator_free(job->a);
    job->a = NULL;
    if (!o->layers) {
        ks_operator_free(job->whole);
        job->whole = NULL;
    }
    return ks_certify(&job->certificates, &job->subject.problem, o->kind, job->selection,
                      &job->team, memory);
}

static ks_status find_spectrum(const struct ks_analysis *o, struct job *job)
{
    KS_TRY(ks_team_agree(job->world, start_spectrum(job)));
    KS_TRY(ks_team_agree(job->world, find_null_space(o, job)));
    KS_TRY(ks_team_agree(job->world, start_probes(o, job)));
    KS_TRY(run_probes(o, job));
    ks_watch_end(&job->watch);
    KS_TRY(ks_team_agree(job->world, certify(o, job)));
    if (o->exact)
        return KS_OK;
    say_breakdowns(job);
    if (o->compat)
        ks_summary_unweight(job->spectrum);
    return KS_OK;
}

static struct ks_summary_terms find_terms(const struct ks_analysis *o, const struct job *job)
{
    return (struct ks_summary_terms){
        .n = job->subject.dimension,
        .epsilon = o->single ? FLT_EPSILON : DBL_EPSILON,
        .basis_epsilon = job->budget.single_basis ? FLT_EPSILON : DBL_EPSILON,
        .shift = job->space->shift,
        .null = &job->null,
        .rank = o->kind->rank ? o->kind->rank(&job->subject.problem) : 0,
        .exact_error = job->exact_error,
        .gradient = o->gradient_probe,
        .certificates = takes_vectors(o) ? &job->certificates : NULL,
        .unweighted = o->compat};
}

static ks_status finish(const struct ks_analysis *o, struct job *job, struct ks_report *report)
{
    const struct ks_summary_terms terms = find_terms(o, job);

    KS_TRY(ks_summary(job->spectrum, &terms));
    KS_TRY(ks_stability_add(o, &job->subject, job->spectrum));
    KS_TRY(ks_density(job->spectrum));
    KS_TRY(ks_describe_probes(terms.certificates, job->spectrum));
    KS_TRY(ks_describe(o, &job->subject, &terms, job->spectrum));
    say_product_error(o, job);
    KS_TRY(ks_spectrum_write(job->output, job->spectrum));
    return ks_report_add(report, job->path, job->spectrum);
}

static ks_status analyze(const struct ks_analysis *o, struct job *job, struct ks_report *report)
{
    size_t start = ks_alloc_total();
    const struct ks_team *world = job->world;

    KS_TRY(ks_team_agree(world, leads(job) ? ks_output_check(job->output, job->path) : KS_OK));
    KS_TRY(get_checkpoint(o, job));
    KS_TRY(ks_team_agree(world, pose_problem(o, job)));
    KS_TRY(make_operator(o, start, job));
    KS_TRY(name_basis(o, job));
    KS_TRY(find_spectrum(o, job));
    return ks_team_agree(world, leads(job) ? finish(o, job, report) : KS_OK);
}

/* --- --layers: one block after the other --- */

/* Poses the problem of one layer's block; what the block before it has is freed. */
static ks_status pose_layer(const struct ks_analysis *o, size_t row, struct job *job)
{
    struct ks_analysis one = *o;

    block_clear(job);
    one.layer = (int)job->rows[row].number;
    return pose_problem(&one, job);
}

/* The layers, the products of all of them, and the dimension of the largest, which decides what
 * memory is left. */
static ks_status plan_layers(const struct ks_analysis *o, struct job *job, size_t *products,
                             size_t *largest)
{
    size_t probes = (o->probes + job->groups - 1) / job->groups;

    KS_TRY(pose_problem(o, job)); /* of all layers: it says which critics there are */
    KS_TRY(ks_layers_new(&job->subject.problem, o->kind->moving, &job->n_rows, &job->rows));
    *products = *largest = 0;
    for (size_t i = 0; i < job->n_rows; i++) {
        size_t n = job->rows[i].dimension;

        KS_TRY(pose_layer(o, i, job));
        *largest = n > *largest ? n : *largest;
        *products += probes * (n < o->order ? n : o->order) + ks_null_products(job->space);
    }
    return KS_OK;
}

static ks_status analyze_layer(const struct ks_analysis *o, size_t row, struct job *job)
{
    struct ks_summary_terms terms;

    KS_TRY(ks_team_agree(job->world, pose_layer(o, row, job)));
    KS_TRY(ks_team_agree(job->world, new_operator(o, job)));
    job->watch.before = job->done + ks_null_products(job->space);
    KS_TRY(find_spectrum(o, job));
    job->done = job->watch.before;
    for (size_t i = 0; i < job->spectrum->probes; i += job->groups)
        job->done += (size_t)job->spectrum->steps[i];
    terms = find_terms(o, job);
    KS_TRY(ks_team_agree(job->world, ks_summary(job->spectrum, &terms)));
    say_product_error(o, job);
    ks_layers_take(&job->rows[row], job->spectrum);
    return KS_OK;
}

/* The operator is made once; every layer's products are those of the whole, restricted. */
static ks_status analyze_layers(const struct ks_analysis *o, struct job *job,
                                struct ks_report *report)
{
    size_t start = ks_alloc_total(), products = 0, largest = 0;
    const struct ks_team *world = job->world;

    KS_TRY(get_checkpoint(o, job));
    KS_TRY(ks_team_agree(world, plan_layers(o, job, &products, &largest)));
    job->subject.dimension = largest;
    KS_TRY(make_operator(o, start, job));
    job->watch.products = products;
    for (size_t i = 0; i < job->n_rows; i++)
        KS_TRY(analyze_layer(o, i, job));
    ks_layers_share(job->n_rows, job->rows);
    return ks_team_agree(
        world, leads(job) ? ks_layers_report(report, job->path, o, job->n_rows, job->rows) : KS_OK);
}

static ks_status check_vectors(const struct ks_analysis *o, const struct job *job)
{
    const char *const outputs[] = {o->output, o->gradient};

    for (size_t i = 0; i < 2; i++)
        if (outputs[i]) {
            KS_TRY(ks_output_check(outputs[i], job->path));
            KS_TRY(ks_output_check(outputs[i], o->apply));
        }
    return KS_OK;
}

/* --apply and --gradient: vectors in place of a spectrum. */
static ks_status write_vectors(const struct ks_analysis *o, struct job *job)
{
    size_t start = ks_alloc_total();

    KS_TRY(ks_team_agree(job->world, leads(job) ? check_vectors(o, job) : KS_OK));
    KS_TRY(get_checkpoint(o, job));
    KS_TRY(ks_team_agree(job->world, pose_problem(o, job)));
    if (o->gradient)
        KS_TRY(ks_gradient_file(o, &job->subject, job->world, &job->team, start));
    if (!o->apply)
        return KS_OK;
    KS_TRY(ks_apply_count(o, &job->team, &job->subject));
    KS_TRY(make_operator(o, start, job));
    return ks_apply_file(o, &job->subject, job->a, job->selection, &job->watch);
}

static bool starts_with(const char *message, const char *file)
{
    char name[1024]; /* as it stands in messages */
    size_t length = strlen(ks_escape(file, sizeof name, name));

    return strncmp(message, name, length) == 0 && message[length] == ':';
}

/* A message starts with the file that it is about; where none of these does, with the checkpoint:
 * most parts of the analysis do not know its name. */
static ks_status name_culprit(const struct ks_analysis *o, const char *path, ks_status status)
{
    const char *const files[] = {path, o->apply, o->output, o->gradient};
    char text[1024];

    snprintf(text, sizeof text, "%s", ks_error_text());
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        if (files[i] && starts_with(text, files[i]))
            return status;
    return ks_fail(status, "%s: %s", path, text);
}

static const struct ks_library libraries[] = {
    {"HDF5", ks_h5_version}, {"jansson", jansson_version_str}, {NULL, NULL}};

static const struct ks_program program = {
    .name = "kappascope-analyze",
    .synopsis = "[OPTION...] CHECKPOINT...",
    .summary = "measures the curvature of a critic's loss",
    .details = "DESCRIPTION\n"
               "  Writes CHECKPOINT.spectrum.h5 for each CHECKPOINT.h5 and prints a summary. With "
               "--name NAME it\n"
               "  writes CHECKPOINT.NAME.spectrum.h5, so that spectra of several analyses can lie "
               "side by side. With\n"
               "  --apply or --gradient it writes vectors of one checkpoint instead.\n\n"
               "EXAMPLES\n"
               "  kappascope analyze step_000050000.h5\n"
               "  kappascope analyze --order 150 --probes 3 --json -o spectra run/step_*[0-9].h5\n"
               "  kappascope analyze --apply v.h5 --output hv.h5 step_000050000.h5\n",
    .libraries = libraries,
    .options = ks_analysis_options,
};

/* Analyzes all checkpoints; one that fails has its line and the others go on. Returns the worst
 * exit status. */
static int analyze_all(const struct ks_analysis *o, const struct ks_team *world,
                       const struct ks_arguments *arguments, char *const *outputs,
                       struct ks_report *report)
{
    const bool vectors = o->apply || o->gradient;
    int worst = 0;

    for (size_t i = 0; i < arguments->n_rest; i++) {
        struct job job = {.path = arguments->rest[i],
                          .quiet = arguments->quiet || ks_team_rank(world) > 0,
                          .output = outputs ? outputs[i] : NULL,
                          .world = world};
        ks_status status = vectors     ? write_vectors(o, &job)
                           : o->layers ? analyze_layers(o, &job, report)
                                       : analyze(o, &job, report);

        job_clear(&job);
        if (status == KS_OK)
            continue;
        status = name_culprit(o, arguments->rest[i], status);
        if (leads(&job))
            ks_say("%s: %s", program.name, ks_error_text());
        if (ks_exit_status(status) > worst)
            worst = ks_exit_status(status);
    }
    return worst;
}

static ks_status check_arguments(const struct ks_analysis *o, const struct ks_arguments *arguments)
{
    if (arguments->n_rest == 0)
        return ks_fail(KS_USAGE, "expected a checkpoint, found 0 (see --help)");
    if (arguments->n_rest > 1 && (o->apply || o->gradient))
        return ks_fail(
            KS_USAGE, "expected one checkpoint with --apply and --gradient, found %zu (see --help)",
            arguments->n_rest);
    if (o->output && o->gradient && ks_output_same(o->output, o->gradient))
        return ks_fail(KS_USAGE, "--output and --gradient: expected two files, found one, %s",
                       o->output);
    return KS_OK;
}

static struct ks_report new_report(const struct ks_analysis *o,
                                   const struct ks_arguments *arguments)
{
    struct ks_report report = {.out = stdout};

    report.form = o->json ? KS_REPORT_JSON : o->csv ? KS_REPORT_CSV : KS_REPORT_TABLE;
    for (size_t i = 0; i < arguments->n_rest; i++) {
        char name[4096]; /* as the table has it */
        int width = (int)strlen(ks_escape(arguments->rest[i], sizeof name, name));

        report.width = width > report.width ? width : report.width;
    }
    return report;
}

/* Does what was asked for, on all processes; *worst: the exit status of the worst checkpoint. */
static ks_status run(const struct ks_arguments *arguments, const struct ks_team *world, int *worst)
{
    ks_status status = KS_OK;
    struct ks_analysis o;
    struct ks_report report;
    char **outputs = NULL;
    bool writes;

    KS_GO(ks_analysis_read(&o));
    KS_GO(ks_team_agree(world, check_arguments(&o, arguments)));
    report = new_report(&o, arguments);
    writes = !o.apply && !o.gradient && world->rank == 0;
    if (writes && !o.layers)
        status = ks_outputs_new(arguments->n_rest, arguments->rest, o.folder, o.name, &outputs);
    KS_GO(ks_team_agree(world, status));
    KS_GO(ks_team_agree(world, ks_blas_reserve((size_t)omp_get_max_threads())));
    *worst = analyze_all(&o, world, arguments, outputs, &report);
    KS_GO(ks_team_agree(world, writes ? ks_report_end(&report) : KS_OK));
done:
    ks_outputs_free(arguments->n_rest, outputs);
    return status;
}

int main(int argc, char **argv)
{
    ks_status status = KS_OK;
    struct ks_arguments arguments = {0};
    struct ks_team world = {0};
    int worst = 0, end;
    bool speaks;

    ks_program_begin(argv); /* may start the program anew: before MPI */
    KS_GO(ks_team_start(&world));
    if (world.rank > 0 &&
        !freopen("/dev/null", "w", stdout)) /* --help and --version are said once */
        status = ks_fail(KS_IO, "/dev/null cannot be opened");
    KS_GO(ks_team_agree(&world, status));
    KS_GO(ks_program_start(&program, argc, argv, &arguments));
    if (!arguments.done)
        status = run(&arguments, &world, &worst);
done:
    speaks = world.rank == 0; /* a launcher ends all processes with the first that fails */
    end = ks_program_end(&program, &arguments, speaks ? status : KS_OK);
    ks_team_end(&world);
    return !speaks ? 0 : end > worst ? end : worst;
}
