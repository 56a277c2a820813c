/* The last stages of an analysis: from the operator to its spectrum. */
#include "program/stages.h"

#include <stdio.h>

#include "core/memory.h"
#include "core/say.h"
#include "lanczos/slq.h"
#include "net/arch.h"

void ks_analysis_set_measurement(struct ks_analysis *a)
{
    const struct ks_options *o = a->options;

    a->measurement = (struct ks_measurement){.analyzed = &a->analyzed,
                                             .a = a->block,
                                             .n = a->block->n,
                                             .memory = a->budget.kept,
                                             .spare = a->budget.spare,
                                             .order = o->order,
                                             .probes = o->probes,
                                             .tolerances = o->tolerances.n > 0 ? &o->tolerances
                                                                               : NULL,
                                             .fresh = ks_analysis_fresh(a),
                                             .spent = a->spent,
                                             .growing = a->minibatches < a->most_minibatches,
                                             .seed = o->seed,
                                             .exact = o->exact,
                                             .single_basis = a->budget.single_basis,
                                             .gradient_probe = o->gradient_probe,
                                             .uncertified = !o->certificates,
                                             .learning_rate = o->learning_rate,
                                             .world = a->world,
                                             .team = &a->team,
                                             .groups = a->groups,
                                             .on_step = ks_monitor_step,
                                             .on_product = ks_monitor_product,
                                             .on_sample = ks_monitor_sample,
                                             .context = &a->monitor};
}

static ks_status start_monitor(struct ks_analysis *a)
{
    return ks_monitor_start(&a->monitor);
}

static ks_status find_null_space(struct ks_analysis *a)
{
    return ks_measure_null_space(&a->measurement);
}

ks_status ks_analysis_find_null_space(struct ks_analysis *a)
{
    KS_TRY(ks_on_all(a, start_monitor));
    return ks_on_all(a, find_null_space);
}

/* A Krylov space that ends early, of dimension below the order. */
static void say_breakdowns(const struct ks_analysis *a)
{
    const struct ks_spectrum *s = a->measurement.spectrum;

    if (a->options->layers || a->options->exact) /* the table of layers has a column for it */
        return;
    for (size_t i = 0; !a->quiet && i < s->probes; i++)
        if ((size_t)s->steps[i] < s->order)
            ks_say("%s: probe %zu: the Krylov space ends after %lld of %zu steps", a->path, i,
                   (long long)s->steps[i], s->order);
}

static ks_status run_probes(struct ks_analysis *a)
{
    return ks_measure_probes(&a->measurement);
}

ks_status ks_analysis_run_probes(struct ks_analysis *a)
{
    KS_TRY(ks_on_all(a, run_probes));
    ks_monitor_end(&a->monitor);
    if (!ks_measurement_is_short(&a->measurement))
        say_breakdowns(a);
    return KS_OK;
}

static ks_status certify(struct ks_analysis *a)
{
    const struct ks_options *o = a->options;

    if (ks_measurement_has_certificates(&a->measurement) && o->certificates) {
        ks_operator_free(a->block); /* in favour of the activations in float64 */
        a->measurement.a = a->block = NULL;
        if (!o->layers) { /* other layers need it */
            ks_operator_free(a->full);
            a->full = NULL;
        }
    }
    return ks_measure_certificates(&a->measurement);
}

ks_status ks_analysis_certify(struct ks_analysis *a)
{
    if (ks_measurement_is_short(&a->measurement))
        return KS_OK;
    return ks_on_all(a, certify);
}

/* The layer that holds a coordinate of a critic's parameters. */
static const struct KS(layer) *find_layer(const struct KS(arch) *arch, size_t parameter)
{
    for (size_t k = 0; k < arch->n_layers; k++) {
        const struct KS(layer) *l = &arch->layer[k];

        if (parameter >= l->offset && parameter - l->offset < l->parameters)
            return l;
    }
    return NULL;
}

void ks_analysis_warn(const struct ks_analysis *a)
{
    const struct KS(arch) *arch = a->checkpoint->critic.arch;
    const size_t *index = a->analyzed.selection->index;
    double error = ks_statistic(a->measurement.spectrum, "product_error");
    size_t at = a->measurement.certificates.worst;
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
