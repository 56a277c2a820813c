/* The table of operators. */
#ifndef KS_OPERATORS_OPERATOR_KINDS_H
#define KS_OPERATORS_OPERATOR_KINDS_H

#include <stdbool.h>

#include "core/error.h"
#include "operators/operator.h"

/* Each row is an operator by its name; the last one has none. */
struct ks_operator_kind {
    const char *name;
    ks_status (*new_f32)(const struct ks_problem *problem, struct ks_operator **a);
    ks_status (*new_f64)(const struct ks_problem *problem, struct ks_operator **a);
    /* A bound of the rank, 0 where there is none; NULL: there never is. */
    size_t (*rank)(const struct ks_problem *problem);
    bool wide;   /* products are float64 unless --precision says otherwise */
    bool decays; /* a weight decay adds mu2 I */
    /* D^-1/2 on both sides: coordinates without a second moment are left out (selection.h). */
    bool moving;
    bool spheres; /* curvature along the spheres of projected columns */
};
extern const struct ks_operator_kind ks_operator_kinds[];

/* The row of that name, or NULL. */
const struct ks_operator_kind *ks_operator_kind_find(const char *name);

#endif
