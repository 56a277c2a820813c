/* Dead units: outputs of an activation function that are zero in all rows of the minibatches. No
 * gradient reaches the weights in front of a dead relu. */
#ifndef KS_INSPECT_DEAD_UNITS_H
#define KS_INSPECT_DEAD_UNITS_H

#include <stddef.h>

#include "core/error.h"
#include "io/checkpoint.h"

struct ks_dead_layer {
    const struct KS(layer) *layer; /* an activation function               */
    size_t *dead;                  /* [ensemble] dead units of each critic */
};

struct ks_dead_units {
    size_t minibatches; /* how many were used */
    size_t n;
    struct ks_dead_layer *layer; /* [n]; owned, with its arrays */
};

/* Counts them by forward passes in float64 over all R rows of the first minibatches, at most
 * KS_DEAD_UNITS_TRIED, with batch normalization in training mode, which is the analyzer's default
 * (dormant units of agent/measure.h, with threshold 0). Without the state arrays that
 * these passes read, no layer is counted. KS_MEMORY. The caller ends with ks_dead_units_clear, also
 * after a failure. */
enum { KS_DEAD_UNITS_TRIED = 4 };
ks_status ks_dead_units_count(const struct ks_checkpoint *checkpoint, struct ks_dead_units *units);
void ks_dead_units_clear(struct ks_dead_units *units);

#endif
