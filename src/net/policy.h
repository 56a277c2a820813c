/* The policies of actors. */
#ifndef KS_NET_POLICY_H
#define KS_NET_POLICY_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "core/line.h"
#include "core/real.h"

/* The last line of an actor's description: a tanh-squashed Gaussian over `actions` actions. The
 * network's outputs are the means and then the log standard deviations; with `shift` they are what
 * an optimistic actor adds to the means of another one; with `fixed` a tanh maps them to the action
 * itself. */
struct ks_policy {
    size_t actions; /* 0: not an actor */
    bool shift, fixed;
    double gain; /* of a shift's last kernel at the start */
    bool squash; /* log-stds are mapped into [min, max] by a tanh; else clipped to it */
    double log_std_min, log_std_max;
};

/* Parses a line `policy ...` for a network with `outputs` columns. KS_FORMAT. */
ks_status KS(policy_parse)(struct ks_line *line, size_t outputs, struct ks_policy *policy);

#endif
