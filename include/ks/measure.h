/* What is measured on an agent's networks during training: norms, learning rates, plasticity.
 *
 * Names are "critic_" or "actor_", a quantity, and "_NN" for one layer; critics are averaged.
 *
 *   param_norm, grad_norm   Euclidean norms over the dense kernels and biases; grad: of the
 *                           last step
 *   effective_lr            |g|/|w| of each kernel and bias, averaged with their parameter
 *                           counts as weights; those with |w| = 0 are left out
 *   feature_norm            mean norm of a row of activations; without _NN: of the last
 *                           hidden layer
 *   dormant                 fraction of units with mean |activation| <= 0 over the minibatch
 *                           (Sokar et al., ICML 2023, threshold 0); without _NN: of all units
 *   feature_rank            number of singular values of the last hidden layer's activations
 *                           that hold 99% of their sum (Kumar et al., ICLR 2021)
 *
 * Layers with an _NN: dense layers for the first three, activation functions for the rest. */
#ifndef KS_MEASURE_H
#define KS_MEASURE_H

#include <stddef.h>

#include "ks/agent.h"
#include "ks/error.h"

enum { KS_MEASURE_NAME = 48 };

struct ks_measure {
    char name[KS_MEASURE_NAME];
    double value;
};

/* An upper bound on how many there are. */
size_t KS(agent_measures)(const struct ks_agent *agent);
/* Fills list and *n: names and order are the same at every call. Activations are those of the last
 * update's minibatch, networks in evaluation mode; NaN before the first update. Overwrites the
 * agent's primal blocks. */
ks_status KS(agent_measure)(struct ks_agent *agent, struct ks_measure *list, size_t *n);

#endif
