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
 * Layers with an _NN: dense layers for the first three, activation functions for the rest.
 *
 * Quantities that end in _xqc are those of the published code of XQC
 * (github.com/danielpalenicek/xqc, commit 9a6832b, xqc/logging/metrics), of the last update.
 * Activations there are those of a pass in training mode, of the critics on the 2 batch rows
 * [(s,a); (s',a')] whatever the architecture, and the last layer's outputs count as a layer too (of
 * an actor: means, and log-stds within their bounds). They are taken with the parameters after the
 * update, where the published code has those before it.
 *
 *   feature_norm_xqc        mean norm of a row of activations; without _NN: the sum over layers
 *   dormant_xqc             fraction of units j with mean_i y_ij / (mean_k y_ik + 1e-6) <= 0;
 *                           without _NN: the mean over layers, each with the same weight
 *   feature_rank_xqc        as feature_rank, of the last activation function; at least 1
 *   grad_norm_xqc,          (actor) as grad_norm and effective_lr, of the gradient at the last
 *   effective_lr_xqc        update, whether the actor stepped there or not; the head for means and
 *                           that for log-stds are two layers
 *
 * The critics' grad_norm, effective_lr and param_norm are the published ones as they are. */
#ifndef KS_AGENT_MEASURE_H
#define KS_AGENT_MEASURE_H

#include <stddef.h>

#include "agent/agent.h"
#include "core/error.h"

enum { KS_MEASURE_NAME = 48 };

struct ks_measure {
    char name[KS_MEASURE_NAME];
    double value;
};

/* An upper bound on how many there are. */
size_t KS(agent_measures)(const struct ks_agent *agent);
/* Fills list and *n: names and order are the same at every call. `batch`: the last update's
 * minibatch, whose rewards are not read; NULL before the first update, when activations are NaN.
 * Networks are in evaluation mode but for quantities in _xqc. Overwrites the agent's work space and
 * the blocks of its passes; what later updates and measurements depend on stays as it is. */
ks_status KS(agent_measure)(struct ks_agent *agent, const struct ks_batch *batch,
                            struct ks_measure *list, size_t *n);

#endif
