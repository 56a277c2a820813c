/* Spectra: the library checks options and memory; spectrum/measurement.h does the rest. */
#include <math.h>
#include <stdlib.h>

#include "core/memory.h"
#include "lanczos/slq.h"
#include "library/library.h"
#include "operators/gradient_bounds.h"
#include "spectrum/measurement.h"

enum { MOST = 10000 }; /* steps, probes */

void kappascope_slq_defaults(struct kappascope_slq_options *options)
{
    if (options)
        *options = (struct kappascope_slq_options){.order = 90, .probes = 1, .certificates = true};
}

static struct ks_measurement new_measurement(const struct kappascope_operator *a)
{
    return (struct ks_measurement){.analyzed = &a->analyzed,
                                   .a = a->a,
                                   .n = a->a->n,
                                   .memory = a->memory,
                                   .learning_rate = NAN};
}

static ks_status check_memory(const struct ks_measurement *m)
{
    if (m->exact)
        return ks_library_fits("the dense matrix", (double)m->n * (double)m->n * sizeof(double));
    return ks_library_fits("the Lanczos vectors",
                           ks_lanczos_bytes(m->n, m->order, m->single_basis, NULL) +
                               ks_certificates_bytes(m->n));
}

/* Of all layers: the gradient of a cross-entropy against its bounds, or that of a squared error. */
static ks_status add_bounds(struct ks_measurement *m)
{
    const struct ks_problem *problem = &m->analyzed->problem;
    struct ks_gradient_bounds bounds = {0};
    ks_status status = KS_OK;

    if (!m->analyzed->kind || problem->layer >= 0)
        return KS_OK;
    if (ks_gradient_bounds_exist(problem))
        status = ks_gradient_bounds_measure(problem, 0, 1, &bounds);
    if (status == KS_OK)
        status = ks_gradient_bounds_add(&bounds, &m->spectrum->statistics);
    ks_gradient_bounds_clear(&bounds);
    return status;
}

static ks_status measure(struct ks_measurement *m)
{
    KS_TRY(ks_measure_null_space(m));
    KS_TRY(check_memory(m));
    KS_TRY(ks_measure_probes(m));
    KS_TRY(ks_measure_certificates(m));
    KS_TRY(ks_measure_all(m));
    return add_bounds(m);
}

static ks_status run(struct ks_measurement *m, struct kappascope_spectrum **spectrum)
{
    ks_status status = measure(m);

    status = ks_library_spectrum(status, m->spectrum, spectrum);
    m->spectrum = NULL; /* now owned by *spectrum, or freed */
    ks_measurement_clear(m);
    return status;
}

enum kappascope_status kappascope_slq(struct kappascope_operator *a,
                                      const struct kappascope_slq_options *options,
                                      struct kappascope_spectrum **spectrum)
{
    struct ks_measurement m;

    KS_GIVEN(spectrum);
    *spectrum = NULL;
    KS_GIVEN(a);
    KS_GIVEN(options);
    KS_PUBLIC(ks_library_range("order", options->order, 1, MOST));
    KS_PUBLIC(ks_library_range("probes", options->probes, 1, MOST));
    KS_PUBLIC(ks_library_range("seed", options->seed, 0, INT64_MAX));
    if (options->gradient && !a->analyzed.kind)
        return (enum kappascope_status)ks_fail(
            KS_USAGE, "gradient: only the loss of a checkpoint has one, not a caller's operator");
    m = new_measurement(a);
    m.order = options->order;
    m.probes = options->probes;
    m.seed = options->seed;
    m.single_basis = options->single_basis;
    m.gradient_probe = options->gradient;
    m.uncertified = !options->certificates;
    return (enum kappascope_status)run(&m, spectrum);
}

enum kappascope_status kappascope_exact(struct kappascope_operator *a,
                                        struct kappascope_spectrum **spectrum)
{
    struct ks_measurement m;

    KS_GIVEN(spectrum);
    *spectrum = NULL;
    KS_GIVEN(a);
    KS_PUBLIC(ks_library_range("n", a->a->n, 1, KS_EXACT_LIMIT));
    m = new_measurement(a);
    m.exact = true;
    return (enum kappascope_status)run(&m, spectrum);
}
