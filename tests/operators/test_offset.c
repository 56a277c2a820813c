/* Means that are large compared with the deviations from them, where batch norms subtract them:
 * products in float32 are as accurate as without the offset. Errors are Frobenius norms of the
 * difference of two dense matrices, which exceed the error of any single product, relative to the
 * largest |eigenvalue|. */
#include <lapacke.h>
#include <omp.h>

#include "null_critics.h"
#include "spectra.h"

static const double OFFSETS[] = {1e2, 1e3, 1e4, 1e6};
enum { N_OFFSETS = sizeof OFFSETS / sizeof *OFFSETS };
static const double F32 = 3e-6, F64 = 1e-13;

/* Deviations are multiples of 2^-10, so that adding an offset is exact in float64. */
static void offset_inputs(struct ks_checkpoint *c, double offset)
{
    for (size_t i = 0; i < c->minibatches * c->rows * c->critic.arch->in; i++) {
        size_t column = i % c->critic.arch->in;

        c->input[i] = ldexp(round(ldexp(c->input[i], 10)), -10) +
                      round(offset) * (column % 2 == 0 ? 1 : -2);
    }
}

/* A critic with everything that the operators need. */
static struct ks_checkpoint *make_critic(const char *text, double offset)
{
    struct ks_checkpoint *c = null_critic(text, 1);
    struct ks_rng rng = ks_rng_start(47, 0);

    offset_inputs(c, offset);
    project_columns(&c->critic);
    assert_ok(ks_alloc(c->critic.arch->parameters, sizeof *c->adam_v, &c->adam_v));
    for (size_t i = 0; i < c->critic.arch->parameters; i++)
        c->adam_v[i] = pow(10, ks_rng_uniform(&rng, -2, 0));
    c->adam_step = 20;
    c->adam = KS_ADAM_DEFAULTS;
    return c;
}

/* The dense matrix [n, n]. */
static double *matrix(const struct ks_checkpoint *c, const struct ks_operator_kind *kind,
                      bool single)
{
    struct ks_problem q = full_problem(c);
    struct ks_operator *a;
    double *m;

    assert_ok(prepared_kind(kind, single, &q, &a));
    hold_operator(a);
    m = dense_of(a);
    return m;
}

static double difference(size_t n, const double *a, const double *b)
{
    double squares = 0;

    for (size_t i = 0; i < n * n; i++)
        squares += (a[i] - b[i]) * (a[i] - b[i]);
    return sqrt(squares);
}

/* The matrix of `c` in both precisions against the float64 matrix of `reference`. */
static void compare(const struct ks_checkpoint *c, const struct ks_checkpoint *reference,
                    const struct ks_operator_kind *kind, double offset)
{
    size_t n = c->critic.arch->parameters;
    double *expected = matrix(reference, kind, false);
    double size = largest_eigenvalue(n, expected);

    for (int single = c == reference; single < 2; single++) {
        double *found = matrix(c, kind, single), error = difference(n, found, expected) / size;

        if (!(error <= (single ? F32 : F64)))
            fail_msg("%s, %s, offset %g, %s: off by %g of the largest |eigenvalue|", kind->name,
                     single ? "f32" : "f64", offset, c->critic.text, error);
    }
}

static void compare_all(const struct ks_checkpoint *c, const struct ks_checkpoint *reference,
                        double offset)
{
    for (const struct ks_operator_kind *kind = ks_operator_kinds; kind->name; kind++)
        if (!kind->spheres || strstr(c->critic.text, "project"))
            compare(c, reference, kind, offset);
}

/* Inputs that reach only batch norms: for every offset the loss is the same function of theta, and
 * so is its Hessian. */
TEST(test_inputs)
{
    static const char *const texts[] = {
        "dense 6 project=unit\nbatchnorm\nrelu\ndense 3\nloss ce min=0 max=1\n",
        "dense 6 bias=no\nbatchnorm\nsilu\ndense 1\nloss mse\n",
        "dense 6\ndense 5\nbatchnorm eps=1e-6\ntanh\ndense 3\nloss ce min=0 max=1\n",
        "scaler\ndense 6\nbatchnorm\nrelu\ndense 1\nloss mse\n",
        "append 3\ndense 6 groups=2\nbatchnorm\nrelu\ndense 1\nloss mse\n",
        "batchnorm\nrelu\ndense 3\nloss ce min=0 max=1\n",
        "batchnorm\ndense 6 project=unit\nbatchnorm\nrelu\ndense 1\nloss mse\n",
        "dense 6\nresidual {\nbatchnorm\nrelu\ndense 6\n}\nbatchnorm\nrelu\ndense 1\nloss mse\n",
        "residual {\nscaler\nresidual {\nbatchnorm\nsilu\ndense 5\n}\n}\ndense 4\nbatchnorm\n"
        "dense 1\nloss mse\n",
    };

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct ks_checkpoint *reference = make_critic(texts[i], 0);

        for (size_t k = 0; k < N_OFFSETS; k++) {
            struct ks_checkpoint *c = make_critic(texts[i], OFFSETS[k]);

            compare_all(c, reference, OFFSETS[k]);
        }
    }
}

/* Inputs rounded to float32, as in a checkpoint: the offset costs digits of the inputs, but not of
 * the products. */
TEST(test_rounded_inputs)
{
    for (size_t k = 0; k < N_OFFSETS; k++) {
        struct ks_checkpoint *c = make_critic("dense 6 project=unit\nbatchnorm\nrelu\ndense 3\n"
                                              "loss ce min=0 max=1\n",
                                              OFFSETS[k]);

        for (size_t i = 0; i < MINIBATCHES * ROWS * IN; i++)
            c->input[i] = (float)c->input[i];
        compare_all(c, c, OFFSETS[k]);
    }
}

/* Constant inputs: their rows of the kernel act as biases, whose products are exactly zero. */
TEST(test_constant_inputs)
{
    struct ks_checkpoint *c = make_critic("dense 6 bias=no\nbatchnorm\nrelu\ndense 1\nloss mse\n",
                                          0);
    struct ks_problem q = full_problem(c);
    size_t n = c->critic.arch->parameters;
    double *m;

    for (size_t i = 0; i < MINIBATCHES * ROWS; i++) {
        c->input[i * IN + 1] = 1e4 / 3;
        c->input[i * IN + 4] = -0.1;
    }
    for (int single = 0; single < 2; single++) {
        struct ks_null_space *space = predict(&q, HESSIAN);
        struct ks_null null;
        struct ks_operator *a;

        m = matrix(c, HESSIAN, single);
        for (size_t j = 0; j < n; j++)
            for (size_t k = 0; k < 6; k++) {
                assert_true(m[j * n + 6 + k] == 0 && m[j * n + 4 * 6 + k] == 0);
                assert_true(m[(6 + k) * n + j] == 0 && m[(4 * 6 + k) * n + j] == 0);
            }
        assert_ok(prepared_kind(HESSIAN, single, &q, &a));
        hold_operator(a);
        assert_ok(ks_null_measure(space, a, NULL, NULL, &null));
        assert_int_equal(null.dead, 12);
        ks_null_clear(&null);
    }
    compare_all(c, c, 0);
}

/* Makes every second entry of a bias (of a norm or a dense layer) large. The first feature of a
 * norm is then constant over the rows, but has a derivative. */
static void offset_bias(struct ks_checkpoint *c, size_t layer, double offset)
{
    const struct KS(layer) *l = &c->critic.arch->layer[layer];
    double *bias = c->critic.w + l->offset + KS(array_size)(&l->param[0]);

    for (size_t j = 0; j < l->out; j += 2)
        bias[j] += offset;
    if (l->param[0].rows == 0)
        c->critic.w[l->offset] = 0;
}

static double *gradient(struct ks_checkpoint *c, double step, const double *v)
{
    struct ks_problem q = full_problem(c);
    size_t n = c->critic.arch->parameters;
    double *g = hold(calloc(n, sizeof *g)), loss;

    cblas_daxpy((int)n, step, v, 1, c->critic.w, 1);
    assert_ok(ks_gradient(&q, &loss, g));
    cblas_daxpy((int)n, -step, v, 1, c->critic.w, 1);
    return g;
}

/* The Hessian's product with a random vector against a central difference of the gradient. */
static void check_difference(struct ks_checkpoint *c)
{
    const double h = 1e-6;
    struct ks_rng rng = ks_rng_start(48, 0);
    struct ks_problem q = full_problem(c);
    struct ks_operator *a;
    size_t n = c->critic.arch->parameters;
    double *v, *product, *plus, *minus, error;

    assert_ok(prepared_kind(HESSIAN, false, &q, &a));
    hold_operator(a);
    v = hold(calloc(n, sizeof *v));
    product = hold(calloc(n, sizeof *product));
    fill_normal(&rng, n, v);
    assert_ok(ks_operator_apply(a, v, product));
    plus = gradient(c, h, v), minus = gradient(c, -h, v);
    for (size_t i = 0; i < n; i++)
        plus[i] = (plus[i] - minus[i]) / (2 * h);
    error = relative_error(n, product, plus);
    if (!(error <= 1e-6))
        fail_msg("%s: off by %g from a difference of gradients", c->critic.text, error);
}

/* Large means that arise at the input of an inner dense layer or norm. With the small offsets a
 * relu's least output is near zero; which units are active must not change. */
TEST(test_activations)
{
    static const struct {
        const char *text;
        size_t layer; /* the layer whose bias is made large */
    } critics[] = {
        {"dense 6\nbatchnorm\nrelu\ndense 5\nbatchnorm\nrelu\ndense 1\nloss mse\n", 1},
        {"dense 6\nbatchnorm\nsilu\ndense 5 groups=1\nbatchnorm\nrelu\ndense 1\nloss mse\n", 1},
        {"dense 6\nbatchnorm\ndense 5\nbatchnorm\nrelu\ndense 3\nloss ce min=0 max=1\n", 1},
        {"batchnorm\ndense 6 project=unit-kernel\nbatchnorm\nrelu\ndense 1\nloss mse\n", 0},
        {"dense 6\nbatchnorm\nrelu\nbatchnorm\nrelu shift=0.5\ndense 1\nloss mse\n", 1},
        {"dense 6\nlayernorm\nrelu\ndense 5\nbatchnorm\nrelu\ndense 1\nloss mse\n", 1},
        {"dense 6\nrelu\nresidual {\nbatchnorm\nrelu\ndense 6\n}\nbatchnorm\ndense 1\nloss mse\n",
         0},
        {"dense 6\nbatchnorm\nl2norm\ndense 5\nbatchnorm eps=1e-9\nrelu\ndense 1\nloss mse\n", 1},
    };

    for (size_t i = 0; i < sizeof critics / sizeof *critics; i++) {
        for (double offset = 0; offset < 5; offset += 0.25) {
            struct ks_checkpoint *c = make_critic(critics[i].text, 0);

            offset_bias(c, critics[i].layer, offset);
            check_difference(c);
        }
        for (size_t k = 0; k < N_OFFSETS; k++) {
            struct ks_checkpoint *c = make_critic(critics[i].text, 0);

            offset_bias(c, critics[i].layer, OFFSETS[k]);
            compare_all(c, c, OFFSETS[k]);
        }
    }
}

/* Running statistics do not move with the inputs, so no offset is subtracted. The same holds if the
 * inputs also reach the loss by another path. */
TEST(test_what_is_not_centred)
{
    static const struct {
        const char *text;
        bool evaluation;
    } critics[] = {
        {"dense 6\nbatchnorm\nrelu\ndense 1\nloss mse\n", true},
        {"dense 6\nlayernorm\nrelu\ndense 1\nloss mse\n", false},
        {"residual {\nbatchnorm\ndense 5\n}\ndense 1\nloss mse\n", false},
        {"lerp {\nbatchnorm\ndense 5\n}\nbatchnorm\ndense 1\nloss mse\n", false},
    };

    for (size_t i = 0; i < sizeof critics / sizeof *critics; i++) {
        double loss[2], *g;

        for (int k = 0; k < 2; k++) {
            struct ks_checkpoint *c = make_critic(critics[i].text, k);
            struct ks_problem q = full_problem(c);

            q.evaluation = critics[i].evaluation;
            g = hold(calloc(c->critic.arch->parameters, sizeof *g));
            assert_ok(ks_gradient(&q, &loss[k], g));
        }
        assert_true(fabs(loss[1] / loss[0] - 1) > 1e-3);
    }
}

CMFixtureFunction tests_setup = one_thread;
