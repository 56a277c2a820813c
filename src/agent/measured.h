/* Shared by measure.c and published.c: a network that is being measured, and the list to which its
 * quantities are added. */
#ifndef KS_AGENT_MEASURED_H
#define KS_AGENT_MEASURED_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/measure.h"

/* The networks of an ensemble share the entries of the list: each adds its values with weight
 * 1/ensemble. */
struct KS(measured) {
    const char *name;
    const struct KS(net) *net;
    const struct KS(trained) *t; /* its primal block holds the activations of a pass of `net` */
    const real *g;               /* [P]: gradient                                             */
    double rate;                 /* learning rate of the last gradient step; NaN before the first */
    bool updated;                /* an update has been made: activations exist                */
    double weight;
    bool first; /* the first network of the ensemble: sets the entries instead of adding */
    struct ks_measure *list;
    size_t n;
};

/* Adds weight * value to the next entry of the list, which is named NAME_QUANTITY_LAYER; without
 * LAYER for KS_ALL_LAYERS. */
enum { KS_ALL_LAYERS = -1 };
void KS(measured_add)(struct KS(measured) *s, const char *quantity, int layer, double value);

/* Sums over arrays of parameters w and their gradients g. */
struct ks_norms {
    double w2, g2;       /* squared norms                                             */
    double rates, count; /* sum of n |g|/|w| and of n over arrays of n entries, |w| > 0 */
};
void KS(norms_add)(const struct ks_norms *from, struct ks_norms *to);
/* Whether norms of this layer are measured: it has a kernel. */
bool KS(has_norms)(const struct KS(layer) *l);
/* The norms of a layer's arrays. Their columns are split into `parts` equal parts, each of which
 * counts as an array. */
struct ks_norms KS(measured_norms)(const struct KS(measured) *s, const struct KS(layer) *l,
                                   size_t parts);

/* sum_i |y_ij| over the rows of y [rows, d]: a unit j is dormant where that is 0. */
double KS(unit_activity)(size_t rows, size_t d, const real *y, size_t unit);
/* The mean norm of the rows of y [rows, d]. */
double KS(row_norm)(size_t rows, size_t d, const real *y);
/* *rank: how many of the largest singular values of y [rows, d] make up 99% of the sum of all; NaN
 * if y is not finite. Fails with KS_MEMORY. */
ks_status KS(feature_rank)(size_t rows, size_t d, const real *y, double *rank);

/* ks_agent_measure for the quantities that end in _xqc. */
ks_status KS(agent_measure_published)(struct KS(agent) *a, const struct ks_batch *batch,
                                      struct ks_measure *list, size_t *n);

#endif
