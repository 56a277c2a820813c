/* Allocation and dispatch of operators, and the table of them. It is compiled once, the operators
 * in products/ once per precision. */
#include "operators/operator.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

ks_status ks_operator_new(const struct ks_operator *prototype, size_t size, struct ks_operator **a)
{
    ks_status status;

    KS_TRY(ks_alloc(1, sizeof **a, a));
    **a = *prototype;
    status = ks_alloc(1, size, &(*a)->self);
    if (status != KS_OK) {
        free(*a);
        *a = NULL;
    }
    return status;
}

ks_status ks_operator_around(const struct ks_operator *prototype, size_t size,
                             struct ks_operator *of, double **vectors, struct ks_operator **a)
{
    KS_OWNED_BY(ks_operator_free) struct ks_operator *owned = of, *made = NULL;

    *a = NULL;
    KS_TRY(ks_operator_new(prototype, size, &made));
    KS_TRY(ks_arena_numbers(&made->arena, 2 * of->n, vectors));
    made->n = of->n;
    made->of = of, owned = NULL;
    *a = made, made = NULL;
    return KS_OK;
}

ks_status ks_operator_prepare(const struct ks_operator *a, size_t memory)
{
    if (a->prepare)
        return a->prepare(a->self, memory);
    return a->of ? ks_operator_prepare(a->of, memory) : KS_OK;
}

size_t ks_operator_kept(const struct ks_operator *a)
{
    while (a && !a->kept)
        a = a->of;
    return a ? a->kept(a->self) : 0;
}

ks_status ks_operator_apply(const struct ks_operator *a, const double *v, double *out)
{
    return a->apply(a->self, v, out);
}

struct ks_operator *ks_operator_share(struct ks_operator *a)
{
    a->shares++;
    return a;
}

void ks_operator_free(struct ks_operator *a)
{
    if (!a || a->shares-- > 0)
        return;
    ks_operator_free(a->of);
    if (a->free)
        a->free(a->self);
    ks_arena_free(&a->arena);
    free(a);
}

/* --- the table --- */

/* J' M J has at most the rank of M, which has a block of K x K for each row with a loss. */
static size_t rows_times(const struct ks_problem *q, size_t rank_of_block)
{
    const struct ks_checkpoint *c = q->checkpoint;
    const size_t critics = q->critic < 0 ? c->critic.ensemble : 1;

    return critics * ks_problem_minibatches(q) * c->loss_rows * rank_of_block;
}

static const struct KS(loss) *loss_of(const struct ks_problem *q)
{
    return &q->checkpoint->critic.arch->loss;
}

/* The block of a softmax cross-entropy has rank K - 1: it maps (1, ..., 1) to zero. A weight decay
 * makes G full rank. */
static size_t ggn_operator_rank(const struct ks_problem *q)
{
    const struct KS(loss) *loss = loss_of(q);
    size_t rank = loss->outputs - loss->kind->shift_invariant;

    for (size_t h = 0; h < loss->n_heads; h++)
        rank -= loss->head[h].kind->shift_invariant;
    return q->weight_decay != 0 ? 0 : rows_times(q, rank);
}

static size_t ntk_operator_rank(const struct ks_problem *q)
{
    return rows_times(q, loss_of(q)->outputs);
}

static size_t ntk_value_operator_rank(const struct ks_problem *q)
{
    const struct KS(loss) *loss = loss_of(q);
    size_t rank = loss->n_heads > 0 ? 0 : loss->kind->value ? 1 : loss->outputs;

    for (size_t h = 0; h < loss->n_heads; h++)
        rank += loss->head[h].kind->value ? 1 : loss->head[h].outputs;
    return rows_times(q, rank);
}

static size_t fisher_operator_rank(const struct ks_problem *q)
{
    return rows_times(q, 1);
}

const struct ks_operator_kind ks_operator_kinds[] = {
    {"hessian", "H", NULL, ks_hessian_new_f32, ks_hessian_new_f64, .decays = true},
    {"ggn", "the ggn operator", NULL, ks_ggn_new_f32, ks_ggn_new_f64, .decays = true,
     .operator_rank = ggn_operator_rank},
    {"residual", "the residual operator", NULL, ks_residual_new_f32, ks_residual_new_f64,
     .partial = true},
    {"preconditioned", "the preconditioned operator", ks_preconditioned_new, .wide = true,
     .moving = true},
    {"manifold", "the manifold operator", ks_manifold_new, .spheres = true},
    {"ntk", "the ntk operator", NULL, ks_ntk_new_f32, ks_ntk_new_f64,
     .operator_rank = ntk_operator_rank, .partial = true, .outputs = true},
    {"ntk-value", "the ntk-value operator", NULL, ks_ntk_value_new_f32, ks_ntk_value_new_f64,
     .operator_rank = ntk_value_operator_rank, .partial = true},
    {"fisher", "the fisher operator", NULL, ks_fisher_new_f32, ks_fisher_new_f64,
     .operator_rank = fisher_operator_rank, .partial = true},
    {.name = NULL},
};

const struct ks_operator_kind *ks_operator_kind_find(const char *name)
{
    for (const struct ks_operator_kind *k = ks_operator_kinds; k->name; k++)
        if (strcmp(k->name, name) == 0)
            return k;
    return NULL;
}

ks_status ks_kind_new(const struct ks_operator_kind *kind, const struct ks_problem *q,
                      bool products_f32, struct ks_operator **a)
{
    if (kind->new)
        return kind->new (q, products_f32, a);
    return (products_f32 ? kind->new_f32 : kind->new_f64)(q, a);
}

ks_status ks_hessian_new(const struct ks_problem *q, bool products_f32, struct ks_operator **a)
{
    return ks_kind_new(ks_operator_kinds, q, products_f32, a);
}

ks_status ks_problem_operator(const struct ks_problem *q, bool products_f32, size_t memory,
                              struct ks_operator **a)
{
    struct ks_operator *full = NULL;
    ks_status status;

    *a = NULL;
    KS_TRY(ks_kind_new(q->kind, q, products_f32, &full));
    KS_TRY(ks_block_new(full, q->selection, a));
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
