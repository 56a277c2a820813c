/* The metrics of an agent's networks during training: norms, learning rates, plasticity.
 *
 * A name is "critic_" or "actor_", a quantity of the table below, "_xqc" if it is defined as in the
 * published code of XQC (github.com/danielpalenicek/xqc, commit 9a6832b, xqc/logging/metrics), and
 * "_NN" for a single layer: a dense layer, or for activations an activation function. Critics are
 * averaged.
 *
 * Activations for _xqc come from a pass in training mode, for critics of every architecture on the
 * 2 batch rows [(s,a); (s',a')]; the outputs of the last layer count as a layer (for an actor:
 * means, and log-stds within their bounds). The parameters are those after the update; the
 * published code uses those before it. The critics' grad_norm, effective_lr and param_norm are
 * defined as in the published code. */
#ifndef KS_AGENT_METRICS_H
#define KS_AGENT_METRICS_H

#include <stddef.h>

#include "agent/agent.h"
#include "core/error.h"

/* A quantity or column of progress.csv and what it is, for the README. */
struct ks_quantity {
    const char *name, *help;
};
extern const struct ks_quantity KS(quantities)[]; /* ended by a name of NULL */

enum { KS_METRIC_NAME = 48 };

struct ks_metric {
    char name[KS_METRIC_NAME];
    double value;
};

/* An upper bound on the number of metrics: the room that `list` needs. */
size_t KS(agent_most_metrics)(const struct KS(agent) *agent);
/* Fills list and *n; names and order do not change from call to call. `batch`: the minibatch of the
 * last update, whose rewards are not read; NULL before the first update, when metrics of
 * activations are NaN. Networks are in evaluation mode, except for quantities that end in _xqc.
 * Overwrites the agent's work space and the blocks of its passes, but nothing that later updates or
 * metrics depend on. Fails with KS_MEMORY. */
ks_status KS(agent_metrics)(struct KS(agent) *agent, const struct ks_batch *batch,
                            struct ks_metric *list, size_t *n);

/* sum_i |y_ij| over the rows of y [rows, d]: a unit j is dormant where that is 0. */
double KS(unit_activity)(size_t rows, size_t d, const real *y, size_t unit);

#endif
