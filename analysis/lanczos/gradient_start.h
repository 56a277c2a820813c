/* The gradient as the start vector of a probe: the weights of its Ritz values are then the shares
 * of the gradient's energy by eigenvalue, which is what the next steps of descent see. */
#ifndef KS_LANCZOS_GRADIENT_START_H
#define KS_LANCZOS_GRADIENT_START_H

#include "core/error.h"
#include "operators/operator.h"
#include "operators/operator_kinds.h"
#include "operators/selection.h"
#include "operators/team.h"

/* The gradient g of the loss in the operator's coordinates, *start [selection->n], which the caller
 * frees: D^-1/2 g for `preconditioned`, the tangential part of g for `manifold`, else g. *start is
 * NULL where it is zero. All processes of the team call it, and get the same bits. Fails as
 * ks_gradient does; KS_NUMBER where the gradient is not finite. */
ks_status ks_gradient_start(const struct ks_problem *problem, const struct ks_operator_kind *kind,
                            const struct ks_selection *selection, const struct ks_team *team,
                            double **start);

#endif
