/* The Hessian operator on small critics in memory: it agrees with differences of the gradient and
 * is symmetric column by column, in both precisions and with all options of a problem. */
#include <omp.h>

#include "critics.h"
#include "operators/gradient_bounds.h"
#include "spectra.h"

enum { ENSEMBLE = 2, MINIBATCHES = 3, ROWS = 10, LOSS_ROWS = 6, IN = 4, LARGE = 4103 };
static const size_t ALL_MEMORY = (size_t)1 << 30;

static const char *const TEXTS[] = {
    "batchnorm\nrepeat 2 {\ndense 6 bias=no\nbatchnorm\nrelu\n}\ndense 5\nloss ce min=-5 max=5\n",
    "layernorm\nrepeat 2 {\ndense 6\nlayernorm\nrelu\n}\ndense 5\nloss ce min=-5 max=5\n",
    "repeat 2 {\ndense 6\nrelu\n}\ndense 1\nloss mse\n",
    /* Scalers folded into the first layer, followed by containers, and containers that prevent
     * folding. */
    "scaler init=2 scale=0.5\ndense 6\nresidual { # the sum\nlerp init=0.4 {\ndense "
    "6\nsilu\n}\nrelu\n"
    "}\ndense 5\nloss ce min=-5 max=5\n",
    "rmsnorm # first\ndense 6 bias=no\nlerp init=0.3 scale=2 {\nresidual {\nrepeat 2 {\nbatchnorm\n"
    "mish\n}\n}\n}\ndense 4\nloss quantile kappa=2\n",
    "layernorm affine=no\nresidual {\ndense 4\nbatchnorm\nelu\n}\ndense 1\nloss huber delta=3\n",
    "residual {\nbatchnorm\ndense 4\ntanh\n}\nappend 1\nl2norm\ndense 1\nloss mse\n",
};
enum { TEXTS_COUNT = sizeof TEXTS / sizeof *TEXTS };

static struct ks_checkpoint *make(const char *text)
{
    struct critic_sizes sizes = {ENSEMBLE, IN, MINIBATCHES, ROWS, LOSS_ROWS};

    return keep_checkpoint(random_critic(text, sizes, 11));
}

/* A v in a new array, with at most `memory` bytes of stored activations. */
static double *product_within(size_t memory,
                              ks_status (*new)(const struct ks_problem *, struct ks_operator **),
                              const struct ks_problem *q, const double *v)
{
    struct ks_operator *a;
    double *out;

    assert_ok(new (q, &a));
    assert_ok(ks_operator_prepare(a, memory));
    out = hold(calloc(a->n, sizeof *out));
    assert_ok(a->apply(a->self, v, out));
    a->free(a->self);
    free(a);
    return out;
}

static size_t dimension(const struct ks_checkpoint *c)
{
    return ENSEMBLE * c->critic.arch->parameters;
}

/* H v against (g(theta + h v) - g(theta - h v)) / 2h, with weight decay and scale, in both
 * modes. */
TEST(test_against_gradient)
{
    const double h = 1e-6;

    for (size_t i = 0; i < TEXTS_COUNT; i++)
        for (int evaluation = 0; evaluation < 2; evaluation++) {
            struct ks_checkpoint *c = make(TEXTS[i]);
            struct ks_problem q = full_problem(c);
            struct ks_rng rng = ks_rng_start(12, i);
            size_t n = dimension(c);
            double *v = hold(numbers(&rng, n)), *g[2], loss[2], *hv, slope = 0;

            q.evaluation = evaluation, q.weight_decay = 0.1, q.scale = 3;
            hv = product_of(ks_hessian_new_f64, &q, v);
            for (int side = 0; side < 2; side++) {
                g[side] = hold(numbers(&rng, n));
                for (size_t k = 0; k < n; k++)
                    c->critic.w[k] += (side == 0 ? h : -2 * h) * v[k];
                assert_ok(ks_gradient(&q, &loss[side], g[side]));
            }
            for (size_t k = 0; k < n; k++) {
                slope += v[k] * (g[0][k] + g[1][k]) / 2;
                g[0][k] = (g[0][k] - g[1][k]) / (2 * h);
            }
            assert_close(slope, (loss[0] - loss[1]) / (2 * h), 1e-6 * (1 + fabs(slope)));
            assert_close(relative_error(n, g[0], hv), 0, 1e-7);
        }
}

TEST(test_single_precision)
{
    for (size_t i = 0; i < TEXTS_COUNT; i++) {
        struct ks_checkpoint *c = make(TEXTS[i]);
        struct ks_problem q = full_problem(c);
        struct ks_rng rng = ks_rng_start(13, i);
        double *v = hold(numbers(&rng, dimension(c)));
        double *single = product_of(ks_hessian_new_f32, &q, v);
        double *exact = product_of(ks_hessian_new_f64, &q, v);

        assert_close(relative_error(dimension(c), single, exact), 0, 3e-6);
        assert_true(relative_error(dimension(c), single, exact) > 0);
    }
}

/* Activations that do not fit into memory are recomputed, with the same bits. The number of threads
 * changes the result by rounding only. */
TEST(test_memory_and_threads)
{
    struct ks_checkpoint *c = make(TEXTS[0]);
    struct ks_problem q = full_problem(c);
    struct ks_rng rng = ks_rng_start(14, 0);
    double *v = hold(numbers(&rng, dimension(c))), *kept = product_of(ks_hessian_new_f64, &q, v),
           *other;

    other = product_within(0, ks_hessian_new_f64, &q, v);
    assert_memory_equal(kept, other, dimension(c) * sizeof *v);
    omp_set_num_threads(3);
    other = product_of(ks_hessian_new_f64, &q, v);
    assert_close(relative_error(dimension(c), other, kept), 0, 1e-14);
}

/* A minibatch of so many rows that it is divided into microbatches, the last with fewer rows than
 * the others, equals as many minibatches of one row each. */
static struct ks_checkpoint *make_large(const char *text, struct ks_checkpoint *single_rows)
{
    struct critic_sizes sizes = {ENSEMBLE, IN, 1, LARGE, LARGE};
    struct ks_checkpoint *c = keep_checkpoint(random_critic(text, sizes, 21));
    struct ks_rng rng = ks_rng_start(22, 0);

    c->weight = numbers(&rng, LARGE);
    for (size_t i = 0; i < LARGE; i++)
        c->weight[i] *= c->weight[i];
    *single_rows = *c;
    single_rows->minibatches = LARGE;
    single_rows->rows = single_rows->loss_rows = 1;
    return c;
}

/* Products of all curvatures, with activations kept and recomputed, and the gradient. */
static void check_microbatches(const struct ks_problem *q, const struct ks_problem *single)
{
    static const struct {
        ks_status (*new)(const struct ks_problem *, struct ks_operator **);
        double bound;
    } kinds[] = {{ks_hessian_new_f64, 1e-12},
                 {ks_ggn_new_f64, 1e-12},
                 {ks_hessian_new_f32, 2e-5},
                 {ks_residual_new_f64, 1e-12},
                 {ks_ggn_new_f32, 2e-5}};
    const size_t n = dimension(q->checkpoint);
    struct ks_rng rng = ks_rng_start(23, 0);
    double *v = hold(numbers(&rng, n)), *g = hold(numbers(&rng, n)),
           *other = hold(numbers(&rng, n)), loss[2];

    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        double *found = product_of(kinds[k].new, q, v), *expected;
        double *without = product_within(0, kinds[k].new, q, v);

        expected = product_of(kinds[k].new, single, v);
        assert_close(relative_error(n, found, expected), 0, kinds[k].bound);
        assert_memory_equal(found, without, n * sizeof *v);
    }
    assert_ok(ks_gradient(q, &loss[0], g));
    assert_ok(ks_gradient(single, &loss[1], other));
    assert_close(loss[0], loss[1], 1e-12 * fabs(loss[1]));
    assert_close(relative_error(n, g, other), 0, 1e-12);
}

TEST(test_microbatches)
{
    for (size_t i = 0; i < TEXTS_COUNT; i++) {
        struct ks_checkpoint single_rows, *c = make_large(TEXTS[i], &single_rows);
        struct ks_problem q = full_problem(c), single = full_problem(&single_rows);

        q.evaluation = single.evaluation = c->critic.arch->joint;
        check_microbatches(&q, &single);
    }
}

/* The gradient in the outputs of each row, and in the parameters. */
TEST(test_microbatches_of_bounds)
{
    struct ks_checkpoint single_rows, *c = make_large(TEXTS[1], &single_rows);
    struct ks_problem q = full_problem(c), single = full_problem(&single_rows);
    struct ks_gradient_bounds b, each;
    const size_t n = c->critic.arch->parameters;
    double mean = 0, *g, loss;

    for (size_t i = 0; i < LARGE; i++)
        mean += c->weight[i] / LARGE;
    assert_ok(ks_gradient_bounds_measure(&q, &b));
    assert_ok(ks_gradient_bounds_measure(&single, &each));
    assert_int_equal(b.rows, each.rows);
    for (size_t i = 0; i < b.rows; i++)
        assert_close(b.output[i], each.output[i], 1e-13);
    g = hold(calloc(ENSEMBLE * n, sizeof *g));
    assert_ok(ks_gradient(&q, &loss, g));
    for (size_t e = 0; e < ENSEMBLE; e++)
        assert_close(b.gradient[e] * mean, cblas_dnrm2((int)n, g + e * n, 1), 1e-12);
    ks_arena_free(&b.arena);
    ks_arena_free(&each.arena);
}

/* The outputs, the loss and the gradient that a file is compared with. */
TEST(test_microbatches_of_references)
{
    struct ks_checkpoint single_rows, *c = make_large(TEXTS[1], &single_rows);
    struct ks_references found = {.output = {.minibatches = 1, .rows = LARGE},
                                  .loss = {.minibatches = 1},
                                  .gradient_norm = {.minibatches = 1}};
    struct ks_references expected = {.output = {.minibatches = LARGE, .rows = 1},
                                     .loss = {.minibatches = LARGE}};
    struct ks_problem q = full_problem(c);
    const size_t n = dimension(c);
    struct ks_rng rng = ks_rng_start(24, 0);
    double loss = 0, *g = hold(numbers(&rng, n));

    assert_ok(ks_references_compute(c, &found));
    assert_ok(ks_references_compute(&single_rows, &expected));
    for (size_t i = 0; i < LARGE * ENSEMBLE * c->critic.arch->out; i++)
        assert_close(found.output.value[i], expected.output.value[i], 1e-14);
    for (size_t i = 0; i < LARGE; i++)
        loss += expected.loss.value[i] / LARGE;
    assert_close(found.loss.value[0], loss, 1e-12 * loss);
    assert_ok(ks_gradient(&q, &loss, g));
    assert_close(found.gradient_norm.value[0], cblas_dnrm2((int)n, g, 1),
                 1e-12 * found.gradient_norm.value[0]);
    ks_references_clear(&found);
    ks_references_clear(&expected);
}

TEST(test_refusals)
{
    struct ks_checkpoint *c = make(TEXTS[0]);
    struct ks_problem q = full_problem(c);
    struct ks_operator *a;

    q.minibatches = MINIBATCHES + 1;
    assert_fails(ks_hessian_new_f32(&q, &a), KS_USAGE, "expected 1 to 3, found 4");
    assert_null(a);
    q = full_problem(c);
    q.evaluation = true;
    free(c->critic.state), c->critic.state = NULL;
    assert_fails(ks_hessian_new_f64(&q, &a), KS_FORMAT, "running statistics");
}

/* Each allocation of the constructor fails once: it returns an error and leaks nothing. */
TEST(test_out_of_memory)
{
    struct ks_checkpoint *c = make(TEXTS[0]);
    struct ks_problem q = full_problem(c);
    struct starved s = {0};

    while (starving(&s)) {
        struct ks_operator *a = NULL;

        s.status = ks_hessian_new_f32(&q, &a);
        if (s.status == KS_OK)
            s.status = ks_operator_prepare(a, ALL_MEMORY);
        ks_operator_free(a);
    }
}

CMFixtureFunction tests_setup = one_thread;
