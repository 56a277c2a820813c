/* Spectra, for which the library checks options and memory, and the pipeline does the rest; and a
 * single Lanczos recurrence, into the caller's arrays; and what a spectrum says. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "lanczos/jacobi.h"
#include "lanczos/slq.h"
#include "library/library.h"
#include "statistics/statistics.h"

enum { MOST = 10000 }; /* steps, probes */

ks_status ks_library_spectrum(ks_status status, struct ks_spectrum *s,
                              struct kappascope_spectrum **spectrum)
{
    if (status == KS_OK)
        status = ks_alloc(1, sizeof **spectrum, spectrum);
    if (status == KS_OK)
        (*spectrum)->s = s;
    else
        ks_spectrum_free(s);
    return status;
}

void kappascope_slq_defaults(struct kappascope_slq_options *options)
{
    if (options)
        *options = (struct kappascope_slq_options){.order = 90, .probes = 1, .certificates = true};
}

static ks_status check_memory(const struct kappascope_operator *a)
{
    struct ks_pipeline counted = a->p;
    struct ks_count count;
    ks_status status;

    counted.budget.basis_f32 = a->options.basis_f32;
    ks_count_start(&count);
    status = ks_pipeline_from_operator(&counted);
    ks_count_end();
    ks_pipeline_clear(&counted);
    KS_TRY(status);
    return ks_library_fits(a->options.exact ? "the dense matrix" : "the Lanczos vectors",
                           fmax(count.earlier, count.most));
}

/* Certificates need products in float64, and all eigenvalues have no certificates. */
static ks_status check_products(struct kappascope_operator *a)
{
    if (a->checkpoint || !a->options.products_f32)
        return KS_OK;
    if (a->options.exact)
        return ks_fail(KS_USAGE, "exact: expected products in float64, found them in float32");
    a->options.certificates = a->options.certificates && a->exact;
    return KS_OK;
}

ks_status ks_library_run(struct kappascope_operator *a, struct kappascope_spectrum **spectrum)
{
    ks_status status = check_products(a);

    if (status == KS_OK)
        status = check_memory(a);
    a->p.budget.basis_f32 = a->options.basis_f32;
    a->p.spent = 0;
    if (status == KS_OK)
        status = ks_pipeline_analyze(&a->p);
    status = ks_library_spectrum(status, a->p.spectrum, spectrum);
    a->p.spectrum = NULL; /* now owned by *spectrum, or freed */
    ks_pipeline_clear(&a->p);
    return status;
}

enum kappascope_status kappascope_slq(struct kappascope_operator *a,
                                      const struct kappascope_slq_options *options,
                                      struct kappascope_spectrum **spectrum)
{
    KS_POINTS;
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
    a->options.complement = false;
    a->options.certificates = options->certificates;
    return (enum kappascope_status)ks_library_run(a, spectrum);
}

enum kappascope_status kappascope_exact(struct kappascope_operator *a,
                                        struct kappascope_spectrum **spectrum)
{
    KS_POINTS;
    KS_GIVEN(spectrum);
    *spectrum = NULL;
    KS_GIVEN(a);
    KS_PUBLIC(ks_library_range("n", a->p.budget.dimension, 1, KS_EXACT_LIMIT));
    a->options.exact = true;
    a->options.seed = 0;
    a->options.certificates = true;
    a->options.basis_f32 = a->options.gradient_probe = a->options.complement = false;
    return (enum kappascope_status)ks_library_run(a, spectrum);
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
        KS_TRY(ks_lanczos_step(l));
    return KS_OK;
}

enum kappascope_status kappascope_lanczos(struct kappascope_operator *a,
                                          const struct kappascope_lanczos_options *options,
                                          struct kappascope_recurrence *result)
{
    KS_POINTS;
    KS_OWNED_BY(ks_lanczos_free) struct ks_lanczos *l = NULL;
    size_t rows;

    KS_GIVEN(a);
    KS_GIVEN(options);
    KS_GIVEN(result);
    result->steps = 0;
    KS_GIVEN(result->alpha);
    KS_GIVEN(result->beta);
    KS_PUBLIC(ks_library_range("order", options->order, 1, MOST));
    KS_PUBLIC(ks_library_range("seed", options->seed, 0, INT64_MAX));
    KS_PUBLIC(ks_library_range("probe", options->probe, 0, KS_PROBE_GRADIENT - 1));
    KS_PUBLIC(
        ks_library_fits("the Lanczos vectors", ks_lanczos_bytes(a->p.a->n, options->order, false)));
    KS_PUBLIC(ks_lanczos_new(a->p.a, options->order, false, &l));
    KS_PUBLIC(take_steps(a, options, l));
    memcpy(result->alpha, l->alpha, l->steps * sizeof *l->alpha);
    memcpy(result->beta, l->beta, l->steps * sizeof *l->beta);
    rows = l->steps + !l->exhausted;
    if (result->basis)
        memcpy(result->basis, l->basis, rows * l->n * sizeof *l->basis);
    result->steps = l->steps;
    return KAPPASCOPE_OK;
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

/* --- what a spectrum says --- */

enum kappascope_status kappascope_spectrum_read(const char *path,
                                                struct kappascope_spectrum **spectrum)
{
    KS_POINTS;
    struct ks_spectrum *s = NULL;
    ks_status status;

    KS_GIVEN(spectrum);
    *spectrum = NULL;
    KS_GIVEN(path);
    ks_library_lock();
    status = ks_spectrum_read(path, &s);
    ks_library_unlock();
    return (enum kappascope_status)ks_library_spectrum(status, s, spectrum);
}

enum kappascope_status kappascope_spectrum_write(const struct kappascope_spectrum *spectrum,
                                                 const char *path)
{
    KS_POINTS;
    ks_status status;

    KS_GIVEN(spectrum);
    KS_GIVEN(path);
    ks_library_lock();
    status = ks_spectrum_write(path, spectrum->s);
    ks_library_unlock();
    return (enum kappascope_status)status;
}

void kappascope_spectrum_free(struct kappascope_spectrum *spectrum)
{
    if (!spectrum)
        return;
    ks_spectrum_free(spectrum->s);
    free(spectrum);
}

size_t kappascope_spectrum_probes(const struct kappascope_spectrum *spectrum)
{
    return spectrum ? spectrum->s->probes : 0;
}

size_t kappascope_spectrum_steps(const struct kappascope_spectrum *spectrum, size_t probe)
{
    return spectrum && probe < spectrum->s->probes ? ks_spectrum_steps(spectrum->s, probe) : 0;
}

/* A row of an array [probes, order]. */
static const double *row(const struct kappascope_spectrum *spectrum, const double *array,
                         size_t probe)
{
    return array && probe < spectrum->s->probes ? array + probe * spectrum->s->order : NULL;
}

const double *kappascope_spectrum_ritz(const struct kappascope_spectrum *spectrum, size_t probe)
{
    return spectrum ? row(spectrum, spectrum->s->ritz, probe) : NULL;
}

const double *kappascope_spectrum_weight(const struct kappascope_spectrum *spectrum, size_t probe)
{
    return spectrum ? row(spectrum, spectrum->s->weight, probe) : NULL;
}

const double *kappascope_spectrum_residual(const struct kappascope_spectrum *spectrum, size_t probe)
{
    return spectrum ? row(spectrum, spectrum->s->residual, probe) : NULL;
}

const double *kappascope_spectrum_alpha(const struct kappascope_spectrum *spectrum, size_t probe)
{
    return spectrum ? row(spectrum, spectrum->s->alpha, probe) : NULL;
}

const double *kappascope_spectrum_beta(const struct kappascope_spectrum *spectrum, size_t probe)
{
    return spectrum ? row(spectrum, spectrum->s->beta, probe) : NULL;
}

double kappascope_spectrum_statistic(const struct kappascope_spectrum *spectrum, const char *name)
{
    return spectrum && name ? ks_statistic(spectrum->s, name) : NAN;
}

const char *kappascope_spectrum_statistic_name(const struct kappascope_spectrum *spectrum, size_t i)
{
    return spectrum && i < spectrum->s->statistics.n ? spectrum->s->statistics.list[i].name : NULL;
}

double kappascope_spectrum_certificate(const struct kappascope_spectrum *spectrum, const char *name)
{
    return spectrum && name ? ks_attribute_number(&spectrum->s->certificate, name) : NAN;
}

const char *kappascope_spectrum_certificate_name(const struct kappascope_spectrum *spectrum,
                                                 size_t i)
{
    return spectrum && i < spectrum->s->certificate.n ? spectrum->s->certificate.list[i].name
                                                      : NULL;
}

const char *kappascope_spectrum_claim(const struct kappascope_spectrum *spectrum)
{
    const struct ks_attribute *claim = spectrum
                                           ? ks_attribute_find(&spectrum->s->attributes, "claim")
                                           : NULL;

    return claim && claim->type == KS_ATTRIBUTE_STRING ? claim->string : NULL;
}

enum kappascope_status kappascope_spectrum_density(const struct kappascope_spectrum *spectrum,
                                                   struct kappascope_density *density)
{
    const struct ks_spectrum *s;

    KS_GIVEN(spectrum);
    KS_GIVEN(density);
    s = spectrum->s;
    *density = (struct kappascope_density){.points = s->n_grid,
                                           .grid = s->grid,
                                           .density = s->density,
                                           .symlog_grid = s->symlog_grid,
                                           .symlog_density = s->symlog_density};
    return KAPPASCOPE_OK;
}

static const char *word_of(enum ks_statistic_kind kind)
{
    switch (kind) {
    case KS_IS_EXTREME:
    case KS_IS_BOUND:
        return "bound";
    case KS_IS_INTERVAL:
    case KS_IS_RATIO:
        return "interval";
    case KS_IS_ESTIMATE:
    case KS_IS_COUNT:
    case KS_IS_SHARE:
        return "estimate";
    case KS_IS_QUOTIENT:
        return "quotient";
    default:
        return "number";
    }
}

static enum kappascope_status no_more(const char *what, size_t i)
{
    return (enum kappascope_status)ks_fail(KS_USAGE, "%s %zu: there are no more", what, i);
}

enum kappascope_status kappascope_spectrum_reading(const struct kappascope_spectrum *spectrum,
                                                   size_t i, struct kappascope_statistic *statistic)
{
    KS_POINTS;
    const enum ks_statistic_id *id = ks_catalogue_for_readers;
    struct ks_interval interval;

    static_assert(sizeof statistic->text >= KS_STATISTIC_TEXT, "a statistic as it is printed");
    KS_GIVEN(spectrum);
    KS_GIVEN(statistic);
    for (size_t k = 0; *id < KS_STATISTICS; id++)
        if (ks_statistic_present(spectrum->s, *id) && k++ == i)
            break;
    if (*id == KS_STATISTICS)
        return no_more("statistic", i);
    interval = ks_statistic_interval(spectrum->s, *id);
    *statistic = (struct kappascope_statistic){.name = ks_catalogue[*id].name,
                                               .value = ks_statistic_value(spectrum->s, *id),
                                               .lower = interval.lower,
                                               .upper = interval.upper,
                                               .what = word_of(ks_catalogue[*id].kind),
                                               .meaning = ks_catalogue[*id].words};
    ks_statistic_text(spectrum->s, *id, statistic->text);
    return KAPPASCOPE_OK;
}

enum kappascope_status kappascope_spectrum_attribute(const struct kappascope_spectrum *spectrum,
                                                     size_t i,
                                                     struct kappascope_attribute *attribute)
{
    const struct ks_attribute *a;

    KS_GIVEN(spectrum);
    KS_GIVEN(attribute);
    if (i >= spectrum->s->attributes.n)
        return no_more("attribute", i);
    a = &spectrum->s->attributes.list[i];
    *attribute = (struct kappascope_attribute){
        .name = a->name,
        .text = a->type == KS_ATTRIBUTE_STRING ? a->string : NULL,
        .number = ks_attribute_number(&spectrum->s->attributes, a->name),
        .integer = a->type == KS_ATTRIBUTE_INTEGER};
    return KAPPASCOPE_OK;
}

enum kappascope_status kappascope_spectrum_array(const struct kappascope_spectrum *spectrum,
                                                 size_t i, struct kappascope_array *array)
{
    struct ks_spectrum_dataset dataset;

    KS_GIVEN(spectrum);
    KS_GIVEN(array);
    if (!ks_spectrum_dataset(spectrum->s, i, &dataset))
        return no_more("array", i);
    *array = (struct kappascope_array){.name = dataset.name,
                                       .rows = dataset.rows,
                                       .columns = dataset.columns,
                                       .values = dataset.values};
    return KAPPASCOPE_OK;
}
