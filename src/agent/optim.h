/* The optimizer's step of one network: Adam, decoupled weight decay, weight projection, Polyak
 * average. */
#ifndef KS_AGENT_OPTIM_H
#define KS_AGENT_OPTIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/real.h"
#include "io/adam.h"
#include "net/arch.h"

/* What the weight decay acts on, as in the published code of XQC: norms are the scales and biases
 * of batch normalization (not those of other normalizers), heads are kernel and bias of the last
 * layer. */
enum ks_decay {
    KS_DECAY_NONE,
    KS_DECAY_NORMS,
    KS_DECAY_HEADS,
    KS_DECAY_NORMS_AND_HEADS,
    KS_DECAY_ALL
};

/* A learning rate that decreases linearly from start to end over `steps` steps, then stays. */
struct ks_rate {
    double start, end, steps;
};
double KS(rate_at)(const struct ks_rate *rate, int64_t step);

struct ks_adam {
    struct ks_rate rate;
    double weight_decay;
    enum ks_decay decayed;
    double tau;   /* of the targets' average */
    int64_t step; /* steps taken */
};

/* A network in training. P, S: arch->parameters, arch->states. */
struct ks_trained {
    real *w, *state;        /* [P], [S]: parameters, running statistics                     */
    real *m, *v, *g;        /* [P]: Adam's moments, gradient                                */
    real *target;           /* [P]: target <- target + tau (w - target) after a step; NULL: none */
    real *primal, *adjoint; /* blocks of its passes (net.h); the optimizer leaves them alone */
    real *columns;          /* [widest layer]: scratch                                      */
};

/* One step with the rate of step number adam->step, which the caller then advances: so that several
 * networks can share it, each in its thread. Returns false if a parameter is no longer finite. */
bool KS(adam_step)(const struct ks_arch *arch, const struct ks_adam *adam,
                   const struct ks_trained *t);
/* The same step for a single parameter; m, v are its moments. */
double KS(adam_scalar)(const struct ks_adam *adam, double g, double *m, double *v, double w);

/* Scales the columns that the description projects to norm 1. columns: scratch, [widest layer]. */
void KS(project)(const struct ks_arch *arch, real *w, real *columns);
/* The widest layer's width: the length of `columns`. */
size_t KS(widest)(const struct ks_arch *arch);

#endif
