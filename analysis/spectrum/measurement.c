#include "spectrum/measurement.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>

#include <omp.h>

#include "core/memory.h"
#include "lanczos/density.h"
#include "lanczos/gradient_start.h"
#include "lanczos/slq.h"
#include "spectrum/adaptive.h"
#include "spectrum/provenance.h"
#include "spectrum/stability.h"

bool ks_measurement_is_short(const struct ks_measurement *m)
{
    return m->look.excess > 1;
}

bool ks_measurement_has_certificates(const struct ks_measurement *m)
{
    return !m->exact && !m->analyzed->published;
}

/* --- the null space --- */

ks_status ks_measure_null_space(struct ks_measurement *m)
{
    const struct ks_null_space *space = m->analyzed->space;
    ks_status status;
    char text[512];

    if (!space)
        return KS_OK;
    status = ks_null_measure(space, m->a, m->on_product, m->context, &m->null);
    if (status == KS_NUMBER && !m->exact) {
        snprintf(text, sizeof text, "%s", ks_error_text());
        status = ks_fail(status, "before Lanczos step 1 of %zu: %s", m->order, text);
    }
    if (status == KS_OK)
        status = ks_null_basis_update(space, &m->null, &m->basis);
    return ks_team_agree(m->world, status);
}

/* --- the probes --- */

ks_status ks_measurement_allocate(struct ks_measurement *m, size_t order)
{
    struct ks_certificates_sizes sizes = {.n = m->n,
                                          .probes = m->probes,
                                          .order = order,
                                          .part = KS_STATISTICS_PART,
                                          .basis = m->basis};
    size_t first;

    KS_TRY(ks_alloc(1, sizeof *m->spectrum, &m->spectrum));
    if (!ks_measurement_has_certificates(m))
        return KS_OK;
    ks_team_slice(m->team, m->n, &first, &sizes.length);
    return ks_certificates_new(&sizes, &m->certificates);
}

static ks_status take_vectors(void *context, const struct ks_lanczos *lanczos)
{
    return ks_certificates_take(&((struct ks_measurement *)context)->certificates, lanczos);
}

static ks_status run_lanczos(struct ks_measurement *m)
{
    const bool certificates = ks_measurement_has_certificates(m);
    const struct ks_slq slq = {.order = m->order,
                               .probes = m->probes,
                               .seed = m->seed,
                               .single = m->single_basis,
                               .single_products = m->analyzed->single,
                               .xqc = m->analyzed->published,
                               .world = m->world,
                               .team = m->team,
                               .group = ks_slq_group(m->world, ks_team_rank(m->world), m->groups),
                               .groups = m->groups,
                               .gradient = m->gradient,
                               .on_finished = certificates ? take_vectors : NULL,
                               .finished_context = m,
                               .on_step = m->on_step,
                               .context = m->context};

    KS_TRY(ks_slq(m->a, &slq, m->spectrum));
    return certificates ? ks_certificates_collect(&m->certificates, m->world, m->team, m->groups)
                        : KS_OK;
}

static void count_exact_product(void *context, size_t products)
{
    const struct ks_measurement *m = context;
    const struct ks_null_space *space = m->analyzed->space;

    if (m->on_product)
        m->on_product(m->context, (space ? ks_null_products(space) : 0) + products);
}

ks_status ks_measure_probes(struct ks_measurement *m)
{
    if (m->gradient_probe)
        KS_TRY(ks_team_agree(m->world, ks_gradient_start(m->analyzed, m->team, &m->gradient)));
    if (m->tolerances)
        return ks_adaptive_probes(m);
    KS_TRY(ks_team_agree(m->world, ks_measurement_allocate(m, m->order)));
    if (m->exact)
        return ks_team_agree(m->world, ks_exact(m->a, count_exact_product, m, m->spectrum));
    return ks_team_agree(m->world, run_lanczos(m));
}

/* --- the certificates --- */

/* If float32 products gave all eigenvalues: measures their error, and finds the dead coordinates by
 * float64 products, since in float32 a product may also be zero by underflow. */
static ks_status check_exact(struct ks_measurement *m)
{
    const struct ks_analyzed *analyzed = m->analyzed;
    struct ks_operator *wide = NULL;
    struct ks_null null = {.is_dead = NULL};
    ks_status status = KS_OK;

    if (!analyzed->single)
        return KS_OK;
    KS_GO(ks_analyzed_wide(analyzed, m->team, m->memory, &wide));
    KS_GO(ks_exact_error(m->a, wide, &m->exact_error));
    KS_GO(ks_null_measure(analyzed->space, wide, NULL, NULL, &null));
    ks_null_take_dead(&m->null, &null);
    KS_GO(ks_null_basis_update(analyzed->space, &m->null, &m->basis));
done:
    ks_null_clear(&null);
    ks_operator_free(wide);
    return status;
}

static ks_status certify(struct ks_measurement *m)
{
    if (m->exact)
        return check_exact(m);
    if (!ks_measurement_has_certificates(m) || m->uncertified)
        return KS_OK;
    m->certificates.gradient = m->gradient;
    m->certificates.fresh = m->fresh;
    if (!m->analyzed->kind)
        return ks_certify_operator(&m->certificates, m->a);
    return ks_certify(&m->certificates, m->analyzed, m->team,
                      m->memory / (size_t)omp_get_max_threads());
}

ks_status ks_measure_certificates(struct ks_measurement *m)
{
    return ks_team_agree(m->world, certify(m));
}

/* --- the statistics --- */

struct ks_statistics_terms ks_measurement_terms(const struct ks_measurement *m)
{
    const struct ks_analyzed *analyzed = m->analyzed;
    const struct ks_operator_kind *kind = analyzed->kind;
    struct ks_statistics_terms terms = {
        .n = m->n,
        .epsilon = analyzed->single ? FLT_EPSILON : DBL_EPSILON,
        .basis_epsilon = m->single_basis ? FLT_EPSILON : DBL_EPSILON,
        .exact_error = m->exact_error,
        .gradient = m->gradient_probe,
        .certificates = ks_measurement_has_certificates(m) ? &m->certificates : NULL,
        .unweighted = analyzed->published};

    if (kind) {
        terms.minibatches = (double)ks_problem_minibatches(&analyzed->problem);
        terms.shift = analyzed->space->shift;
        terms.null = &m->null;
        terms.operator_rank = kind->operator_rank ? kind->operator_rank(&analyzed->problem) : 0;
    }
    return terms;
}

ks_status ks_measure_statistics(struct ks_measurement *m)
{
    const struct ks_statistics_terms terms = ks_measurement_terms(m);

    if (m->analyzed->published && !m->exact)
        ks_statistics_unweight(m->spectrum);
    KS_TRY(ks_statistics(m->spectrum, &terms));
    ks_trace_store(&m->trace, m->spectrum);
    return KS_OK;
}

ks_status ks_measure_all(struct ks_measurement *m)
{
    const struct ks_statistics_terms terms = ks_measurement_terms(m);

    KS_TRY(ks_measure_statistics(m));
    if (m->analyzed->kind)
        KS_TRY(ks_stability_add(m->analyzed, m->learning_rate, m->spectrum));
    KS_TRY(ks_density(m->spectrum));
    if (m->tolerances)
        KS_TRY(ks_adaptive_report(m));
    KS_TRY(ks_provenance_probes(terms.certificates, m->spectrum));
    return ks_provenance_spectrum(m, &terms);
}

void ks_measurement_clear(struct ks_measurement *m)
{
    ks_spectrum_free(m->spectrum);
    free(m->gradient);
    ks_certificates_clear(&m->certificates);
    ks_null_basis_free(m->basis);
    ks_null_clear(&m->null);
    m->spectrum = NULL, m->gradient = NULL, m->basis = NULL;
    m->certificates = (struct ks_certificates){.n = 0};
    m->null = (struct ks_null){.dimension = 0};
    m->trace = (struct ks_trace_samples){.rounds = 0};
    m->look = (struct ks_data_error){.steps = 0};
    m->exact_error = 0;
}
