/* Outputs, losses and gradients of a checkpoint's critics, by a forward and a backward pass through
 * the network of the description. (The analyzer multiplies with a network whose first layers are
 * folded, see operators/fold.h. Here they are not.) */
#include "io/reference.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include <cblas.h>
#include <omp.h>

#include "core/memory.h"
#include "io/checkpoint.h"
#include "net/net.h"

static size_t largest(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* --- one minibatch --- */

/* One thread's arrays. */
enum {
    PRIMAL,
    ADJOINT,
    GRADIENT, /* P numbers                                 */
    EXTENDED, /* the extended vector of a critic (arch.h)  */
    STATE,    /* a copy of a critic's running statistics   */
    ARRAYS
};
struct worker {
    double *array[ARRAYS];
};

struct evaluation {
    const struct ks_checkpoint *c;
    struct ks_references *to; /* says what is computed, and receives it */
    struct KS(arch) *arch;    /* in float64, whatever the precision of c's own; owned */
    /* For a minibatch, or for all its microbatches but the last, and for the last; owned. */
    struct KS(net) *net, *last;
    size_t minibatches, rows, workers; /* rows: of a minibatch whose outputs are computed */
    struct worker *worker;             /* [workers]; in the arena */
    struct ks_arena arena;
};

/* The extended vector of a critic. */
static const double *parameters_of(const struct evaluation *e, const struct worker *w,
                                   size_t critic)
{
    const size_t n = e->arch->parameters, frozen = e->arch->frozen;
    const struct ks_networks *from = &e->c->critic;

    if (frozen == 0)
        return from->w + critic * n;
    memcpy(w->array[EXTENDED], from->w + critic * n, n * sizeof(double));
    memcpy(w->array[EXTENDED] + n, from->frozen + critic * frozen, frozen * sizeof(double));
    return w->array[EXTENDED];
}

/* A copy of the critic's running statistics, because a pass may change them. It is NULL if no layer
 * reads them in training mode. */
static double *statistics_of(const struct evaluation *e, const struct worker *w, size_t critic)
{
    const size_t n = e->arch->states;
    const struct ks_networks *from = &e->c->critic;

    if (!e->arch->reads_state || !from->state)
        return NULL;
    memcpy(w->array[STATE], from->state + critic * n, n * sizeof(double));
    return w->array[STATE];
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Stores the outputs of one critic for the rows of minibatch n from `first` on, and adds their loss
 * to the sum of the minibatch and their gradient to the worker's. */
static void evaluate_rows(const struct evaluation *e, const struct worker *w, size_t critic,
                          size_t n, size_t first)
{
    const struct ks_checkpoint *c = e->c;
    const struct KS(arch) *arch = e->arch;
    const struct KS(net) *net = first + e->net->out_rows > e->rows ? e->last : e->net;
    const size_t start = smaller(first, c->loss_rows), end = first + net->out_rows;
    const double *theta = parameters_of(e, w, critic), *weight = ks_checkpoint_weight(c, n);
    const double *x = c->input + (n * c->rows + first) * arch->in;
    const double *f = KS(net_output)(net, w->array[PRIMAL]);
    const struct KS(outputs) at = {.rows = smaller(end, c->loss_rows) - start,
                                   .f = f,
                                   .t = ks_checkpoint_target(c, critic, n) +
                                        start * arch->loss.targets};
    const bool backward = n < e->to->gradient_norm.minibatches;
    double *f_bar = backward ? KS(net_output_bar)(net, w->array[ADJOINT]) : NULL, loss;

    KS(net_forward)(net, theta, statistics_of(e, w, critic), x, w->array[PRIMAL]);
    for (size_t i = first; n < e->to->output.minibatches && i < smaller(end, e->to->output.rows);
         i++)
        memcpy(e->to->output.value +
                   ((n * e->to->output.rows + i) * c->critic.ensemble + critic) * arch->out,
               f + (i - first) * arch->out, arch->out * sizeof *f);
    if (backward)
        memset(f_bar, 0, net->out_rows * arch->out * sizeof *f_bar);
    loss = KS(loss_gradient)(&arch->loss, &at, weight ? weight + start : NULL,
                             1 / (double)c->loss_rows, f_bar);
    if (n < e->to->loss.minibatches)
        e->to->loss.value[n] += loss / (double)c->loss_rows;
    if (!backward)
        return;
    KS(net_backward)
    (net, &(struct KS(net_backward)){.w = theta,
                                     .x = x,
                                     .primal = w->array[PRIMAL],
                                     .adjoint = w->array[ADJOINT],
                                     .w_bar = w->array[GRADIENT]});
}

/* Adds one critic's share to the sums of minibatch n. */
static void evaluate_critic(const struct evaluation *e, const struct worker *w, size_t critic,
                            size_t n)
{
    const bool backward = n < e->to->gradient_norm.minibatches;
    const size_t parameters = backward ? e->arch->parameters : 0;

    memset(w->array[GRADIENT], 0, parameters * sizeof(double));
    for (size_t first = 0; first < e->rows; first += e->net->out_rows)
        evaluate_rows(e, w, critic, n, first);
    if (backward)
        e->to->gradient_norm.value[n] = hypot(e->to->gradient_norm.value[n],
                                              cblas_dnrm2((int)parameters, w->array[GRADIENT], 1));
}

/* --- all of them --- */

static size_t output_row(const struct ks_checkpoint *c)
{
    return c->critic.ensemble * c->critic.arch->out;
}

/* Parses the description and lays out the network. Rows without a loss are part of it if other rows
 * depend on them, or if their outputs are asked for. */
static ks_status evaluation_new(const struct ks_checkpoint *c, struct ks_references *to,
                                struct evaluation *e)
{
    const size_t threads = (size_t)omp_get_max_threads();
    const size_t rows = largest(c->loss_rows, to->output.minibatches ? to->output.rows : 0);
    size_t microbatches, out_rows;

    *e = (struct evaluation){.c = c, .to = to};
    e->minibatches = largest(largest(to->output.minibatches, to->loss.minibatches),
                             to->gradient_norm.minibatches);
    e->workers = threads < e->minibatches ? threads : e->minibatches;
    KS_TRY(KS(arch_parse)(c->critic.text, "/critic", c->critic.arch->in, &e->arch));
    e->arch->loss.targets = c->critic.arch->loss.targets; /* the description does not have it */
    microbatches = KS(net_microbatches)(e->arch, rows, false);
    e->rows = rows;
    out_rows = (rows - 1) / microbatches + 1;
    if (microbatches > 1)
        KS_TRY(KS(net_new)(e->arch, (rows - 1) % out_rows + 1, (rows - 1) % out_rows + 1, false,
                           &e->last));
    return KS(net_new)(e->arch, e->arch->joint ? c->rows : out_rows, out_rows, false, &e->net);
}

static void evaluation_clear(struct evaluation *e)
{
    KS(net_free)(e->net);
    KS(net_free)(e->last);
    KS(arch_free)(e->arch);
    ks_arena_free(&e->arena);
}

static void lay_out(struct ks_arena *arena, void *object)
{
    struct evaluation *e = object;
    const bool gradient = e->to->gradient_norm.minibatches > 0;
    const size_t size[ARRAYS] = {
        [PRIMAL] = e->net->primal,
        [ADJOINT] = gradient ? e->net->adjoint : 0,
        [GRADIENT] = gradient ? e->arch->parameters : 0,
        [EXTENDED] = e->arch->frozen > 0 ? ks_arch_extended(e->arch) : 0,
        [STATE] = e->arch->states,
    };

    e->worker = KS_TAKE(arena, e->workers, struct worker);
    for (size_t k = 0; k < e->workers; k++)
        for (size_t i = 0; i < ARRAYS; i++)
            KS_TAKEN(e->worker, k, struct worker)->array[i] = KS_TAKE(arena, size[i], double);
}

static ks_status make_values(const struct ks_checkpoint *c, struct ks_references *to)
{
    for (size_t k = 0; k < KS_REFERENCES; k++) {
        struct ks_reference *p = &to->all[k];
        const size_t row = p == &to->output ? p->rows * output_row(c) : 1;

        if (p->minibatches > 0)
            KS_TRY(ks_alloc(p->minibatches * row, sizeof(double), &p->value));
    }
    return KS_OK;
}

ks_status ks_references_compute(const struct ks_checkpoint *c, struct ks_references *references)
{
    struct evaluation e = {.c = NULL};
    ks_status status = KS_OK;

    KS_GO(evaluation_new(c, references, &e));
    if (e.minibatches == 0)
        goto done;
    KS_GO(make_values(c, references));
    KS_GO(ks_arena_make(&e.arena, lay_out, &e));
#pragma omp parallel for num_threads((int)e.workers) schedule(static, 1)
    for (size_t k = 0; k < e.workers; k++)
        for (size_t n = k; n < e.minibatches; n += e.workers)
            for (size_t critic = 0; critic < c->critic.ensemble; critic++)
                evaluate_critic(&e, &e.worker[k], critic, n);
done:
    evaluation_clear(&e);
    if (status != KS_OK)
        ks_references_clear(references);
    return status;
}

ks_status ks_references_bytes(const struct ks_checkpoint *c, const struct ks_references *references,
                              double *bytes)
{
    struct ks_references to = *references;
    KS_CLEARED_BY(evaluation_clear) struct evaluation e = {.c = NULL};

    *bytes = 0;
    if (to.output.minibatches + to.loss.minibatches + to.gradient_norm.minibatches == 0)
        return KS_OK;
    KS_TRY(evaluation_new(c, &to, &e));
    *bytes = (double)ks_arena_count(lay_out, &e);
    *bytes += (double)(to.output.minibatches * to.output.rows) * (double)output_row(c) *
              sizeof(double);
    return KS_OK;
}
