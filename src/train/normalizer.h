/* Observations in units of their running mean and standard deviation, for systems that train on
 * normalized ones (SimBa and SimBa-V2: Lee et al., ICLR 2025 and ICML 2025). */
#ifndef KS_TRAIN_NORMALIZER_H
#define KS_TRAIN_NORMALIZER_H

#include <stddef.h>

#include "core/error.h"

/* Mean and biased variance of each observation. They start as those of `count` = 1e-4 observations
 * of mean 0 and variance 1. */
struct ks_normalizer {
    size_t n;
    double count, *mean, *var; /* [n]; owned                           */
    float *row;                /* [n]: for ks_normalizer_see; owned */
};

/* KS_MEMORY. The caller frees. */
ks_status ks_normalizer_new(size_t n, struct ks_normalizer **normalizer);
void ks_normalizer_free(struct ks_normalizer *normalizer);

/* Adds one observation [n]. */
void ks_normalizer_add(struct ks_normalizer *normalizer, const float *observation);
/* Replaces rows [rows, n] by (x - mean) / sqrt(var + 1e-8). NULL: they stay as they are. */
void ks_normalizer_apply(const struct ks_normalizer *normalizer, size_t rows, float *x);
/* One observation as the networks see it: normalized, valid until the next call; or with NULL the
 * observation itself. */
const float *ks_normalizer_see(const struct ks_normalizer *normalizer, const float *observation);

#endif
