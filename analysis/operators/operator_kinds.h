/* The table of operators, by the names that --operator takes. */
#ifndef KS_OPERATORS_OPERATOR_KINDS_H
#define KS_OPERATORS_OPERATOR_KINDS_H

#include <stdbool.h>

#include "core/error.h"
#include "operators/operator.h"

/* One row of the table; the last row has the name NULL. */
struct ks_operator_kind {
    const char *name;
    ks_status (*new_f32)(const struct ks_problem *problem, struct ks_operator **a);
    ks_status (*new_f64)(const struct ks_problem *problem, struct ks_operator **a);
    /* An upper bound of the rank of the operator, or 0 if none is known for this problem; NULL:
     * none is known for any problem. */
    size_t (*operator_rank)(const struct ks_problem *problem);
    bool wide;   /* products are in float64 by default, in place of float32 */
    bool decays; /* a weight decay adds mu2 I */
    /* The operator has D^-1/2 on both sides: coordinates whose second moment is 0 are left out
     * (selection.h). */
    bool moving;
    bool spheres; /* the curvature along the unit spheres of projected columns */
};
extern const struct ks_operator_kind ks_operator_kinds[];

/* The row with this name, or NULL. */
const struct ks_operator_kind *ks_operator_kind_find(const char *name);

/* *a = the problem's operator on its selected coordinates, with products in float32 or float64,
 * summed over the team (NULL: one rank), which keeps at most `memory` bytes of activations.
 * KS_MEMORY; fails as the operator does. */
ks_status ks_problem_operator(const struct ks_problem *problem, bool products_f32,
                              const struct ks_team *team, size_t memory, struct ks_operator **a);

#endif
