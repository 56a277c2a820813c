/* First values of a network: orthogonal kernels, constants elsewhere. */
#ifndef KS_AGENT_INIT_H
#define KS_AGENT_INIT_H

#include <stddef.h>

#include "core/error.h"
#include "core/real.h"
#include "core/rng.h"
#include "net/arch.h"

/* Columns of a row-major matrix w [rows, `stride` apart]: gain times a matrix with orthonormal
 * columns (rows >= columns) or rows (else), uniformly distributed. Uses rows * columns draws. */
ks_status KS(orthogonal)(size_t rows, size_t columns, double gain, struct ks_rng *rng,
                         size_t stride, real *w);

/* Parameters w [arch->parameters] and running statistics state [arch->states] as the layers' tables
 * say. An actor's last kernel is two heads, each orthogonal by itself: means with the layer's own
 * gain, log-stds with gain 1. */
ks_status KS(init_network)(const struct ks_arch *arch, struct ks_rng *rng, real *w, real *state);

#endif
