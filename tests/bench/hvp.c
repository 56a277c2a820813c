/* One Hessian-vector product of study critics at full size, with random parameters and inputs,
 * against the bare GEMM calls of the same product and against the gradient, in one run.
 *
 *   build/bench/hvp [MINIBATCHES]          float32; as many workers as OMP_NUM_THREADS says
 *
 * Prints the best of several; ratios are what counts on a shared machine. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cblas.h>
#include <omp.h>

#include "ks/blas.h"
#include "ks/memory.h"
#include "ks/operator.h"
#include "ks/primal.h"
#include "ks/program.h"
#include "ks/rng.h"

enum { IN = 261, WIDTH = 512, HIDDEN = 4, BATCH = 256, TIMES = 7 };

struct subject {
    const char *name, *text;
};

static const struct subject SUBJECTS[] = {
    {"bn+wn+ce", "batchnorm\nrepeat 4 {\ndense 512 bias=no\nbatchnorm\nrelu\n}\ndense 101\n"
                 "loss ce min=-5 max=5\n"},
    {"ln+wn+ce", "layernorm\nrepeat 4 {\ndense 512\nlayernorm\nrelu\n}\ndense 101\n"
                 "loss ce min=-5 max=5\n"},
    {"dense+mse", "repeat 4 {\ndense 512\nrelu\n}\ndense 1\nloss mse\n"},
};

static void must(ks_status status)
{
    if (status == KS_OK)
        return;
    fprintf(stderr, "hvp: %s\n", ks_error_text());
    exit(1);
}

static double *normal(size_t n, double scale)
{
    struct ks_rng rng = ks_rng_start(0, n);
    double *a;

    must(ks_alloc(n, sizeof *a, &a));
    for (size_t i = 0; i < n; i++)
        a[i] = scale * ks_rng_normal(&rng);
    return a;
}

static struct ks_checkpoint *make(const char *text, size_t minibatches)
{
    struct ks_checkpoint *c;
    size_t k;

    must(ks_alloc(1, sizeof *c, &c));
    must(ks_copy_string(text, &c->critic.text));
    must(KS(arch_parse)(text, "bench", IN, &c->critic.arch));
    k = c->critic.arch->out;
    c->critic.ensemble = 1;
    c->critic.w = normal(c->critic.arch->parameters, 0.05);
    c->minibatches = minibatches, c->loss_rows = BATCH;
    c->rows = c->critic.arch->joint ? 2 * BATCH : BATCH;
    c->input = normal(minibatches * c->rows * IN, 1);
    must(ks_alloc(minibatches * BATCH * k, sizeof *c->target, &c->target));
    for (size_t i = 0; i < minibatches * BATCH; i++)
        c->target[i * k + i % k] = 1;
    return c;
}

/* The product's GEMMs on one worker's own matrices: Y_dot = X W_dot + X_dot W, W_bar_dot += X_dot'
 * Y_bar
 * + X' Y_bar_dot, X_bar_dot = Y_bar_dot W' + Y_bar W_dot'; what has a constant input or no input
 * adjoint is left out. Returns operations. */
static double layer_gemms(size_t rows, size_t in, size_t out, int constant_input, float *a,
                          float *b, float *c)
{
    int m = (int)rows, i = (int)in, o = (int)out, forward = constant_input ? 1 : 2;

    for (int k = 0; k < forward; k++)
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, o, i, 1, a, i, b, o, (float)k, c,
                    o);
    for (int k = 0; k < forward; k++)
        cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, i, o, m, 1, a, i, b, o, 1, c, o);
    for (int k = 0; k < 2 && !constant_input; k++)
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m, i, o, 1, a, o, b, o, (float)k, c,
                    i);
    return 2.0 * (double)(rows * in * out) * (constant_input ? 2 : 6);
}

static double all_gemms(const struct ks_checkpoint *c, float *work)
{
    const struct ks_arch *arch = c->critic.arch;
    size_t size = (size_t)2 * BATCH * WIDTH;
    double operations = 0;

    for (size_t i = 0; i < arch->n_layers; i++) {
        const struct ks_layer *l = &arch->layer[i];

        if (strcmp(l->kind->name, "dense") == 0)
            operations += layer_gemms(i + 1 == arch->n_layers ? BATCH : c->rows, l->in, l->out,
                                      i == 0, work, work + size, work + 2 * size);
    }
    return operations;
}

static double time_gemms(const struct ks_checkpoint *c, size_t workers, double *operations)
{
    size_t size = 3 * (size_t)2 * BATCH * WIDTH;
    float *work;
    double best = 1e9, done = 0;

    must(ks_alloc(workers * size, sizeof *work, &work));
    for (int t = 0; t < TIMES; t++) {
        double start = ks_seconds();

        done = 0;
#pragma omp parallel for num_threads((int)workers) schedule(static, 1) reduction(+ : done)
        for (size_t i = 0; i < c->minibatches; i++)
            done += all_gemms(c, work + (size_t)omp_get_thread_num() * size);
        best = fmin(best, ks_seconds() - start);
    }
    free(work);
    *operations = done;
    return best;
}

static void measure(const struct subject *s, size_t minibatches)
{
    struct ks_checkpoint *c = make(s->text, minibatches);
    struct ks_problem q = {
        .checkpoint = c, .minibatches = minibatches, .scale = 1, .memory = (size_t)8 << 30};
    struct ks_operator *h;
    double *v = normal(c->critic.arch->parameters, 1), *out, best = 1e9, gemms, operations;

    must(ks_hessian_new_f32(&q, &h));
    must(ks_alloc(h->n, sizeof *out, &out));
    for (int t = 0; t < TIMES; t++) {
        double start = ks_seconds();

        must(h->apply(h->self, v, out));
        best = fmin(best, ks_seconds() - start);
    }
    gemms = time_gemms(c, ks_primal_workers(&q), &operations);
    printf("%-10s %4zu rows %7.2f ms a minibatch and critic, %6.1f GFLOP/s, %.3f x its GEMMs "
           "(%.1f GFLOP/s)\n",
           s->name, c->rows, 1e3 * best / (double)minibatches, operations / best / 1e9,
           best / gemms, operations / gemms / 1e9);
    h->free(h->self);
    free(h), free(v), free(out);
    KS(arch_free)(c->critic.arch);
    free(c->critic.text), free(c->critic.w), free(c->input), free(c->target), free(c);
}

int main(int argc, char **argv)
{
    size_t minibatches = argc > 1 ? (size_t)strtoul(argv[1], NULL, 10) : 4;

    ks_blas_start();
    printf("%s, kernel %s, %d threads, %zu minibatches\n", ks_blas_version(), ks_blas_kernel(),
           omp_get_max_threads(), minibatches);
    for (size_t i = 0; i < sizeof SUBJECTS / sizeof *SUBJECTS; i++)
        measure(&SUBJECTS[i], minibatches > 0 ? minibatches : 1);
    return 0;
}
