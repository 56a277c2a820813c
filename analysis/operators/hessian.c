/* The Hessian of the critics' loss times a vector: forward over reverse (Pearlmutter, Neural
 * Computation 6, 1994), the tangent of the hand-written backward pass.
 *
 *   f_dot     = J v                                    net_tangent_forward
 *   f_bar_dot = 1/(N B) H_l f_dot                      the loss's curvature
 *   H v       = tangent of J' f_bar along v            net_tangent_backward
 *
 * summed over minibatches; H is block diagonal over critics, and weight decay adds mu2 v. What
 * depends on theta alone comes from primal.h and is kept as far as the memory allows. */
#include <stdlib.h>
#include <string.h>

#include <omp.h>

#include "ks/memory.h"
#include "ks/net.h"
#include "ks/operator.h"
#include "ks/primal.h"

/* One thread's arrays. */
struct worker {
    double *primal; /* [primal->block], for what is recomputed */
    real *block;    /* the same in the product's precision     */
    real *tangent, *scratch;
    real *f_bar_dot; /* [B, K] */
    real *sum;       /* [P]: this worker's part of one critic's product */
};

struct hessian {
    const struct ks_problem *problem;
    struct ks_primal *primal;
    struct ks_arch *arch;
    struct ks_net *net;
    real *w, *input, *target; /* [E, P], [N, rows, D], [N, B, K] */
    real *v;                  /* [P] */
    size_t kept;              /* blocks in `blocks`: those of pairs 0 .. kept-1, pair = e N + n */
    real *blocks;
    size_t n_workers;
    struct worker *worker;
};

static void hessian_free(void *self)
{
    struct hessian *h = self;

    if (!h)
        return;
    for (size_t k = 0; h->worker && k < h->n_workers; k++) {
        free(h->worker[k].primal);
        free(h->worker[k].block);
        free(h->worker[k].tangent);
        free(h->worker[k].scratch);
        free(h->worker[k].f_bar_dot);
        free(h->worker[k].sum);
    }
    free(h->worker);
    free(h->blocks);
    free(h->v);
    free(h->w);
    free(h->input);
    free(h->target);
    KS(net_free)(h->net);
    KS(arch_free)(h->arch);
    ks_primal_free(h->primal);
    free(h);
}

static void to_real(size_t n, const double *from, real *to)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (real)from[i];
}

static ks_status copy_inputs(struct hessian *h)
{
    const struct ks_checkpoint *c = h->problem->checkpoint;
    size_t n = h->problem->minibatches, row = h->arch->in, used = h->primal->rows * row;
    size_t n_w = c->critic.ensemble * h->arch->parameters;
    size_t n_target = n * c->loss_rows * h->arch->loss.targets;

    KS_TRY(ks_alloc(n_w, sizeof *h->w, &h->w));
    KS_TRY(ks_alloc(n * used, sizeof *h->input, &h->input));
    KS_TRY(ks_alloc(n_target, sizeof *h->target, &h->target));
    KS_TRY(ks_alloc(h->arch->parameters, sizeof *h->v, &h->v));
    to_real(n_w, c->critic.w, h->w);
    to_real(n_target, c->target, h->target);
    for (size_t i = 0; i < n; i++)
        to_real(used, c->input + i * c->rows * row, h->input + i * used);
    return KS_OK;
}

static ks_status make_workers(struct hessian *h)
{
    size_t outputs = h->net->out_rows * h->arch->out;

    h->n_workers = ks_primal_workers(h->problem);
    KS_TRY(ks_alloc(h->n_workers, sizeof *h->worker, &h->worker));
    for (size_t k = 0; k < h->n_workers; k++) {
        struct worker *t = &h->worker[k];

        KS_TRY(ks_alloc(h->primal->block, sizeof *t->primal, &t->primal));
        KS_TRY(ks_alloc(h->primal->block, sizeof *t->block, &t->block));
        KS_TRY(ks_alloc(h->net->tangent, sizeof *t->tangent, &t->tangent));
        KS_TRY(ks_alloc(h->net->scratch, sizeof *t->scratch, &t->scratch));
        KS_TRY(ks_alloc(outputs, sizeof *t->f_bar_dot, &t->f_bar_dot));
        KS_TRY(ks_alloc(h->arch->parameters, sizeof *t->sum, &t->sum));
    }
    return KS_OK;
}

static void compute_block(const struct hessian *h, struct worker *t, size_t pair, real *block)
{
    size_t n = h->problem->minibatches;

    ks_primal_compute(h->primal, pair / n, pair % n, t->primal, NULL);
    to_real(h->primal->block, t->primal, block);
}

/* As many blocks as the memory holds, filled once. */
static ks_status keep_blocks(struct hessian *h)
{
    size_t pairs = h->problem->checkpoint->critic.ensemble * h->problem->minibatches;
    size_t fit = h->problem->memory / (h->primal->block * sizeof *h->blocks);

    h->kept = fit < pairs ? fit : pairs;
    KS_TRY(ks_alloc(h->kept * h->primal->block, sizeof *h->blocks, &h->blocks));
#pragma omp parallel for num_threads((int)h->n_workers) schedule(static, 1)
    for (size_t pair = 0; pair < h->kept; pair++)
        compute_block(h, &h->worker[omp_get_thread_num()], pair,
                      h->blocks + pair * h->primal->block);
    return KS_OK;
}

/* t->sum += the product's part of critic e and minibatch n. */
static void add_product(const struct hessian *h, struct worker *t, size_t e, size_t n)
{
    const struct ks_net *net = h->net;
    const struct ks_loss *loss = &h->arch->loss;
    size_t pair = e * h->problem->minibatches + n;
    const real *w = h->w + e * h->arch->parameters;
    const real *x = h->input + n * h->primal->rows * h->arch->in;
    const real *target = h->target + n * net->out_rows * loss->targets;
    real *block = h->blocks + pair * h->primal->block;

    if (pair >= h->kept) {
        block = t->block;
        compute_block(h, t, pair, block);
    }
    KS(net_tangent_forward)(net, w, h->v, x, block, t->tangent);
    loss->kind->curvature(loss, net->out_rows, KS(net_output)(net, block), target,
                          (real)h->primal->output_scale, KS(net_output)(net, t->tangent),
                          t->f_bar_dot);
    KS(net_tangent_backward)
    (net, w, h->v, x, block, block + net->primal, t->tangent, t->f_bar_dot, t->scratch, t->sum);
}

/* Worker k takes minibatches k, k + workers, ...: the order of the sums is fixed. */
static ks_status hessian_apply(void *self, const double *v, double *out)
{
    struct hessian *h = self;
    size_t p = h->arch->parameters;

    for (size_t e = 0; e < h->problem->checkpoint->critic.ensemble; e++, v += p, out += p) {
        to_real(p, v, h->v);
#pragma omp parallel for num_threads((int)h->n_workers) schedule(static, 1)
        for (size_t k = 0; k < h->n_workers; k++) {
            memset(h->worker[k].sum, 0, p * sizeof *h->worker[k].sum);
            for (size_t n = k; n < h->problem->minibatches; n += h->n_workers)
                add_product(h, &h->worker[k], e, n);
        }
        for (size_t i = 0; i < p; i++) {
            double sum = h->problem->weight_decay * v[i];

            for (size_t k = 0; k < h->n_workers; k++)
                sum += (double)h->worker[k].sum[i];
            out[i] = h->problem->scale * sum;
        }
    }
    return KS_OK;
}

static ks_status build(struct hessian *h)
{
    const struct ks_checkpoint *c = h->problem->checkpoint;

    KS_TRY(ks_primal_new(h->problem, &h->primal));
    KS_TRY(KS(arch_parse)(c->critic.text, "/critic", c->critic.arch->in, &h->arch));
    KS_TRY(KS(net_new)(h->arch, h->primal->rows, c->loss_rows, h->problem->evaluation, &h->net));
    KS_TRY(copy_inputs(h));
    KS_TRY(make_workers(h));
    return keep_blocks(h);
}

ks_status KS(hessian_new)(const struct ks_problem *problem, struct ks_operator **hessian)
{
    ks_status status = KS_OK;
    struct ks_operator *a = NULL;
    struct hessian *h = NULL;

    *hessian = NULL;
    KS_GO(ks_alloc(1, sizeof *a, &a));
    a->free = hessian_free;
    a->apply = hessian_apply;
    KS_GO(ks_alloc(1, sizeof *h, &h));
    a->self = h;
    h->problem = problem;
    KS_GO(build(h));
    a->n = problem->checkpoint->critic.ensemble * h->arch->parameters;
    *hessian = a;
    return KS_OK;
done:
    hessian_free(h);
    free(a);
    return status;
}
