/* Initial parameters of a network: random kernels; constants for all others. */
#ifndef KS_AGENT_INIT_H
#define KS_AGENT_INIT_H

#include <stddef.h>

#include "core/error.h"
#include "core/real.h"
#include "core/rng.h"
#include "net/arch.h"

/* A block [rows, columns] of a row-major matrix whose rows are `stride` apart. */
struct KS(block) {
    size_t rows, columns, stride;
    real *w;
};

/* Sets a block to gain times a uniformly distributed matrix with orthonormal columns (if rows >=
 * columns) or rows. Uses rows * columns draws. Fails with KS_MEMORY, KS_RUN. */
ks_status KS(orthogonal)(const struct KS(block) *block, double gain, struct ks_rng *rng);

/* How a kernel of n inputs and m outputs starts: orthogonal, or with independent entries. Normal
 * entries are cut off at two standard deviations and then have the variance 2/n (He et al., ICCV
 * 2015) or 1/n (LeCun et al., 1998); uniform entries have the variance 2 gain^2/(n + m) (Glorot &
 * Bengio, AISTATS 2010). */
enum ks_start { KS_ORTHOGONAL, KS_HE_NORMAL, KS_LECUN_NORMAL, KS_XAVIER_UNIFORM };
struct ks_starts {
    enum ks_start kernels, blocks; /* of kernels outside and inside of `residual` */
    double gain; /* of orthogonal and uniform kernels; 0: the gain in the layer's array */
};

/* Sets w [rows, columns] to independent entries between +-gain sqrt(6/(rows + columns)). */
void KS(xavier_uniform)(const struct ks_array *shape, double gain, struct ks_rng *rng, real *w);

/* Initializes the parameters w [arch->parameters] and running statistics state [arch->states] as
 * the layers' arrays and `starts` specify. A layer whose features a `dense groups=G` reads stands
 * for G layers side by side, each orthogonal by itself. The last kernel of a Gaussian actor
 * consists of two heads, each orthogonal by itself: means with the layer's gain, log-stds with gain
 * 1. The last kernel of a shift has the policy's gain. */
ks_status KS(init_network)(const struct KS(arch) *arch, const struct ks_starts *starts,
                           struct ks_rng *rng, real *w, real *state);

#endif
