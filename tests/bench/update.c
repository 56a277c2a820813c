/* Gradient updates of study architectures at full size, on random transitions, against the bare
 * GEMM calls of the same updates, in one run.
 *
 *   build/bench/update [THREADS]          float32; 1 and 2 threads by default
 *
 * Prints the best of several cycles of three updates: the actor steps in one of them. */
#define KS_SINGLE /* the engine's precision */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cblas.h>

#include "ks/agent.h"
#include "ks/architecture.h"
#include "ks/blas.h"
#include "ks/memory.h"
#include "ks/program.h"
#include "ks/rng.h"

enum {
    OBSERVATIONS = 223,
    ACTIONS = 38,
    BATCH = 256,
    WIDEST = 512,
    ENSEMBLE = 2,
    CYCLE = 3,
    TIMES = 9
};

static const char *const NAMES[] = {"bn+wn+ce", "ln+wn+ce", "dense+ce", NULL};

static void must(ks_status status)
{
    if (status == KS_OK)
        return;
    fprintf(stderr, "update: %s\n", ks_error_text());
    exit(1);
}

static struct ks_agent *make_agent(const char *name, int threads)
{
    struct ks_settings settings;
    struct ks_agent *agent;
    char *critic, *actor;

    ks_settings_start(&settings);
    must(ks_architecture(name, &settings, ACTIONS, &critic, &actor));
    must(KS(agent_new)(&(struct ks_agent_config){.critic = critic,
                                                 .actor = actor,
                                                 .observations = OBSERVATIONS,
                                                 .actions = ACTIONS,
                                                 .ensemble = ENSEMBLE,
                                                 .batch = BATCH,
                                                 .gamma = 0.99,
                                                 .tau = 0.005,
                                                 .critic_rate = {3e-4, 3e-5, 1e6},
                                                 .actor_rate = {3e-4, 3e-5, 1e6},
                                                 .policy_delay = CYCLE,
                                                 .temperature = 0.01,
                                                 .target_entropy = -19,
                                                 .threads = threads},
                       &agent));
    free(critic);
    free(actor);
    return agent;
}

static float *uniform(size_t n)
{
    struct ks_rng rng = ks_rng_start(0, n);
    float *a;

    must(ks_alloc(n, sizeof *a, &a));
    for (size_t i = 0; i < n; i++)
        a[i] = (float)ks_rng_uniform(&rng, -1, 1);
    return a;
}

static double time_updates(struct ks_agent *agent)
{
    float *s = uniform(BATCH * OBSERVATIONS), *next_s = uniform(BATCH * OBSERVATIONS + 1);
    float *a = uniform(BATCH * ACTIONS), mask[BATCH];
    double reward[BATCH], best = 1e9;
    struct ks_batch batch = {s, a, next_s, reward, mask};
    struct ks_update figures;

    for (size_t i = 0; i < BATCH; i++)
        reward[i] = mask[i] = 1;
    for (int t = 0; t < TIMES; t++) {
        double start = ks_seconds(), seconds;

        for (int k = 0; k < CYCLE; k++)
            must(KS(agent_update)(agent, &batch, &figures));
        seconds = (ks_seconds() - start) / CYCLE;
        best = seconds < best ? seconds : best;
    }
    free(s);
    free(next_s);
    free(a);
    return best;
}

/* Passes of one network: what is wanted of it. */
struct passes {
    const struct ks_net *net;
    int forward, weights, inputs, first_inputs; /* how often: y; w_bar; x_bar; x_bar of layer 0 */
};

/* The GEMM calls of a network on `work`; returns operations. */
static double net_gemms(const struct passes *p, float *work)
{
    float *a = work, *b = work + 2 * BATCH * WIDEST, *c = b + WIDEST * WIDEST;
    double operations = 0;

    for (size_t l = 0; l < p->net->arch->n_layers; l++) {
        const struct ks_layer *layer = &p->net->arch->layer[l];
        int m = (int)(l + 1 == p->net->arch->n_layers ? p->net->out_rows : p->net->rows);
        int i = (int)layer->in, o = (int)layer->out;
        int inputs = l == 0 ? p->first_inputs : p->inputs;

        if (strcmp(layer->kind->name, "dense") != 0)
            continue;
        for (int k = 0; k < p->forward; k++)
            cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, o, i, 1, a, i, b, o, 0, c, o);
        for (int k = 0; k < p->weights; k++)
            cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, i, o, m, 1, a, i, c, o, 1, b, o);
        for (int k = 0; k < inputs; k++)
            cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m, i, o, 1, c, o, b, o, 0, a, i);
        operations += 2.0 * m * i * o * (p->forward + p->weights + inputs);
    }
    return operations;
}

/* A cycle, in the order and on the threads of an update. */
static double cycle_gemms(const struct ks_agent *agent, float *work)
{
    size_t size = 4 * BATCH * WIDEST + WIDEST * WIDEST;
    int joint = agent->critic_arch->joint, threads = agent->config.threads;
    struct passes next = {agent->actor_eval, 1, 0, 0, 0}, actor = {agent->actor_train, 1, 1, 1, 0};
    struct passes target = {agent->critic_train, 1, 0, 0, 0};
    struct passes critic = {agent->critic_train, 1, 1, 1, 0};
    struct passes value = {agent->critic_eval, 1, 0, 1, 1};
    double operations = 0;

    for (int k = 0; k < CYCLE; k++) {
        operations += net_gemms(&next, work);
#pragma omp parallel for num_threads(threads) reduction(+ : operations)
        for (int e = 0; e < ENSEMBLE; e++) {
            operations += net_gemms(&target, work + (size_t)e * size);
            operations += net_gemms(&critic, work + (size_t)e * size);
            if (k == 0)
                operations += net_gemms(&value, work + (size_t)e * size);
        }
        if (k == 0 || joint)
            operations += net_gemms(k == 0 ? &actor : &next, work);
    }
    return operations;
}

static double time_gemms(const struct ks_agent *agent, double *operations)
{
    size_t size = ENSEMBLE * (4 * BATCH * WIDEST + WIDEST * WIDEST);
    double best = 1e9;
    float *work;

    must(ks_alloc(size, sizeof *work, &work));
    for (int t = 0; t < TIMES; t++) {
        double start = ks_seconds(), seconds;

        *operations = cycle_gemms(agent, work) / CYCLE;
        seconds = (ks_seconds() - start) / CYCLE;
        best = seconds < best ? seconds : best;
    }
    free(work);
    return best;
}

static void measure(const char *name, int threads)
{
    struct ks_agent *agent = make_agent(name, threads);
    double update = time_updates(agent), operations, gemm = time_gemms(agent, &operations);

    printf("%-10s %d thread%s: %6.2f ms an update, %5.1f/s, %6.2f GFLOP, %5.1f GFLOP/s; GEMM calls "
           "alone %6.2f ms, %5.1f GFLOP/s; ratio %.3f\n",
           name, threads, threads > 1 ? "s" : " ", 1e3 * update, 1 / update, 1e-9 * operations,
           1e-9 * operations / update, 1e3 * gemm, 1e-9 * operations / gemm, update / gemm);
    KS(agent_free)(agent);
}

int main(int argc, char **argv)
{
    int threads = argc > 1 ? atoi(argv[1]) : 0;

    ks_blas_start(argv);
    printf("%s, kernel %s\n", ks_blas_version(), ks_blas_kernel());
    for (size_t i = 0; NAMES[i]; i++)
        for (int t = 1; t <= 2; t++)
            if (threads == 0 || threads == t)
                measure(NAMES[i], t);
    return 0;
}
