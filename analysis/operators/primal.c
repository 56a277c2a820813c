/* Forward and backward passes of the folded critics at theta, and from them the loss and its
 * gradient (reverse mode: Griewank and Walther, Evaluating Derivatives, 2008, chapter 3). */
#include "operators/primal.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <omp.h>

static ks_status check(const struct ks_problem *q)
{
    const struct ks_checkpoint *c = q->checkpoint;

    if (ks_problem_minibatches(q) < 1 || q->minibatches > c->minibatches)
        return ks_fail(KS_USAGE, "batches: expected 1 to %zu, found %zu", c->minibatches,
                       q->minibatches);
    KS_TRY(ks_networks_check_state(&c->critic, NULL));
    if (q->evaluation && c->critic.arch->states > 0 && !c->critic.state)
        return ks_fail(KS_FORMAT, "batchnorm in evaluation mode needs running statistics, and the "
                                  "checkpoint holds none (/critic/NN_batchnorm/mean, var)");
    return KS_OK;
}

/* Sets everything but the parameters; nothing that it allocates is large. */
static ks_status set_shapes(const struct ks_problem *problem, struct ks_primal *p)
{
    const struct ks_checkpoint *c = problem->checkpoint;
    const struct KS(arch) *arch = c->critic.arch;

    p->problem = problem;
    p->rows = arch->joint && !problem->evaluation && !problem->loss_rows_only ? c->rows
                                                                              : c->loss_rows;
    p->microbatches = KS(net_microbatches)(arch, c->loss_rows, problem->evaluation);
    p->loss_rows = (c->loss_rows - 1) / p->microbatches + 1;
    if (p->microbatches > 1)
        p->rows = p->loss_rows;
    p->input = p->rows * arch->in;
    p->output_scale = 1 / ((double)ks_problem_minibatches(problem) * (double)c->loss_rows);
    KS_TRY(ks_fold_new(arch, problem->evaluation, &p->fold));
    /* the largest power of two that is not above the weight of the loss */
    p->unit = arch->loss.weight > 0 ? ldexp(1, ilogb(arch->loss.weight)) : 1;
    p->fold->arch->loss.weight /= p->unit;
    return KS(net_new)(p->fold->arch, p->rows, p->loss_rows, problem->evaluation, &p->net);
}

static void lay_out(struct ks_arena *arena, void *object)
{
    struct ks_primal *p = object;
    const size_t critics = p->problem->checkpoint->critic.ensemble;

    p->w = KS_TAKE(arena, critics * ks_arch_extended(p->fold->arch), double);
}

static void fold_parameters(const struct ks_primal *p)
{
    const struct ks_networks *critic = &p->problem->checkpoint->critic;
    size_t n = critic->arch->parameters, frozen = critic->arch->frozen;
    size_t folded = ks_arch_extended(p->fold->arch);

    for (size_t e = 0; e < critic->ensemble; e++) {
        ks_fold_parameters(p->fold, critic->w + e * n, p->w + e * folded);
        if (frozen > 0)
            memcpy(p->w + e * folded + folded - frozen, critic->frozen + e * frozen,
                   frozen * sizeof *p->w);
    }
}

ks_status ks_primal_new(const struct ks_problem *problem, bool gauss_newton,
                        struct ks_primal **primal)
{
    KS_OWNED_BY(ks_primal_free) struct ks_primal *p = NULL;

    *primal = NULL;
    if (!ks_counting())
        KS_TRY(check(problem));
    KS_TRY(ks_alloc(1, sizeof *p, &p));
    p->gauss_newton = gauss_newton;
    KS_TRY(set_shapes(problem, p));
    KS_TRY(ks_arena_make(&p->arena, lay_out, p));
    if (!ks_counting())
        fold_parameters(p);
    *primal = p, p = NULL;
    return KS_OK;
}

void ks_primal_free(struct ks_primal *primal)
{
    if (!primal)
        return;
    KS(net_free)(primal->net);
    ks_fold_free(primal->fold);
    ks_arena_free(&primal->arena);
    free(primal);
}

size_t ks_primal_size(const struct ks_primal *p)
{
    return p->net->primal + p->net->adjoint + p->input + ks_fold_cache(p->fold, p->rows) +
           (p->fold->arch->reads_state ? p->fold->arch->states : 0);
}

static struct ks_primal_pass cut(const struct ks_primal *p, double *block)
{
    struct ks_primal_pass b = {.primal = block, .adjoint = block + p->net->primal};

    b.input = b.adjoint + p->net->adjoint;
    b.cache = b.input + p->input;
    b.state = b.cache + ks_fold_cache(p->fold, p->rows);
    return b;
}

/* The running statistics that forward gets: in training mode a copy, which it may update. */
static double *state_of(const struct ks_primal *p, size_t critic, double *copy)
{
    const struct ks_networks *networks = &p->problem->checkpoint->critic;
    size_t states = p->fold->arch->states;
    double *state = networks->state ? networks->state + critic * states : NULL;

    if (p->problem->evaluation || !p->fold->arch->reads_state)
        return p->problem->evaluation ? state : NULL;
    assert(state); /* `check` refuses a checkpoint without them */
    memcpy(copy, state, states * sizeof *copy);
    return copy;
}

struct ks_microbatch ks_microbatch(const struct ks_primal *primal, size_t number)
{
    const size_t all = primal->problem->checkpoint->loss_rows, size = primal->loss_rows;
    struct ks_microbatch m = {.minibatch = number / primal->microbatches};

    m.first = number % primal->microbatches * size;
    m.rows = all - m.first < size ? all - m.first : size;
    return m;
}

/* The input of the folded critic. Rows after the last are copies of it. */
static void find_input(const struct ks_primal *primal, struct ks_microbatch at, double *cache,
                       double *input)
{
    const struct ks_checkpoint *c = primal->problem->checkpoint;
    const size_t in = c->critic.arch->in;
    const size_t rows = primal->rows - (primal->loss_rows - at.rows);
    const double *x = c->input + (at.minibatch * c->rows + at.first) * in;

    if (primal->fold->folded)
        ks_fold_input(primal->fold, rows, x, input, cache);
    else
        memcpy(input, x, rows * in * sizeof *x);
    for (size_t i = rows * in; i < primal->input; i++)
        input[i] = input[i - in];
    if (primal->net->input_invariant)
        KS(net_centre)(primal->rows, in, input);
}

/* Replaces the outputs by what describes the matrices M. `output_bar` is output_scale times the
 * gradient of each row's loss. */
static void find_inner(const struct ks_primal *primal, const struct KS(outputs) *at,
                       const double *weight, const double *output_bar, double *output)
{
    const struct KS(loss) *loss = &primal->fold->arch->loss;
    const size_t n = at->rows * loss->outputs;

    switch (primal->inner) {
    case KS_INNER_HESSIAN:
        KS(loss_curvature)(loss, at, weight, output);
        break;
    case KS_INNER_IDENTITY:
        for (size_t i = 0; i < n; i++)
            output[i] = 1;
        break;
    case KS_INNER_VALUE:
        KS(loss_value)(loss, at->rows, output, output);
        break;
    case KS_INNER_GRADIENT:
        for (size_t i = 0; i < n; i++)
            output[i] = output_bar[i] / primal->output_scale;
    }
    memset(output + n, 0, (primal->loss_rows * loss->outputs - n) * sizeof *output);
}

/* The arrays in `block` with the forward pass, and the outputs of the rows that have a loss. */
static struct ks_primal_pass compute_outputs(const struct ks_primal *primal, size_t critic,
                                             struct ks_microbatch at, double *block,
                                             struct KS(outputs) *outputs)
{
    const struct ks_checkpoint *c = primal->problem->checkpoint;
    const struct KS(arch) *arch = primal->fold->arch;
    const double *w = primal->w + critic * ks_arch_extended(arch);
    struct ks_primal_pass b = cut(primal, block);

    find_input(primal, at, b.cache, b.input);
    KS(net_forward)(primal->net, w, state_of(primal, critic, b.state), b.input, b.primal);
    *outputs = (struct KS(outputs)){at.rows, KS(net_output)(primal->net, b.primal),
                                    ks_checkpoint_target(c, critic, at.minibatch) +
                                        at.first * arch->loss.targets};
    return b;
}

/* The weights of the rows; NULL if all are 1. */
static const double *weights_of(const struct ks_primal *primal, struct ks_microbatch at)
{
    const double *weights = ks_checkpoint_weight(primal->problem->checkpoint, at.minibatch);

    return weights ? weights + at.first : NULL;
}

struct ks_primal_pass ks_primal_compute(const struct ks_primal *primal, size_t critic,
                                        struct ks_microbatch at, double *block, double *gradient)
{
    const struct KS(arch) *arch = primal->fold->arch;
    const struct KS(net) *net = primal->net;
    const double *w = primal->w + critic * ks_arch_extended(arch);
    const double *weight = weights_of(primal, at);
    const size_t rest = (primal->loss_rows - at.rows) * arch->out; /* numbers without a loss */
    struct KS(outputs) outputs;
    struct ks_primal_pass b = compute_outputs(primal, critic, at, block, &outputs);
    double *output = KS(net_output)(net, b.primal);
    double *output_bar = KS(net_output_bar)(net, b.adjoint), loss;

    loss = KS(loss_gradient)(&arch->loss, &outputs, weight, primal->output_scale, output_bar);
    memset(output_bar + at.rows * arch->out, 0, rest * sizeof *output_bar);
    if (primal->gauss_newton) { /* no layer that can be the last one reads its output again */
        find_inner(primal, &outputs, weight, output_bar, output);
        memset(output_bar, 0, primal->loss_rows * arch->out * sizeof *output_bar);
    }
    KS(net_backward)
    (net, &(struct KS(net_backward)){
              .w = w, .x = b.input, .primal = b.primal, .adjoint = b.adjoint, .w_bar = gradient});
    if (!primal->gauss_newton)
        find_inner(primal, &outputs, weight, output_bar, output);
    b.loss = loss * primal->output_scale;
    return b;
}

/* The loss of the same pass, without the gradient. */
static double compute_loss(const struct ks_primal *primal, size_t critic, struct ks_microbatch at,
                           double *block)
{
    struct KS(outputs) outputs;

    compute_outputs(primal, critic, at, block, &outputs);
    return primal->output_scale *
           KS(loss_gradient)(&primal->fold->arch->loss, &outputs, weights_of(primal, at), 0, NULL);
}

size_t ks_primal_first_critic(const struct ks_problem *problem)
{
    return problem->critic < 0 ? 0 : (size_t)problem->critic;
}

size_t ks_primal_critics(const struct ks_problem *problem)
{
    return problem->critic < 0 ? problem->checkpoint->critic.ensemble : 1;
}

size_t ks_primal_threads(const struct ks_problem *problem)
{
    size_t threads = (size_t)omp_get_max_threads();

    return threads < problem->minibatches ? threads : problem->minibatches;
}

void ks_primal_lay_out_workers(struct ks_arena *arena, void *workers)
{
    struct ks_primal_workers *all = workers;

    all->worker = KS_TAKE(arena, all->n, struct ks_primal_worker);
    for (size_t k = 0; k < all->n; k++) {
        struct ks_primal_worker *w = KS_TAKEN(all->worker, k, struct ks_primal_worker);

        w->block = KS_TAKE(arena, ks_primal_size(all->primal), double);
        w->folded = KS_TAKE(arena, all->primal->fold->arch->parameters, double);
        w->gradient = KS_TAKE(arena, all->parameters, double);
    }
}

/* Sums over all critics and minibatches: worker k takes minibatches k, k + workers, ..., so that
 * the order of the sum is fixed. */
struct sums {
    const struct ks_primal *primal;
    size_t workers;
    bool loss_alone;       /* there is no gradient                                */
    double *block;         /* [workers, ks_primal_size]                           */
    double *gradient;      /* [workers, E, P of the folded critic]                */
    double *loss;          /* [workers]                                           */
    struct ks_arena arena; /* the arrays. Owned                                   */
};

static void lay_out_sums(struct ks_arena *arena, void *object)
{
    struct sums *s = object;
    const size_t critics = s->primal->problem->checkpoint->critic.ensemble;

    s->block = KS_TAKE(arena, s->workers * ks_primal_size(s->primal), double);
    s->gradient = KS_TAKE(
        arena, s->loss_alone ? 0 : s->workers * critics * s->primal->fold->arch->parameters,
        double);
    s->loss = KS_TAKE(arena, s->workers, double);
}

/* Worker k adds a critic on a microbatch. */
static void add_microbatch(const struct sums *s, size_t k, size_t critic, struct ks_microbatch at)
{
    const struct ks_primal *primal = s->primal;
    const size_t n = primal->fold->arch->parameters;
    const size_t ensemble = primal->problem->checkpoint->critic.ensemble;
    double *block = s->block + k * ks_primal_size(primal);

    s->loss[k] += s->loss_alone ? compute_loss(primal, critic, at, block)
                                : ks_primal_compute(primal, critic, at, block,
                                                    s->gradient + (k * ensemble + critic) * n)
                                      .loss;
}

static void sum_workers(const struct sums *s)
{
    const struct ks_primal *primal = s->primal;
    const struct ks_problem *q = primal->problem;
    const size_t ensemble = q->checkpoint->critic.ensemble;

#pragma omp parallel for num_threads((int)s->workers) schedule(static, 1)
    for (size_t k = 0; k < s->workers; k++)
        for (size_t e = 0; e < ensemble; e++)
            for (size_t i = k; i < q->minibatches; i += s->workers)
                for (size_t j = 0; j < primal->microbatches; j++)
                    add_microbatch(s, k, e, ks_microbatch(primal, i * primal->microbatches + j));
}

/* Adds the sums of the workers, and converts them to the parameters of the unfolded critics. */
static void unfold(const struct sums *s, double *gradient)
{
    const struct ks_primal *primal = s->primal;
    const struct ks_networks *critic = &primal->problem->checkpoint->critic;
    size_t folded = primal->fold->arch->parameters, n = critic->arch->parameters;
    size_t all = critic->ensemble * folded;

    for (size_t i = 0; i < all; i++)
        for (size_t k = 1; k < s->workers; k++)
            s->gradient[i] += s->gradient[k * all + i];
    for (size_t e = 0; e < critic->ensemble; e++)
        ks_fold_adjoint(primal->fold, &(struct ks_fold_adjoint){.w = critic->w + e * n,
                                                                .bar_dot = s->gradient + e * folded,
                                                                .out = gradient + e * n});
}

ks_status ks_gradient(const struct ks_problem *problem, double *loss, double *gradient)
{
    const struct ks_networks *critic = &problem->checkpoint->critic;
    size_t n = ks_networks_parameters(critic), before = ks_alloc_total();
    double squares = 0, decay = problem->omits_decay ? 0 : problem->weight_decay;
    struct ks_primal *primal = NULL;
    struct sums s = {.workers = ks_primal_threads(problem), .loss_alone = !gradient};
    ks_status status = KS_OK;

    KS_GO(ks_primal_new(problem, false, &primal));
    s.primal = primal;
    KS_GO(ks_arena_make(&s.arena, lay_out_sums, &s));
    if (ks_counting())
        goto done;
    sum_workers(&s);
    if (gradient)
        unfold(&s, gradient);
    *loss = 0;
    for (size_t k = 0; k < s.workers; k++)
        *loss += s.loss[k];
    for (size_t i = 0; i < n; i++) {
        if (gradient)
            gradient[i] = problem->scale * (primal->unit * gradient[i] + decay * critic->w[i]);
        squares += critic->w[i] * critic->w[i];
    }
    *loss = problem->scale * (primal->unit * *loss + decay / 2 * squares);
done:
    ks_arena_free(&s.arena);
    ks_primal_free(primal);
    ks_alloc_freed_since(before);
    return status;
}
