#include "operators/gradient_bounds.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cblas.h>
#include <lapacke.h>

#include "core/rng.h"
#include "net/arch.h"
#include "operators/fold.h"
#include "operators/primal.h"

/* --- the hidden layers --- */

/* The number of parameters that layer i has in theta_h. */
static size_t hidden_of(const struct ks_problem *problem, size_t i)
{
    const struct KS(arch) *arch = problem->checkpoint->critic.arch;
    const struct KS(layer) *l = &arch->layer[i], *next = l + 1;

    if (!(l->kind == &KS(dense) || l->kind == &KS(conv2d)) || l->normed ||
        i + 1 == arch->n_layers || !next->kind->scale_free || ks_arch_opens(arch, i + 1))
        return 0;
    return next->kind->couples_rows && problem->evaluation ? 0 : l->parameters;
}

size_t ks_hidden_parameters(const struct ks_problem *problem)
{
    size_t sum = 0;

    for (size_t i = 0; i < problem->checkpoint->critic.arch->n_layers; i++)
        sum += hidden_of(problem, i);
    return sum;
}

double ks_hidden_dot(const struct ks_problem *problem, const double *a, const double *b)
{
    const struct KS(arch) *arch = problem->checkpoint->critic.arch;
    double sum = 0;

    for (size_t i = 0; i < arch->n_layers; i++)
        sum += cblas_ddot((int)hidden_of(problem, i), a + arch->layer[i].offset, 1,
                          b + arch->layer[i].offset, 1);
    return sum;
}

/* Sets the entries of a vector for the parameters of other layers to 0. */
static void project(const struct ks_problem *problem, double *v)
{
    const struct KS(arch) *arch = problem->checkpoint->critic.arch;

    for (size_t i = 0; i < arch->n_layers; i++)
        if (hidden_of(problem, i) == 0)
            memset(v + arch->layer[i].offset, 0, arch->layer[i].parameters * sizeof *v);
}

/* --- the Jacobian --- */

/* One minibatch, or if rows do not affect each other, one row of it. */
struct lone {
    struct ks_checkpoint checkpoint; /* points into that of the problem */
    struct ks_problem problem;
    struct ks_primal *primal;
    size_t critic, row; /* whose Jacobian it is; the row among those of `checkpoint` */
    bool hidden;        /* the derivatives by the other parameters are left out      */
    double *block, *kept, *tangent, *scratch, *f_bar_dot;
    double *v, *v_folded; /* [P], [P folded] */
    double *vectors;      /* [3, K]: of a Lanczos iteration */
    struct KS(net_tangent) pass;
    struct ks_arena arena; /* the arrays. Owned */
};

static void choose_row(const struct ks_problem *problem, struct ks_jacobian_row at, struct lone *l)
{
    const struct ks_checkpoint *c = problem->checkpoint;
    const struct KS(arch) *arch = c->critic.arch;
    bool alone = !arch->joint || problem->evaluation;

    l->critic = at.critic;
    l->checkpoint = ks_checkpoint_minibatch(c, at.minibatch);
    l->checkpoint.weight = NULL; /* they change no Jacobian */
    l->row = at.row;
    if (alone && c->input) { /* else the shapes alone are known */
        l->checkpoint.input += at.row * arch->in;
        l->checkpoint.target += ks_checkpoint_target(&l->checkpoint, l->critic, 0) -
                                l->checkpoint.target + at.row * arch->loss.targets;
    }
    if (alone) {
        l->checkpoint.targets_differ = false;
        l->checkpoint.rows = l->checkpoint.loss_rows = 1;
        l->row = 0;
    }
    l->problem = *problem;
    l->problem.checkpoint = &l->checkpoint;
    l->problem.minibatches = 1;
    l->problem.other_minibatches = 0;
}

static void lay_out(struct ks_arena *arena, void *object)
{
    struct lone *l = object;
    const struct KS(net) *net = l->primal->net;
    const struct KS(arch) *arch = l->checkpoint.critic.arch;

    l->block = KS_TAKE(arena, ks_primal_size(l->primal), double);
    l->kept = KS_TAKE(arena, net->kept, double);
    l->tangent = KS_TAKE(arena, net->tangent, double);
    l->scratch = KS_TAKE(arena, net->scratch, double);
    l->f_bar_dot = KS_TAKE(arena, net->out_rows * arch->out, double);
    l->v = KS_TAKE(arena, arch->parameters, double);
    l->v_folded = KS_TAKE(arena, ks_arch_extended(net->arch), double);
    l->vectors = KS_TAKE(arena, 3 * arch->out, double);
}

/* Computes the activations at theta, with which the tangent passes are products with J and J'. */
static ks_status linearize(struct lone *l)
{
    struct ks_primal_pass pass;
    const struct KS(net) *net;

    KS_TRY(ks_primal_new(&l->problem, true, &l->primal));
    assert(l->primal);
    net = l->primal->net;
    KS_TRY(ks_arena_make(&l->arena, lay_out, l));
    if (ks_counting())
        return KS_OK;
    pass = ks_primal_compute(l->primal, l->critic, ks_microbatch(l->primal, 0), l->block, NULL);
    KS(net_keep)(net, pass.primal, pass.adjoint, l->kept);
    l->pass = (struct KS(net_tangent)){.w = l->primal->w + l->critic * ks_arch_extended(net->arch),
                                       .w_dot = l->v_folded,
                                       .x = pass.input,
                                       .kept = l->kept,
                                       .tangent = l->tangent,
                                       .gauss_newton = true};
    return KS_OK;
}

/* u [K] = J v, for v in the parameters of the critic. */
static void multiply(struct lone *l, double *u)
{
    const struct KS(arch) *arch = l->checkpoint.critic.arch;
    const double *w = l->checkpoint.critic.w + l->critic * arch->parameters;

    ks_fold_tangent(l->primal->fold, w, l->v, l->v_folded);
    KS(net_tangent_forward)(l->primal->net, &l->pass);
    memcpy(u, KS(net_output_dot)(l->primal->net, l->tangent) + l->row * arch->out,
           arch->out * sizeof *u);
}

/* v = J' u, or its entries of the hidden layers; follows a `multiply`. */
static void multiply_transposed(struct lone *l, const double *u)
{
    const struct KS(net) *net = l->primal->net;
    const struct KS(arch) *arch = l->checkpoint.critic.arch;
    const double *w = l->checkpoint.critic.w + l->critic * arch->parameters;

    memset(l->f_bar_dot, 0, net->out_rows * arch->out * sizeof *l->f_bar_dot);
    memcpy(l->f_bar_dot + l->row * arch->out, u, arch->out * sizeof *u);
    memset(l->v_folded, 0, net->arch->parameters * sizeof *l->v_folded);
    KS(net_tangent_backward)(net, &l->pass, l->f_bar_dot, l->scratch, l->v_folded);
    ks_fold_adjoint(l->primal->fold,
                    &(struct ks_fold_adjoint){.w = w, .bar_dot = l->v_folded, .out = l->v});
    if (l->hidden)
        project(&l->problem, l->v);
}

/* The vectors of a Lanczos iteration on J J'. */
struct recurrence {
    double *u, *before, *next; /* [K] u_j, u_(j-1), and what becomes u_(j+1) */
};

/* One step: alpha = u_j' J J' u_j, and beta u_(j+1) = J J' u_j - alpha u_j - beta_before u_(j-1).
 */
static void take_step(struct lone *l, struct recurrence *r, double beta_before, double *alpha,
                      double *beta)
{
    size_t outputs = l->checkpoint.critic.arch->out;
    double size, *freed = r->before;

    multiply_transposed(l, r->u);
    size = cblas_dnrm2((int)l->checkpoint.critic.arch->parameters, l->v, 1);
    *alpha = size * size;
    multiply(l, r->next);
    for (size_t k = 0; k < outputs; k++)
        r->next[k] -= *alpha * r->u[k] + beta_before * r->before[k];
    *beta = cblas_dnrm2((int)outputs, r->next, 1);
    for (size_t k = 0; k < outputs; k++)
        r->next[k] /= *beta > 0 ? *beta : 1;
    r->before = r->u;
    r->u = r->next;
    r->next = freed;
}

/* *sigma = the square root of the largest Ritz value of J J' from a random start, which is at most
 * sigma_max(J) up to rounding. So few steps need no reorthogonalization. */
static ks_status iterate(struct lone *l, uint64_t stream, double *sigma)
{
    size_t outputs = l->checkpoint.critic.arch->out;
    struct ks_rng rng = ks_rng_start(0, stream);
    double alpha[KS_JACOBIAN_STEPS], beta[KS_JACOBIAN_STEPS], *vectors = l->vectors, size;
    struct recurrence r = {vectors, vectors + outputs, vectors + 2 * outputs};
    int steps = 0;

    memset(r.before, 0, outputs * sizeof *r.before);
    multiply(l, r.u); /* of any v: a backward pass reads the tangents of a forward pass */
    for (size_t k = 0; k < outputs; k++)
        r.u[k] = ks_rng_normal(&rng);
    size = cblas_dnrm2((int)outputs, r.u, 1);
    for (size_t k = 0; k < outputs; k++)
        r.u[k] /= size;
    do {
        take_step(l, &r, steps > 0 ? beta[steps - 1] : 0, &alpha[steps], &beta[steps]);
    } while (beta[steps++] > 0 && steps < KS_JACOBIAN_STEPS);
    if (LAPACKE_dsterf(steps, alpha, beta) != 0) /* ascending */
        return ks_fail(KS_NUMBER, "the singular values of the logits' Jacobian do not converge");
    *sigma = sqrt(fmax(0, alpha[steps - 1]));
    return KS_OK;
}

ks_status ks_row_jacobian(const struct ks_problem *problem, struct ks_jacobian_row row,
                          uint64_t stream, double *all, double *hidden)
{
    struct lone l = {0};
    ks_status status = KS_OK;

    choose_row(problem, row, &l);
    KS_GO(linearize(&l));
    if (ks_counting())
        goto done;
    KS_GO(iterate(&l, stream, all));
    l.hidden = ks_hidden_parameters(problem) > 0;
    if (l.hidden)
        KS_GO(iterate(&l, stream, hidden));
done:
    ks_primal_free(l.primal);
    ks_arena_free(&l.arena);
    return status;
}
