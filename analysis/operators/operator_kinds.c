/* The table of operators. It is compiled once, the operators in products/ once per precision. */
#include "operators/operator_kinds.h"

#include <math.h>
#include <string.h>

#include "operators/selection.h"

/* G = J' H_l J has at most the rank of H_l, which has a block of K x K for each row with a loss.
 * The block of a softmax cross-entropy has rank K - 1: it maps (1, ..., 1) to zero. A weight decay
 * makes G full rank. */
static size_t ggn_operator_rank(const struct ks_problem *q)
{
    const struct ks_checkpoint *c = q->checkpoint;
    const struct KS(loss) *loss = &c->critic.arch->loss;
    size_t critics = q->critic < 0 ? c->critic.ensemble : 1, rows = ks_problem_minibatches(q);

    size_t rank = loss->outputs - loss->kind->shift_invariant;

    for (size_t h = 0; h < loss->n_heads; h++)
        rank -= loss->head[h].kind->shift_invariant;
    if (q->weight_decay != 0)
        return 0;
    return critics * rows * c->loss_rows * rank;
}

const struct ks_operator_kind ks_operator_kinds[] = {
    {"hessian", ks_hessian_new_f32, ks_hessian_new_f64, .decays = true},
    {"ggn", ks_ggn_new_f32, ks_ggn_new_f64, .decays = true, .operator_rank = ggn_operator_rank},
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

ks_status ks_problem_operator(const struct ks_problem *q, bool products_f32,
                              const struct ks_team *team, size_t memory, struct ks_operator **a)
{
    struct ks_operator *full = NULL, *block = NULL;
    ks_status status;

    *a = NULL;
    KS_TRY((products_f32 ? q->kind->new_f32 : q->kind->new_f64)(q, &full));
    KS_TRY(ks_block_new(full, q->selection, &block));
    KS_TRY(ks_team_operator_new(block, team, a));
    status = ks_operator_prepare(*a, memory);
    if (status != KS_OK) {
        ks_operator_free(*a);
        *a = NULL;
    }
    return status;
}

/* Adam's preconditioner, Kingma and Ba: Adam: a method for stochastic optimization, ICLR 2015,
 * algorithm 1, for its users in both precisions. */
double ks_preconditioner(const struct ks_checkpoint *c, size_t i)
{
    double correction = 1 - pow(c->adam.beta2, (double)c->adam_step);

    return c->adam_v[i] > 0 ? sqrt(c->adam_v[i] / correction) + c->adam.eps : 0;
}
