/* The heart of an analysis: the null space, the probes, and the certificates of their bounds. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <omp.h>

#include "core/memory.h"
#include "core/say.h"
#include "lanczos/gradient_start.h"
#include "lanczos/slq.h"
#include "net/arch.h"
#include "program/analysis.h"

static void say_breakdowns(const struct ks_analysis *analysis)
{
    const struct ks_spectrum *s = analysis->spectrum;

    if (analysis->rows) /* the table of layers has a column for it */
        return;
    for (size_t i = 0; !analysis->quiet && i < s->probes; i++)
        if ((size_t)s->steps[i] < s->order)
            ks_say("%s: probe %zu: the Krylov space ends after %lld of %zu steps", analysis->path,
                   i, (long long)s->steps[i], s->order);
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
void ks_analysis_say_error(const struct ks_options *o, const struct ks_analysis *analysis)
{
    const struct ks_arch *arch = analysis->checkpoint->critic.arch;
    const size_t *index = analysis->selection->index;
    double error = ks_statistic(analysis->spectrum, "product_error");
    size_t at = analysis->certificates.worst;
    char name[32] = "?";

    if (analysis->quiet || !o->single || !(error > KS_WRONG_PRODUCT))
        return;
    at = index ? index[at] : at;
    if (find_layer(arch, at % arch->parameters))
        KS(arch_group)(find_layer(arch, at % arch->parameters), name);
    ks_say("%s: float32 products are wrong by %.2g of the largest |eigenvalue|, most of all in "
           "layer %s of critic %zu: use --precision f64",
           analysis->path, error, name, at / arch->parameters);
}

static void watch_null(void *context, size_t products)
{
    struct ks_analysis *analysis = context;

    ks_monitor_product(&analysis->watch, analysis->done + products);
}

static void watch_exact(void *context, size_t products)
{
    struct ks_analysis *analysis = context;

    ks_monitor_product(&analysis->watch, analysis->watch.before + products);
}

static ks_status start_spectrum(struct ks_analysis *analysis)
{
    KS_TRY(ks_alloc(1, sizeof *analysis->spectrum, &analysis->spectrum));
    return ks_monitor_start(&analysis->watch);
}

/* With a weight decay what is null for the loss is not for the operator: it is counted only. */
static ks_status find_basis(struct ks_analysis *analysis)
{
    ks_null_basis_free(analysis->basis);
    KS_TRY(ks_null_basis_new(analysis->space, analysis->null.is_dead, &analysis->basis));
    ks_null_basis_recount(analysis->basis, &analysis->null);
    if (analysis->space->shift != 0) {
        ks_null_basis_free(analysis->basis);
        analysis->basis = NULL;
    }
    return KS_OK;
}

/* What the null space is, before the probes run: their vectors are certified off it. */
static ks_status find_null_space(const struct ks_options *o, struct ks_analysis *analysis)
{
    ks_status status = ks_null_measure(analysis->space, analysis->a, watch_null, analysis,
                                       &analysis->null);
    char text[512];

    if (status == KS_NUMBER && !o->exact) {
        snprintf(text, sizeof text, "%s", ks_error_text());
        return ks_fail(status, "before Lanczos step 1 of %zu: %s", o->order, text);
    }
    KS_TRY(status);
    return find_basis(analysis);
}

/* The published code's Lanczos vectors are not orthogonal, so nothing is certified by them. */
static bool takes_vectors(const struct ks_options *o)
{
    return !o->exact && !o->compat;
}

static ks_status start_probes(const struct ks_options *o, struct ks_analysis *analysis)
{
    size_t first, length;

    if (!takes_vectors(o))
        return KS_OK;
    ks_team_slice(&analysis->team, analysis->subject.dimension, &first, &length);
    return ks_certificates_new(analysis->subject.dimension, length, o->probes, o->order,
                               KS_STATISTICS_PART, analysis->basis, &analysis->certificates);
}

static ks_status finish_probe(void *context, const struct ks_lanczos *lanczos)
{
    return ks_certificates_take(&((struct ks_analysis *)context)->certificates, lanczos);
}

static ks_status run_probes(const struct ks_options *o, struct ks_analysis *analysis)
{
    struct ks_slq slq = {
        .order = o->order,
        .probes = o->probes,
        .seed = o->seed,
        .single = analysis->budget.single_basis,
        .single_products = o->single,
        .xqc = o->compat,
        .keep = analysis->stem,
        .key = analysis->key,
        .world = analysis->world,
        .team = &analysis->team,
        .group = ks_slq_group(analysis->world, ks_team_rank(analysis->world), analysis->groups),
        .groups = analysis->groups,
        .finished = takes_vectors(o) ? finish_probe : NULL,
        .finished_context = analysis,
        .resumed = ks_monitor_resumed,
        .watch = ks_monitor_step,
        .context = &analysis->watch};

    if (o->gradient_probe)
        KS_TRY(ks_gradient_start(&analysis->subject.problem, o->kind, analysis->selection,
                                 &analysis->team, &analysis->gradient));
    slq.gradient = analysis->gradient;
    KS_TRY(o->exact ? ks_exact(analysis->a, watch_exact, analysis, analysis->spectrum)
                    : ks_slq(analysis->a, &slq, analysis->spectrum));
    return takes_vectors(o) ? ks_certificates_collect(&analysis->certificates, analysis->world,
                                                      &analysis->team, analysis->groups)
                            : KS_OK;
}

/* --exact with float32 products: how far they are from those in float64, and which coordinates are
 * dead there. One that is zero by underflow is not. */
static ks_status check_exact(const struct ks_options *o, struct ks_analysis *analysis)
{
    struct ks_operator *whole = NULL, *block = NULL, *wide = NULL;
    struct ks_null null = {.is_dead = NULL};
    ks_status status = KS_OK;

    if (!o->single)
        return KS_OK;
    KS_GO(o->kind->new_f64(&analysis->subject.problem, &whole));
    KS_GO(ks_block_new(whole, analysis->selection, &block));
    KS_GO(ks_team_operator_new(block, &analysis->team, &wide));
    KS_GO(ks_operator_prepare(wide, analysis->budget.kept));
    KS_GO(ks_exact_error(analysis->a, wide, &analysis->exact_error));
    KS_GO(ks_null_measure(analysis->space, wide, NULL, NULL, &null));
    ks_null_take_dead(&analysis->null, &null);
    KS_GO(find_basis(analysis));
done:
    ks_null_clear(&null);
    ks_operator_free(wide);
    return status;
}

/* The run's operator is not needed any more, but by other layers: its activations make room for
 * those in float64. */
static ks_status certify(const struct ks_options *o, struct ks_analysis *analysis)
{
    size_t memory = analysis->budget.kept / (size_t)omp_get_max_threads();

    if (o->exact)
        return check_exact(o, analysis);
    if (!takes_vectors(o) || !o->certificates)
        return KS_OK;
    analysis->certificates.gradient = analysis->gradient;
    ks_operator_free(analysis->a);
    analysis->a = NULL;
    if (!o->layers) {
        ks_operator_free(analysis->whole);
        analysis->whole = NULL;
    }
    return ks_certify(&analysis->certificates, &analysis->subject.problem, o->kind,
                      analysis->selection, &analysis->team, memory);
}

ks_status ks_analysis_run(const struct ks_options *o, struct ks_analysis *analysis)
{
    KS_TRY(ks_team_agree(analysis->world, start_spectrum(analysis)));
    KS_TRY(ks_team_agree(analysis->world, find_null_space(o, analysis)));
    KS_TRY(ks_team_agree(analysis->world, start_probes(o, analysis)));
    KS_TRY(run_probes(o, analysis));
    ks_monitor_end(&analysis->watch);
    KS_TRY(ks_team_agree(analysis->world, certify(o, analysis)));
    if (o->exact)
        return KS_OK;
    say_breakdowns(analysis);
    if (o->compat)
        ks_statistics_unweight(analysis->spectrum);
    return KS_OK;
}

struct ks_statistics_terms ks_analysis_terms(const struct ks_options *o,
                                             const struct ks_analysis *analysis)
{
    return (struct ks_statistics_terms){
        .n = analysis->subject.dimension,
        .epsilon = o->single ? FLT_EPSILON : DBL_EPSILON,
        .basis_epsilon = analysis->budget.single_basis ? FLT_EPSILON : DBL_EPSILON,
        .shift = analysis->space->shift,
        .null = &analysis->null,
        .rank = o->kind->rank ? o->kind->rank(&analysis->subject.problem) : 0,
        .exact_error = analysis->exact_error,
        .gradient = o->gradient_probe,
        .certificates = takes_vectors(o) ? &analysis->certificates : NULL,
        .unweighted = o->compat};
}
