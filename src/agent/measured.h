/* What measure.c and published.c share: one network that is measured, and the list that its
 * quantities are added to. */
#ifndef KS_AGENT_MEASURED_H
#define KS_AGENT_MEASURED_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/measure.h"

/* Networks of an ensemble run through the same names; `weight` is 1 over their number. */
struct ks_measured {
    const char *name;
    const struct ks_net *net;
    const struct ks_trained *t; /* whose primal block holds the activations of the net's pass */
    const real *g;              /* [P]: gradient                                              */
    bool updated;               /* there are activations: an update has been made             */
    double weight;
    bool first; /* of its ensemble: starts the sums */
    struct ks_measure *list;
    size_t n;
};

/* Adds weight * value to the next entry of the list, named after subject, quantity and layer. */
enum { KS_WHOLE = -1 }; /* in place of a layer's number: the whole network */
void KS(measured_add)(struct ks_measured *s, const char *quantity, int layer, double value);

/* Of parameters and of their gradient. */
struct ks_norms {
    double w2, g2;       /* squared norms                               */
    double rates, count; /* sum of n |g|/|w| over arrays, and of their n */
};
void KS(norms_add)(const struct ks_norms *from, struct ks_norms *to);
/* The layer has a kernel: it is one whose norms are measured. */
bool KS(has_norms)(const struct ks_layer *l);
/* Of a layer's arrays; its columns are split into `parts` equal parts, each an array of its own. */
struct ks_norms KS(measured_norms)(const struct ks_measured *s, const struct ks_layer *l,
                                   size_t parts);

/* y [rows, d]: the mean norm of a row; and the number of singular values that make up 99% of their
 * sum, NaN where y is not finite. Fails with KS_MEMORY. */
double KS(row_norm)(size_t rows, size_t d, const real *y);
ks_status KS(feature_rank)(size_t rows, size_t d, const real *y, double *rank);

/* The quantities that end in _xqc; as agent_measure. */
ks_status KS(agent_measure_published)(struct ks_agent *a, const struct ks_batch *batch,
                                      struct ks_measure *list, size_t *n);

#endif
