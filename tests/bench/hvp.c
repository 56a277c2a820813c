/* Benchmark: one Hessian-vector product of critics of the study at full size, with random
 * parameters and inputs, in float32. Prints its time
 *
 *   - relative to its matrix products: the dense layers' functions alone, on the same operands;
 *   - relative to the peak rate of fused multiply-adds, measured in the same minute;
 *   - relative to the gradient;
 *   - with 1 worker and with OMP_NUM_THREADS workers;
 *   - where the processor has AMX, by products of bfloat16 parts (split3), too, relative to the
 * same matrix products in float32;
 *
 * and the time that Lanczos adds to 90 products, and the memory of that run.
 *
 *   build/bench/hvp [MINIBATCHES [CRITIC]]          (default: 50 minibatches, all critics)
 *
 * With CRITIC only the Lanczos run is measured: it has its own process, so that the memory is its
 * own.
 *
 * Rounds are interleaved, and the best round of each kind counts, so ratios are comparable. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <omp.h>

#include "core/blas.h"
#include "core/progress.h"
#include "core/split.h"
#include "lanczos/lanczos.h"
#include "operators/fold.h"
#include "operators/primal.h"

#include "critics.h"
#include "peak.h"

enum { IN = 261, ROUNDS = 5, ORDER = 90 };
static const size_t MEMORY = (size_t)8 << 30; /* bytes for the operator's kept blocks */

struct critic {
    const char *name, *text;
};

static const struct critic CRITICS[] = {
    {"bn+wn+ce", "batchnorm\nrepeat 4 {\ndense 512 bias=no\nbatchnorm\nrelu\n}\ndense 101\n"
                 "loss ce min=-5 max=5\n"},
    {"ln+wn+ce", "layernorm\nrepeat 4 {\ndense 512\nlayernorm\nrelu\n}\ndense 101\n"
                 "loss ce min=-5 max=5\n"},
    {"dense+mse", "repeat 4 {\ndense 512\nrelu\n}\ndense 1\nloss mse\n"},
};

static float *floats(size_t n, float value)
{
    float *a;

    must(ks_alloc(n, sizeof *a, &a));
    for (size_t i = 0; i < n; i++)
        a[i] = value * (float)(i % 7);
    return a;
}

/* Networks in float32 like the operator's, with separate arrays: the folded network for the matrix
 * products, the original critic for the gradient. */
struct bare {
    struct KS(arch) *folded, *critic;
    struct KS(net) *folded_net, *critic_net;
    size_t minibatches, rows;
    float *w, *input, *kept; /* kept [minibatches, folded_net->kept] */
    struct thread {
        float *tangent, *scratch, *sum, *primal, *adjoint, *gradient;
    } thread[64];
};

static struct bare *bare_new(const struct ks_checkpoint *c, size_t workers)
{
    struct bare *b;
    struct ks_fold *fold;

    must(ks_alloc(1, sizeof *b, &b));
    must(ks_fold_new(c->critic.arch, false, &fold));
    must(KS(fold_arch)(fold, &b->folded));
    must(KS(arch_parse)(c->critic.text, "bench", IN, &b->critic));
    ks_fold_free(fold);
    must(KS(net_new)(b->folded, c->rows, BATCH, false, &b->folded_net));
    must(KS(net_new)(b->critic, c->rows, BATCH, false, &b->critic_net));
    b->minibatches = c->minibatches, b->rows = c->rows;
    b->w = floats(b->folded->parameters + b->critic->parameters, 1e-3F);
    b->input = floats(c->rows * IN, 1e-2F);
    b->kept = floats(c->minibatches * b->folded_net->kept, 1e-3F);
    for (size_t k = 0; k < workers; k++)
        b->thread[k] = (struct thread){
            floats(b->folded_net->tangent, 1e-3F), floats(b->folded_net->scratch, 1e-3F),
            floats(b->folded->parameters, 0),      floats(b->critic_net->primal, 0),
            floats(b->critic_net->adjoint, 0),     floats(b->critic->parameters, 0)};
    return b;
}

static void bare_free(struct bare *b, size_t workers)
{
    for (size_t k = 0; k < workers; k++) {
        struct thread *t = &b->thread[k];

        free(t->tangent), free(t->scratch), free(t->sum);
        free(t->primal), free(t->adjoint), free(t->gradient);
    }
    free(b->w), free(b->input), free(b->kept);
    KS(net_free)(b->folded_net), KS(net_free)(b->critic_net);
    KS(arch_free)(b->folded), KS(arch_free)(b->critic);
    free(b);
}

/* The number of floating-point operations in the matrix products of one Hessian-vector product:
 *
 *   Y_dot = X W_dot + X_dot W,   W_bar_dot += X_dot' Y_bar + X' Y_bar_dot,
 *   X_bar_dot = Y_bar_dot W' + Y_bar W_dot'
 *
 * The first layer, whose input is constant, needs only two of these six. */
static double operations(const struct bare *b)
{
    double sum = 0;

    for (size_t i = 0; i < b->folded->n_layers; i++) {
        const struct KS(layer) *l = &b->folded->layer[i];
        double rows = (double)(i + 1 == b->folded->n_layers ? BATCH : b->rows);

        if (strcmp(l->kind->name, "dense") == 0)
            sum += 2 * rows * (double)l->in * (double)l->out * (i == 0 ? 2 : 6);
    }
    return sum * (double)b->minibatches;
}

/* The dense layers' tangent functions for one minibatch, on operands like those of a product. */
static void dense_alone(const struct bare *b, const struct thread *t, const float *kept)
{
    const struct KS(net) *net = b->folded_net;

    for (size_t i = 0; i < b->folded->n_layers; i++) {
        const struct KS(layer) *l = &b->folded->layer[i];
        const struct ks_layout *at = &net->at[i];
        struct KS(pass) p = {.rows = i + 1 == b->folded->n_layers ? BATCH : b->rows,
                             .w = b->w + l->offset,
                             .w_dot = b->w + l->offset,
                             .x = i == 0 ? b->input : kept + at[-1].kept_y,
                             .x_dot = i == 0 ? NULL : t->tangent + at[-1].y_dot,
                             .y_dot = t->tangent + at->y_dot,
                             .y_bar = at->kept_y_bar == KS_NOWHERE ? t->scratch + net->scratch / 4
                                                                   : kept + at->kept_y_bar,
                             .y_bar_dot = t->scratch,
                             .x_bar_dot = i == 0 ? NULL : t->scratch + net->scratch / 2,
                             .w_bar_dot = t->sum + l->offset};

        if (strcmp(l->kind->name, "dense") != 0)
            continue;
        l->kind->tangent_forward(l, &p);
        l->kind->tangent_backward(l, &p);
    }
}

static double time_dense(const struct bare *b, size_t workers)
{
    double start = ks_seconds();

#pragma omp parallel for num_threads((int)workers) schedule(static, 1)
    for (size_t k = 0; k < workers; k++)
        for (size_t i = k; i < b->minibatches; i += workers)
            dense_alone(b, &b->thread[k], b->kept + i * b->folded_net->kept);
    return ks_seconds() - start;
}

static double time_gradient(const struct bare *b, size_t workers)
{
    double start = ks_seconds();

#pragma omp parallel for num_threads((int)workers) schedule(static, 1)
    for (size_t k = 0; k < workers; k++)
        for (size_t i = k; i < b->minibatches; i += workers) {
            const struct thread *t = &b->thread[k];
            float *bar = KS(net_output_bar)(b->critic_net, t->adjoint);

            KS(net_forward)(b->critic_net, b->w, NULL, b->input, t->primal);
            for (size_t j = 0; j < BATCH * b->critic->out; j++)
                bar[j] = 1e-3F;
            KS(net_backward)
            (b->critic_net, &(struct KS(net_backward)){.w = b->w,
                                                       .x = b->input,
                                                       .primal = t->primal,
                                                       .adjoint = t->adjoint,
                                                       .w_bar = t->gradient});
        }
    return ks_seconds() - start;
}

static double time_product(const struct ks_operator *a, const double *v, double *out)
{
    double start = ks_seconds();

    must(ks_operator_apply(a, v, out));
    return ks_seconds() - start;
}

static double all_peaks(size_t workers)
{
    double sum = 0;

#pragma omp parallel for num_threads((int)workers) schedule(static, 1) reduction(+ : sum)
    for (size_t k = 0; k < workers; k++) {
        float sink = (float)k;

        sum += peak_rate(&sink) + 0 * (double)sink;
    }
    return sum;
}

struct best {
    double product, dense, gradient, peak;
};

/* The products of bfloat16 parts, beside the time of the dense layers alone in float32. */
static void measure_parts(const struct ks_checkpoint *c, struct ks_problem q, double dense)
{
    double *v = normal(ks_networks_parameters(&c->critic), 1), *out, product = INFINITY;
    struct ks_operator *a;

    q.products = KS_PRODUCTS_SPLIT3;
    must(ks_alloc(ks_networks_parameters(&c->critic), sizeof *out, &out));
    must(ks_hessian_new_f32(&q, &a));
    must(ks_operator_prepare(a, MEMORY));
    for (int round = 0; round < ROUNDS; round++)
        product = fmin(product, time_product(a, v, out));
    printf("\n  %-9s %7.2f ms %24.3f", ks_products_names[q.products],
           1e3 * product / (double)c->minibatches, product / dense);
    ks_operator_free(a);
    free(v), free(out);
}

static struct best measure(const struct ks_checkpoint *c, const struct ks_problem *q,
                           size_t workers)
{
    struct best best = {INFINITY, INFINITY, INFINITY, 0};
    struct bare *b = bare_new(c, workers);
    struct ks_operator *a;
    double *v = normal(ks_networks_parameters(&c->critic), 1), *out;

    omp_set_num_threads((int)workers);
    must(ks_hessian_new_f32(q, &a));
    must(ks_operator_prepare(a, MEMORY));
    must(ks_alloc(a->n, sizeof *out, &out));
    for (int round = 0; round < ROUNDS; round++) {
        best.product = fmin(best.product, time_product(a, v, out));
        best.dense = fmin(best.dense, time_dense(b, workers));
        best.gradient = fmin(best.gradient, time_gradient(b, workers));
        best.peak = fmax(best.peak, all_peaks(workers));
    }
    printf("  %zu worker%s %7.2f ms %8.1f GFLOP/s %7.3f %9.1f%% %9.2f", workers,
           workers == 1 ? " " : "s", 1e3 * best.product / (double)c->minibatches,
           operations(b) / best.product / 1e9, best.product / best.dense,
           100 * operations(b) / best.product / best.peak, best.product / best.gradient);
    fflush(stdout);
    ks_operator_free(a);
    bare_free(b, workers);
    free(v), free(out);
    return best;
}

/* An operator of negligible cost, so that a step's time is that of Lanczos. */
static ks_status copy(void *self, const double *v, double *out)
{
    size_t n = *(const size_t *)self;

    for (size_t i = 0; i < n; i++)
        out[i] = v[i] * (1 + (double)(i % 1000));
    return KS_OK;
}

static double gigabytes(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return 1024e-9 * (double)usage.ru_maxrss;
}

/* The memory of a run, and the time of its Lanczos steps without products. */
static void measure_run(const struct critic *s, size_t minibatches)
{
    struct ks_checkpoint *c = make_critics(s->text, 1, IN, minibatches);
    struct ks_problem q = pose(c);
    struct ks_operator *h, idle = {.n = ks_networks_parameters(&c->critic), .apply = copy};
    struct ks_lanczos *l;
    double *out, start, steps, product = INFINITY;

    must(ks_hessian_new_f32(&q, &h));
    must(ks_operator_prepare(h, MEMORY));
    must(ks_lanczos_new(&idle, ORDER, false, &l));
    must(ks_alloc(idle.n, sizeof *out, &out));
    idle.self = &idle.n;
    ks_lanczos_start(l, 0, 0);
    for (int round = 0; round < ROUNDS; round++)
        product = fmin(product, time_product(h, l->basis, out));
    start = ks_seconds();
    while (l->steps < ORDER)
        must(ks_lanczos_step(l));
    steps = ks_seconds() - start;
    printf("  Lanczos alone, m = %d: %.2f s, %.1f%% of the run; memory of the run %.2f GB\n", ORDER,
           steps, 100 * steps / (steps + ORDER * product), gigabytes());
    ks_lanczos_free(l);
    ks_operator_free(h);
    ks_checkpoint_free(c);
    free(out);
}

static void measure_critic(const struct critic *s, size_t minibatches, size_t workers,
                           const char *program)
{
    struct ks_checkpoint *c = make_critics(s->text, 1, IN, minibatches);
    struct ks_problem q = pose(c);
    struct best one, many;
    char command[4096];

    printf("%s, %zu rows, %zu minibatches\n", s->name, c->rows, minibatches);
    one = measure(c, &q, 1);
    if (ks_split_has_amx())
        measure_parts(c, q, one.dense);
    printf("\n");
    if (workers > 1) {
        many = measure(c, &q, workers);
        printf(" %8.2f", one.product / many.product);
        if (ks_split_has_amx())
            measure_parts(c, q, many.dense);
        printf("\n");
    }
    ks_checkpoint_free(c);
    snprintf(command, sizeof command, "OMP_NUM_THREADS=%zu '%s' %zu '%s'", workers, program,
             minibatches, s->name);
    fflush(stdout);
    if (system(command) != 0)
        exit(1);
}

static const struct critic *find_critic(const char *name)
{
    for (size_t i = 0; i < sizeof CRITICS / sizeof *CRITICS; i++)
        if (strcmp(name, CRITICS[i].name) == 0)
            return &CRITICS[i];
    fprintf(stderr, "hvp: unknown critic '%s'\n", name);
    exit(2);
}

int main(int argc, char **argv)
{
    size_t minibatches = argc > 1 ? (size_t)strtoul(argv[1], NULL, 10) : 50;
    size_t workers = (size_t)omp_get_max_threads();

    ks_blas_start(argv);
    if (minibatches < 1 || workers > 64) {
        fprintf(stderr, "hvp: expected at least 1 minibatch and at most 64 threads\n");
        return 2;
    }
    if (argc > 2) {
        measure_run(find_critic(argv[2]), minibatches);
        return 0;
    }
    printf("%s: %s, kernel %s%s\n", ks_processor_name(), ks_blas_version(), ks_blas_kernel(),
           ks_split_has_amx() ? "" : "; no AMX, so split3 is left out");
    printf("  %-9s %10s %16s %7s %10s %9s %8s\n", "", "minibatch", "product", "/GEMMs", "/peak",
           "/gradient", "speed-up");
    for (size_t i = 0; i < sizeof CRITICS / sizeof *CRITICS; i++)
        measure_critic(&CRITICS[i], minibatches, workers, argv[0]);
    return 0;
}
