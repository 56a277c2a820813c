/* Benchmark: gradient updates of architectures of the study at full size, in float32, on random
 * transitions; compared with the bare GEMM calls of the same updates on the same arrays. Also of
 * the systems that see images, if they are named.
 *
 *   build/bench/update [THREADS [ARCHITECTURE...]]      (default: 0 threads, which means 1 and 2)
 *
 * Prints the best of several cycles of three updates; the actor steps in one of the three. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cblas.h>

#include "core/blas.h"
#include "core/progress.h"
#include "core/split.h"

#include "env/env.h"

#include "agents.h"

enum { TIMES = 9 };

static char *NAMES[] = {"bn+wn+ce", "ln+wn+ce", "dense+ce", NULL};

static struct agent_case at_full_size(const char *name, int threads, enum ks_products products)
{
    const bool pixels = strcmp(name, "drqv2") == 0 || strcmp(name, "xqc-pixels") == 0;

    return (struct agent_case){.architecture = name,
                               .observations = pixels ? KS_FRAMES * KS_FRAME : 223,
                               .actions = pixels ? 6 : 38,
                               .threads = threads,
                               .products = products};
}

static double time_updates(const struct agent_case *c, struct KS(agent) *agent)
{
    const struct ks_batch batch = make_transitions(c);
    struct ks_update results;
    double best = 1e9;

    for (int t = 0; t < TIMES; t++) {
        double start = ks_seconds(), seconds;

        for (int k = 0; k < CYCLE; k++)
            must(KS(agent_update)(agent, &batch, &results));
        seconds = (ks_seconds() - start) / CYCLE;
        best = seconds < best ? seconds : best;
    }
    free_transitions(&batch);
    return best;
}

/* The arrays for the GEMM calls of one network; x_bar NULL: the input's adjoint is not computed. */
struct gemms {
    const struct KS(net) *net;
    const float *w, *x;
    float *primal, *adjoint, *x_bar, *w_bar;
};

static float *output(const struct gemms *c, size_t layer)
{
    return c->primal + c->net->at[layer].y;
}

static const float *input(const struct gemms *c, size_t layer)
{
    return layer == 0 ? c->x : output(c, layer - 1);
}

/* The GEMM calls of one dense layer; returns the number of operations. */
static double dense_gemms(const struct gemms *c, size_t layer, bool forward)
{
    const struct KS(layer) *l = &c->net->arch->layer[layer];
    int m = (int)(layer + 1 == c->net->arch->n_layers ? c->net->out_rows : c->net->rows);
    int i = (int)l->in, o = (int)l->out;
    const float *x = input(c, layer), *w = c->w + l->offset;
    float *y_bar = c->adjoint + c->net->at[layer].y_bar;
    float *x_bar = layer == 0 ? c->x_bar : c->adjoint + c->net->at[layer - 1].y_bar;

    if (forward) {
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, o, i, 1, x, i, w, o, 0,
                    output(c, layer), o);
        return 2.0 * m * i * o;
    }
    if (c->w_bar)
        cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, i, o, m, 1, x, i, y_bar, o, 1,
                    c->w_bar + l->offset, o);
    if (x_bar)
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m, i, o, 1, y_bar, o, w, o, 0, x_bar,
                    i);
    return 2.0 * m * i * o * ((c->w_bar != NULL) + (x_bar != NULL));
}

/* The GEMM calls of one convolution, row by row, on a matrix of patches that is not filled. */
static double convolution_gemms(const struct gemms *c, size_t layer, bool forward)
{
    const struct KS(layer) *l = &c->net->arch->layer[layer];
    const int p = (int)l->param[0].rows, f = (int)l->param[0].columns;
    const int n = (int)(l->out_image.height * l->out_image.width);
    const float *w = c->w + l->offset;
    static float *patches;
    static size_t room;

    if ((size_t)(p * n) > room) {
        room = (size_t)(p * n);
        free(patches);
        patches = uniform(room);
    }
    for (size_t i = 0; i < c->net->rows; i++) {
        const size_t at = i * l->out;
        float *y_bar = forward ? NULL : c->adjoint + c->net->at[layer].y_bar + at;

        if (forward) {
            cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, f, n, p, 1, w, f, patches, n, 0,
                        output(c, layer) + at, n);
            continue;
        }
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, p, f, n, 1, patches, n, y_bar, n, 1,
                    c->w_bar + l->offset, f);
        if (layer > 0)
            cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, p, n, f, 1, w, f, y_bar, n, 0,
                        patches, n);
    }
    return 2.0 * (double)c->net->rows * p * n * f * (forward || layer == 0 ? 1 : 2);
}

static double layer_gemms(const struct gemms *c, size_t layer, bool forward)
{
    const char *kind = c->net->arch->layer[layer].kind->name;

    return strcmp(kind, "dense") == 0    ? dense_gemms(c, layer, forward)
           : strcmp(kind, "conv2d") == 0 ? convolution_gemms(c, layer, forward)
                                         : 0;
}

static double forward_gemms(const struct gemms *c)
{
    double operations = 0;

    for (size_t l = 0; l < c->net->arch->n_layers; l++)
        operations += layer_gemms(c, l, true);
    return operations;
}

static double backward_gemms(const struct gemms *c)
{
    double operations = 0;

    for (size_t l = c->net->arch->n_layers; l-- > 0;)
        operations += layer_gemms(c, l, false);
    return operations;
}

/* The GEMM calls for critic e: targets, the critic's step, and if the actor steps the critic's
 * values for it. */
static double critic_gemms(const struct KS(agent) *a, size_t e, bool actor_steps)
{
    const struct KS(trained) *c = &a->critic[e];
    size_t width = KS(agent_width)(a);
    float *x_bar = a->pixels ? a->x_bar + e * KS(agent_rows)(a) * width : NULL;
    struct gemms target = {
        a->critic_train, c->target, a->target_input, c->primal, NULL, NULL, NULL};
    struct gemms step = {a->critic_train, c->w, a->input, c->primal, c->adjoint, x_bar, c->g};
    struct gemms value = {a->critic_eval,
                          c->w,
                          a->policy_input,
                          c->primal,
                          c->adjoint,
                          a->x_bar + e * BATCH * width,
                          NULL};
    double operations = forward_gemms(&target) + forward_gemms(&step) + backward_gemms(&step);

    return operations + (actor_steps ? forward_gemms(&value) + backward_gemms(&value) : 0);
}

/* Those of image and trunk in one update: the image of s and s', and its gradient for s; the trunk
 * and its target of both, the gradient, and the trunk again for the actor's loss. */
static double pixel_gemms(const struct KS(agent) *a)
{
    const struct KS(pixels) *p = a->pixels;
    const struct KS(trained) *image = &p->part[KS_IMAGE], *trunk = &p->part[KS_TRUNK];
    double operations = 0;
    struct gemms both = {p->both,        trunk->w, a->s,    trunk->primal,
                         trunk->adjoint, p->e_bar, trunk->g};
    struct gemms target = {p->both, trunk->target, a->s, trunk->primal, NULL, NULL, NULL};
    struct gemms again = {p->trunk, trunk->w, a->s, trunk->primal, NULL, NULL, NULL};

    for (size_t k = 0; k < p->chunks; k++) {
        const struct gemms see = {p->image,
                                  image->w,
                                  p->s + k * p->image->rows * a->config.observations,
                                  p->primals + k * p->image->primal,
                                  image->adjoint,
                                  NULL,
                                  image->g};

        operations += 2 * forward_gemms(&see) + backward_gemms(&see);
        forward_gemms(&see);
    }
    return operations + forward_gemms(&target) + forward_gemms(&both) + backward_gemms(&both) +
           forward_gemms(&again);
}

/* A cycle of updates, in the same order and with the same threads as ks_agent_update. */
static double cycle_gemms(const struct KS(agent) *a)
{
    struct gemms next = {a->actor_eval, a->actor.w, a->next_s, a->next_primal, NULL, NULL, NULL};
    struct gemms actor = {a->actor_train,   a->actor.w, a->s,      a->actor.primal,
                          a->actor.adjoint, NULL,       a->actor.g};
    double operations = 0;

    for (int k = 0; k < CYCLE; k++) {
        const bool steps = (size_t)k % a->config.policy_delay == 0;

        if (a->pixels)
            operations += pixel_gemms(a);
        operations += forward_gemms(&next);
#pragma omp parallel for num_threads(a->config.threads) reduction(+ : operations)
        for (size_t e = 0; e < ENSEMBLE; e++)
            operations += critic_gemms(a, e, steps);
        if (steps || a->actor_arch->joint)
            operations += forward_gemms(&actor);
        if (steps)
            operations += backward_gemms(&actor);
    }
    return operations;
}

static double time_gemms(const struct KS(agent) *agent, double *operations)
{
    double best = 1e9;

    for (int t = 0; t < TIMES; t++) {
        double start = ks_seconds(), seconds;

        *operations = cycle_gemms(agent) / CYCLE;
        seconds = (ks_seconds() - start) / CYCLE;
        best = seconds < best ? seconds : best;
    }
    return best;
}

/* Updates by layers that multiply in bfloat16 parts, beside sgemm's time for their products. */
static void measure_parts(const char *name, int threads, double gemm)
{
    const struct agent_case c = at_full_size(name, threads, KS_PRODUCTS_SPLIT3);
    struct KS(agent) *agent = make_agent(&c);
    const double update = time_updates(&c, agent);

    printf("%-10s %d thread%s: %6.2f ms per update by %s; ratio %.3f\n", name, threads,
           threads > 1 ? "s" : " ", 1e3 * update, ks_products_names[KS_PRODUCTS_SPLIT3],
           update / gemm);
    KS(agent_free)(agent);
}

static void measure(const char *name, int threads)
{
    const struct agent_case c = at_full_size(name, threads, KS_PRODUCTS_BLAS);
    struct KS(agent) *agent = make_agent(&c);
    double update = time_updates(&c, agent), operations, gemm = time_gemms(agent, &operations);

    printf(
        "%-10s %d thread%s: %6.2f ms per update, %5.1f/s, %6.2f GFLOP, %5.1f GFLOP/s; GEMM calls "
        "alone %6.2f ms, %5.1f GFLOP/s; ratio %.3f\n",
        name, threads, threads > 1 ? "s" : " ", 1e3 * update, 1 / update, 1e-9 * operations,
        1e-9 * operations / update, 1e3 * gemm, 1e-9 * operations / gemm, update / gemm);
    KS(agent_free)(agent);
    if (ks_split_has_amx())
        measure_parts(name, threads, gemm);
}

int main(int argc, char **argv)
{
    char *const *names = argc > 2 ? argv + 2 : NAMES;
    int threads = argc > 1 ? atoi(argv[1]) : 0;

    ks_blas_start(argv);
    printf("%s: %s, kernel %s%s\n", ks_processor_name(), ks_blas_version(), ks_blas_kernel(),
           ks_split_has_amx() ? "" : "; no AMX, so split3 is left out");
    for (size_t i = 0; names[i]; i++)
        for (int t = 1; t <= 2; t++)
            if (threads == 0 || threads == t)
                measure(names[i], t);
    return 0;
}
