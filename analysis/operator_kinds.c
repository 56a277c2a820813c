/* Here and not among the operators: those are compiled once per precision, the table once. */
#include "ks/operator_kinds.h"

#include <string.h>

const struct ks_operator_kind ks_operator_kinds[] = {
    {"hessian", ks_hessian_new_f32, ks_hessian_new_f64, .decays = true},
    {"ggn", ks_ggn_new_f32, ks_ggn_new_f64, .decays = true},
    {"residual", ks_residual_new_f32, ks_residual_new_f64, .wide = false},
    {"preconditioned", ks_preconditioned_new_f32, ks_preconditioned_new_f64, .wide = true,
     .moving = true},
    {"manifold", ks_manifold_new_f32, ks_manifold_new_f64, .spheres = true},
    {.name = NULL},
};

const struct ks_operator_kind *ks_operator_kind_find(const char *name)
{
    for (const struct ks_operator_kind *k = ks_operator_kinds; k->name; k++)
        if (strcmp(k->name, name) == 0)
            return k;
    return NULL;
}
