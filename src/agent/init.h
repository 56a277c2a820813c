/* Initial parameters of a network: orthogonal kernels; constants for all others. */
#ifndef KS_AGENT_INIT_H
#define KS_AGENT_INIT_H

#include <stddef.h>

#include "core/error.h"
#include "core/real.h"
#include "core/rng.h"
#include "net/arch.h"

/* Sets w [rows, columns], row-major with rows `stride` apart, to gain times a uniformly distributed
 * matrix with orthonormal columns (if rows >= columns) or rows. Uses rows * columns draws. Fails
 * with KS_MEMORY, KS_RUN. */
ks_status KS(orthogonal)(size_t rows, size_t columns, double gain, struct ks_rng *rng,
                         size_t stride, real *w);

/* Initializes the parameters w [arch->parameters] and running statistics state [arch->states] as
 * the layers' arrays specify. The last kernel of an actor consists of two heads, each orthogonal by
 * itself: means with the layer's gain, log-stds with gain 1. */
ks_status KS(init_network)(const struct ks_arch *arch, struct ks_rng *rng, real *w, real *state);

#endif
