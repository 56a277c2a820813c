/* Targets of a checkpoint: the same for all critics or of each, and as many per row as the loss
 * allows; and weights of rows. */
#include "example.h"
#include "spectra.h"

static const char CE_LN[] = "layernorm\ndense 7\nlayernorm\ntanh\ndense 3\nloss ce min=-5 max=5\n";
static const char QUANTILE[] = "dense 7\nsilu\ndense 3\nloss quantile\n";

/* Gives each critic targets of its own: critic 0 has those of the checkpoint, the others the same
 * in another order of the minibatches. */
static void make_own(struct ks_checkpoint *c)
{
    size_t size = ks_checkpoint_target_size(c);
    double *own;

    assert_ok(ks_alloc(MINIBATCHES * ENSEMBLE * size, sizeof *own, &own));
    for (size_t n = 0; n < MINIBATCHES; n++)
        for (size_t e = 0; e < ENSEMBLE; e++)
            memcpy(own + (n * ENSEMBLE + e) * size, c->target + (n + e) % MINIBATCHES * size,
                   size * sizeof *own);
    free(c->target);
    c->target = own;
    c->targets_differ = true;
}

/* Loss, gradient [n] and H v [n] of one critic's block. */
static double evaluate(const struct ks_checkpoint *c, int critic, double *gradient, double *product)
{
    struct ks_problem q = full_problem(c);
    struct ks_rng rng = ks_rng_start(5, 0);
    struct ks_operator *a;
    double *v, loss;

    q.critic = critic;
    assert_ok(ks_gradient(&q, &loss, gradient));
    a = operator_of(ks_hessian_new_f64, &q);
    v = hold(numbers(&rng, a->n));
    assert_ok(ks_operator_apply(a, v, product));
    return loss;
}

/* Each critic's part of gradient and product is that of a checkpoint with its targets alone; the
 * loss is the sum over the critics. */
TEST(test_own_targets)
{
    static const char *const texts[] = {CE, CE_LN, QUANTILE, MSE};

    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        struct ks_checkpoint *own = make_plain(texts[k]);
        size_t p = own->critic.arch->parameters, size = ks_checkpoint_target_size(own);
        struct ks_rng rng = ks_rng_start(1, 1);
        double *g[2] = {numbers(&rng, ENSEMBLE * p), numbers(&rng, ENSEMBLE * p)};
        double *hv[2] = {numbers(&rng, ENSEMBLE * p), numbers(&rng, ENSEMBLE * p)};

        make_own(own);
        for (size_t e = 0; e < ENSEMBLE; e++) {
            struct ks_checkpoint *same = make_plain(texts[k]), *plain = make_plain(texts[k]);

            for (size_t n = 0; n < MINIBATCHES; n++) /* in the order of make_own */
                memcpy(same->target + n * size, plain->target + (n + e) % MINIBATCHES * size,
                       size * sizeof(double));
            evaluate(own, (int)e, g[0], hv[0]);
            evaluate(same, (int)e, g[1], hv[1]);
            assert_close(relative_error(p, g[0] + e * p, g[1] + e * p), 0, 0);
            assert_close(relative_error(p, hv[0] + e * p, hv[1] + e * p), 0, 0);
        }
        for (int i = 0; i < 2; i++)
            free(g[i]), free(hv[i]);
    }
}

static void set_targets(struct ks_checkpoint *c, size_t targets, const double *values)
{
    size_t n = MINIBATCHES * LOSS_ROWS * targets;

    c->critic.arch->loss.targets = targets;
    free(c->target);
    assert_ok(ks_alloc(n, sizeof(double), &c->target));
    memcpy(c->target, values, n * sizeof(double));
}

/* The quantile loss is a mean over the targets, so targets that occur twice change nothing. */
TEST(test_more_targets)
{
    struct ks_checkpoint *one = make_plain(QUANTILE), *two = make_plain(QUANTILE);
    struct ks_rng rng = ks_rng_start(2, 2);
    size_t p = ENSEMBLE * one->critic.arch->parameters, rows = MINIBATCHES * LOSS_ROWS;
    double *four = hold(numbers(&rng, rows * 4)), *eight = hold(numbers(&rng, rows * 8)), loss[2];
    double *g[2] = {numbers(&rng, p), numbers(&rng, p)},
           *hv[2] = {numbers(&rng, p), numbers(&rng, p)};

    for (size_t i = 0; i < rows * 8; i++)
        eight[i] = four[i / 8 * 4 + i % 4];
    set_targets(one, 4, four), set_targets(two, 8, eight);
    loss[0] = evaluate(one, -1, g[0], hv[0]), loss[1] = evaluate(two, -1, g[1], hv[1]);
    assert_close(loss[0], loss[1], 1e-13 * loss[1]);
    assert_close(relative_error(p, g[0], g[1]), 0, 1e-13);
    assert_close(relative_error(p, hv[0], hv[1]), 0, 1e-13);
    for (int i = 0; i < 2; i++)
        free(g[i]), free(hv[i]);
}

/* Files with targets of each critic, [N, B, E, K], and with another number of targets. */
TEST(test_round_trip)
{
    const char *path = scratch("a.h5");
    struct ks_checkpoint *written = make_plain(CE), *read;
    struct ks_rng rng = ks_rng_start(3, 3);
    struct ks_h5_shape shape;
    struct ks_h5 *h5;
    double *five;

    make_own(written);
    assert_ok(ks_checkpoint_write(path, written, false));
    assert_ok(ks_h5_open(path, "kappascope-checkpoint", &h5));
    assert_ok(ks_h5_shape(h5, "/batch/target", &shape));
    ks_h5_close(h5);
    assert_int_equal(shape.n_dims, 4);
    assert_int_equal(shape.dims[1], LOSS_ROWS);
    assert_int_equal(shape.dims[2], ENSEMBLE);
    read = read_checkpoint(path);
    assert_true(read->targets_differ);
    same_numbers(MINIBATCHES * ks_checkpoint_target_size(written), read->target, written->target,
                 false);
    poke(path, "/batch/target", ((LOSS_ROWS + 2) * ENSEMBLE + 1) * 3, -0.25);
    assert_fails(
        try_checkpoint(path, &read), KS_FORMAT,
        "/batch/target: row 2 of minibatch 1, critic 1: expected probabilities, found -0.25");
    written = make_plain(QUANTILE);
    five = hold(numbers(&rng, MINIBATCHES * LOSS_ROWS * 5));
    set_targets(written, 5, five);
    assert_ok(ks_checkpoint_write(path, written, false));
    read = read_checkpoint(path);
    assert_int_equal(read->critic.arch->loss.targets, 5);
    same_numbers(MINIBATCHES * LOSS_ROWS * 5, read->target, five, false);
}

/* --- weights of rows: in the loss and its operators, and in a file --- */

enum { WIDE = 8 }; /* rows with repetitions */

typedef ks_status constructor(const struct ks_problem *, struct ks_operator **);

/* Loss, gradient and all products of two checkpoints agree. */
static void assert_same_loss(const struct ks_checkpoint *a, const struct ks_checkpoint *b)
{
    static constructor *const kinds[] = {ks_hessian_new_f64, ks_ggn_new_f64, ks_residual_new_f64,
                                         ks_hessian_new_f32};
    struct ks_problem p = full_problem(a), q = full_problem(b);
    size_t n = ks_networks_parameters(&a->critic);
    struct ks_rng rng = ks_rng_start(6, 0);
    double *g = hold(numbers(&rng, n)), *h = hold(numbers(&rng, n)), *v = hold(numbers(&rng, n)),
           loss[2];

    assert_ok(ks_gradient(&p, &loss[0], g));
    assert_ok(ks_gradient(&q, &loss[1], h));
    assert_close(loss[0], loss[1], 1e-13 * fabs(loss[1]));
    assert_close(relative_error(n, g, h), 0, 1e-13);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        g = product_of(kinds[k], &p, v), h = product_of(kinds[k], &q, v);
        assert_true(cblas_dnrm2((int)n, h, 1) > 0 || kinds[k] != ks_hessian_new_f64);
        cblas_daxpy((int)n, -1, h, 1, g, 1);
        assert_close(cblas_dnrm2((int)n, g, 1), 0,
                     (k < 3 ? 1e-12 : 1e-5) * cblas_dnrm2((int)n, h, 1));
    }
}

static void set_weights(struct ks_checkpoint *c, const double *weight)
{
    assert_ok(ks_alloc(c->minibatches * c->loss_rows, sizeof(double), &c->weight));
    for (size_t i = 0; i < c->minibatches * c->loss_rows; i++)
        c->weight[i] = weight[i % c->loss_rows];
}

static const char CE_BN[] = "batchnorm\ndense 7\nbatchnorm\ntanh\ndense 3\nloss ce min=-5 max=5\n";
static const char HUBER[] = "dense 7\nsilu\ndense 1\nloss huber delta=3\n";

/* The same weight in every row is a weight of the loss, with batch norms too. */
TEST(test_constant)
{
    static const char *const texts[] = {CE_LN, CE_BN, HUBER, QUANTILE, MSE};
    static const double third[LOSS_ROWS] = {1. / 3, 1. / 3, 1. / 3, 1. / 3};

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct ks_checkpoint *a = make_plain(texts[i]), *b = make_plain(texts[i]);

        set_weights(a, third);
        free(b->critic.text);
        assert_ok(ks_print_string(&b->critic.text, "%.*s weight=0.33333333333333331\n",
                                  (int)strlen(texts[i]) - 1, texts[i]));
        ks_arch_free_f64(b->critic.arch);
        assert_ok(ks_arch_parse_f64(b->critic.text, "test", IN, &b->critic.arch));
        assert_same_loss(a, b);
    }
}

/* Rows that occur 3, 0, 4 and 1 times in a batch of 8 have the weights 3/2, 0, 2 and 1/2 in one of
 * 4: a weight of 0 is a mask. */
TEST(test_repeated_rows)
{
    static const char *const texts[] = {CE_LN, HUBER, QUANTILE, MSE};
    static const double weight[LOSS_ROWS] = {1.5, 0, 2, 0.5};
    static const size_t from[WIDE] = {0, 0, 0, 2, 2, 2, 2, 3};

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
    }
}

/* A file with weights has version 2; without them version 1. */
TEST(test_weights_round_trip)
{
    static const double weight[LOSS_ROWS] = {1.5, 0, 2, 0.5};
    const char *path = scratch("a.h5");
    int64_t version[2];

    for (int weighted = 0; weighted < 2; weighted++) {
        struct ks_checkpoint *written = make_plain(CE), *read;
        struct ks_h5 *h5;

        if (weighted)
            set_weights(written, weight);
        assert_ok(ks_checkpoint_write(path, written, false));
        assert_ok(ks_h5_open(path, "kappascope-checkpoint", &h5));
        assert_ok(ks_h5_read_integer(h5, "/", "version", 1, &version[weighted]));
        ks_h5_close(h5);
        read = read_checkpoint(path);
        same_numbers(MINIBATCHES * LOSS_ROWS, read->weight, written->weight, false);
    }
    assert_int_equal(version[0], 1);
    assert_int_equal(version[1], 2);
}

CMFixtureFunction tests_setup = scratch_make, tests_teardown = scratch_remove;
