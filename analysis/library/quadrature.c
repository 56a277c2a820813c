/* Spectra, for which the library checks options and memory, and the pipeline does the rest; and a
 * single Lanczos recurrence, into the caller's arrays. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "lanczos/jacobi.h"
#include "lanczos/slq.h"
#include "library/library.h"

enum { MOST = 10000 }; /* steps, probes */

void kappascope_slq_defaults(struct kappascope_slq_options *options)
{
    if (options)
        *options = (struct kappascope_slq_options){.order = 90, .probes = 1, .certificates = true};
}

static ks_status check_memory(const struct kappascope_operator *a)
{
    const double n = (double)a->p.budget.dimension;

    if (a->options.exact)
        return ks_library_fits("the dense matrix", n * n * sizeof(double));
    return ks_library_fits(
        "the Lanczos vectors",
        ks_lanczos_bytes(a->p.budget.dimension, a->options.order, a->options.basis_f32, NULL) +
            ks_certificates_bytes(a->p.budget.dimension));
}

static ks_status run(struct kappascope_operator *a, struct kappascope_spectrum **spectrum)
{
    ks_status status = check_memory(a);

    a->p.budget.basis_f32 = a->options.basis_f32;
    if (status == KS_OK)
        status = ks_pipeline_measure(&a->p);
    status = ks_library_spectrum(status, a->p.spectrum, spectrum);
    a->p.spectrum = NULL; /* now owned by *spectrum, or freed */
    ks_pipeline_clear(&a->p);
    return status;
}

enum kappascope_status kappascope_slq(struct kappascope_operator *a,
                                      const struct kappascope_slq_options *options,
                                      struct kappascope_spectrum **spectrum)
{
    KS_GIVEN(spectrum);
    *spectrum = NULL;
    KS_GIVEN(a);
    KS_GIVEN(options);
    KS_PUBLIC(ks_library_range("order", options->order, 1, MOST));
    KS_PUBLIC(ks_library_range("probes", options->probes, 1, MOST));
    KS_PUBLIC(ks_library_range("seed", options->seed, 0, INT64_MAX));
    if (options->gradient && !a->checkpoint)
        return (enum kappascope_status)ks_fail(
            KS_USAGE, "gradient: only the loss of a checkpoint has one, not a caller's operator");
    a->options.exact = false;
    a->options.order = options->order;
    a->options.probes = options->probes;
    a->options.seed = options->seed;
    a->options.basis_f32 = options->single_basis;
    a->options.gradient_probe = options->gradient;
    a->options.certificates = options->certificates;
    return (enum kappascope_status)run(a, spectrum);
}

enum kappascope_status kappascope_exact(struct kappascope_operator *a,
                                        struct kappascope_spectrum **spectrum)
{
    KS_GIVEN(spectrum);
    *spectrum = NULL;
    KS_GIVEN(a);
    KS_PUBLIC(ks_library_range("n", a->p.budget.dimension, 1, KS_EXACT_LIMIT));
    a->options.exact = true;
    a->options.seed = 0;
    a->options.basis_f32 = a->options.gradient_probe = false;
    return (enum kappascope_status)run(a, spectrum);
}

/* --- one recurrence --- */

static ks_status take_steps(struct kappascope_operator *a,
                            const struct kappascope_lanczos_options *o, struct ks_lanczos *l)
{
    l->products_f32 = a->options.products_f32;
    if (o->start) {
        KS_TRY(ks_library_finite("start", a->p.a->n, o->start));
        KS_TRY(ks_lanczos_start_at(l, o->start));
    } else {
        ks_lanczos_start(l, o->seed, o->probe);
    }
    while (l->steps < l->order && !l->exhausted)
        KS_TRY(ks_lanczos_step(l, a->p.a));
    return KS_OK;
}

enum kappascope_status kappascope_lanczos(struct kappascope_operator *a,
                                          const struct kappascope_lanczos_options *options,
                                          struct kappascope_recurrence *result)
{
    struct ks_lanczos *l = NULL;
    ks_status status = KS_OK;
    size_t rows;

    KS_GIVEN(a);
    KS_GIVEN(options);
    KS_GIVEN(result);
    result->steps = 0;
    KS_GIVEN(result->alpha);
    KS_GIVEN(result->beta);
    KS_GO(ks_library_range("order", options->order, 1, MOST));
    KS_GO(ks_library_range("seed", options->seed, 0, INT64_MAX));
    KS_GO(ks_library_range("probe", options->probe, 0, KS_PROBE_GRADIENT - 1));
    KS_GO(ks_library_fits("the Lanczos vectors",
                          ks_lanczos_bytes(a->p.a->n, options->order, false, NULL)));
    KS_GO(ks_lanczos_new(a->p.a->n, options->order, false, NULL, &l));
    KS_GO(take_steps(a, options, l));
    memcpy(result->alpha, l->alpha, l->steps * sizeof *l->alpha);
    memcpy(result->beta, l->beta, l->steps * sizeof *l->beta);
    rows = l->steps + !l->exhausted;
    if (result->basis)
        memcpy(result->basis, l->basis, rows * l->n * sizeof *l->basis);
    result->steps = l->steps;
done:
    ks_lanczos_free(l);
    return (enum kappascope_status)status;
}

enum kappascope_status kappascope_ritz(size_t m, const double *alpha, const double *beta,
                                       const struct kappascope_rule *rule)
{
    const struct ks_jacobi t = {m, alpha, beta};

    KS_GIVEN(alpha);
    KS_GIVEN(beta);
    KS_GIVEN(rule);
    KS_GIVEN(rule->ritz);
    KS_GIVEN(rule->weight);
    KS_GIVEN(rule->residual);
    KS_PUBLIC(ks_library_range("m", m, 1, MOST));
    KS_PUBLIC(ks_library_finite("alpha", m, alpha));
    KS_PUBLIC(ks_library_finite("beta", m, beta));
    return (enum kappascope_status)ks_jacobi_ritz(&t, rule->ritz, rule->weight, rule->residual);
}
