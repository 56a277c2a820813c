#include "program/apply.h"

#include <math.h>
#include <stdlib.h>

#include "core/memory.h"
#include "program/stages.h"
#include "spectrum/provenance.h"

/* E P: the length of a vector in a file. */
static size_t full_length(const struct ks_analysis *a)
{
    const struct ks_networks *critic = &a->checkpoint->critic;

    return ks_networks_parameters(critic);
}

static ks_status require_finite(size_t n, const double *v, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(v[i]))
            return ks_fail(KS_NUMBER, "%s holds a NaN or an infinity", name);
    return KS_OK;
}

static ks_status write_vectors(const struct ks_analysis *a, const char *path, size_t k,
                               const double *v, const double *loss)
{
    struct ks_attributes list = {.n = 0};
    ks_status status = ks_provenance_vectors(&a->analyzed, loss, &list);

    if (status == KS_OK)
        status = ks_vectors_write(path, k, full_length(a), v, &list);
    ks_attributes_clear(&list);
    return status;
}

/* --- products --- */

static ks_status count_vectors(struct ks_analysis *a)
{
    return ks_vectors_count(a->options->apply, full_length(a), &a->budget.vectors);
}

ks_status ks_apply_count(struct ks_analysis *a)
{
    KS_TRY(ks_on_leader(a, count_vectors));
    ks_team_broadcast(a->world, 0, sizeof a->budget.vectors, &a->budget.vectors);
    return KS_OK;
}

/* v: on rank 0 all vectors of the file, which their products replace; on the other ranks scratch
 * for one vector. pair [2, n]: scratch for a factor and its product. */
static ks_status multiply(struct ks_analysis *a, double *v, double *pair)
{
    const size_t n = a->block->n;
    double *factor = pair, *product = pair + n;

    for (size_t i = 0; i < a->budget.vectors; i++) {
        double *full = ks_is_leader(a) ? v + i * a->analyzed.selection->of : v;

        ks_selection_gather(a->analyzed.selection, full, factor);
        ks_team_broadcast(&a->team, 0, n * sizeof *factor, factor);
        KS_TRY(ks_operator_apply(a->block, factor, product));
        KS_TRY(require_finite(n, product, "a product"));
        ks_selection_scatter(a->analyzed.selection, product, full);
        ks_monitor_product(&a->monitor, i + 1);
    }
    return KS_OK;
}

/* Rank 0 reads all vectors; the other ranks allocate scratch for one. */
static ks_status read_vectors(struct ks_analysis *a, double **v)
{
    const size_t n = a->analyzed.selection->of;
    ks_status status = ks_is_leader(a)
                           ? ks_vectors_read(a->options->apply, n, &a->budget.vectors, v)
                           : ks_alloc(n, sizeof **v, v);

    KS_TRY(ks_team_agree(a->world, status));
    ks_team_broadcast(a->world, 0, sizeof a->budget.vectors, &a->budget.vectors);
    a->monitor.products = a->budget.vectors;
    return KS_OK;
}

ks_status ks_apply_products(struct ks_analysis *a)
{
    ks_status status = KS_OK;
    double *v = NULL, *pair = NULL;

    KS_GO(read_vectors(a, &v));
    status = ks_alloc(2 * a->block->n, sizeof *pair, &pair);
    if (status == KS_OK)
        status = ks_monitor_start(&a->monitor);
    KS_GO(ks_team_agree(a->world, ks_name_checkpoint(a, status)));
    KS_GO(ks_name_checkpoint(a, multiply(a, v, pair)));
    if (ks_is_leader(a))
        status = write_vectors(a, a->options->output, a->budget.vectors, v, NULL);
    KS_GO(ks_team_agree(a->world, status));
done:
    free(v);
    free(pair);
    return status;
}

/* --- the gradient --- */

/* Computes this rank's part of loss and gradient with at most `limit` bytes in total, of which
 * `fixed` are already allocated. */
static ks_status find_gradient(const struct ks_analysis *a, double limit, size_t fixed,
                               double *loss, double *gradient)
{
    size_t left = limit > (double)fixed ? (size_t)(limit - (double)fixed) : 0, taken = left;
    ks_status status = ks_gradient(&a->analyzed.problem, &taken, loss, gradient);

    if (taken <= left)
        return status;
    return ks_fail(KS_MEMORY,
                   "--memory: expected at least %.0fK, found %.0fK: checkpoint and gradient take "
                   "%.0fK, finding it %.0fK",
                   ceil((double)(fixed + taken) / 1024), floor(limit / 1024),
                   ceil((double)fixed / 1024), ceil((double)taken / 1024));
}

/* Sums loss and gradient over the ranks. */
static ks_status sum_gradient(struct ks_analysis *a, size_t n, double *scratch, double *loss,
                              double *gradient)
{
    ks_team_sum(&a->team, 1, loss);
    ks_team_sum_vector(&a->team, n, scratch, gradient);
    KS_TRY(require_finite(1, loss, "the loss"));
    return require_finite(n, gradient, "the gradient");
}

ks_status ks_apply_gradient(struct ks_analysis *a)
{
    const size_t n = full_length(a), before = ks_alloc_total();
    ks_status status = KS_OK;
    double *gradient = NULL, *scratch = NULL, loss;
    size_t fixed;

    status = ks_alloc(n, sizeof *gradient, &gradient);
    if (status == KS_OK)
        status = ks_alloc(ks_team_scratch(&a->team, n), sizeof *scratch, &scratch);
    fixed = ks_alloc_total() - a->allocated_before;
    if (status == KS_OK)
        status = find_gradient(a, ks_budget_limit(a->options, a->world, fixed), fixed, &loss,
                               gradient);
    KS_GO(ks_team_agree(a->world, ks_name_checkpoint(a, status)));
    KS_GO(ks_name_checkpoint(a, sum_gradient(a, n, scratch, &loss, gradient)));
    if (ks_is_leader(a))
        status = write_vectors(a, a->options->gradient, 1, gradient, &loss);
    KS_GO(ks_team_agree(a->world, status));
done:
    free(gradient);
    free(scratch);
    ks_alloc_freed_since(before);
    return status;
}
