/* Spectra: the analysis of one operator, from its null space to the statistics. */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include <omp.h>

#include "core/blas.h"
#include "core/memory.h"
#include "lanczos/density.h"
#include "lanczos/gradient_start.h"
#include "lanczos/slq.h"
#include "library/library.h"
#include "operators/gradient_bounds.h"
#include "operators/null_basis.h"
#include "program/budget.h"
#include "program/provenance.h"
#include "program/stability.h"
#include "statistics/certificate.h"
#include "statistics/statistics.h"

enum { MOST = 10000 }; /* steps, probes */

/* The computation of one spectrum. Everything but the operator is owned. */
struct run {
    struct kappascope_operator *a;
    struct kappascope_slq_options o;
    bool exact;
    struct ks_null null; /* this and the basis: for a checkpoint's operator only */
    struct ks_null_basis *basis;
    struct ks_certificates certificates;
    double *gradient;   /* the start vector of the last probe; NULL: none   */
    double exact_error; /* norm of the error of float32 products, if exact  */
    struct ks_spectrum *s;
};

void kappascope_slq_defaults(struct kappascope_slq_options *options)
{
    if (options)
        *options = (struct kappascope_slq_options){.order = 90, .probes = 1, .certificates = true};
}

static ks_status find_null_space(struct run *r)
{
    if (!r->a->kind)
        return KS_OK;
    KS_TRY(ks_null_measure(r->a->space, r->a->a, NULL, NULL, &r->null));
    return ks_null_basis_update(r->a->space, &r->null, &r->basis);
}

static ks_status finish_probe(void *context, const struct ks_lanczos *lanczos)
{
    return ks_certificates_take(context, lanczos);
}

static ks_status run_probes(struct run *r)
{
    struct ks_slq slq = {.order = r->o.order,
                         .probes = r->o.probes,
                         .seed = r->o.seed,
                         .single = r->o.single_basis,
                         .single_products = r->a->single,
                         .on_finished = finish_probe,
                         .finished_context = &r->certificates};
    size_t n = r->a->a->n;
    const struct ks_certificates_sizes sizes = {.n = n,
                                                .length = n,
                                                .probes = r->o.probes,
                                                .order = r->o.order,
                                                .part = KS_STATISTICS_PART,
                                                .basis = r->basis};

    KS_TRY(ks_library_fits("the Lanczos vectors",
                           ks_lanczos_bytes(n, r->o.order, r->o.single_basis, NULL) +
                               ks_certificates_bytes(n)));
    KS_TRY(ks_certificates_new(&sizes, &r->certificates));
    if (r->o.gradient)
        KS_TRY(ks_gradient_start(&(struct ks_analyzed){r->a->problem, r->a->kind, r->a->selection},
                                 NULL, &r->gradient));
    slq.gradient = r->gradient;
    KS_TRY(ks_slq(r->a->a, &slq, r->s));
    return ks_certificates_collect(&r->certificates, NULL, NULL, 1);
}

static ks_status certify(struct run *r)
{
    const struct kappascope_operator *a = r->a;

    if (!r->o.certificates)
        return KS_OK;
    r->certificates.gradient = r->gradient;
    if (!a->kind)
        return ks_certify_operator(&r->certificates, a->a);
    return ks_certify(&r->certificates, &(struct ks_analyzed){a->problem, a->kind, a->selection},
                      NULL, a->memory / (size_t)omp_get_max_threads());
}

/* Measures the error of float32 products, and finds the dead coordinates by float64 products: in
 * float32 a product may also be zero by underflow. */
static ks_status check_exact(struct run *r)
{
    const struct kappascope_operator *a = r->a;
    struct ks_operator *full = NULL, *wide = NULL;
    struct ks_null null = {.is_dead = NULL};
    ks_status status = KS_OK;

    if (!a->single)
        return KS_OK;
    KS_GO(a->kind->new_f64(&a->problem, &full));
    KS_GO(ks_block_new(full, a->selection, &wide));
    KS_GO(ks_operator_prepare(wide, a->memory));
    KS_GO(ks_exact_error(a->a, wide, &r->exact_error));
    KS_GO(ks_null_measure(a->space, wide, NULL, NULL, &null));
    ks_null_take_dead(&r->null, &null);
    KS_GO(ks_null_basis_update(r->a->space, &r->null, &r->basis));
done:
    ks_null_clear(&null);
    ks_operator_free(wide);
    return status;
}

static struct ks_statistics_terms terms_of(const struct run *r)
{
    const struct kappascope_operator *a = r->a;
    struct ks_statistics_terms terms = {.n = a->a->n,
                                        .epsilon = a->single ? FLT_EPSILON : DBL_EPSILON,
                                        .basis_epsilon = r->o.single_basis ? FLT_EPSILON
                                                                           : DBL_EPSILON,
                                        .exact_error = r->exact_error,
                                        .gradient = r->o.gradient,
                                        .certificates = r->exact ? NULL : &r->certificates};

    if (a->kind) {
        terms.shift = a->space->shift;
        terms.null = &r->null;
        terms.operator_rank = a->kind->operator_rank ? a->kind->operator_rank(&a->problem) : 0;
    }
    return terms;
}

/* Of all layers: the gradient of a cross-entropy against its bounds. */
static ks_status add_bounds(struct run *r)
{
    const struct ks_problem *problem = &r->a->problem;
    struct ks_gradient_bounds bounds = {0};
    ks_status status = KS_OK;

    if (problem->layer >= 0)
        return KS_OK;
    if (ks_gradient_bounds_exist(problem))
        status = ks_gradient_bounds_measure(problem, 0, 1, &bounds);
    if (status == KS_OK)
        status = ks_gradient_bounds_add(&bounds, &r->s->summary);
    ks_gradient_bounds_clear(&bounds);
    return status;
}

/* The attributes and the claim of a checkpoint's spectrum, as the analyzer writes them. */
static ks_status describe(struct run *r, const struct ks_statistics_terms *terms)
{
    const struct kappascope_operator *a = r->a;
    const struct ks_options options = {.kind = a->kind,
                                       .single = a->single,
                                       .exact = r->exact,
                                       .seed = r->o.seed,
                                       .learning_rate = NAN};
    const struct ks_budget budget = {.single_basis = r->o.single_basis};
    struct ks_subject subject = {.path = a->checkpoint->path,
                                 .raw = a->raw,
                                 .problem = a->problem,
                                 .dimension = a->a->n,
                                 .normals = a->space->normals,
                                 .processes = 1,
                                 .budget = &budget};

    for (size_t i = 0; i < KS_SHA256_TEXT; i++)
        subject.digest[i] = a->checkpoint->digest[i];
    KS_TRY(ks_stability_add(&options, &subject, r->s));
    KS_TRY(add_bounds(r));
    return ks_provenance_spectrum(&options, &subject, terms, r->s);
}

static ks_status describe_callback(struct run *r)
{
    struct ks_attributes *list = &r->s->attributes;

    KS_TRY(ks_attribute_add_integer(list, "order", (int64_t)r->s->order));
    KS_TRY(ks_attribute_add_integer(list, "probes", (int64_t)r->s->probes));
    KS_TRY(ks_attribute_add_string(list, "operator", "caller's"));
    KS_TRY(ks_attribute_add_string(list, "precision", "f64"));
    KS_TRY(ks_attribute_add_integer(list, "dimension", (int64_t)r->a->a->n));
    KS_TRY(ks_attribute_add_integer(list, "probe_seed", (int64_t)r->o.seed));
    if (!r->exact)
        KS_TRY(ks_attribute_add_string(list, "basis_precision", r->o.single_basis ? "f32" : "f64"));
    KS_TRY(ks_attribute_add_string(list, "analyzer_version", KS_VERSION));
    KS_TRY(ks_attribute_add_string(list, "blas_version", ks_blas_version()));
    KS_TRY(ks_attribute_add_string(list, "blas_kernel", ks_blas_kernel()));
    return ks_attribute_add_integer(list, "threads", omp_get_max_threads());
}

static ks_status finish(struct run *r)
{
    const struct ks_statistics_terms terms = terms_of(r);

    KS_TRY(ks_statistics(r->s, &terms));
    KS_TRY(ks_density(r->s));
    KS_TRY(ks_provenance_probes(terms.certificates, r->s));
    return r->a->kind ? describe(r, &terms) : describe_callback(r);
}

static ks_status analyze(struct run *r)
{
    KS_TRY(ks_alloc(1, sizeof *r->s, &r->s));
    KS_TRY(find_null_space(r));
    if (r->exact) {
        KS_TRY(ks_library_fits("the dense matrix",
                               (double)r->a->a->n * (double)r->a->a->n * sizeof(double)));
        KS_TRY(ks_exact(r->a->a, NULL, NULL, r->s));
        KS_TRY(check_exact(r));
    } else {
        KS_TRY(run_probes(r));
        KS_TRY(certify(r));
    }
    return finish(r);
}

static ks_status run(struct run *r, struct kappascope_spectrum **spectrum)
{
    ks_status status = analyze(r);

    status = ks_library_spectrum(status, r->s, spectrum);
    ks_null_clear(&r->null);
    ks_null_basis_free(r->basis);
    ks_certificates_clear(&r->certificates);
    free(r->gradient);
    return status;
}

enum kappascope_status kappascope_slq(struct kappascope_operator *a,
                                      const struct kappascope_slq_options *options,
                                      struct kappascope_spectrum **spectrum)
{
    struct run r = {.a = a};

    KS_GIVEN(spectrum);
    *spectrum = NULL;
    KS_GIVEN(a);
    KS_GIVEN(options);
    KS_PUBLIC(ks_library_range("order", options->order, 1, MOST));
    KS_PUBLIC(ks_library_range("probes", options->probes, 1, MOST));
    KS_PUBLIC(ks_library_range("seed", options->seed, 0, INT64_MAX));
    if (options->gradient && !a->kind)
        return (enum kappascope_status)ks_fail(
            KS_USAGE, "gradient: only the loss of a checkpoint has one, not a caller's operator");
    r.o = *options;
    return (enum kappascope_status)run(&r, spectrum);
}

enum kappascope_status kappascope_exact(struct kappascope_operator *a,
                                        struct kappascope_spectrum **spectrum)
{
    struct run r = {.a = a, .exact = true};

    KS_GIVEN(spectrum);
    *spectrum = NULL;
    KS_GIVEN(a);
    KS_PUBLIC(ks_library_range("n", a->a->n, 1, KS_EXACT_LIMIT));
    return (enum kappascope_status)run(&r, spectrum);
}
