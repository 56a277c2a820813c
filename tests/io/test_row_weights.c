/* Weights of rows: in the loss and its operators, and in a checkpoint file. */
#include <stdlib.h>
#include <string.h>

#include <cblas.h>

#include "example_checkpoint.h"
#include "io/h5.h"
#include "operators/operator.h"
#include "scratch.h"

static const size_t ALL_MEMORY = (size_t)1 << 30;
enum { WIDE = 8 }; /* rows with repetitions */

typedef ks_status constructor(const struct ks_problem *, struct ks_operator **);

static struct ks_problem problem_of(const struct ks_checkpoint *c)
{
    return (struct ks_problem){
        .checkpoint = c, .minibatches = c->minibatches, .scale = 1, .critic = -1, .layer = -1};
}

/* A v in a new array, for a fixed v. */
static double *product(constructor *new, const struct ks_checkpoint *c)
{
    struct ks_problem q = problem_of(c);
    struct ks_rng rng = ks_rng_start(5, 0);
    struct ks_operator *a;
    double *v, *out;

    assert_ok(new (&q, &a));
    assert_ok(ks_operator_prepare(a, ALL_MEMORY));
    v = numbers(&rng, a->n), out = numbers(&rng, a->n);
    assert_ok(ks_operator_apply(a, v, out));
    ks_operator_free(a);
    free(v);
    return out;
}

/* Loss, gradient and all products of two checkpoints agree. */
static void assert_same_loss(const struct ks_checkpoint *a, const struct ks_checkpoint *b)
{
    static constructor *const kinds[] = {ks_hessian_new_f64, ks_ggn_new_f64, ks_residual_new_f64,
                                         ks_hessian_new_f32};
    struct ks_problem p = problem_of(a), q = problem_of(b);
    size_t n = ks_networks_parameters(&a->critic);
    struct ks_rng rng = ks_rng_start(6, 0);
    double *g = numbers(&rng, n), *h = numbers(&rng, n), loss[2];

    assert_ok(ks_gradient(&p, NULL, &loss[0], g));
    assert_ok(ks_gradient(&q, NULL, &loss[1], h));
    assert_close(loss[0], loss[1], 1e-13 * fabs(loss[1]));
    assert_close(relative_error(n, g, h), 0, 1e-13);
    free(g), free(h);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        g = product(kinds[k], a), h = product(kinds[k], b);
        assert_true(cblas_dnrm2((int)n, h, 1) > 0 || kinds[k] != ks_hessian_new_f64);
        cblas_daxpy((int)n, -1, h, 1, g, 1);
        assert_close(cblas_dnrm2((int)n, g, 1), 0,
                     (k < 3 ? 1e-12 : 1e-5) * cblas_dnrm2((int)n, h, 1));
        free(g), free(h);
    }
}

static void set_weights(struct ks_checkpoint *c, const double *weight)
{
    assert_ok(ks_alloc(c->minibatches * c->loss_rows, sizeof(double), &c->weight));
    for (size_t i = 0; i < c->minibatches * c->loss_rows; i++)
        c->weight[i] = weight[i % c->loss_rows];
}

static const char CE_LN[] = "layernorm\ndense 7\nlayernorm\ntanh\ndense 3\nloss ce min=-5 max=5\n";
static const char CE_BN[] = "batchnorm\ndense 7\nbatchnorm\ntanh\ndense 3\nloss ce min=-5 max=5\n";
static const char HUBER[] = "dense 7\nsilu\ndense 1\nloss huber delta=3\n";
static const char QUANTILE[] = "dense 7\nsilu\ndense 3\nloss quantile\n";

/* The same weight in every row is a weight of the loss, with batch norms too. */
static void test_constant(void **state)
{
    static const char *const texts[] = {CE_LN, CE_BN, HUBER, QUANTILE, MSE};
    static const double third[LOSS_ROWS] = {1. / 3, 1. / 3, 1. / 3, 1. / 3};

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct ks_checkpoint *a = make_plain(texts[i]), *b = make_plain(texts[i]);

        set_weights(a, third);
        free(b->critic.text);
        assert_ok(ks_print_string(&b->critic.text, "%.*s weight=0.33333333333333331\n",
                                  (int)strlen(texts[i]) - 1, texts[i]));
        ks_arch_free_f64(b->critic.arch);
        assert_ok(ks_arch_parse_f64(b->critic.text, "test", IN, &b->critic.arch));
        assert_same_loss(a, b);
        ks_checkpoint_free(a);
        ks_checkpoint_free(b);
    }
}

/* Rows that occur 3, 0, 4 and 1 times in a batch of 8 have the weights 3/2, 0, 2 and 1/2 in one of
 * 4: a weight of 0 is a mask. */
static void test_repeated_rows(void **state)
{
    static const char *const texts[] = {CE_LN, HUBER, QUANTILE, MSE};
    static const double weight[LOSS_ROWS] = {1.5, 0, 2, 0.5};
    static const size_t from[WIDE] = {0, 0, 0, 2, 2, 2, 2, 3};

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct ks_checkpoint *a = make_plain(texts[i]), *b = make_plain(texts[i]);
        size_t k = a->critic.arch->loss.targets;

        set_weights(a, weight);
        free(b->input), free(b->target);
        b->rows = b->loss_rows = WIDE;
        assert_ok(ks_alloc(MINIBATCHES * WIDE * IN, sizeof(double), &b->input));
        assert_ok(ks_alloc(MINIBATCHES * WIDE * k, sizeof(double), &b->target));
        for (size_t row = 0; row < MINIBATCHES * WIDE; row++) {
            size_t n = row / WIDE, old = from[row % WIDE];

            memcpy(b->input + row * IN, a->input + (n * ROWS + old) * IN, IN * sizeof(double));
            memcpy(b->target + row * k, a->target + (n * LOSS_ROWS + old) * k, k * sizeof(double));
        }
        assert_same_loss(a, b);
        ks_checkpoint_free(a);
        ks_checkpoint_free(b);
    }
}

/* A file with weights has version 2; without them version 1. */
static void test_round_trip(void **state)
{
    static const double weight[LOSS_ROWS] = {1.5, 0, 2, 0.5};
    const char *path = scratch("a.h5");
    int64_t version[2];

    (void)state;
    for (int weighted = 0; weighted < 2; weighted++) {
        struct ks_checkpoint *written = make_plain(CE), *read;
        struct ks_h5 *h5;

        if (weighted)
            set_weights(written, weight);
        assert_ok(ks_checkpoint_write(path, written, false));
        assert_ok(ks_h5_open(path, "kappascope-checkpoint", &h5));
        assert_ok(ks_h5_read_integer(h5, "/", "version", 1, &version[weighted]));
        ks_h5_close(h5);
        assert_ok(ks_checkpoint_read(path, &read));
        same_numbers(MINIBATCHES * LOSS_ROWS, read->weight, written->weight, false);
        ks_checkpoint_free(read);
        ks_checkpoint_free(written);
    }
    assert_int_equal(version[0], 1);
    assert_int_equal(version[1], 2);
}

static void refused(const char *path, const char *words)
{
    struct ks_checkpoint *c;

    assert_fails(ks_checkpoint_read(path, &c), KS_FORMAT, words);
    assert_one_line(path);
}

static void test_refusals(void **state)
{
    static const double weight[LOSS_ROWS] = {1, 1, 1, 1};
    const char *path = scratch("a.h5");
    struct ks_checkpoint *c = make_plain(CE);

    (void)state;
    set_weights(c, weight);
    assert_ok(ks_checkpoint_write(path, c, false));
    poke(path, "/batch/weight", LOSS_ROWS + 1, -0.5);
    refused(path, "/batch/weight: row 1 of minibatch 1: expected a weight of at least 0, found "
                  "-0.5");
    poke(path, "/batch/weight", LOSS_ROWS + 1, NAN);
    refused(path, "/batch/weight: expected finite numbers, found nan at element 5");
    assert_ok(ks_checkpoint_write(path, c, false));
    set_integer(path, "/", "version", 1);
    refused(path,
            "/batch/weight: expected the attribute version 2 of a file with weights, found 1");
    set_integer(path, "/", "version", 3);
    refused(path, "version of a kappascope-checkpoint: expected 1 or 2, found 3");
    assert_ok(ks_checkpoint_write(path, c, false));
    resize(path, "/batch/weight", 1, 1);
    refused(path, "/batch/weight: expected shape [3, 4], found [3, 5]");
    ks_checkpoint_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_constant),
        cmocka_unit_test(test_repeated_rows),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_refusals),
    };

    return cmocka_run_group_tests_name("row weights", tests, scratch_make, scratch_remove);
}
