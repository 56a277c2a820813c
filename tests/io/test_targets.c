/* Targets of a checkpoint: the same for all critics or of each, and as many per row as the loss
 * allows. */
#include <stdlib.h>
#include <string.h>

#include <cblas.h>

#include "example_checkpoint.h"
#include "io/h5.h"
#include "operators/operator.h"
#include "scratch.h"

static const size_t ALL_MEMORY = (size_t)1 << 30;
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
    struct ks_problem q = {
        .checkpoint = c, .minibatches = c->minibatches, .scale = 1, .critic = critic, .layer = -1};
    struct ks_rng rng = ks_rng_start(5, 0);
    struct ks_operator *a;
    double *v, loss;

    assert_ok(ks_gradient(&q, NULL, &loss, gradient));
    assert_ok(ks_hessian_new_f64(&q, &a));
    assert_ok(ks_operator_prepare(a, ALL_MEMORY));
    v = numbers(&rng, a->n);
    assert_ok(ks_operator_apply(a, v, product));
    ks_operator_free(a);
    free(v);
    return loss;
}

/* Each critic's part of gradient and product is that of a checkpoint with its targets alone; the
 * loss is the sum over the critics. */
static void test_own_targets(void **state)
{
    static const char *const texts[] = {CE, CE_LN, QUANTILE, MSE};

    (void)state;
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
            ks_checkpoint_free(same);
            ks_checkpoint_free(plain);
        }
        ks_checkpoint_free(own);
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
static void test_more_targets(void **state)
{
    struct ks_checkpoint *one = make_plain(QUANTILE), *two = make_plain(QUANTILE);
    struct ks_rng rng = ks_rng_start(2, 2);
    size_t p = ENSEMBLE * one->critic.arch->parameters, rows = MINIBATCHES * LOSS_ROWS;
    double *four = numbers(&rng, rows * 4), *eight = numbers(&rng, rows * 8), loss[2];
    double *g[2] = {numbers(&rng, p), numbers(&rng, p)},
           *hv[2] = {numbers(&rng, p), numbers(&rng, p)};

    (void)state;
    for (size_t i = 0; i < rows * 8; i++)
        eight[i] = four[i / 8 * 4 + i % 4];
    set_targets(one, 4, four), set_targets(two, 8, eight);
    loss[0] = evaluate(one, -1, g[0], hv[0]), loss[1] = evaluate(two, -1, g[1], hv[1]);
    assert_close(loss[0], loss[1], 1e-13 * loss[1]);
    assert_close(relative_error(p, g[0], g[1]), 0, 1e-13);
    assert_close(relative_error(p, hv[0], hv[1]), 0, 1e-13);
    ks_checkpoint_free(one), ks_checkpoint_free(two);
    free(four), free(eight);
    for (int i = 0; i < 2; i++)
        free(g[i]), free(hv[i]);
}

/* Files with targets of each critic, [N, B, E, K], and with another number of targets. */
static void test_round_trip(void **state)
{
    const char *path = scratch("a.h5");
    struct ks_checkpoint *written = make_plain(CE), *read;
    struct ks_rng rng = ks_rng_start(3, 3);
    struct ks_h5_shape shape;
    struct ks_h5 *h5;
    double *five;

    (void)state;
    make_own(written);
    assert_ok(ks_checkpoint_write(path, written, false));
    assert_ok(ks_h5_open(path, "kappascope-checkpoint", &h5));
    assert_ok(ks_h5_shape(h5, "/batch/target", &shape));
    ks_h5_close(h5);
    assert_int_equal(shape.n_dims, 4);
    assert_int_equal(shape.dims[1], LOSS_ROWS);
    assert_int_equal(shape.dims[2], ENSEMBLE);
    assert_ok(ks_checkpoint_read(path, &read));
    assert_true(read->targets_differ);
    same_numbers(MINIBATCHES * ks_checkpoint_target_size(written), read->target, written->target,
                 false);
    ks_checkpoint_free(read), ks_checkpoint_free(written);
    written = make_plain(QUANTILE);
    five = numbers(&rng, MINIBATCHES * LOSS_ROWS * 5);
    set_targets(written, 5, five);
    assert_ok(ks_checkpoint_write(path, written, false));
    assert_ok(ks_checkpoint_read(path, &read));
    assert_int_equal(read->critic.arch->loss.targets, 5);
    same_numbers(MINIBATCHES * LOSS_ROWS * 5, read->target, five, false);
    free(five);
    ks_checkpoint_free(read), ks_checkpoint_free(written);
}

static void refused(const char *path, const char *words)
{
    struct ks_checkpoint *c;

    assert_fails(ks_checkpoint_read(path, &c), KS_FORMAT, words);
    assert_one_line(path);
}

static void test_refusals(void **state)
{
    const hsize_t two[2] = {MINIBATCHES, LOSS_ROWS}, five[5] = {MINIBATCHES, LOSS_ROWS, 2, 3, 1};
    const char *path = scratch("a.h5");
    struct ks_checkpoint *c = make_plain(CE);

    (void)state;
    assert_ok(ks_alloc(MINIBATCHES * LOSS_ROWS * 3, sizeof(double), &c->target_raw));
    memcpy(c->target_raw, c->target, MINIBATCHES * LOSS_ROWS * 3 * sizeof(double));
    assert_ok(ks_checkpoint_write(path, c, false));
    reshape(path, "/batch/target", 2, two);
    refused(path, "/batch/target: expected shape [3, 4, 3], found [3, 4]");
    reshape(path, "/batch/target", 5, five);
    refused(path, "/batch/target: expected at most 4 dimensions, found 5");
    reshape(path, "/batch/target", 1, two);
    refused(path, "/batch/target: expected [N, B, T], or [N, B, E, T] with the targets of each "
                  "critic, where N = 3 minibatches, B = 1 to 6 rows");
    free(c->target_raw), c->target_raw = NULL;
    make_own(c);
    assert_ok(ks_checkpoint_write(path, c, false));
    resize(path, "/batch/target", 2, 1);
    refused(path, "E = 2 critics and T = 3 targets of a row, found [3, 4, 3, 3]");
    assert_ok(ks_checkpoint_write(path, c, false));
    poke(path, "/batch/target", ((LOSS_ROWS + 2) * ENSEMBLE + 1) * 3, -0.25);
    refused(path,
            "/batch/target: row 2 of minibatch 1, critic 1: expected probabilities, found -0.25");
    ks_checkpoint_free(c);
    c = make_plain(MSE);
    assert_ok(ks_checkpoint_write(path, c, false));
    resize(path, "/batch/target", 2, 1);
    refused(path, "/batch/target: expected shape [3, 4, 1], found [3, 4, 2]");
    ks_checkpoint_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_targets),
        cmocka_unit_test(test_more_targets),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_refusals),
    };

    return cmocka_run_group_tests_name("targets", tests, scratch_make, scratch_remove);
}
