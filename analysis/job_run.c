/* The heart of an analysis: the null space, the probes, and the certificates of their bounds. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <omp.h>

#include "ks/arch.h"
#include "ks/gradient_start.h"
#include "ks/job.h"
#include "ks/memory.h"
#include "ks/say.h"
#include "ks/slq.h"

static void say_breakdowns(const struct ks_job *job)
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
void ks_job_say_error(const struct ks_analysis *o, const struct ks_job *job)
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
    struct ks_job *job = context;

    ks_watch_product(&job->watch, job->done + products);
}

static void watch_exact(void *context, size_t products)
{
    struct ks_job *job = context;

    ks_watch_product(&job->watch, job->watch.before + products);
}

static ks_status start_spectrum(struct ks_job *job)
{
    KS_TRY(ks_alloc(1, sizeof *job->spectrum, &job->spectrum));
    return ks_watch_start(&job->watch);
}

/* With a weight decay what is null for the loss is not for the operator: it is counted only. */
static ks_status find_basis(struct ks_job *job)
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
static ks_status find_null_space(const struct ks_analysis *o, struct ks_job *job)
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

static ks_status start_probes(const struct ks_analysis *o, struct ks_job *job)
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
    return ks_certificates_take(&((struct ks_job *)context)->certificates, lanczos);
}

static ks_status run_probes(const struct ks_analysis *o, struct ks_job *job)
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
static ks_status check_exact(const struct ks_analysis *o, struct ks_job *job)
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
static ks_status certify(const struct ks_analysis *o, struct ks_job *job)
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

ks_status ks_job_run(const struct ks_analysis *o, struct ks_job *job)
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

struct ks_summary_terms ks_job_terms(const struct ks_analysis *o, const struct ks_job *job)
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
