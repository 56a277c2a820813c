/* phi(x) = mean over probes of sum_i w_i N(x; theta_i, sigma^2), with sigma in units of the range
 * over m, the number of Ritz values of a probe, so that nothing depends on the unit of the loss:
 *
 *   sigma = range / (m sqrt(8 log 3)),  range = largest theta - smallest theta
 *
 * (Lin, Saad, Yang, SIAM Review 58, 2016: two nodes at the mean distance are then just
 * resolved.)
 *
 * The symmetric-log density is the same sum in s = asinh(x / x_0), with the range of s: the width
 * of a node at x is a constant fraction of |x|, down to x_0. Per unit of x it is phi(s) ds/dx with
 * ds/dx = 1 / sqrt(x^2 + x_0^2). */
#include "lanczos/slq.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"

enum {
    GRID = 2048,   /* points of a grid */
    SHARPEST = 200 /* sigma does not shrink beyond this m: a grid step is at most sigma / 3 */
};
static const double PI = 3.14159265358979323846;
static const double TAIL = 6; /* sigmas that the grid reaches beyond the outermost nodes */
/* x_0 in units of the largest |theta|: smaller values are noise in float32. */
static const double LINEAR = 1e-6;
/* The smallest range in units of the largest value, for spectra of a single point: sigma must stay
 * above the spacing of floating-point numbers. */
static const double NARROWEST = 1e-6;

/* The nodes of the probes with random start vectors, on one axis. The weights of a probe that
 * starts at the gradient are not a density, so it is left out. */
struct nodes {
    const struct ks_spectrum *s; /* with their weights                                */
    size_t n, most;              /* numbers in `at`; largest number of nodes of a probe */
    double *at;                  /* [probes, order], padded with NaN. Owned            */
    double low, high, sigma;
};

/* Computes the range of the nodes and the width sigma of the kernel. */
static void find_width(struct nodes *nodes)
{
    double size, range, m = (double)(nodes->most < SHARPEST ? nodes->most : SHARPEST);

    nodes->low = INFINITY;
    nodes->high = -INFINITY;
    for (size_t i = 0; i < nodes->n; i++) { /* NaN does not count */
        nodes->low = fmin(nodes->low, nodes->at[i]);
        nodes->high = fmax(nodes->high, nodes->at[i]);
    }
    size = fmax(fabs(nodes->low), fabs(nodes->high));
    range = fmax(nodes->high - nodes->low, size > 0 ? NARROWEST * size : 1);
    nodes->sigma = range / (m * sqrt(8 * log(3)));
}

static ks_status collect(const struct ks_spectrum *s, struct nodes *nodes)
{
    const size_t probes = ks_spectrum_random(s);

    *nodes = (struct nodes){.s = s, .n = probes * s->order};
    KS_TRY(ks_alloc(nodes->n, sizeof *nodes->at, &nodes->at));
    memcpy(nodes->at, s->ritz, nodes->n * sizeof *nodes->at);
    for (size_t k = 0; k < probes; k++)
        nodes->most = ks_spectrum_steps(s, k) > nodes->most ? ks_spectrum_steps(s, k) : nodes->most;
    find_width(nodes);
    return KS_OK;
}

/* The density of one probe at x. */
static double phi(const struct nodes *nodes, size_t probe, double x)
{
    const size_t first = probe * nodes->s->order;
    double sum = 0;

    for (size_t i = first; i < first + ks_spectrum_steps(nodes->s, probe); i++) {
        double z = (x - nodes->at[i]) / nodes->sigma;

        sum += nodes->s->weight[i] * exp(-z * z / 2);
    }
    return sum / (nodes->sigma * sqrt(2 * PI));
}

/* The mean over probes, on GRID equidistant points that cover the nodes and the kernel's tails. */
static void smooth(const struct nodes *nodes, double *grid, double *density)
{
    const size_t probes = ks_spectrum_random(nodes->s);
    double start = nodes->low - TAIL * nodes->sigma;
    double step = (nodes->high + TAIL * nodes->sigma - start) / (GRID - 1);

    for (size_t k = 0; k < GRID; k++) {
        grid[k] = start + (double)k * step;
        density[k] = 0;
        for (size_t probe = 0; probe < probes; probe++)
            density[k] += phi(nodes, probe, grid[k]) / (double)probes;
    }
}

double ks_density_unit(const struct ks_spectrum *s)
{
    double size = 0;

    for (size_t i = 0; i < ks_spectrum_random(s) * s->order; i++)
        size = fmax(size, fabs(s->ritz[i])); /* NaN, the padding, does not count */
    return LINEAR * (size > 0 ? size : 1);
}

ks_status ks_density(struct ks_spectrum *s)
{
    ks_status status = KS_OK;
    struct nodes nodes = {0};
    double x_0 = ks_density_unit(s);

    assert(s->ritz && !s->grid);
    KS_GO(collect(s, &nodes));
    KS_GO(ks_alloc(GRID, sizeof(double), &s->grid));
    KS_GO(ks_alloc(GRID, sizeof(double), &s->density));
    KS_GO(ks_alloc(GRID, sizeof(double), &s->symlog_grid));
    KS_GO(ks_alloc(GRID, sizeof(double), &s->symlog_density));
    s->n_grid = GRID;
    smooth(&nodes, s->grid, s->density);
    for (size_t i = 0; i < nodes.n; i++) /* s in place of x */
        nodes.at[i] = asinh(nodes.at[i] / x_0);
    find_width(&nodes);
    smooth(&nodes, s->symlog_grid, s->symlog_density);
    for (size_t k = 0; k < GRID; k++) {
        double x = x_0 * sinh(s->symlog_grid[k]);

        s->symlog_grid[k] = x;
        s->symlog_density[k] /= hypot(x, x_0);
    }
done:
    free(nodes.at);
    return status;
}
