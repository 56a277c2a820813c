/* How an analysis goes: the three functions that read as the algorithm. */
#include "program/analysis.h"

#include "program/apply.h"
#include "program/bounds.h"
#include "program/eigenvectors.h"
#include "program/outputs.h"
#include "program/stages.h"

/* --- one spectrum --- */

static ks_status check_output(struct ks_analysis *a)
{
    return ks_output_check(a->output, a->path);
}

static ks_status write_spectrum(struct ks_analysis *a)
{
    const struct ks_spectrum *s = a->measurement.spectrum;

    KS_TRY(ks_name_checkpoint(a, ks_measure_all(&a->measurement)));
    KS_TRY(ks_name_checkpoint(a, ks_bounds_add(a)));
    ks_analysis_warn(a);
    KS_TRY(ks_spectrum_write(a->output, s));
    return ks_report_add(a->report, a->path, s);
}

/* Stochastic Lanczos quadrature of A, a curvature of the loss L at the checkpoint's theta:
 *
 *   read, pose        theta, the minibatches; L(theta), the coordinates of A
 *   measure           of a cross-entropy: p - t, |g|, and the Jacobian of the logits
 *   make_operator     v -> A v
 *   find_null_space   directions u with A u = 0, which the architecture implies
 *   run_probes        A Q = Q T + beta q e' from random start vectors: the eigenvalues of T are the
 *                     nodes, the squared first components of its eigenvectors the weights
 *   certify           A y in float64 for the vectors y behind the bounds
 *   add_minibatches   with --tolerance: again with more, if the error from few is too large; then
 *                     run_probes ends as soon as that is known, and certify does nothing
 *   write_spectrum    statistics, density, file, report */
ks_status ks_analyze(struct ks_analysis *a)
{
    KS_TRY(ks_on_leader(a, check_output));
    KS_TRY(ks_analysis_read(a));
    ks_analysis_begin_minibatches(a);
    do {
        KS_TRY(ks_analysis_pose(a));
        KS_TRY(ks_analysis_check_memory(a)); /* before anything large is allocated */
        KS_TRY(ks_bounds_measure(a));
        KS_TRY(ks_analysis_pose_products(a));
        KS_TRY(ks_analysis_make_operator(a));
        ks_analysis_set_measurement(a);
        KS_TRY(ks_analysis_find_null_space(a));
        KS_TRY(ks_analysis_run_probes(a));
        KS_TRY(ks_analysis_certify(a));
    } while (ks_analysis_add_minibatches(a));
    return ks_on_leader(a, write_spectrum);
}

/* --- --layers: one diagonal block after the other --- */

static ks_status pose_layer(struct ks_analysis *a, int layer)
{
    ks_analysis_clear_block(a);
    a->layer = layer;
    KS_TRY(ks_analysis_pose(a));
    return ks_analysis_pose_products(a);
}

static ks_status new_rows(struct ks_analysis *a)
{
    return ks_layers_new(&a->analyzed.problem, a->options->kind->moving, &a->n_rows, &a->rows);
}

/* Finds the layers, the number of products for all of them, and the largest dimension, by which
 * memory is divided. */
static ks_status plan_layers(struct ks_analysis *a, size_t *products)
{
    const size_t order = a->options->order;
    const size_t probes = (a->options->probes + a->groups - 1) / a->groups;
    size_t largest = 0;

    *products = 0;
    KS_TRY(ks_analysis_pose(a)); /* of all layers: refuses a critic that does not exist */
    KS_TRY(ks_on_all(a, new_rows));
    for (size_t i = 0; i < a->n_rows; i++) {
        const size_t n = a->rows[i].dimension;

        KS_TRY(pose_layer(a, (int)a->rows[i].number));
        *products += probes * (n < order ? n : order) + ks_null_products(a->analyzed.space);
        largest = n > largest ? n : largest;
    }
    a->budget.dimension = largest;
    return KS_OK;
}

/* lambda_max, kappa, ... from the nodes and weights. */
static ks_status add_statistics(struct ks_analysis *a)
{
    return ks_measure_statistics(&a->measurement);
}

static ks_status analyze_layer(struct ks_analysis *a, struct ks_layer_row *row)
{
    const struct ks_spectrum *s;

    KS_TRY(pose_layer(a, (int)row->number));
    KS_TRY(ks_analysis_make_block(a));
    ks_analysis_set_measurement(a);
    a->monitor.null_products = ks_null_products(a->analyzed.space);
    KS_TRY(ks_analysis_find_null_space(a));
    KS_TRY(ks_analysis_run_probes(a));
    KS_TRY(ks_analysis_certify(a));
    KS_TRY(ks_on_all(a, add_statistics));
    s = a->measurement.spectrum;
    a->monitor.earlier += a->monitor.null_products + a->monitor.sampled;
    a->monitor.sampled = 0;
    for (size_t i = 0; i < s->probes; i += a->groups)
        a->monitor.earlier += (size_t)s->steps[i];
    ks_analysis_warn(a);
    ks_layers_take(row, s);
    return KS_OK;
}

static ks_status report_layers(struct ks_analysis *a)
{
    return ks_layers_report(a->report, a->path, a->options, a->n_rows, a->rows);
}

/* The operator of all coordinates is made once; a layer's products are its products, restricted. */
ks_status ks_analyze_layers(struct ks_analysis *a)
{
    size_t products;

    KS_TRY(ks_analysis_read(a));
    KS_TRY(plan_layers(a, &products));
    KS_TRY(ks_analysis_make_operator(a));
    a->monitor.products = products;
    for (size_t i = 0; i < a->n_rows; i++)
        KS_TRY(analyze_layer(a, &a->rows[i]));
    ks_layers_share(a->n_rows, a->rows);
    return ks_on_leader(a, report_layers);
}

/* --- --apply, --gradient and --eigenvectors: vectors --- */

static ks_status check_vectors(struct ks_analysis *a)
{
    const struct ks_options *o = a->options;
    const char *const outputs[] = {o->output, o->gradient};

    for (size_t i = 0; i < 2; i++)
        if (outputs[i]) {
            KS_TRY(ks_output_check(outputs[i], a->path));
            KS_TRY(ks_output_check(outputs[i], o->apply));
        }
    return KS_OK;
}

ks_status ks_analyze_vectors(struct ks_analysis *a)
{
    KS_TRY(ks_on_leader(a, check_vectors));
    KS_TRY(ks_analysis_read(a));
    KS_TRY(ks_analysis_pose(a));
    if (a->options->gradient)
        KS_TRY(ks_apply_gradient(a));
    if (!a->options->apply)
        return KS_OK;
    KS_TRY(ks_analysis_pose_products(a));
    KS_TRY(ks_apply_count(a));
    KS_TRY(ks_analysis_make_operator(a));
    return ks_apply_products(a);
}

ks_status ks_analyze_eigenvectors(struct ks_analysis *a)
{
    struct ks_eigenvectors vectors = {.n_layers = 0};
    ks_status status = KS_OK;

    KS_TRY(ks_on_leader(a, check_vectors));
    KS_TRY(ks_analysis_read(a));
    KS_TRY(ks_analysis_pose(a));
    KS_TRY(ks_analysis_pose_products(a));
    KS_TRY(ks_analysis_make_operator(a));
    KS_GO(ks_eigenvectors_find(a, &vectors));
    KS_GO(ks_eigenvectors_write(a, &vectors));
    if (ks_is_leader(a))
        status = ks_eigenvectors_report(a, &vectors);
    status = ks_team_agree(a->world, status);
done:
    ks_eigenvectors_clear(&vectors);
    return status;
}
