/* Vectors of a checkpoint instead of a spectrum: products of the operator, and the gradient. */
#include "pipeline/pipeline.h"

#include <math.h>
#include <stdlib.h>

#include "core/memory.h"
#include "io/h5.h"
#include "io/spectrum.h"

static ks_status require_finite(size_t n, const double *v, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(v[i]))
            return ks_fail(KS_NUMBER, "%s holds a NaN or an infinity", name);
    return KS_OK;
}

static ks_status write_vectors(const struct ks_pipeline *p, const char *path, size_t k,
                               const double *v, const double *loss)
{
    KS_CLEARED_BY(ks_attributes_clear) struct ks_attributes list = {.n = 0};

    ks_attributes_vectors(p, loss, &list);
    return ks_vectors_write(
        path,
        &(struct ks_vectors){k, ks_networks_parameters(&p->checkpoint->critic), v, &list, NULL});
}

/* --- products --- */

/* v [vectors, E P] is replaced by its products. pair [2, n]: scratch for a factor and its product.
 */
static ks_status multiply(struct ks_pipeline *p, double *v, double *pair)
{
    const size_t n = p->a->n;
    double *factor = pair, *product = pair + n;

    for (size_t i = 0; i < p->budget.vectors; i++) {
        double *full = v + i * p->selection->of;

        ks_selection_gather(p->selection, full, factor);
        KS_TRY(ks_operator_apply(p->a, factor, product));
        KS_TRY(require_finite(n, product, "a product"));
        ks_selection_scatter(p->selection, product, full);
        KS_TRY(ks_monitor_product(p, i + 1));
    }
    return KS_OK;
}

/* Multiplies each vector by the operator, and writes the products. */
static ks_status apply_products(struct ks_pipeline *p, const char *products)
{
    KS_OWNED double *v = NULL;
    KS_OWNED double *pair = NULL;

    KS_TRY(ks_vectors_read_open(p->factors_file, p->selection->of, &p->budget.vectors, &v));
    ks_h5_close(p->factors_file);
    p->factors_file = NULL;
    p->monitor.products = p->budget.vectors;
    KS_TRY(ks_pipeline_name(p, ks_alloc(2 * p->a->n, sizeof *pair, &pair)));
    ks_monitor_start(p);
    KS_TRY(ks_pipeline_name(p, multiply(p, v, pair)));
    return write_vectors(p, products, p->budget.vectors, v, NULL);
}

/* --- the gradient --- */

/* Writes L and its gradient. */
static ks_status apply_gradient(struct ks_pipeline *p, const char *path)
{
    const size_t n = ks_networks_parameters(&p->checkpoint->critic), before = ks_alloc_total();
    ks_status status = KS_OK;
    double *gradient = NULL, loss;

    KS_GO(ks_pipeline_name(p, ks_alloc(n, sizeof *gradient, &gradient)));
    KS_GO(ks_pipeline_name(p, ks_gradient(&p->problem, &loss, gradient)));
    KS_GO(ks_pipeline_name(p, require_finite(1, &loss, "the loss")));
    KS_GO(ks_pipeline_name(p, require_finite(n, gradient, "the gradient")));
    status = write_vectors(p, path, 1, gradient, &loss);
done:
    free(gradient);
    ks_alloc_freed_since(before);
    return status;
}

static ks_status make_operator(struct ks_pipeline *p)
{
    KS_TRY(ks_pipeline_pose_products(p));
    return ks_pipeline_make_operator(p);
}

ks_status ks_pipeline_apply(struct ks_pipeline *p, const char *gradient, const char *products)
{
    KS_TRY(ks_pipeline_name(p, ks_pipeline_pose_loss(p, p->options->layer)));
    if (gradient)
        KS_TRY(apply_gradient(p, gradient));
    if (!p->factors)
        return KS_OK;
    KS_TRY(ks_pipeline_name(p, make_operator(p)));
    return apply_products(p, products);
}
