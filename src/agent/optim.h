/* The start of one network and the optimizer's step: Adam, decoupled weight decay, weight
 * projection, Polyak average. */
#ifndef KS_AGENT_OPTIM_H
#define KS_AGENT_OPTIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "core/memory.h"
#include "core/real.h"
#include "core/rng.h"
#include "io/adam.h"
#include "net/arch.h"
#include "net/net.h"

/* init.c: initial parameters of a network: random kernels; constants for all others. */

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

/* The parameters to which weight decay applies, as in the published code of XQC. Norms: scales and
 * biases of batch normalization (not of other normalizations). Heads: kernel and bias of the last
 * layer. */
enum ks_decay {
    KS_DECAY_NONE,
    KS_DECAY_NORMS,
    KS_DECAY_HEADS,
    KS_DECAY_NORMS_AND_HEADS,
    KS_DECAY_ALL
};

/* A learning rate that falls linearly from start to end over `steps` gradient steps, then stays. */
struct ks_rate {
    double start, end, steps;
};
/* The rate of the step that follows `step` steps. */
double KS(rate_at)(const struct ks_rate *rate, int64_t step);

struct ks_adam {
    struct ks_rate rate;
    double beta1; /* of the first moment; beta2 and eps are in io/adam.h */
    double weight_decay;
    enum ks_decay decayed;
    double tau;   /* target <- target + tau (w - target); 0: it stays */
    int64_t step; /* gradient steps taken */
};

/* A network in training. P, S: arch->parameters, arch->states. */
struct KS(trained) {
    real *w, *state;        /* [P], [S]: parameters, running statistics                 */
    real *state_copy;       /* [S], if a layer reads its statistics in training mode; else [0] */
    real *m, *v, *g;        /* [P]: Adam's moments, gradient                            */
    real *target;           /* [P]: Polyak average or older copy of w; NULL: no target  */
    real *primal, *adjoint; /* blocks for its passes (net.h); not used by the optimizer */
    real *columns;          /* [ks_widest]: work space                                  */
};

/* One step of Adam, projection and Polyak average, as step number adam->step. The caller increments
 * that number afterwards, so that networks in several threads can share `adam`. Returns false if a
 * parameter is not finite. */
bool KS(adam_step)(const struct KS(arch) *arch, const struct ks_adam *adam,
                   const struct KS(trained) *t);
/* One step of Adam for a single parameter w with moments m, v, which decays by weight_decay
 * whatever `decayed` says; returns the new w. */
double KS(adam_scalar)(const struct ks_adam *adam, double g, double *m, double *v, double w);

/* Scales the columns that the description projects to norm 1. columns [ks_widest]: work space. */
void KS(project)(const struct KS(arch) *arch, real *w, real *columns);
/* The largest number of outputs of a layer. */
size_t KS(widest)(const struct KS(arch) *arch);

/* Memory and start of a network in training (optim.h). */

/* Takes all arrays of *t but the target from an arena. The blocks have room for the passes of
 * `train` and `eval`, and for the forward pass of `forward`. */
void KS(trained_lay_out)(struct ks_arena *arena, const struct KS(net) *train,
                         const struct KS(net) *eval, const struct KS(net) *forward,
                         struct KS(trained) *t);
/* The state argument of a forward pass in training mode that leaves the running statistics as they
 * are: a copy of them if a layer reads them, else NULL. Each call makes the copy anew. */
real *KS(trained_state)(const struct KS(arch) *arch, const struct KS(trained) *t);
/* The backward pass of `net` after a forward pass of *t on x, from the output's adjoint in its
 * block: to x_bar unless it is NULL, and with `gradient` to t->g, which is overwritten. */
void KS(trained_backward)(const struct KS(net) *net, const struct KS(trained) *t, const real *x,
                          real *x_bar, bool gradient);
/* Sets the target, if there is one, to a copy of the parameters. */
void KS(trained_copy)(const struct KS(arch) *arch, const struct KS(trained) *t);
/* Sets parameters and running statistics to their start, projected, the target to a copy, moments
 * to zero. */
ks_status KS(trained_init)(const struct KS(arch) *arch, const struct ks_starts *starts,
                           struct ks_rng rng, struct KS(trained) *t);

#endif
