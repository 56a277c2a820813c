#include "ks/primal.h"

#include <stdlib.h>

#include <omp.h>

#include "ks/memory.h"

static ks_status check(const struct ks_problem *q)
{
    const struct ks_checkpoint *c = q->checkpoint;

    if (q->minibatches < 1 || q->minibatches > c->minibatches)
        return ks_fail(KS_USAGE, "batches: expected 1 to %zu, found %zu", c->minibatches,
                       q->minibatches);
    if (q->evaluation && c->critic.arch->states > 0 && !c->critic.state)
        return ks_fail(KS_FORMAT, "batchnorm in evaluation mode needs running statistics, and the "
                                  "checkpoint holds none (/critic/NN_batchnorm/mean, var)");
    return KS_OK;
}

ks_status ks_primal_new(const struct ks_problem *problem, struct ks_primal **primal)
{
    const struct ks_checkpoint *c = problem->checkpoint;
    const struct ks_arch *arch = c->critic.arch;
    ks_status status = KS_OK;
    struct ks_primal *p = NULL;

    *primal = NULL;
    KS_TRY(check(problem));
    KS_GO(ks_alloc(1, sizeof *p, &p));
    p->problem = problem;
    p->rows = arch->joint && !problem->evaluation ? c->rows : c->loss_rows;
    p->output_scale = 1 / ((double)problem->minibatches * (double)c->loss_rows);
    KS_GO(KS(net_new)(arch, p->rows, c->loss_rows, problem->evaluation, &p->net));
    p->block = p->net->primal + p->net->adjoint;
    *primal = p;
    return KS_OK;
done:
    ks_primal_free(p);
    return status;
}

void ks_primal_free(struct ks_primal *primal)
{
    if (!primal)
        return;
    KS(net_free)(primal->net);
    free(primal);
}

double ks_primal_compute(const struct ks_primal *primal, size_t critic, size_t minibatch,
                         double *block, double *gradient)
{
    const struct ks_checkpoint *c = primal->problem->checkpoint;
    const struct ks_arch *arch = c->critic.arch;
    const struct ks_net *net = primal->net;
    const double *w = c->critic.w + critic * arch->parameters;
    const double *x = c->input + minibatch * c->rows * arch->in;
    const double *t = c->target + minibatch * c->loss_rows * arch->loss.targets;
    double *state = primal->problem->evaluation && c->critic.state
                        ? c->critic.state + critic * arch->states
                        : NULL;
    double *adjoint = block + net->primal, loss;

    KS(net_forward)(net, w, state, x, block);
    loss = arch->loss.kind->gradient(&arch->loss, c->loss_rows, KS(net_output)(net, block), t,
                                     primal->output_scale, KS(net_output_bar)(net, adjoint));
    KS(net_backward)(net, w, x, block, adjoint, NULL, gradient);
    return loss * primal->output_scale;
}

size_t ks_primal_workers(const struct ks_problem *problem)
{
    size_t threads = (size_t)omp_get_max_threads();

    return threads < problem->minibatches ? threads : problem->minibatches;
}

/* Sums over all critics and minibatches; worker k takes minibatches k, k + workers, ... and has a
 * gradient [E P] and a block of its own, so that the order of the sum is fixed. */
static void sum_workers(const struct ks_primal *primal, size_t workers, double *block,
                        double *gradient, double *loss)
{
    const struct ks_problem *q = primal->problem;
    size_t ensemble = q->checkpoint->critic.ensemble, n = q->checkpoint->critic.arch->parameters;

#pragma omp parallel for num_threads((int)workers) schedule(static, 1)
    for (size_t k = 0; k < workers; k++)
        for (size_t e = 0; e < ensemble; e++)
            for (size_t i = k; i < q->minibatches; i += workers)
                loss[k] += ks_primal_compute(primal, e, i, block + k * primal->block,
                                             gradient + (k * ensemble + e) * n);
}

ks_status ks_gradient(const struct ks_problem *problem, double *loss, double *gradient)
{
    size_t n = problem->checkpoint->critic.ensemble * problem->checkpoint->critic.arch->parameters;
    const double *theta = problem->checkpoint->critic.w;
    double *block = NULL, *sums = NULL, *losses = NULL, squares = 0;
    struct ks_primal *primal = NULL;
    size_t workers = 0;
    ks_status status = KS_OK;

    KS_GO(ks_primal_new(problem, &primal));
    workers = ks_primal_workers(problem);
    KS_GO(ks_alloc(workers * primal->block, sizeof *block, &block));
    KS_GO(ks_alloc(workers * n, sizeof *sums, &sums));
    KS_GO(ks_alloc(workers, sizeof *losses, &losses));
    sum_workers(primal, workers, block, sums, losses);
    *loss = 0;
    for (size_t k = 0; k < workers; k++)
        *loss += losses[k];
    for (size_t i = 0; i < n; i++) {
        gradient[i] = problem->weight_decay * theta[i];
        for (size_t k = 0; k < workers; k++)
            gradient[i] += sums[k * n + i];
        gradient[i] *= problem->scale;
        squares += theta[i] * theta[i];
    }
    *loss = problem->scale * (*loss + problem->weight_decay / 2 * squares);
done:
    free(block);
    free(sums);
    free(losses);
    ks_primal_free(primal);
    return status;
}
