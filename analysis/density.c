/* phi(x) = mean over probes of sum_i w_i N(x; theta_i, sigma^2), with sigma in units of the range
 * over m, the number of Ritz values of a probe, so that nothing depends on the unit of the loss:
 *
 *   sigma = range / (m sqrt(8 log 3)),  range = largest theta - smallest theta
 *
 * (Lin, Saad, Yang, SIAM Review 58, 2016: two nodes at the mean distance then just tell apart.)
 *
 * The symmetric-log density is the same sum in s = asinh(x / x_0), with the range of s: a node at x
 * is as wide as a constant part of |x|, down to x_0. Per unit of x it is phi(s) ds/dx, ds/dx = 1 /
 * sqrt(x^2 + x_0^2). */
#include "ks/density.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "ks/memory.h"

enum {
    GRID = 2048,   /* points of a grid */
    SHARPEST = 200 /* beyond this m, sigma stays: a grid point is at most sigma / 3 wide */
};
static const double PI = 3.14159265358979323846;
static const double TAIL = 6; /* sigmas that the grid reaches beyond the outermost nodes */
static const double LINEAR_PART = 1e-6; /* x_0 in units of the largest |theta|: below that lies
                                         * noise in float32 */
static const double NARROWEST =
    1e-6; /* least range in units of the largest value: a spectrum of
           * one   point must not be narrower than its numbers can say */

/* The nodes of all probes on one axis. */
struct nodes {
    size_t n, probes, most; /* nodes in all; probes; the most nodes of a probe */
    double *at, *weight;    /* [n]; owned */
    double low, high;
};

static void free_nodes(struct nodes *nodes)
{
    free(nodes->at);
    free(nodes->weight);
}

/* Takes the probes' Ritz values, without the padding. */
static ks_status collect(const struct ks_spectrum *s, struct nodes *nodes)
{
    *nodes = (struct nodes){.probes = s->probes, .low = INFINITY, .high = -INFINITY};
    KS_TRY(ks_alloc(s->probes * s->order, sizeof(double), &nodes->at));
    KS_TRY(ks_alloc(s->probes * s->order, sizeof(double), &nodes->weight));
    for (size_t k = 0; k < s->probes; k++) {
        size_t steps = s->steps ? (size_t)s->steps[k] : s->order;

        nodes->most = steps > nodes->most ? steps : nodes->most;
        for (size_t i = k * s->order; i < k * s->order + steps; i++) {
            nodes->at[nodes->n] = s->ritz[i];
            nodes->weight[nodes->n++] = s->weight[i] / (double)s->probes;
            nodes->low = fmin(nodes->low, s->ritz[i]);
            nodes->high = fmax(nodes->high, s->ritz[i]);
        }
    }
    return KS_OK;
}

/* phi on GRID equidistant points that cover the nodes and the kernel's tails. */
static void smooth(const struct nodes *nodes, double *grid, double *phi)
{
    double size = fmax(fabs(nodes->low), fabs(nodes->high));
    double range = fmax(nodes->high - nodes->low, size > 0 ? NARROWEST * size : 1);
    double m = (double)(nodes->most < SHARPEST ? nodes->most : SHARPEST);
    double sigma = range / (m * sqrt(8 * log(3)));
    double start = nodes->low - TAIL * sigma;
    double step = (nodes->high + TAIL * sigma - start) / (GRID - 1);

    for (size_t k = 0; k < GRID; k++) {
        grid[k] = start + (double)k * step;
        phi[k] = 0;
        for (size_t i = 0; i < nodes->n; i++) {
            double z = (grid[k] - nodes->at[i]) / sigma;

            phi[k] += nodes->weight[i] * exp(-z * z / 2) / (sigma * sqrt(2 * PI));
        }
    }
}

ks_status ks_density(struct ks_spectrum *s)
{
    ks_status status = KS_OK;
    struct nodes nodes = {0};
    double size, x_0;

    assert(s->ritz && !s->grid);
    KS_GO(collect(s, &nodes));
    KS_GO(ks_alloc(GRID, sizeof(double), &s->grid));
    KS_GO(ks_alloc(GRID, sizeof(double), &s->density));
    KS_GO(ks_alloc(GRID, sizeof(double), &s->symlog_grid));
    KS_GO(ks_alloc(GRID, sizeof(double), &s->symlog_density));
    s->n_grid = GRID;
    smooth(&nodes, s->grid, s->density);

    size = fmax(fabs(nodes.low), fabs(nodes.high));
    x_0 = LINEAR_PART * (size > 0 ? size : 1); /* the zero matrix has no unit */
    nodes.low = asinh(nodes.low / x_0);
    nodes.high = asinh(nodes.high / x_0);
    for (size_t i = 0; i < nodes.n; i++)
        nodes.at[i] = asinh(nodes.at[i] / x_0);
    smooth(&nodes, s->symlog_grid, s->symlog_density);
    for (size_t k = 0; k < GRID; k++) {
        double x = x_0 * sinh(s->symlog_grid[k]);

        s->symlog_grid[k] = x;
        s->symlog_density[k] /= hypot(x, x_0);
    }
done:
    free_nodes(&nodes);
    return status;
}
