/* The largest singular value of the Jacobian J of one row's logits in the parameters of one critic.
 *
 * It is found by a few Lanczos steps on J J', whose Ritz values are at most sigma_max^2. In
 * training mode batch normalization makes the logits of one row depend on all rows of the
 * minibatch; J then contains the derivatives through the minibatch's statistics. */
#ifndef KS_OPERATORS_ROW_JACOBIAN_H
#define KS_OPERATORS_ROW_JACOBIAN_H

#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "operators/operator.h"

enum { KS_JACOBIAN_STEPS = 5 }; /* Lanczos steps */

struct ks_row {
    size_t critic, minibatch, row;
};

/* *all: at most sigma_max of the Jacobian; *hidden: the same of its columns for the parameters of
 * the hidden layers (hidden.h), left as it is if there are none. Both in float64, from a start that
 * depends on `stream` alone. KS_MEMORY, KS_NUMBER, and as ks_primal_new fails. */
ks_status ks_row_jacobian(const struct ks_problem *problem, struct ks_row row, uint64_t stream,
                          double *all, double *hidden);

#endif
