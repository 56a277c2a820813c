#include "operators/gradient_bounds.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cblas.h>
#include <lapacke.h>

#include "core/memory.h"
#include "core/rng.h"
#include "core/sort.h"
#include "operators/fold.h"
#include "operators/primal.h"

bool ks_gradient_bounds_exist(const struct ks_problem *problem)
{
    const struct ks_loss *loss = &problem->checkpoint->critic.arch->loss;

    return strcmp(loss->kind->name, "ce") == 0 && loss->weight > 0;
}

void ks_gradient_bounds_clear(struct ks_gradient_bounds *bounds)
{
    free(bounds->logit);
    free(bounds->gradient);
}

static double norm(size_t n, const double *x)
{
    return cblas_dnrm2((int)n, x, 1);
}

/* --- p - t of every row, g of every minibatch --- */

/* One thread's arrays. */
struct worker {
    double *block, *folded, *gradient; /* [ks_primal_size], [P folded], [P] */
};

/* Measures one critic on one minibatch: |p_i - t_i| into logit [B]; returns |g|. */
static double measure_pair(const struct ks_primal *primal, const struct worker *w, size_t critic,
                           size_t n, double *logit)
{
    const struct ks_checkpoint *c = primal->problem->checkpoint;
    const struct ks_arch *arch = c->critic.arch;
    /* the computed loss of one row is 1 / (N B) times its weight over the unit (primal.h) */
    double row_weight = primal->output_scale * primal->fold->arch->loss.weight;
    const double *weight = ks_checkpoint_weight(c, n);
    struct ks_primal_pass pass;
    double weights = 0; /* their sum */
    const double *f_bar;

    memset(w->folded, 0, primal->fold->arch->parameters * sizeof *w->folded);
    pass = ks_primal_compute(primal, critic, n, w->block, w->folded);
    f_bar = KS(net_output_bar)(primal->net, pass.adjoint);
    for (size_t i = 0; i < c->loss_rows; i++) {
        double w_i = weight ? weight[i] : 1;

        logit[i] = w_i > 0 ? norm(arch->out, f_bar + i * arch->out) / (row_weight * w_i) : 0;
        weights += w_i;
    }
    ks_fold_adjoint(primal->fold,
                    &(struct ks_fold_adjoint){.w = c->critic.w + critic * arch->parameters,
                                              .bar_dot = w->folded,
                                              .out = w->gradient});
    return weights > 0 ? norm(arch->parameters, w->gradient) / (row_weight * weights) : 0;
}

static ks_status make_workers(const struct ks_primal *primal, size_t n, struct worker *worker)
{
    for (size_t k = 0; k < n; k++) {
        KS_TRY(ks_alloc(ks_primal_size(primal), sizeof(double), &worker[k].block));
        KS_TRY(ks_alloc(primal->fold->arch->parameters, sizeof(double), &worker[k].folded));
        KS_TRY(ks_alloc(primal->problem->checkpoint->critic.arch->parameters, sizeof(double),
                        &worker[k].gradient));
    }
    return KS_OK;
}

static void free_workers(size_t n, struct worker *worker)
{
    for (size_t k = 0; worker && k < n; k++) {
        free(worker[k].block);
        free(worker[k].folded);
        free(worker[k].gradient);
    }
    free(worker);
}

/* The part of the minibatches that a rank has. */
struct share {
    size_t rank, size;
};

static ks_status measure_pairs(const struct ks_problem *problem, struct share share,
                               struct ks_gradient_bounds *bounds)
{
    size_t all = ks_problem_minibatches(problem), rows = problem->checkpoint->loss_rows;
    size_t workers = ks_primal_workers(problem), first = ks_primal_first_critic(problem);
    size_t critics = ks_primal_critics(problem);
    struct ks_primal *primal = NULL;
    struct worker *worker = NULL;
    ks_status status = KS_OK;

    KS_GO(ks_primal_new(problem, false, &primal));
    KS_GO(ks_alloc(workers, sizeof *worker, &worker));
    KS_GO(make_workers(primal, workers, worker));
#pragma omp parallel for num_threads((int)workers) schedule(static, 1)
    for (size_t k = 0; k < workers; k++)
        for (size_t e = 0; e < critics; e++)
            for (size_t n = k; n < problem->minibatches; n += workers) {
                size_t pair = e * all + share.rank + n * share.size;

                bounds->gradient[pair] = measure_pair(primal, &worker[k], first + e, n,
                                                      bounds->logit + pair * rows);
            }
done:
    free_workers(workers, worker);
    ks_primal_free(primal);
    return status;
}

/* --- sigma_max of one row's Jacobian --- */

/* One minibatch, or if rows do not affect each other, one row of it. */
struct lone {
    struct ks_checkpoint checkpoint; /* points into that of the problem */
    struct ks_problem problem;
    struct ks_primal *primal;
    size_t critic, row; /* whose Jacobian it is; the row among those of `checkpoint` */
    double *block, *kept, *tangent, *scratch, *f_bar_dot; /* owned */
    double *v, *v_folded;                                 /* [P], [P folded]; owned */
    struct ks_net_tangent pass;
};

static void lone_free(struct lone *l)
{
    ks_primal_free(l->primal);
    free(l->block);
    free(l->kept);
    free(l->tangent);
    free(l->scratch);
    free(l->f_bar_dot);
    free(l->v);
    free(l->v_folded);
}

static void choose_row(const struct ks_problem *problem, size_t n, size_t row, struct lone *l)
{
    const struct ks_checkpoint *c = problem->checkpoint;
    const struct ks_arch *arch = c->critic.arch;
    bool alone = !arch->joint || problem->evaluation;

    l->checkpoint = ks_checkpoint_minibatch(c, n);
    l->checkpoint.weight = NULL; /* they change no Jacobian */
    l->row = row;
    if (alone) {
        l->checkpoint.input += row * arch->in;
        l->checkpoint.target += ks_checkpoint_target(&l->checkpoint, l->critic, 0) -
                                l->checkpoint.target + row * arch->loss.targets;
        l->checkpoint.targets_differ = false;
        l->checkpoint.rows = l->checkpoint.loss_rows = 1;
        l->row = 0;
    }
    l->problem = *problem;
    l->problem.checkpoint = &l->checkpoint;
    l->problem.minibatches = 1;
    l->problem.other_minibatches = 0;
}

/* Computes the activations at theta, with which the tangent passes are products with J and J'. */
static ks_status linearize(struct lone *l)
{
    const struct ks_arch *arch = l->checkpoint.critic.arch;
    struct ks_primal_pass pass;
    const struct ks_net *net;

    KS_TRY(ks_primal_new(&l->problem, true, &l->primal));
    assert(l->primal);
    net = l->primal->net;
    KS_TRY(ks_alloc(ks_primal_size(l->primal), sizeof *l->block, &l->block));
    KS_TRY(ks_alloc(net->kept, sizeof *l->kept, &l->kept));
    KS_TRY(ks_alloc(net->tangent, sizeof *l->tangent, &l->tangent));
    KS_TRY(ks_alloc(net->scratch, sizeof *l->scratch, &l->scratch));
    KS_TRY(ks_alloc(net->out_rows * arch->out, sizeof *l->f_bar_dot, &l->f_bar_dot));
    KS_TRY(ks_alloc(arch->parameters, sizeof *l->v, &l->v));
    KS_TRY(ks_alloc(ks_arch_extended(net->arch), sizeof *l->v_folded, &l->v_folded));
    pass = ks_primal_compute(l->primal, l->critic, 0, l->block, NULL);
    KS(net_keep)(net, pass.primal, pass.adjoint, l->kept);
    l->pass = (struct ks_net_tangent){.w = l->primal->w + l->critic * ks_arch_extended(net->arch),
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
    const struct ks_arch *arch = l->checkpoint.critic.arch;
    const double *w = l->checkpoint.critic.w + l->critic * arch->parameters;

    ks_fold_tangent(l->primal->fold, w, l->v, l->v_folded);
    KS(net_tangent_forward)(l->primal->net, &l->pass);
    memcpy(u, KS(net_output_dot)(l->primal->net, l->tangent) + l->row * arch->out,
           arch->out * sizeof *u);
}

/* v = J' u; follows a `multiply`. */
static void multiply_transposed(struct lone *l, const double *u)
{
    const struct ks_net *net = l->primal->net;
    const struct ks_arch *arch = l->checkpoint.critic.arch;
    const double *w = l->checkpoint.critic.w + l->critic * arch->parameters;

    memset(l->f_bar_dot, 0, net->out_rows * arch->out * sizeof *l->f_bar_dot);
    memcpy(l->f_bar_dot + l->row * arch->out, u, arch->out * sizeof *u);
    memset(l->v_folded, 0, net->arch->parameters * sizeof *l->v_folded);
    KS(net_tangent_backward)(net, &l->pass, l->f_bar_dot, l->scratch, l->v_folded);
    ks_fold_adjoint(l->primal->fold,
                    &(struct ks_fold_adjoint){.w = w, .bar_dot = l->v_folded, .out = l->v});
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
    size = norm(l->checkpoint.critic.arch->parameters, l->v);
    *alpha = size * size;
    multiply(l, r->next);
    for (size_t k = 0; k < outputs; k++)
        r->next[k] -= *alpha * r->u[k] + beta_before * r->before[k];
    *beta = norm(outputs, r->next);
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
    double alpha[KS_JACOBIAN_STEPS], beta[KS_JACOBIAN_STEPS], *vectors = NULL, size;
    struct recurrence r;
    int steps = 0;

    KS_TRY(ks_alloc(3 * outputs, sizeof *vectors, &vectors));
    r = (struct recurrence){vectors, vectors + outputs, vectors + 2 * outputs};
    multiply(l, r.u); /* of v = 0: a backward pass reads the tangents of a forward pass */
    for (size_t k = 0; k < outputs; k++)
        r.u[k] = ks_rng_normal(&rng);
    size = norm(outputs, r.u);
    for (size_t k = 0; k < outputs; k++)
        r.u[k] /= size;
    do {
        take_step(l, &r, steps > 0 ? beta[steps - 1] : 0, &alpha[steps], &beta[steps]);
    } while (beta[steps++] > 0 && steps < KS_JACOBIAN_STEPS);
    free(vectors);
    if (LAPACKE_dsterf(steps, alpha, beta) != 0) /* ascending */
        return ks_fail(KS_NUMBER, "the singular values of the logits' Jacobian do not converge");
    *sigma = sqrt(fmax(0, alpha[steps - 1]));
    return KS_OK;
}

/* Row `number` of KS_JACOBIAN_ROWS, which are spread evenly over all critics and minibatches, and
 * in these over their rows. */
static ks_status measure_jacobian(const struct ks_problem *problem, struct share share,
                                  size_t number, double *sigma)
{
    size_t all = ks_problem_minibatches(problem), rows = problem->checkpoint->loss_rows;
    size_t pair = number * ks_primal_critics(problem) * all / KS_JACOBIAN_ROWS, n = pair % all;
    size_t row = (2 * number + 1) * rows / (2 * KS_JACOBIAN_ROWS);
    struct lone l = {.critic = ks_primal_first_critic(problem) + pair / all};
    ks_status status = KS_OK;

    if (n % share.size != share.rank)
        return KS_OK; /* another rank has it */
    choose_row(problem, n / share.size, row, &l);
    KS_GO(linearize(&l));
    KS_GO(iterate(&l, number, sigma));
done:
    lone_free(&l);
    return status;
}

ks_status ks_gradient_bounds_measure(const struct ks_problem *problem, size_t rank, size_t size,
                                     struct ks_gradient_bounds *b)
{
    const struct share share = {rank, size};
    size_t before;

    *b = (struct ks_gradient_bounds){0};
    b->pairs = ks_primal_critics(problem) * ks_problem_minibatches(problem);
    b->rows = b->pairs * problem->checkpoint->loss_rows;
    b->weighted = problem->checkpoint->weight != NULL;
    KS_TRY(ks_alloc(b->rows, sizeof *b->logit, &b->logit));
    KS_TRY(ks_alloc(b->pairs, sizeof *b->gradient, &b->gradient));
    before = ks_alloc_total();
    KS_TRY(measure_pairs(problem, share, b));
    for (size_t k = 0; k < KS_JACOBIAN_ROWS; k++)
        KS_TRY(measure_jacobian(problem, share, k, &b->jacobian[k]));
    ks_alloc_freed_since(before);
    return KS_OK;
}

/* --- statistics --- */

static double median(size_t n, const double *sorted)
{
    return (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
}

/* NAME_largest and NAME_median of x [n], which is sorted here; n = 0: NaN. */
static ks_status add(const char *name, size_t n, double *x, struct ks_attributes *statistics)
{
    char text[KS_ATTRIBUTE_NAME];

    if (n > 0)
        qsort(x, n, sizeof *x, ks_ascending);
    snprintf(text, sizeof text, "%s_largest", name);
    KS_TRY(ks_attribute_add_number(statistics, text, n > 0 ? x[n - 1] : NAN));
    snprintf(text, sizeof text, "%s_median", name);
    return ks_attribute_add_number(statistics, text, n > 0 ? median(n, x) : NAN);
}

/* Removes the entries that are 0; returns how many are left. */
static size_t without_zeros(size_t n, double *x)
{
    size_t left = 0;

    for (size_t i = 0; i < n; i++)
        if (x[i] != 0)
            x[left++] = x[i];
    return left;
}

ks_status ks_gradient_bounds_add(struct ks_gradient_bounds *b, struct ks_attributes *statistics)
{
    size_t jacobians = b->rows > 0 ? KS_JACOBIAN_ROWS : 0, rows = b->rows, pairs = b->pairs;

    if (b->weighted) {
        rows = without_zeros(rows, b->logit);
        pairs = without_zeros(pairs, b->gradient);
    }
    KS_TRY(add("logit_gradient", rows, b->logit, statistics));
    KS_TRY(add("minibatch_gradient", pairs, b->gradient, statistics));
    KS_TRY(add("logit_jacobian", jacobians, b->jacobian, statistics));
    return ks_attribute_add_number(statistics, "logit_jacobian_rows",
                                   jacobians > 0 ? KS_JACOBIAN_ROWS : NAN);
}
