/* The gradient of a cross-entropy against its bounds, and of a squared error: norms and singular
 * values of small critics, computed independently from their outputs. */
#include <lapacke.h>

#include "critics.h"
#include "operators/gradient_bounds.h"

enum { ENSEMBLE = 2, MINIBATCHES = 3, ROWS = 10, LOSS_ROWS = 6, IN = 4, K = 4 };
enum { PAIRS = ENSEMBLE * MINIBATCHES };

/* Rows that affect each other and rows that do not; folded first layers and others; as bits, which
 * layers are hidden in training mode and in evaluation mode. */
static const struct {
    const char *text;
    unsigned hidden[2];
} CRITICS[] = {
    {"batchnorm\nrepeat 2 {\ndense 6 bias=no\nbatchnorm\nrelu\n}\ndense 4\nloss ce min=-5 max=5\n",
     {1u << 1 | 1u << 4, 0}},
    {"layernorm\nrepeat 2 {\ndense 6\nlayernorm\nrelu\n}\ndense 4\nloss ce min=-5 max=5\n",
     {1u << 1 | 1u << 4, 1u << 1 | 1u << 4}},
    {"batchnorm\ndense 6\nbatchnorm\nrelu\nconcat input[1:3]\ndense 4\nloss ce min=-5 max=5\n",
     {1u << 1, 0}},
    {"dense 6\nbatchnorm\nrelu\nconcat input[1:3]\ndense 4\nloss ce min=-5 max=5\n", {1u << 0, 0}},
    {"dense 6\ntanh\nresidual {\ndense 6\nbatchnorm\nelu\n}\ndense 4\nloss ce min=-5 max=5\n",
     {1u << 2, 0}},
    /* the container reads the first dense, too; the kernel of the third is not its parameter */
    {"dense 6\nresidual {\nlayernorm\ndense 6\nrmsnorm eps=1\n}\ndense 6 norm=weight\nlayernorm\n"
     "relu\ndense 4\nloss ce min=-5 max=5\n",
     {1u << 2, 1u << 2}},
    {"dense 6\ntanh\nlayernorm\ndense 4\nloss ce min=-5 max=5\n", {0, 0}},
};
enum { CRITICS_COUNT = sizeof CRITICS / sizeof *CRITICS };

static struct ks_checkpoint *make(const char *text)
{
    struct critic_sizes sizes = {ENSEMBLE, IN, MINIBATCHES, ROWS, LOSS_ROWS};

    return keep_checkpoint(random_critic(text, sizes, 31));
}

/* The logits of a minibatch into f, whose first rows [LOSS_ROWS, K] have a loss. */
static void find_logits(const struct ks_problem *q, size_t critic, size_t n, double *f)
{
    critic_outputs(q->checkpoint, critic, n, q->loss_rows_only ? LOSS_ROWS : ROWS, q->evaluation,
                   f);
}

/* The Jacobians [LOSS_ROWS, K, P] of a minibatch's logits, by central differences. */
static double *find_jacobians(const struct ks_problem *q, size_t critic, size_t n)
{
    const struct ks_networks *networks = &q->checkpoint->critic;
    size_t p = networks->arch->parameters;
    double *w = networks->w + critic * p, *jacobian, f[2][ROWS * K];
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
    return sqrt(dot(n, x, x));
}

/* Sets the columns of a matrix [rows, P] that do not belong to the layers `hidden` to 0. */
static void leave_hidden(const struct KS(arch) *arch, unsigned hidden, size_t rows, double *matrix)
{
    for (size_t i = 0; i < arch->n_layers; i++)
        for (size_t r = 0; r < rows && !(hidden >> i & 1); r++)
            memset(matrix + r * arch->parameters + arch->layer[i].offset, 0,
                   arch->layer[i].parameters * sizeof *matrix);
}

/* The norm of the gradient g of a pair, and the singular values, against their bounds: Lemma 1 with
 * Proposition 2, or Theorem 1. Destroys the Jacobians. */
static void check_bounds(size_t p, size_t pair, double *jacobian, double gradient,
                         const double *sigma)
{
    double largest = 0;

    for (size_t i = 0; i < LOSS_ROWS; i++) {
        double value = largest_singular_value(p, jacobian + i * K * p);

        for (size_t k = 0; k < KS_JACOBIAN_ROWS; k++) /* the rows 0, 2, 3, 5 */
            if (k * PAIRS / KS_JACOBIAN_ROWS == pair &&
                (2 * k + 1) * LOSS_ROWS / (2 * KS_JACOBIAN_ROWS) == i)
                assert_close(sigma[k], value, 1e-6 * value);
        largest = fmax(largest, value);
    }
    assert_true(gradient <= sqrt(2) * largest);
}

/* |g_h| and the cosine of theta_h and g_h of a pair, from g, which is destroyed. */
static void check_hidden(const struct ks_problem *q, const struct ks_gradient_bounds *b,
                         unsigned hidden, size_t pair, double *g)
{
    const struct ks_networks *critics = &q->checkpoint->critic;
    size_t p = critics->arch->parameters;
    double theta[256], radius;

    assert_true(p <= 256);
    memcpy(theta, critics->w + pair / MINIBATCHES * p, p * sizeof *theta);
    leave_hidden(critics->arch, hidden, 1, theta);
    leave_hidden(critics->arch, hidden, 1, g);
    radius = norm(p, theta);
    assert_int_equal(b->hidden_parameters > 0, hidden != 0);
    assert_true(b->hidden_norm <= radius + 1e-12);
    assert_close(b->hidden[pair], norm(p, g), 1e-6 * norm(p, g));
    if (hidden)
        assert_close(b->radial[pair], fabs(dot(p, theta, g)) / (radius * norm(p, g)), 1e-6);
}

/* Checks what was measured of one critic and minibatch. */
static void check_pair(const struct ks_problem *q, const struct ks_gradient_bounds *b,
                       unsigned hidden, size_t pair)
{
    size_t critic = pair / MINIBATCHES, n = pair % MINIBATCHES;
    const struct KS(arch) *arch = q->checkpoint->critic.arch;
    size_t p = arch->parameters;
    double f[ROWS * K], *jacobian = hold(find_jacobians(q, critic, n)), *g;

    find_logits(q, critic, n, f);
    g = hold(calloc(p, sizeof *g));
    for (size_t i = 0; i < LOSS_ROWS; i++) {
        double d[K];

        find_difference(f + i * K, q->checkpoint->target + (n * LOSS_ROWS + i) * K, d);
        assert_close(b->output[pair * LOSS_ROWS + i], norm(K, d), 1e-12);
        assert_true(norm(K, d) <= sqrt(2));
        for (size_t j = 0; j < p; j++)
            for (size_t k = 0; k < K; k++)
                g[j] += jacobian[(i * K + k) * p + j] * d[k] / LOSS_ROWS;
    }
    assert_close(b->gradient[pair], norm(p, g), 1e-6 * norm(p, g));
    check_hidden(q, b, hidden, pair, g);
    check_bounds(p, pair, jacobian, b->gradient[pair], b->jacobian);
    jacobian = hold(find_jacobians(q, critic, n));
    leave_hidden(arch, hidden, LOSS_ROWS * K, jacobian);
    check_bounds(p, pair, jacobian, b->hidden[pair], b->hidden_jacobian);
}

/* With 4 logits, five Lanczos steps find the singular value to rounding. In training mode the
 * Jacobian of a row has the derivatives through the statistics of all rows. */
TEST(test_against_differences)
{
    for (size_t i = 0; i < CRITICS_COUNT; i++)
        for (int mode = 0; mode < 3; mode++) {
            struct ks_checkpoint *c = make(CRITICS[i].text);
            struct ks_problem q = full_problem(c);
            struct ks_gradient_bounds b;

            q.evaluation = mode == 1;
            q.loss_rows_only = mode == 2;
            assert_ok(ks_gradient_bounds_measure(&q, &b));
            assert_int_equal(b.pairs, PAIRS);
            assert_int_equal(b.rows, PAIRS * LOSS_ROWS);
            for (size_t pair = 0; pair < PAIRS; pair++)
                check_pair(&q, &b, CRITICS[i].hidden[mode == 1], pair);
            ks_arena_free(&b.arena);
        }
}

static void assert_same(const struct ks_gradient_bounds *a, const struct ks_gradient_bounds *b)
{
    assert_int_equal(a->rows, b->rows);
    assert_close(relative_error(a->rows, a->output, b->output), 0, 1e-13);
    assert_close(relative_error(a->pairs, a->gradient, b->gradient), 0, 1e-13);
    assert_close(relative_error(KS_JACOBIAN_ROWS, a->jacobian, b->jacobian), 0, 1e-13);
    assert_close(relative_error(a->pairs, a->hidden, b->hidden), 0, 1e-13);
    assert_close(relative_error(a->pairs, a->radial, b->radial), 0, 1e-6);
    assert_close(relative_error(KS_JACOBIAN_ROWS, a->hidden_jacobian, b->hidden_jacobian), 0,
                 1e-13);
    assert_true(a->hidden_norm == b->hidden_norm && a->hidden_norm > 0);
}

/* The loss itself is measured: neither its weight nor the problem's scale and decay count. */
TEST(test_weights_and_scale)
{
    static const char WEIGHTED[] = "layernorm\nrepeat 2 {\ndense 6\nlayernorm\nrelu\n}\ndense 4\n"
                                   "loss ce min=-5 max=5 weight=12.5\n";
    struct ks_checkpoint *plain = make(CRITICS[1].text), *weighted = make(WEIGHTED);
    struct ks_problem q = full_problem(plain), r = full_problem(weighted);
    struct ks_gradient_bounds a, b;

    r.scale = 7;
    r.weight_decay = 0.3;
    assert_ok(ks_gradient_bounds_measure(&q, &a));
    assert_ok(ks_gradient_bounds_measure(&r, &b));
    assert_same(&a, &b);
    ks_arena_free(&a.arena);
    ks_arena_free(&b.arena);
}

/* The same weight in every row changes nothing. With others, rows of weight 0 have no gradient, the
 * other rows their own, and |g| over the mean weight stays below sqrt 2 L_f. */
TEST(test_row_weights)
{
    struct ks_checkpoint *plain = make(CRITICS[1].text), *weighted = make(CRITICS[1].text);
    struct ks_problem q = full_problem(plain), r = full_problem(weighted);
    size_t rows = MINIBATCHES * LOSS_ROWS;
    struct ks_gradient_bounds a, b;

    assert_ok(ks_alloc(rows, sizeof(double), &weighted->weight));
    for (int constant = 1; constant >= 0; constant--) {
        for (size_t i = 0; i < rows; i++)
            weighted->weight[i] = constant ? 3 : (double)(i % 3) / 2;
        assert_ok(ks_gradient_bounds_measure(&q, &a));
        assert_ok(ks_gradient_bounds_measure(&r, &b));
        if (constant)
            assert_same(&a, &b);
        for (size_t i = 0; i < a.rows; i++) {
            bool masked = weighted->weight[i % rows] == 0;

            assert_close(b.output[i], masked ? 0 : a.output[i], 1e-13);
        }
        for (size_t pair = 0; pair < b.pairs && !constant; pair++) {
            double *jacobians = hold(find_jacobians(&r, pair / MINIBATCHES, pair % MINIBATCHES));
            double largest = 0;

            for (size_t i = 0; i < LOSS_ROWS; i++)
                largest = fmax(largest, largest_singular_value(
                                            plain->critic.arch->parameters,
                                            jacobians + i * K * plain->critic.arch->parameters));
            assert_true(b.gradient[pair] <= sqrt(2) * largest && b.gradient[pair] > 0);
        }
        ks_arena_free(&a.arena);
        ks_arena_free(&b.arena);
    }
}

/* One critic alone. */
TEST(test_one_critic)
{
    struct ks_checkpoint *c = make(CRITICS[0].text);
    struct ks_problem q = full_problem(c);
    struct ks_gradient_bounds all, one;

    assert_ok(ks_gradient_bounds_measure(&q, &all));
    q.critic = 1;
    assert_ok(ks_gradient_bounds_measure(&q, &one));
    assert_int_equal(one.pairs, MINIBATCHES);
    assert_close(relative_error(one.rows, one.output, all.output + MINIBATCHES * LOSS_ROWS), 0, 0);
    assert_close(relative_error(one.pairs, one.gradient, all.gradient + MINIBATCHES), 0, 0);
    ks_arena_free(&all.arena);
    ks_arena_free(&one.arena);
}

/* What is measured of a critic becomes statistics. */
static void add(const struct ks_problem *q, struct ks_attributes *statistics)
{
    struct ks_gradient_bounds b;

    assert_ok(ks_gradient_bounds_measure(q, &b));
    ks_gradient_bounds_add(&b, statistics);
    ks_arena_free(&b.arena);
}

static bool has(const struct ks_attributes *statistics, const char *name)
{
    assert_non_null(ks_attribute_find(statistics, name));
    return !isnan(ks_attribute_number(statistics, name));
}

/* The statistics of the hidden layers are NaN if there are none. hidden_norm is its smallest value
 * over the critics. */
TEST(test_statistics)
{
    struct ks_attributes s = {0}, none = {0};
    struct ks_checkpoint *c = make(CRITICS[5].text);
    struct ks_problem q = full_problem(c);
    size_t p = c->critic.arch->parameters;

    add(&q, &s);
    leave_hidden(c->critic.arch, CRITICS[5].hidden[0], ENSEMBLE, c->critic.w);
    assert_close(ks_attribute_number(&s, "hidden_norm"),
                 fmin(norm(p, c->critic.w), norm(p, c->critic.w + p)), 1e-12);
    assert_true(ks_attribute_number(&s, "hidden_radial_largest") > 0.01); /* eps=1 */
    assert_true(ks_attribute_number(&s, "hidden_radial_largest") < 1);
    assert_true(ks_attribute_number(&s, "minibatch_gradient_hidden_largest") <
                ks_attribute_number(&s, "minibatch_gradient_largest"));
    assert_true(ks_attribute_number(&s, "logit_jacobian_hidden_median") <
                ks_attribute_number(&s, "logit_jacobian_hidden_largest"));
    assert_false(has(&s, "prediction_error_largest") || has(&s, "prediction_error_median"));
    ks_attributes_clear(&s);
    c = make(CRITICS[6].text);
    q = full_problem(c);
    add(&q, &none);
    assert_true(has(&none, "minibatch_gradient_largest") && has(&none, "logit_jacobian_rows"));
    assert_false(has(&none, "minibatch_gradient_hidden_largest") ||
                 has(&none, "logit_jacobian_hidden_largest") || has(&none, "hidden_norm") ||
                 has(&none, "hidden_radial_largest"));
    ks_attributes_clear(&none);
}

/* |f - y| of every row that has a weight, whatever the weights of the loss and of the row. */
static void check_squared_error(const char *arch, size_t outputs)
{
    struct ks_checkpoint *c = make(arch);
    struct ks_problem q = full_problem(c);
    struct ks_attributes s = {0};
    double largest = 0, f[ROWS * 3];

    assert_ok(ks_alloc(MINIBATCHES * LOSS_ROWS, sizeof(double), &c->weight));
    for (size_t i = 0; i < MINIBATCHES * LOSS_ROWS; i++)
        c->weight[i] = (double)(i % 3) / 4;
    for (size_t pair = 0; pair < PAIRS; pair++) {
        size_t first = pair % MINIBATCHES * LOSS_ROWS;

        find_logits(&q, pair / MINIBATCHES, pair % MINIBATCHES, f);
        for (size_t i = 0; i < LOSS_ROWS; i++) {
            double square = 0;

            for (size_t j = 0; j < outputs && c->weight[first + i] > 0; j++)
                square += pow(f[i * outputs + j] - c->target[(first + i) * outputs + j], 2);
            largest = fmax(largest, sqrt(square));
        }
    }
    assert_true(ks_gradient_bounds_exist(&q));
    add(&q, &s);
    assert_close(ks_attribute_number(&s, "prediction_error_largest"), largest, 1e-13);
    assert_true(ks_attribute_number(&s, "prediction_error_median") < largest);
    assert_false(has(&s, "logit_gradient_largest") || has(&s, "minibatch_gradient_largest") ||
                 has(&s, "logit_jacobian_rows") || has(&s, "hidden_norm"));
    ks_attributes_clear(&s);
}

TEST(test_squared_error)
{
    check_squared_error("dense 6\nlayernorm\ntanh\ndense 1\nloss mse weight=12.5\n", 1);
    check_squared_error("dense 6\nlayernorm\ntanh\ndense 3\nloss mse weight=12.5\n", 3);
}

TEST(test_other_losses)
{
    struct ks_checkpoint *c = make("dense 6\nrelu\ndense 4\nloss quantile kappa=2\n");
    struct ks_problem q = full_problem(c);

    assert_false(ks_gradient_bounds_exist(&q));
    c = make(CRITICS[0].text);
    q = full_problem(c);
    assert_true(ks_gradient_bounds_exist(&q));
}
