/* The gradient of a cross-entropy against its bounds: norms and singular values of small critics,
 * computed independently from the logits. */
#include <stdlib.h>
#include <string.h>

#include <lapacke.h>

#include "memory_critics.h"
#include "net/net.h"
#include "operators/gradient_bounds.h"

enum { ENSEMBLE = 2, MINIBATCHES = 3, ROWS = 10, LOSS_ROWS = 6, IN = 4, K = 4 };
enum { PAIRS = ENSEMBLE * MINIBATCHES };

/* Rows that affect each other and rows that do not; folded first layers and others. */
static const char *const TEXTS[] = {
    "batchnorm\nrepeat 2 {\ndense 6 bias=no\nbatchnorm\nrelu\n}\ndense 4\nloss ce min=-5 max=5\n",
    "layernorm\nrepeat 2 {\ndense 6\nlayernorm\nrelu\n}\ndense 4\nloss ce min=-5 max=5\n",
    "batchnorm\ndense 6\nbatchnorm\nrelu\nconcat input[1:3]\ndense 4\nloss ce min=-5 max=5\n",
    "dense 6\nbatchnorm\nrelu\nconcat input[1:3]\ndense 4\nloss ce min=-5 max=5\n",
    "dense 6\ntanh\nresidual {\ndense 6\nbatchnorm\nelu\n}\ndense 4\nloss ce min=-5 max=5\n",
};
enum { TEXTS_COUNT = sizeof TEXTS / sizeof *TEXTS };

static struct ks_checkpoint *make(const char *text)
{
    struct critic_sizes sizes = {ENSEMBLE, IN, MINIBATCHES, ROWS, LOSS_ROWS};

    return random_critic(text, sizes, 31);
}

/* The logits of a minibatch into f [LOSS_ROWS, K]. */
static void find_logits(const struct ks_problem *q, size_t critic, size_t n, double *f)
{
    const struct ks_checkpoint *c = q->checkpoint;
    const struct ks_arch *arch = c->critic.arch;
    size_t rows = q->loss_rows_only ? LOSS_ROWS : ROWS;
    double *primal, *state = q->evaluation ? c->critic.state + critic * arch->states : NULL;
    struct ks_net *net;

    assert_ok(KS(net_new)(arch, rows, LOSS_ROWS, q->evaluation, &net));
    assert_ok(ks_alloc(net->primal, sizeof *primal, &primal));
    KS(net_forward)
    (net, c->critic.w + critic * arch->parameters, state, c->input + n * ROWS * IN, primal);
    memcpy(f, KS(net_output)(net, primal), LOSS_ROWS * K * sizeof *f);
    free(primal);
    KS(net_free)(net);
}

/* The Jacobians [LOSS_ROWS, K, P] of a minibatch's logits, by central differences. */
static double *find_jacobians(const struct ks_problem *q, size_t critic, size_t n)
{
    const struct ks_networks *networks = &q->checkpoint->critic;
    size_t p = networks->arch->parameters;
    double *w = networks->w + critic * p, *jacobian, f[2][LOSS_ROWS * K];
    const double h = 1e-6;

    assert_ok(ks_alloc(LOSS_ROWS * K * p, sizeof *jacobian, &jacobian));
    for (size_t j = 0; j < p; j++) {
        const double kept = w[j];

        for (int side = 0; side < 2; side++) {
            w[j] = kept + (side == 0 ? h : -h);
            find_logits(q, critic, n, f[side]);
        }
        w[j] = kept;
        for (size_t i = 0; i < LOSS_ROWS * K; i++)
            jacobian[i * p + j] = (f[0][i] - f[1][i]) / (2 * h);
    }
    return jacobian;
}

/* The largest singular value of a matrix [K, p], which is destroyed. */
static double largest_singular_value(size_t p, double *matrix)
{
    double s[K], unused[K];

    assert_int_equal(LAPACKE_dgesvd(LAPACK_ROW_MAJOR, 'N', 'N', K, (int)p, matrix, (int)p, s, NULL,
                                    K, NULL, (int)p, unused),
                     0);
    return s[0];
}

/* p - t of a row with these logits. */
static void find_difference(const double *f, const double *t, double d[K])
{
    double sum = 0;

    for (size_t k = 0; k < K; k++)
        sum += exp(f[k]);
    for (size_t k = 0; k < K; k++)
        d[k] = exp(f[k]) / sum - t[k];
}

static double norm(size_t n, const double *x)
{
    double square = 0;

    for (size_t i = 0; i < n; i++)
        square += x[i] * x[i];
    return sqrt(square);
}

/* Checks what was measured of one critic and minibatch. */
static void check_pair(const struct ks_problem *q, const struct ks_gradient_bounds *b, size_t pair)
{
    size_t critic = pair / MINIBATCHES, n = pair % MINIBATCHES;
    size_t p = q->checkpoint->critic.arch->parameters;
    double f[LOSS_ROWS * K], *jacobian = find_jacobians(q, critic, n), *g, largest = 0;

    find_logits(q, critic, n, f);
    assert_ok(ks_alloc(p, sizeof *g, &g));
    for (size_t i = 0; i < LOSS_ROWS; i++) {
        double d[K];

        find_difference(f + i * K, q->checkpoint->target + (n * LOSS_ROWS + i) * K, d);
        assert_close(b->logit[pair * LOSS_ROWS + i], norm(K, d), 1e-12);
        assert_true(norm(K, d) <= sqrt(2));
        for (size_t j = 0; j < p; j++)
            for (size_t k = 0; k < K; k++)
                g[j] += jacobian[(i * K + k) * p + j] * d[k] / LOSS_ROWS;
    }
    assert_close(b->gradient[pair], norm(p, g), 1e-6 * norm(p, g));
    for (size_t k = 0; k < KS_JACOBIAN_ROWS; k++)
        if (k * PAIRS / KS_JACOBIAN_ROWS == pair) { /* the rows 0, 2, 3, 5 */
            double *copy, sigma;
            size_t row = (2 * k + 1) * LOSS_ROWS / (2 * KS_JACOBIAN_ROWS);

            assert_ok(ks_alloc(K * p, sizeof *copy, &copy));
            memcpy(copy, jacobian + row * K * p, K * p * sizeof *copy);
            sigma = largest_singular_value(p, copy);
            assert_close(b->jacobian[k], sigma, 1e-6 * sigma);
            free(copy);
        }
    for (size_t i = 0; i < LOSS_ROWS; i++) /* Theorem 1; this destroys the Jacobians */
        largest = fmax(largest, largest_singular_value(p, jacobian + i * K * p));
    assert_true(b->gradient[pair] <= sqrt(2) * largest);
    free(jacobian);
    free(g);
}

/* With 4 logits, five Lanczos steps find the singular value to rounding. In training mode the
 * Jacobian of a row has the derivatives through the statistics of all rows. */
static void test_against_differences(void **state)
{
    (void)state;
    for (size_t i = 0; i < TEXTS_COUNT; i++)
        for (int mode = 0; mode < 3; mode++) {
            struct ks_checkpoint *c = make(TEXTS[i]);
            struct ks_problem q = full_problem(c);
            struct ks_gradient_bounds b;

            q.evaluation = mode == 1;
            q.loss_rows_only = mode == 2;
            assert_ok(ks_gradient_bounds_measure(&q, 0, 1, &b));
            assert_int_equal(b.pairs, PAIRS);
            assert_int_equal(b.rows, PAIRS * LOSS_ROWS);
            for (size_t pair = 0; pair < PAIRS; pair++)
                check_pair(&q, &b, pair);
            ks_gradient_bounds_clear(&b);
            ks_checkpoint_free(c);
        }
}

static void assert_same(const struct ks_gradient_bounds *a, const struct ks_gradient_bounds *b)
{
    assert_int_equal(a->rows, b->rows);
    assert_close(relative_error(a->rows, a->logit, b->logit), 0, 1e-13);
    assert_close(relative_error(a->pairs, a->gradient, b->gradient), 0, 1e-13);
    assert_close(relative_error(KS_JACOBIAN_ROWS, a->jacobian, b->jacobian), 0, 1e-13);
}

/* The loss itself is measured: neither its weight nor the problem's scale and decay count. */
static void test_weights_and_scale(void **state)
{
    static const char WEIGHTED[] = "layernorm\nrepeat 2 {\ndense 6\nlayernorm\nrelu\n}\ndense 4\n"
                                   "loss ce min=-5 max=5 weight=12.5\n";
    struct ks_checkpoint *plain = make(TEXTS[1]), *weighted = make(WEIGHTED);
    struct ks_problem q = full_problem(plain), r = full_problem(weighted);
    struct ks_gradient_bounds a, b;

    (void)state;
    r.scale = 7;
    r.weight_decay = 0.3;
    assert_ok(ks_gradient_bounds_measure(&q, 0, 1, &a));
    assert_ok(ks_gradient_bounds_measure(&r, 0, 1, &b));
    assert_same(&a, &b);
    ks_gradient_bounds_clear(&a);
    ks_gradient_bounds_clear(&b);
    ks_checkpoint_free(plain);
    ks_checkpoint_free(weighted);
}

/* The same weight in every row changes nothing. With others, rows of weight 0 have no gradient, the
 * other rows their own, and |g| over the mean weight stays below sqrt 2 L_f. */
static void test_row_weights(void **state)
{
    struct ks_checkpoint *plain = make(TEXTS[1]), *weighted = make(TEXTS[1]);
    struct ks_problem q = full_problem(plain), r = full_problem(weighted);
    size_t rows = MINIBATCHES * LOSS_ROWS;
    struct ks_gradient_bounds a, b;

    (void)state;
    assert_ok(ks_alloc(rows, sizeof(double), &weighted->weight));
    for (int constant = 1; constant >= 0; constant--) {
        for (size_t i = 0; i < rows; i++)
            weighted->weight[i] = constant ? 3 : (double)(i % 3) / 2;
        assert_ok(ks_gradient_bounds_measure(&q, 0, 1, &a));
        assert_ok(ks_gradient_bounds_measure(&r, 0, 1, &b));
        if (constant)
            assert_same(&a, &b);
        for (size_t i = 0; i < a.rows; i++) {
            bool masked = weighted->weight[i % rows] == 0;

            assert_close(b.logit[i], masked ? 0 : a.logit[i], 1e-13);
        }
        for (size_t pair = 0; pair < b.pairs && !constant; pair++) {
            double *jacobians = find_jacobians(&r, pair / MINIBATCHES, pair % MINIBATCHES);
            double largest = 0;

            for (size_t i = 0; i < LOSS_ROWS; i++)
                largest = fmax(largest, largest_singular_value(
                                            plain->critic.arch->parameters,
                                            jacobians + i * K * plain->critic.arch->parameters));
            assert_true(b.gradient[pair] <= sqrt(2) * largest && b.gradient[pair] > 0);
            free(jacobians);
        }
        ks_gradient_bounds_clear(&a);
        ks_gradient_bounds_clear(&b);
    }
    ks_checkpoint_free(plain);
    ks_checkpoint_free(weighted);
}

/* Measures what rank `rank` of two has: minibatches 0 and 2, or minibatch 1. */
static void measure_part(const struct ks_problem *q, size_t rank, struct ks_gradient_bounds *part)
{
    const size_t rows = ROWS * IN, targets = LOSS_ROWS * K;
    double input[2 * ROWS * IN], target[2 * LOSS_ROWS * K];
    struct ks_checkpoint own = *q->checkpoint;
    struct ks_problem r = *q;

    own.input = input;
    own.target = target;
    own.minibatches = r.minibatches = rank == 0 ? 2 : 1;
    r.other_minibatches = MINIBATCHES - r.minibatches;
    r.checkpoint = &own;
    for (size_t n = 0; n < r.minibatches; n++) {
        memcpy(input + n * rows, q->checkpoint->input + (rank + 2 * n) * rows,
               rows * sizeof *input);
        memcpy(target + n * targets, q->checkpoint->target + (rank + 2 * n) * targets,
               targets * sizeof *target);
    }
    assert_ok(ks_gradient_bounds_measure(&r, rank, 2, part));
}

/* The sum of what two ranks measure is what one rank measures. */
static void test_ranks(void **state)
{
    struct ks_checkpoint *c = make(TEXTS[0]);
    struct ks_problem q = full_problem(c);
    struct ks_gradient_bounds all, part[2];

    (void)state;
    assert_ok(ks_gradient_bounds_measure(&q, 0, 1, &all));
    for (size_t rank = 0; rank < 2; rank++)
        measure_part(&q, rank, &part[rank]);
    for (size_t i = 0; i < all.rows; i++)
        part[0].logit[i] += part[1].logit[i];
    for (size_t i = 0; i < all.pairs; i++)
        part[0].gradient[i] += part[1].gradient[i];
    for (size_t i = 0; i < KS_JACOBIAN_ROWS; i++)
        part[0].jacobian[i] += part[1].jacobian[i];
    assert_same(&part[0], &all);
    for (size_t rank = 0; rank < 2; rank++)
        ks_gradient_bounds_clear(&part[rank]);
    ks_gradient_bounds_clear(&all);
    ks_checkpoint_free(c);
}

/* One critic alone. */
static void test_one_critic(void **state)
{
    struct ks_checkpoint *c = make(TEXTS[0]);
    struct ks_problem q = full_problem(c);
    struct ks_gradient_bounds all, one;

    (void)state;
    assert_ok(ks_gradient_bounds_measure(&q, 0, 1, &all));
    q.critic = 1;
    assert_ok(ks_gradient_bounds_measure(&q, 0, 1, &one));
    assert_int_equal(one.pairs, MINIBATCHES);
    assert_close(relative_error(one.rows, one.logit, all.logit + MINIBATCHES * LOSS_ROWS), 0, 0);
    assert_close(relative_error(one.pairs, one.gradient, all.gradient + MINIBATCHES), 0, 0);
    ks_gradient_bounds_clear(&all);
    ks_gradient_bounds_clear(&one);
    ks_checkpoint_free(c);
}

static void test_other_losses(void **state)
{
    struct ks_checkpoint *c = make("dense 6\nrelu\ndense 4\nloss quantile kappa=2\n");
    struct ks_problem q = full_problem(c);

    (void)state;
    assert_false(ks_gradient_bounds_exist(&q));
    ks_checkpoint_free(c);
    c = make(TEXTS[0]);
    q = full_problem(c);
    assert_true(ks_gradient_bounds_exist(&q));
    ks_checkpoint_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_differences), cmocka_unit_test(test_weights_and_scale),
        cmocka_unit_test(test_row_weights),         cmocka_unit_test(test_ranks),
        cmocka_unit_test(test_one_critic),          cmocka_unit_test(test_other_losses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
