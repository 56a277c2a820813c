/* Means of the Gauss-Radau bounds over the probes, without the weight of the known null space. */
#include "statistics/share_bounds.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "core/memory.h"

void ks_share_bounds_free(struct ks_share_bounds *b)
{
    if (!b)
        return;
    for (size_t p = 0; b->radau && p < b->in->probes; p++)
        ks_radau_free(b->radau[p]);
    free(b->radau);
    free(b->fraction);
    free(b->size);
    free(b->span);
    free(b);
}

static int ascending(const void *one, const void *two)
{
    double a = *(const double *)one, b = *(const double *)two;

    return (a > b) - (a < b);
}

static int ascending_upper(const void *one, const void *two)
{
    return ascending(&((const struct ks_interval *)one)->upper,
                     &((const struct ks_interval *)two)->upper);
}

static void list_ritz(struct ks_share_bounds *b)
{
    for (size_t p = 0; p < b->in->probes; p++)
        for (size_t i = 0; i < b->radau[p]->m; i++) {
            double theta = b->radau[p]->theta[i], reach = b->radau[p]->residual[i] + b->in->h;

            b->size[b->sizes++] = fabs(theta);
            b->span[b->spans++] = (struct ks_interval){theta - reach, theta + reach};
        }
    qsort(b->size, b->sizes, sizeof *b->size, ascending);
    qsort(b->span, b->spans, sizeof *b->span, ascending_upper);
}

/* The weight of probe p in a mean is |g_p|^2 (1 - w0_p), its squared norm off the known null space,
 * divided by the sum over the probes. */
static void set_fractions(struct ks_share_bounds *b)
{
    double sum = 0, square = 0;

    for (size_t p = 0; p < b->in->probes; p++) {
        const struct ks_share_probe *probe = &b->in->probe[p];

        b->fraction[p] = b->others > 0 ? probe->start_norm2 * fmax(1 - probe->null_weight, 0) : 0;
        sum += b->fraction[p];
        square += b->fraction[p] > 0 ? probe->start_norm2 * probe->null_weight : 0;
    }
    for (size_t p = 0; p < b->in->probes && sum > 0; p++)
        b->fraction[p] /= sum;
    b->null_size = sum > 0 ? sqrt(square / sum) : 0;
}

ks_status ks_share_bounds_new(const struct ks_shares_input *in, struct ks_share_bounds **bounds)
{
    ks_status status = KS_OK;
    struct ks_share_bounds *b = NULL;
    size_t steps = 0;

    assert(in->probes > 0 && in->n_null <= in->n && in->least_nullity <= in->n);
    *bounds = NULL;
    for (size_t p = 0; p < in->probes; p++)
        steps += in->probe[p].steps;
    KS_GO(ks_alloc(1, sizeof *b, &b));
    b->in = in;
    b->others = in->n - in->n_null;
    b->zeros = in->least_nullity > in->n_null ? in->least_nullity - in->n_null : 0;
    KS_GO(ks_alloc(in->probes, sizeof(struct ks_radau *), &b->radau));
    KS_GO(ks_alloc(in->probes, sizeof(double), &b->fraction));
    KS_GO(ks_alloc(steps, sizeof(double), &b->size));
    KS_GO(ks_alloc(steps, sizeof *b->span, &b->span));
    for (size_t p = 0; p < in->probes; p++)
        KS_GO(ks_radau_new(in->probe[p].steps, in->probe[p].alpha, in->probe[p].beta,
                           in->probe[p].ended, &b->radau[p]));
    list_ritz(b);
    set_fractions(b);
    *bounds = b, b = NULL;
done:
    ks_share_bounds_free(b);
    return status;
}

/* Adds a probe's bounds to the means: `null`, the weight of the known null space, is subtracted,
 * and the rest is taken as a share of 1 - w0. */
static void add(const struct ks_share_bounds *b, size_t p, struct ks_interval of, double null,
                struct ks_interval *mu)
{
    double rest = 1 - b->in->probe[p].null_weight;

    if (!(b->fraction[p] > 0))
        return;
    mu->lower += b->fraction[p] * fmax((of.lower - null) / rest, 0);
    mu->upper += b->fraction[p] * fmin((of.upper - null) / rest, 1);
}

ks_status ks_share_bounds_within(const struct ks_share_bounds *b, double x, struct ks_interval *mu)
{
    *mu = (struct ks_interval){0, 0};
    for (size_t p = 0; x >= 0 && p < b->in->probes; p++) {
        struct ks_interval of;

        KS_TRY(ks_radau_within(b->radau[p], x, &of));
        add(b, p, of, b->in->probe[p].null_weight, mu);
    }
    return KS_OK;
}

ks_status ks_share_bounds_below(const struct ks_share_bounds *b, double x, bool null,
                                struct ks_interval *mu)
{
    *mu = (struct ks_interval){0, 0};
    for (size_t p = 0; p < b->in->probes; p++) {
        struct ks_interval of;

        KS_TRY(ks_radau_below(b->radau[p], x, &of));
        add(b, p, of, null ? b->in->probe[p].null_weight : 0, mu);
    }
    return KS_OK;
}
