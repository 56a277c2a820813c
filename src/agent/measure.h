/* Measurements on an agent's networks during training: norms, learning rates, plasticity.
 *
 * A name is "critic_" or "actor_", a quantity, and "_NN" for a single layer; critics are averaged.
 *
 *   param_norm, grad_norm   Euclidean norms over the dense kernels and biases; grad: of the
 *                           last step
 *   effective_lr            |g|/|w| of each kernel and bias, averaged with their parameter
 *                           counts as weights; arrays with |w| = 0 are left out
 *   definition_1_lr         eta/|w|: learning rate of the last step over param_norm. It is what
 *                           Definition 1 of the XQC paper (Palenicek et al., ICLR 2026) calls the
 *                           effective learning rate; only for the whole network
 *   feature_norm            mean norm of a row of activations; without _NN: of the last
 *                           hidden layer
 *   dormant                 fraction of units with mean |activation| <= 0 over the minibatch
 *                           (Sokar et al., ICML 2023, threshold 0); without _NN: of all units
 *   feature_rank            number of singular values of the last hidden layer's activations
 *                           that hold 99% of their sum (Kumar et al., ICLR 2021)
 *
 * _NN numbers dense layers for the first three quantities, activation functions for the others.
 *
 * Quantities that end in _xqc are defined as in the published code of XQC
 * (github.com/danielpalenicek/xqc, commit 9a6832b, xqc/logging/metrics), for the last update. Their
 * activations come from a pass in training mode, for critics of every architecture on the 2 batch
 * rows [(s,a); (s',a')]; the outputs of the last layer count as a layer (for an actor: means, and
 * log-stds within their bounds). The parameters are those after the update; the published code uses
 * those before it.
 *
 *   feature_norm_xqc        mean norm of a row of activations; without _NN: the sum over layers
 *   dormant_xqc             fraction of units j with mean_i y_ij / (mean_k y_ik + 1e-6) <= 0;
 *                           without _NN: the mean over layers, each with the same weight
 *   feature_rank_xqc        as feature_rank, of the last activation function; at least 1
 *   grad_norm_xqc,          (actor) as grad_norm and effective_lr, of the gradient at the last
 *   effective_lr_xqc        update, even if the policy delay skipped its step; the heads of means
 *                           and of log-stds are separate layers
 *
 * The critics' grad_norm, effective_lr and param_norm are defined as in the published code. */
#ifndef KS_AGENT_MEASURE_H
#define KS_AGENT_MEASURE_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/agent.h"
#include "core/error.h"

enum { KS_MEASURE_NAME = 48 };

struct ks_measure {
    char name[KS_MEASURE_NAME];
    double value;
};

/* An upper bound on the number of measurements: the room that `list` needs. */
size_t KS(agent_measures)(const struct KS(agent) *agent);
/* Fills list and *n; names and order do not change from call to call. `batch`: the minibatch of the
 * last update, whose rewards are not read; NULL before the first update, when measurements of
 * activations are NaN. Networks are in evaluation mode, except for quantities that end in _xqc.
 * Overwrites the agent's work space and the blocks of its passes, but nothing that later updates or
 * measurements depend on. Fails with KS_MEMORY. */
ks_status KS(agent_measure)(struct KS(agent) *agent, const struct ks_batch *batch,
                            struct ks_measure *list, size_t *n);

/* sum_i |y_ij| over the rows of y [rows, d]: a unit j is dormant where that is 0. */
double KS(unit_activity)(size_t rows, size_t d, const real *y, size_t unit);

#endif
