/* The Hessian of the critics' loss, the generalized Gauss-Newton matrix, their difference, and
 * matrices J' M J with another M than H_l (loss.h), times a vector: forward over reverse
 * (Pearlmutter, Neural Computation 6, 1994), the tangent of the hand-written backward pass.
 *
 *   f_dot     = J v                                    net_tangent_forward
 *   f_bar_dot = 1/(N B) H_l f_dot                      the loss's curvature
 *   H v       = tangent of J' f_bar along v            net_tangent_backward
 *
 * The last line is linear in (f_bar, f_bar_dot): with f_bar = 0 it is J' f_bar_dot, the
 * Gauss-Newton product, and with f_bar_dot = 0 the residual. Products are summed over minibatches,
 * are block diagonal over critics, and get mu2 v from the weight decay. They are computed in the
 * parameters of the folded critic (fold.h). What depends on theta alone comes from primal.h and is
 * kept between products as far as the memory allows. A minibatch whose rows do not depend on each
 * other is worked off in microbatches (primal.h). */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cblas.h>

#include "core/memory.h"
#include "core/rng.h"
#include "net/net.h"
#include "operators/fold.h"
#include "operators/operator.h"
#include "operators/primal.h"

enum kind { HESSIAN, GGN, RESIDUAL, NTK, NTK_VALUE, FISHER };

static const struct {
    enum ks_inner inner;
    bool loss_hessian, residual; /* its terms */
    bool decays;
    int units; /* the power of the loss's weight by which it is multiplied */
    /* What find_stretch multiplies, in float64. */
    ks_status (*in_f64)(const struct ks_problem *problem, struct ks_operator **a);
} kinds[] = {
    [HESSIAN] = {KS_INNER_HESSIAN, true, true, true, 1, ks_hessian_new_f64},
    [GGN] = {KS_INNER_HESSIAN, true, false, true, 1, ks_ggn_new_f64},
    [RESIDUAL] = {KS_INNER_HESSIAN, false, true, false, 1, ks_hessian_new_f64},
    [NTK] = {KS_INNER_IDENTITY, true, false, false, 0, ks_ntk_new_f64},
    [NTK_VALUE] = {KS_INNER_VALUE, true, false, false, 0, ks_ntk_value_new_f64},
    [FISHER] = {KS_INNER_GRADIENT, true, false, false, 2, ks_fisher_new_f64},
};

/* One thread's arrays. */
struct worker {
    double *primal; /* [ks_primal_size]: the passes at theta                  */
    real *kept;     /* [net->kept]: what tangents read of a recomputed pair   */
    real *input;    /* [primal->input]: its input, if inputs are not kept     */
    real *tangent, *scratch;
    real *f_bar_dot;  /* [B, K] */
    real *sum;        /* [P folded]: this worker's share of one critic's product    */
    double *gradient; /* [critics, P folded]: of its minibatches; freed after the sum */
};

struct curvature {
    const struct ks_problem *problem;
    enum kind kind;
    double unit;    /* what the product with the loss / primal->unit is multiplied by */
    double stretch; /* H v is computed as H (stretch v) / stretch: see find_stretch */
    struct ks_primal *primal;
    struct KS(arch) *arch; /* the folded critic in this precision */
    struct KS(net) *net;
    size_t first, critics;     /* the problem's critics: the first one, their number      */
    real *w;                   /* [critics, extended]: folded and frozen parameters       */
    real *v;                   /* [extended]: the tangent, 0 for frozen parameters        */
    double *v_folded, *folded; /* [P folded]: the tangent and the product of one critic   */
    double *bar;               /* [critics, P folded]: the gradient; NULL if not needed */
    size_t n;                  /* microbatches of all minibatches                         */
    size_t n_kept;             /* pairs 0 .. n_kept-1 are kept, pair = critic n + microbatch */
    real *kept;                /* [n_kept, net->kept]                                     */
    real *input;               /* [n, primal->input]; NULL: recomputed, and no pair is kept */
    size_t n_workers;
    struct worker *worker;
    struct ks_arena arena;     /* the arrays, but for the following ones. Owned              */
    struct ks_arena passes;    /* of the workers' passes; freed if all pairs are kept. Owned */
    struct ks_arena gradients; /* of the workers; freed after their sum. Owned               */
};

/* The derivative of the folding meets the gradient. */
static bool needs_gradient(const struct curvature *h)
{
    return h->primal->fold->folded && kinds[h->kind].residual;
}

static void lay_out(struct ks_arena *arena, void *object)
{
    struct curvature *h = object;
    const size_t folded = h->arch->parameters, extended = ks_arch_extended(h->arch);

    h->w = KS_TAKE(arena, h->critics * extended, real);
    h->v = KS_TAKE(arena, extended, real);
    h->v_folded = KS_TAKE(arena, folded, double);
    h->folded = KS_TAKE(arena, folded, double);
    h->bar = needs_gradient(h) ? KS_TAKE(arena, h->critics * folded, double) : NULL;
    h->worker = KS_TAKE(arena, h->n_workers, struct worker);
    for (size_t k = 0; k < h->n_workers; k++) {
        struct worker *t = KS_TAKEN(h->worker, k, struct worker);

        t->tangent = KS_TAKE(arena, h->net->tangent, real);
        t->scratch = KS_TAKE(arena, h->net->scratch, real);
        t->f_bar_dot = KS_TAKE(arena, h->net->out_rows * h->arch->out, real);
        t->sum = KS_TAKE(arena, folded, real);
    }
}

static void lay_out_passes(struct ks_arena *arena, void *object)
{
    struct curvature *h = object;

    for (size_t k = 0; k < h->n_workers; k++) {
        struct worker *t = KS_TAKEN(h->worker, k, struct worker);

        t->primal = KS_TAKE(arena, ks_primal_size(h->primal), double);
        t->kept = KS_TAKE(arena, h->net->kept, real);
        t->input = KS_TAKE(arena, h->primal->input, real);
    }
}

static void lay_out_gradients(struct ks_arena *arena, void *object)
{
    struct curvature *h = object;

    for (size_t k = 0; needs_gradient(h) && k < h->n_workers; k++)
        KS_TAKEN(h->worker, k, struct worker)->gradient = KS_TAKE(
            arena, h->critics * h->arch->parameters, double);
}

static void curvature_clear(struct curvature *h)
{
    ks_arena_free(&h->arena);
    ks_arena_free(&h->passes);
    ks_arena_free(&h->gradients);
    free(h->kept);
    free(h->input);
    KS(net_free)(h->net);
    KS(arch_free)(h->arch);
    ks_primal_free(h->primal);
}

static void curvature_free(void *self)
{
    curvature_clear(self);
    free(self);
}

static void to_real(size_t n, const double *from, real *to)
{
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < n; i++)
        to[i] = (real)from[i];
}

/* Where the input of a microbatch is. */
static real *input_of(const struct curvature *h, const struct worker *t, size_t microbatch)
{
    return h->input ? h->input + microbatch * h->primal->input : t->input;
}

/* Computes the passes of a pair (critic, microbatch) in float64 and copies what the tangent passes
 * read of them to `kept`; adds the pair's term of the gradient to `gradient` unless that is NULL.
 */
static void compute(const struct curvature *h, struct worker *t, size_t pair, real *kept,
                    double *gradient)
{
    size_t critic = pair / h->n, folded = h->arch->parameters;
    const struct ks_primal_pass pass = ks_primal_compute(
        h->primal, h->first + critic, ks_microbatch(h->primal, pair % h->n), t->primal,
        gradient ? gradient + critic * folded : NULL);
    real *input = input_of(h, t, pair % h->n);

    KS(net_keep)(h->net, pass.primal, pass.adjoint, kept);
    for (size_t i = 0; i < h->primal->input && !(h->input && critic > 0); i++)
        input[i] = (real)pass.input[i]; /* the same for all critics */
}

/* Chooses the power of two that keeps products inside the range of float32 if the operator is tiny
 * or huge. The size a of the operator (of the layer's block, if there is one) is estimated by a
 * float64 product of the first minibatch with a random vector. In a product, forward tangents have
 * the size stretch a^1/2 and backward tangents stretch a: with stretch = a^-3/4 they are at equal
 * distances from 1. MOST keeps stretch v itself in the range. */
static ks_status find_stretch(struct curvature *h)
{
    static const double FAR = 40, MOST = 90; /* binary orders of magnitude */
    struct ks_checkpoint first = *h->problem->checkpoint;
    struct ks_problem problem = *h->problem;
    KS_OWNED_BY(ks_operator_free) struct ks_operator *a = NULL;
    struct ks_rng rng = ks_rng_start(0, 0);
    KS_OWNED_BY(ks_selection_free) struct ks_selection *block = NULL;
    KS_CLEARED_BY(ks_arena_free) struct ks_arena arena = {.bytes = 0};
    double *v, *product, *selected, order;
    size_t n;

    h->stretch = 1;
    if (sizeof(real) == sizeof(double))
        return KS_OK;
    n = ks_networks_parameters(&first.critic);
    first.minibatches = problem.minibatches = 1;
    problem.checkpoint = &first;
    problem.weight_decay = 0;
    problem.scale = 1 / h->unit;
    KS_TRY(kinds[h->kind].in_f64(&problem, &a));
    KS_TRY(ks_operator_prepare(a, 0));
    KS_TRY(ks_selection_new(h->problem, false, &block));
    KS_TRY(ks_arena_numbers(&arena, 3 * n, &v));
    if (ks_counting())
        return KS_OK;
    product = v + n;
    selected = product + n;
    for (size_t i = 0; i < block->n; i++)
        selected[i] = ks_rng_normal(&rng);
    ks_selection_scatter(block, selected, v);
    KS_TRY(ks_operator_apply(a, v, product));
    ks_selection_gather(block, product, selected);
    order = log2(cblas_dnrm2((int)block->n, selected, 1) / cblas_dnrm2((int)n, v, 1));
    if (isfinite(order) && fabs(order) > FAR)
        h->stretch = exp2(-fmin(fmax(round(0.75 * order), -MOST), MOST));
    return KS_OK;
}

/* Allocates what is kept between products: the inputs if they fit in `memory` bytes, and then what
 * tangents read of as many pairs as fit. */
static ks_status allocate_kept(struct curvature *h, size_t memory)
{
    const size_t pairs = h->critics * h->n, size = h->net->kept * sizeof(real);
    const size_t inputs = h->n * h->primal->input * sizeof(real);
    size_t fit = 0;

    if (inputs <= memory) {
        KS_TRY(ks_alloc(inputs, 1, &h->input));
        fit = (memory - inputs) / size;
    }
    h->n_kept = fit < pairs ? fit : pairs;
    return ks_alloc(h->n_kept * h->net->kept, sizeof *h->kept, &h->kept);
}

static size_t curvature_kept(const void *self)
{
    const struct curvature *h = self;

    return ((h->input ? h->n * h->primal->input : 0) + h->n_kept * h->net->kept) * sizeof(real);
}

/* The worker that computes a microbatch: it takes minibatches k, k + workers, ..., so the order of
 * the sums is fixed. */
static size_t worker_of(const struct curvature *h, size_t microbatch)
{
    return microbatch / h->primal->microbatches % h->n_workers;
}

/* Computes the pairs of worker k that are kept or have to be read before the first product. */
static void prepare_worker(struct curvature *h, size_t k)
{
    struct worker *t = &h->worker[k];

    for (size_t critic = 0, pair = 0; critic < h->critics; critic++)
        for (size_t n = 0; n < h->n; n++, pair++) {
            const bool read = pair < h->n_kept || t->gradient || (h->input && critic == 0);

            if (read && worker_of(h, n) == k)
                compute(h, t, pair, pair < h->n_kept ? h->kept + pair * h->net->kept : t->kept,
                        t->gradient);
        }
}

/* Computes every pair once: the inputs, the gradient, and what tangents read. */
static void compute_all(struct curvature *h)
{
    const size_t folded = h->critics * h->arch->parameters;

#pragma omp parallel for num_threads((int)h->n_workers) schedule(static, 1)
    for (size_t k = 0; k < h->n_workers; k++)
        prepare_worker(h, k);
    for (size_t k = 0; h->bar && k < h->n_workers; k++) {
        for (size_t i = 0; i < folded; i++)
            h->bar[i] += h->worker[k].gradient[i];
        h->worker[k].gradient = NULL;
    }
}

static ks_status curvature_prepare(void *self, size_t memory)
{
    struct curvature *h = self;

    KS_TRY(allocate_kept(h, memory));
    if (!ks_counting())
        compute_all(h);
    ks_arena_free(&h->gradients);
    if (h->n_kept == h->critics * h->n)
        ks_arena_free(&h->passes);
    return KS_OK;
}

/* t->sum += one critic's and microbatch's term of the product. */
static void add_product(const struct curvature *h, struct worker *t, size_t critic, size_t n)
{
    const struct KS(net) *net = h->net;
    size_t pair = critic * h->n + n;
    struct KS(net_tangent) pass = {.w = h->w + critic * ks_arch_extended(h->arch),
                                   .w_dot = h->v,
                                   .x = input_of(h, t, n),
                                   .kept = h->kept + pair * net->kept,
                                   .tangent = t->tangent,
                                   .gauss_newton = !kinds[h->kind].residual};
    struct KS(loss_inner) inner = {.kind = kinds[h->kind].inner,
                                   .rows = net->out_rows,
                                   .scale = (real)h->primal->output_scale};

    if (pair >= h->n_kept) {
        compute(h, t, pair, t->kept, NULL);
        pass.kept = t->kept;
    }
    KS(net_tangent_forward)(net, &pass);
    inner.c = KS(net_kept_output)(net, pass.kept);
    if (kinds[h->kind].loss_hessian)
        KS(loss_multiply)
    (&h->arch->loss, &inner, KS(net_output_dot)(net, t->tangent), t->f_bar_dot);
    else memset(t->f_bar_dot, 0, net->out_rows * h->arch->out * sizeof *t->f_bar_dot);
    KS(net_tangent_backward)(net, &pass, t->f_bar_dot, t->scratch, t->sum);
}

/* h->folded = the product of one critic with h->v, in the folded parameters. */
static void multiply(struct curvature *h, size_t critic)
{
    size_t folded = h->arch->parameters;

#pragma omp parallel for num_threads((int)h->n_workers) schedule(static, 1)
    for (size_t k = 0; k < h->n_workers; k++) {
        memset(h->worker[k].sum, 0, folded * sizeof *h->worker[k].sum);
        for (size_t n = 0; n < h->n; n++)
            if (worker_of(h, n) == k)
                add_product(h, &h->worker[k], critic, n);
    }
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < folded; i++) {
        h->folded[i] = 0;
        for (size_t k = 0; k < h->n_workers; k++)
            h->folded[i] += (double)h->worker[k].sum[i];
        h->folded[i] /= h->stretch;
    }
}

/* If the loss is invariant to shifts of a layer's output (net.h), the layer's bias changes nothing:
 * its entries in a product are exactly zero, and its entries in a tangent have no effect. Setting
 * both to zero avoids the rounding of a bias that the next batch norm subtracts again. `w` is in
 * the folded parameters. */
static void clear_shifts(const struct KS(net) *net, double *w)
{
    for (size_t i = 0; i < net->arch->n_layers; i++) {
        const struct KS(layer) *l = &net->arch->layer[i];
        double *at = w + l->offset;

        for (size_t k = 0; k < l->n_params && l->frozen == 0 && net->at[i].invariant; k++) {
            size_t n = KS(array_size)(&l->param[k]);

            if (strcmp(l->param[k].name, "bias") == 0)
                memset(at, 0, n * sizeof *at);
            at += n;
        }
    }
}

static ks_status curvature_apply(void *self, const double *v, double *out)
{
    struct curvature *h = self;
    const struct ks_networks *critics = &h->problem->checkpoint->critic;
    size_t n = ks_networks_parameters(critics) / critics->ensemble, folded = h->arch->parameters;
    bool decays = kinds[h->kind].decays && !h->problem->omits_decay;
    double decay = decays ? h->problem->weight_decay : 0, c = h->problem->scale;
    assert(h->kept); /* curvature_prepare was called */
    memset(out, 0, critics->ensemble * n * sizeof *out);
    for (size_t e = 0; e < h->critics; e++) {
        size_t at = (h->first + e) * n;

        ks_fold_tangent(h->primal->fold, critics->w + at, v + at, h->v_folded);
        clear_shifts(h->net, h->v_folded);
        for (size_t i = 0; i < folded && h->stretch != 1; i++)
            h->v_folded[i] *= h->stretch;
        to_real(folded, h->v_folded, h->v);
        multiply(h, e);
        clear_shifts(h->net, h->folded);
        ks_fold_adjoint(h->primal->fold,
                        &(struct ks_fold_adjoint){.w = critics->w + at,
                                                  .v = v + at,
                                                  .bar = h->bar ? h->bar + e * folded : NULL,
                                                  .bar_dot = h->folded,
                                                  .out = out + at});
#pragma omp parallel for schedule(static)
        for (size_t i = at; i < at + n; i++)
            out[i] = c * (h->unit * out[i] + decay * v[i]);
    }
    return KS_OK;
}

/* What the shapes of the problem decide. */
static ks_status set_shapes(const struct ks_problem *problem, struct curvature *h)
{
    h->problem = problem;
    h->first = ks_primal_first_critic(problem);
    h->critics = ks_primal_critics(problem);
    h->n_workers = ks_primal_threads(problem);
    h->n = problem->minibatches * h->primal->microbatches;
    KS_TRY(KS(fold_arch)(h->primal->fold, &h->arch));
    h->arch->loss.weight /= h->primal->unit;
    h->arch->products = problem->products;
    return KS(net_new)(h->arch, h->primal->rows, h->primal->loss_rows, problem->evaluation,
                       &h->net);
}

static ks_status build(const struct ks_problem *problem, enum kind kind, struct curvature *h)
{
    h->problem = problem;
    h->kind = kind;
    KS_TRY(ks_primal_new(problem, !kinds[kind].residual, &h->primal));
    h->primal->inner = kinds[kind].inner;
    h->unit = pow(h->primal->unit, kinds[kind].units);
    KS_TRY(find_stretch(h)); /* before anything else that is large is allocated */
    KS_TRY(set_shapes(problem, h));
    KS_TRY(ks_arena_make(&h->arena, lay_out, h));
    KS_TRY(ks_arena_make(&h->passes, lay_out_passes, h));
    KS_TRY(ks_arena_make(&h->gradients, lay_out_gradients, h));
    if (!ks_counting())
        to_real(h->critics * ks_arch_extended(h->arch),
                h->primal->w + h->first * ks_arch_extended(h->arch), h->w);
    return KS_OK;
}

static ks_status curvature_new(const struct ks_problem *problem, enum kind kind,
                               struct ks_operator **out)
{
    static const struct ks_operator CURVATURE = {.prepare = curvature_prepare,
                                                 .kept = curvature_kept,
                                                 .apply = curvature_apply,
                                                 .free = curvature_free};
    KS_OWNED_BY(ks_operator_free) struct ks_operator *a = NULL;

    *out = NULL;
    KS_TRY(ks_operator_new(&CURVATURE, sizeof(struct curvature), &a));
    KS_TRY(build(problem, kind, a->self));
    a->n = ks_networks_parameters(&problem->checkpoint->critic);
    *out = a, a = NULL;
    return KS_OK;
}

ks_status KS(hessian_new)(const struct ks_problem *problem, struct ks_operator **a)
{
    return curvature_new(problem, HESSIAN, a);
}

ks_status KS(ggn_new)(const struct ks_problem *problem, struct ks_operator **a)
{
    return curvature_new(problem, GGN, a);
}

ks_status KS(residual_new)(const struct ks_problem *problem, struct ks_operator **a)
{
    return curvature_new(problem, RESIDUAL, a);
}

ks_status KS(ntk_new)(const struct ks_problem *problem, struct ks_operator **a)
{
    return curvature_new(problem, NTK, a);
}

ks_status KS(ntk_value_new)(const struct ks_problem *problem, struct ks_operator **a)
{
    return curvature_new(problem, NTK_VALUE, a);
}

ks_status KS(fisher_new)(const struct ks_problem *problem, struct ks_operator **a)
{
    return curvature_new(problem, FISHER, a);
}
