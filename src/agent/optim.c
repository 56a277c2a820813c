/* Adam (Kingma & Ba, ICLR 2015, algorithm 1) with decoupled weight decay (Loshchilov & Hutter, ICLR
 * 2019), step t = 1, 2, ...:
 *
 *   m <- b1 m + (1 - b1) g        v <- b2 v + (1 - b2) g^2
 *   w <- w - rate ( m/(1 - b1^t) / (sqrt(v/(1 - b2^t)) + eps) + decay w )
 *
 * with 1 - b1 and 1 - b2 computed in double: in float32, 1 - (float)0.999 is too small by a
 * relative 1.3e-5. Then columns are projected to norm 1, then the target's Polyak average is taken.
 * All of this is limited by memory bandwidth, so each layer is traversed twice: first to step and
 * to sum the squares of the columns; then, with the layer still in cache, to scale and to average.
 */
#include "agent/optim.h"

#include <math.h>
#include <string.h>

static const real SMALLEST_NORM = (real)1e-8; /* shorter columns are divided by this */

double KS(rate_at)(const struct ks_rate *s, int64_t step)
{
    double done = s->steps > 0 ? fmin((double)step / s->steps, 1) : 1;

    return s->start - (s->start - s->end) * done;
}

/* One step: m <- b1 m + c1 g, v <- b2 v + c2 g^2, w <- keep w - rate m / (sqrt(v_scale v) + eps);
 * target <- target + tau (w - target). */
struct constants {
    real b1, c1, b2, c2, rate, v_scale, keep, eps, tau;
};

static struct constants constants(const struct ks_adam *adam, bool decays)
{
    double t = (double)adam->step + 1, rate = KS(rate_at)(&adam->rate, adam->step);

    return (struct constants){
        .b1 = (real)adam->beta1,
        .c1 = (real)(1 - adam->beta1),
        .b2 = (real)KS_ADAM_BETA2,
        .c2 = (real)(1 - KS_ADAM_BETA2),
        .rate = (real)(rate / (1 - pow(adam->beta1, t))),
        .v_scale = (real)(1 / (1 - pow(KS_ADAM_BETA2, t))),
        .keep = (real)(decays ? 1 - rate * adam->weight_decay : 1),
        .eps = (real)KS_ADAM_EPS,
        .tau = (real)adam->tau,
    };
}

/* Steps n parameters from number `at` on, a row of a block; adds their squares to t->columns. */
static void step_row(const struct constants *k, const struct KS(trained) *t, size_t at, size_t n)
{
    struct constants c = *k;
    const real *restrict g = t->g + at;
    real *restrict m = t->m + at, *restrict v = t->v + at, *restrict w = t->w + at;
    real *restrict squares = t->columns;

    for (size_t j = 0; j < n; j++) {
        m[j] = c.b1 * m[j] + c.c1 * g[j];
        v[j] = c.b2 * v[j] + c.c2 * g[j] * g[j];
#ifdef KS_SINGLE
        w[j] = c.keep * w[j] - c.rate * m[j] / (sqrtf(c.v_scale * v[j]) + c.eps);
#else
        w[j] = c.keep * w[j] - c.rate * m[j] / (sqrt(c.v_scale * v[j]) + c.eps);
#endif
        squares[j] += w[j] * w[j];
    }
}

static bool all_finite(size_t n, const real *x)
{
    bool finite = true;

    for (size_t j = 0; j < n; j++)
        finite &= x[j] - x[j] == 0;
    return finite;
}

/* Replaces the squared norms of n columns by the factors that make the norms 1. */
static void norms_to_factors(size_t n, real *squares)
{
    for (size_t j = 0; j < n; j++) {
        real norm = (real)sqrt((double)squares[j]);

        squares[j] = 1 / (norm > SMALLEST_NORM ? norm : SMALLEST_NORM);
    }
}

static void scale_row(size_t n, const real *restrict factor, real *restrict w)
{
    for (size_t j = 0; j < n; j++)
        w[j] *= factor[j];
}

static void average_row(size_t n, real tau, const real *restrict w, real *restrict target)
{
    for (size_t j = 0; j < n; j++)
        target[j] += tau * (w[j] - target[j]);
}

static bool decays(const struct KS(arch) *arch, const struct KS(layer) *l, enum ks_decay decayed)
{
    bool norms = decayed == KS_DECAY_NORMS || decayed == KS_DECAY_NORMS_AND_HEADS;
    bool heads = decayed == KS_DECAY_HEADS || decayed == KS_DECAY_NORMS_AND_HEADS;

    return decayed == KS_DECAY_ALL || (norms && l->kind->role == KS_BATCH_NORM) ||
           (heads && KS(arch_is_head)(arch, l));
}

/* A matrix [rows, columns] of a layer's parameters, which starts at w + offset. */
struct block {
    size_t offset, rows, columns;
    bool projected; /* its columns are scaled to norm 1 after the step */
};

/* Returns false if a parameter is not finite. */
static bool step_block(const struct constants *k, const struct KS(trained) *t, struct block b)
{
    size_t at = b.offset;
    bool finite;

    memset(t->columns, 0, b.columns * sizeof *t->columns);
    for (size_t i = 0; i < b.rows; i++, at += b.columns)
        step_row(k, t, at, b.columns);
    finite = all_finite(b.columns, t->columns);
    norms_to_factors(b.columns, t->columns);
    at = b.offset;
    for (size_t i = 0; i < b.rows; i++, at += b.columns) {
        if (b.projected)
            scale_row(b.columns, t->columns, t->w + at);
        if (t->target && k->tau > 0)
            average_row(b.columns, k->tau, t->w + at, t->target + at);
    }
    return finite;
}

bool KS(adam_step)(const struct KS(arch) *arch, const struct ks_adam *adam,
                   const struct KS(trained) *t)
{
    bool finite = true;

    for (size_t i = 0; i < arch->n_layers; i++) {
        const struct KS(layer) *l = &arch->layer[i];
        struct constants k = constants(adam, decays(arch, l, adam->decayed));
        /* Every array of a layer has as many columns as the first one. */
        const size_t columns = l->n_params > 0 ? l->param[0].columns : l->out;
        const size_t rows = l->parameters / columns;
        struct block projected = {l->offset, l->sphere_rows, columns, .projected = true};
        struct block other = {l->offset + l->sphere_rows * columns, rows - l->sphere_rows, columns,
                              .projected = false};

        if (projected.rows > 0)
            finite &= step_block(&k, t, projected);
        if (other.rows > 0)
            finite &= step_block(&k, t, other);
    }
    return finite;
}

double KS(adam_scalar)(const struct ks_adam *adam, double g, double *m, double *v, double w)
{
    double t = (double)adam->step + 1, rate = KS(rate_at)(&adam->rate, adam->step);

    *m = adam->beta1 * *m + (1 - adam->beta1) * g;
    *v = KS_ADAM_BETA2 * *v + (1 - KS_ADAM_BETA2) * g * g;
    return (1 - rate * adam->weight_decay) * w -
           rate * (*m / (1 - pow(adam->beta1, t))) /
               (sqrt(*v / (1 - pow(KS_ADAM_BETA2, t))) + KS_ADAM_EPS);
}

void KS(project)(const struct KS(arch) *arch, real *w, real *columns)
{
    for (size_t i = 0; i < arch->n_layers; i++) {
        const struct KS(layer) *l = &arch->layer[i];
        real *at = w + l->offset;

        memset(columns, 0, l->out * sizeof *columns);
        for (size_t k = 0; k < l->sphere_rows * l->out; k++)
            columns[k % l->out] += at[k] * at[k];
        norms_to_factors(l->out, columns);
        for (size_t k = 0; k < l->sphere_rows; k++)
            scale_row(l->out, columns, at + k * l->out);
    }
}

size_t KS(widest)(const struct KS(arch) *arch)
{
    size_t widest = 0;

    for (size_t i = 0; i < arch->n_layers; i++)
        widest = arch->layer[i].out > widest ? arch->layer[i].out : widest;
    return widest;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

void KS(trained_lay_out)(struct ks_arena *arena, const struct KS(net) *train,
                         const struct KS(net) *eval, const struct KS(net) *forward,
                         struct KS(trained) *t)
{
    size_t n = train->arch->parameters, primal = larger(train->primal, eval->primal);

    t->w = KS_TAKE(arena, n, real);
    t->state = KS_TAKE(arena, train->arch->states, real);
    t->state_copy = KS_TAKE(arena, train->arch->reads_state ? train->arch->states : 0, real);
    t->m = KS_TAKE(arena, n, real);
    t->v = KS_TAKE(arena, n, real);
    t->g = KS_TAKE(arena, n, real);
    t->primal = KS_TAKE(arena, larger(primal, forward->primal), real);
    t->adjoint = KS_TAKE(arena, larger(train->adjoint, eval->adjoint), real);
    t->columns = KS_TAKE(arena, KS(widest)(train->arch), real);
}

real *KS(trained_state)(const struct KS(arch) *arch, const struct KS(trained) *t)
{
    return arch->reads_state ? memcpy(t->state_copy, t->state, arch->states * sizeof *t->state)
                             : NULL;
}

void KS(trained_backward)(const struct KS(net) *net, const struct KS(trained) *t, const real *x,
                          real *x_bar, bool gradient)
{
    struct KS(net_backward) pass = {.w = t->w,
                                    .x = x,
                                    .primal = t->primal,
                                    .adjoint = t->adjoint,
                                    .x_bar = x_bar,
                                    .w_bar = gradient ? t->g : NULL};

    if (gradient)
        memset(t->g, 0, net->arch->parameters * sizeof *t->g);
    KS(net_backward)(net, &pass);
}

void KS(trained_copy)(const struct KS(arch) *arch, const struct KS(trained) *t)
{
    if (t->target)
        memcpy(t->target, t->w, arch->parameters * sizeof *t->w);
}

ks_status KS(trained_init)(const struct KS(arch) *arch, const struct ks_starts *starts,
                           struct ks_rng rng, struct KS(trained) *t)
{
    const size_t size = arch->parameters * sizeof *t->w;

    KS_TRY(KS(init_network)(arch, starts, &rng, t->w, t->state));
    KS(project)(arch, t->w, t->columns);
    KS(trained_copy)(arch, t);
    memset(t->m, 0, size);
    memset(t->v, 0, size);
    return KS_OK;
}
