/* What is analyzed: an operator of a checkpoint. */
#ifndef KS_OPERATORS_ANALYZED_H
#define KS_OPERATORS_ANALYZED_H

#include <stdbool.h>
#include <stddef.h>

#include "operators/operator.h"
#include "operators/operator_kinds.h"
#include "operators/selection.h"

struct ks_analyzed {
    struct ks_problem problem;            /* the loss, and the critic and layer of the operator */
    const struct ks_operator_kind *kind;  /* which curvature of the loss                        */
    const struct ks_selection *selection; /* the operator's coordinates among all E P; not owned */
};

#endif
