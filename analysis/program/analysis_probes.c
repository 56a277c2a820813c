/* The last stages of an analysis: from the operator to the nodes and weights of its spectrum, and
 * to the certificates of its bounds. */
#include "program/stages.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>

#include <omp.h>

#include "core/memory.h"
#include "core/say.h"
#include "lanczos/gradient_start.h"
#include "lanczos/slq.h"
#include "net/arch.h"

/* Certificates need orthonormal Lanczos vectors, which the published code's are not. */
static bool has_certificates(const struct ks_options *o)
{
    return !o->exact && !o->compat;
}

/* --- the null space --- */

static void count_null_product(void *context, size_t products)
{
    struct ks_analysis *a = context;

    ks_monitor_product(&a->monitor, a->products_done + products);
}

static ks_status find_null_space(struct ks_analysis *a)
{
    const struct ks_options *o = a->options;
    ks_status status;
    char text[512];

    KS_TRY(ks_alloc(1, sizeof *a->spectrum, &a->spectrum));
    KS_TRY(ks_monitor_start(&a->monitor));
    status = ks_null_measure(a->space, a->block, count_null_product, a, &a->null);
    if (status == KS_NUMBER && !o->exact) {
        snprintf(text, sizeof text, "%s", ks_error_text());
        return ks_fail(status, "before Lanczos step 1 of %zu: %s", o->order, text);
    }
    KS_TRY(status);
    return ks_null_basis_update(a->space, &a->null, &a->basis);
}

ks_status ks_analysis_find_null_space(struct ks_analysis *a)
{
    return ks_on_all(a, find_null_space);
}

/* --- the probes --- */

static void count_exact_product(void *context, size_t products)
{
    struct ks_analysis *a = context;

    ks_monitor_product(&a->monitor, a->monitor.before + products);
}

static ks_status take_vectors(void *context, const struct ks_lanczos *lanczos)
{
    return ks_certificates_take(&((struct ks_analysis *)context)->certificates, lanczos);
}

static ks_status new_certificates(struct ks_analysis *a)
{
    const struct ks_options *o = a->options;
    struct ks_certificates_sizes sizes = {.n = a->subject.dimension,
                                          .probes = o->probes,
                                          .order = o->order,
                                          .part = KS_STATISTICS_PART,
                                          .basis = a->basis};
    size_t first;

    if (!has_certificates(o))
        return KS_OK;
    ks_team_slice(&a->team, sizes.n, &first, &sizes.length);
    return ks_certificates_new(&sizes, &a->certificates);
}

static ks_status find_gradient(struct ks_analysis *a)
{
    const struct ks_options *o = a->options;

    if (!o->gradient_probe)
        return KS_OK;
    return ks_gradient_start(&(struct ks_analyzed){a->subject.problem, o->kind, a->selection},
                             &a->team, &a->gradient);
}

static ks_status run_lanczos(struct ks_analysis *a)
{
    const struct ks_options *o = a->options;
    const struct ks_slq slq = {.order = o->order,
                               .probes = o->probes,
                               .seed = o->seed,
                               .single = a->budget.single_basis,
                               .single_products = o->single,
                               .xqc = o->compat,
                               .basis_stem = a->stem,
                               .fingerprint = a->fingerprint,
                               .world = a->world,
                               .team = &a->team,
                               .group = ks_slq_group(a->world, ks_team_rank(a->world), a->groups),
                               .groups = a->groups,
                               .gradient = a->gradient,
                               .on_finished = has_certificates(o) ? take_vectors : NULL,
                               .finished_context = a,
                               .on_resume = ks_monitor_resumed,
                               .on_step = ks_monitor_step,
                               .context = &a->monitor};

    KS_TRY(ks_slq(a->block, &slq, a->spectrum));
    return has_certificates(o)
               ? ks_certificates_collect(&a->certificates, a->world, &a->team, a->groups)
               : KS_OK;
}

static ks_status run_exact(struct ks_analysis *a)
{
    return ks_exact(a->block, count_exact_product, a, a->spectrum);
}

/* A Krylov space that ends early, of dimension below the order. */
static void say_breakdowns(const struct ks_analysis *a)
{
    const struct ks_spectrum *s = a->spectrum;

    if (a->options->layers) /* the table of layers has a column for it */
        return;
    for (size_t i = 0; !a->quiet && i < s->probes; i++)
        if ((size_t)s->steps[i] < s->order)
            ks_say("%s: probe %zu: the Krylov space ends after %lld of %zu steps", a->path, i,
                   (long long)s->steps[i], s->order);
}

ks_status ks_analysis_run_probes(struct ks_analysis *a)
{
    KS_TRY(ks_on_all(a, new_certificates));
    KS_TRY(ks_on_all(a, find_gradient));
    KS_TRY(ks_on_all(a, a->options->exact ? run_exact : run_lanczos));
    ks_monitor_end(&a->monitor);
    if (a->options->exact)
        return KS_OK;
    say_breakdowns(a);
    return KS_OK;
}

/* --- the certificates --- */

/* --exact with float32 products: how far they are from those in float64, and which coordinates are
 * dead in float64: a product that underflows in float32 does not make its coordinate dead. */
static ks_status check_exact(struct ks_analysis *a)
{
    struct ks_operator *full = NULL, *block = NULL, *wide = NULL;
    struct ks_null null = {.is_dead = NULL};
    ks_status status = KS_OK;

    if (!a->options->single)
        return KS_OK;
    KS_GO(a->options->kind->new_f64(&a->subject.problem, &full));
    KS_GO(ks_block_new(full, a->selection, &block));
    KS_GO(ks_team_operator_new(block, &a->team, &wide));
    KS_GO(ks_operator_prepare(wide, a->budget.kept));
    KS_GO(ks_exact_error(a->block, wide, &a->exact_error));
    KS_GO(ks_null_measure(a->space, wide, NULL, NULL, &null));
    ks_null_take_dead(&a->null, &null);
    KS_GO(ks_null_basis_update(a->space, &a->null, &a->basis));
done:
    ks_null_clear(&null);
    ks_operator_free(wide);
    return status;
}

static ks_status certify(struct ks_analysis *a)
{
    const struct ks_options *o = a->options;
    size_t memory = a->budget.kept / (size_t)omp_get_max_threads();

    if (o->exact)
        return check_exact(a);
    if (!has_certificates(o) || !o->certificates)
        return KS_OK;
    a->certificates.gradient = a->gradient;
    ks_operator_free(a->block); /* its activations make room for those in float64 */
    a->block = NULL;
    if (!o->layers) { /* other layers need it */
        ks_operator_free(a->full);
        a->full = NULL;
    }
    return ks_certify(&a->certificates,
                      &(struct ks_analyzed){a->subject.problem, o->kind, a->selection}, &a->team,
                      memory);
}

ks_status ks_analysis_certify(struct ks_analysis *a)
{
    return ks_on_all(a, certify);
}

/* --- the statistics --- */

struct ks_statistics_terms ks_analysis_terms(const struct ks_analysis *a)
{
    const struct ks_options *o = a->options;

    return (struct ks_statistics_terms){
        .n = a->subject.dimension,
        .epsilon = o->single ? FLT_EPSILON : DBL_EPSILON,
        .basis_epsilon = a->budget.single_basis ? FLT_EPSILON : DBL_EPSILON,
        .shift = a->space->shift,
        .null = &a->null,
        .operator_rank = o->kind->operator_rank ? o->kind->operator_rank(&a->subject.problem) : 0,
        .exact_error = a->exact_error,
        .gradient = o->gradient_probe,
        .certificates = has_certificates(o) ? &a->certificates : NULL,
        .unweighted = o->compat};
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

void ks_analysis_warn(const struct ks_analysis *a)
{
    const struct ks_arch *arch = a->checkpoint->critic.arch;
    const size_t *index = a->selection->index;
    double error = ks_statistic(a->spectrum, "product_error");
    size_t at = a->certificates.worst;
    char name[32] = "?";

    if (a->quiet || !a->options->single || !(error > KS_WRONG_PRODUCT))
        return;
    at = index ? index[at] : at;
    if (find_layer(arch, at % arch->parameters))
        KS(arch_group)(find_layer(arch, at % arch->parameters), name);
    ks_say("%s: float32 products are wrong by %.2g of the largest |eigenvalue|, most of all in "
           "layer %s of critic %zu: use --precision f64",
           a->path, error, name, at / arch->parameters);
}
