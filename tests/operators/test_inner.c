/* The operators ntk, ntk-value and fisher are sums of outer products of gradients, one for each
 * row, or for each output of a row. Here each of these gradients is that of a loss: of the row
 * alone, by weights that are 0 for all others, and for an output by a squared error, whose gradient
 * changes by the output's when its target does. */
#include "critics.h"
#include "spectra.h"

enum { IN = 3, MINIBATCHES = 2, ROWS = 7, LOSS_ROWS = 5, MOST_OUTPUTS = 8 };

/* The lines before the losses, the losses, and squared errors in their place. */
static const struct {
    const char *name, *text, *squared;
    size_t outputs, heads, width[2];
} cases[] = {
    {"ce after batch norms",
     "batchnorm\ndense 4\nbatchnorm\nrelu\ndense 4 norm=weight\nloss ce min=-2 max=5 weight=3e5\n",
     "batchnorm\ndense 4\nbatchnorm\nrelu\ndense 4 norm=weight\nloss mse\n",
     4,
     1,
     {4}},
    {"mse",
     "dense 4\ntanh\ndense 2\nloss mse weight=0.25\n",
     "dense 4\ntanh\ndense 2\nloss mse\n",
     2,
     1,
     {2}},
    {"quantile",
     "dense 4\nsilu\ndense 5\nloss quantile kappa=0.5\n",
     "dense 4\nsilu\ndense 5\nloss mse\n",
     5,
     1,
     {5}},
    {"heads",
     "dense 4\ntanh\nbranch {\ndense 2\nloss mse\n}\nbranch {\ndense 3\nloss ce min=0 max=9\n}\n",
     "dense 4\ntanh\nbranch {\ndense 2\nloss mse\n}\nbranch {\ndense 3\nloss mse\n}\n",
     5,
     2,
     {2, 3}},
};
enum { CASES = sizeof cases / sizeof *cases };

/* One row's loss and its gradient, which the problem's mean over rows divides by N B. */
static double row_gradient(struct ks_checkpoint *c, size_t row, double weight, double *gradient)
{
    const struct ks_problem q = full_problem(c);
    double loss;

    memset(c->weight, 0, MINIBATCHES * LOSS_ROWS * sizeof *c->weight);
    c->weight[row] = weight * MINIBATCHES * LOSS_ROWS;
    assert_ok(ks_gradient(&q, &loss, gradient));
    return loss;
}

/* jacobian [K, P] of a row's outputs f [K], by squared errors. Of head h with K_h outputs
 *
 *   gradient of 1/(2 K_h) sum_k (f_k - t_k)^2 = 1/K_h sum_k (f_k - t_k) J_k
 *
 * so it grows by J_k if t_k falls from 0 by K_h, and the loss grows by f_k + K_h / 2. */
static void find_jacobian(size_t k, struct ks_checkpoint *squared, size_t row, double *f,
                          double *jacobian)
{
    const size_t n = squared->critic.arch->parameters, outputs = cases[k].outputs;
    double *zero = hold(calloc(n, sizeof *zero)), *target = squared->target + row * outputs, loss;

    memset(squared->target, 0, MINIBATCHES * LOSS_ROWS * outputs * sizeof *squared->target);
    loss = row_gradient(squared, row, 1, zero);
    for (size_t h = 0, at = 0; h < cases[k].heads; h++)
        for (size_t i = 0; i < cases[k].width[h]; i++, at++) {
            const double width = (double)cases[k].width[h];

            target[at] = -width;
            f[at] = row_gradient(squared, row, 1, jacobian + at * n) - loss - width / 2;
            target[at] = 0;
            for (size_t p = 0; p < n; p++)
                jacobian[at * n + p] -= zero[p];
        }
}

/* value [P] = the gradient of the number that outputs `at` to at + width - 1 stand for. */
static void find_value(const struct KS(loss) *loss, size_t at, const double *f, size_t n,
                       const double *jacobian, double *value)
{
    const size_t width = loss->outputs;
    double p[MOST_OUTPUTS], z[MOST_OUTPUTS], sum = 0, mean = 0;

    for (size_t k = 0; k < width; k++)
        sum += p[k] = exp(f[at + k]);
    for (size_t k = 0; k < width; k++) {
        z[k] = loss->min + (loss->max - loss->min) * (double)k / (double)(width - 1);
        mean += p[k] / sum * z[k];
    }
    for (size_t k = 0; k < width; k++) {
        const bool atoms = strcmp(loss->kind->name, "ce") == 0;
        const double d = atoms ? p[k] / sum * (z[k] - mean) : 1 / (double)width;

        cblas_daxpy((int)n, d, jacobian + (at + k) * n, 1, value, 1);
    }
}

static void add_outer(size_t n, const double *g, double *matrix)
{
    const double share = 1.0 / (MINIBATCHES * LOSS_ROWS);

    cblas_dger(CblasRowMajor, (int)n, (int)n, share, g, 1, g, 1, matrix, (int)n);
}

/* One row's terms of the three operators. */
static void add_row(size_t k, struct ks_checkpoint *c, struct ks_checkpoint *squared, size_t row,
                    double *const matrix[3])
{
    const struct KS(loss) *loss = &c->critic.arch->loss;
    const size_t n = c->critic.arch->parameters;
    const double weight = 1 + 0.5 * (double)(row % 3);
    double *jacobian = hold(calloc(MOST_OUTPUTS * n, sizeof *jacobian)), f[MOST_OUTPUTS];
    double *g = hold(calloc(n, sizeof *g));

    find_jacobian(k, squared, row, f, jacobian);
    for (size_t i = 0; i < cases[k].outputs; i++)
        add_outer(n, jacobian + i * n, matrix[0]);
    for (size_t h = 0, at = 0; h < cases[k].heads; at += cases[k].width[h++]) {
        const struct KS(loss) *head = loss->n_heads > 0 ? &loss->head[h] : loss;
        double *value = hold(calloc(n, sizeof *value));

        if (head->kind->value) {
            find_value(head, at, f, n, jacobian, value);
            add_outer(n, value, matrix[1]);
        }
        for (size_t i = 0; i < cases[k].width[h] && !head->kind->value; i++)
            add_outer(n, jacobian + (at + i) * n, matrix[1]);
    }
    row_gradient(c, row, weight, g);
    add_outer(n, g, matrix[2]);
}

static struct ks_checkpoint *make(const char *text)
{
    const struct critic_sizes sizes = {1, IN, MINIBATCHES, ROWS, LOSS_ROWS};
    struct ks_checkpoint *c = random_critic(text, sizes, 51);

    c->weight = calloc(MINIBATCHES * LOSS_ROWS, sizeof *c->weight);
    return keep_checkpoint(c);
}

static void compare(const char *name, const char *kind, const struct ks_checkpoint *c,
                    const double *expected)
{
    const size_t n = c->critic.arch->parameters;
    const struct ks_problem q = full_problem(c);

    for (int f32 = 0; f32 < 2; f32++) {
        struct ks_operator *a;
        double *found, size = 0, error = 0;

        assert_ok(prepared_kind(ks_operator_kind_find(kind), f32, &q, &a));
        found = dense_of(hold_operator(a));
        for (size_t i = 0; i < n * n; i++) {
            size = fmax(size, fabs(expected[i]));
            error = fmax(error, fabs(found[i] - expected[i]));
        }
        if (!(error <= (f32 ? 1e-5 : 1e-12) * size))
            fail_msg("%s, %s: error %g of %g", name, kind, error, size);
    }
}

TEST(test_sums_over_rows)
{
    static const char *const names[] = {"ntk", "ntk-value", "fisher"};

    for (size_t k = 0; k < CASES; k++) {
        struct ks_checkpoint *c = make(cases[k].text), *squared = make(cases[k].squared);
        const size_t n = c->critic.arch->parameters;
        double *matrix[3];

        memcpy(squared->critic.w, c->critic.w, n * sizeof *c->critic.w);
        for (size_t i = 0; i < 3; i++)
            matrix[i] = hold(calloc(n * n, sizeof(double)));
        for (size_t row = 0; row < MINIBATCHES * LOSS_ROWS; row++)
            add_row(k, c, squared, row, matrix);
        for (size_t row = 0; row < MINIBATCHES * LOSS_ROWS; row++)
            c->weight[row] = 1 + 0.5 * (double)(row % 3);
        for (size_t i = 0; i < 3; i++)
            compare(cases[k].name, names[i], c, matrix[i]);
    }
}

/* The rank that the sizes imply bounds the number of eigenvalues that are not zero. */
TEST(test_rank)
{
    struct ks_checkpoint *c = make("dense 30\ntanh\ndense 4\nloss ce min=-2 max=5\n");
    const struct ks_problem q = full_problem(c);
    static const struct {
        const char *kind;
        size_t rank;
    } expected[] = {{"ntk", 40}, {"ntk-value", 10}, {"fisher", 10}, {"ggn", 30}};

    for (size_t i = 0; i < MINIBATCHES * LOSS_ROWS; i++)
        c->weight[i] = 1;
    for (size_t k = 0; k < sizeof expected / sizeof *expected; k++) {
        const struct ks_operator_kind *kind = ks_operator_kind_find(expected[k].kind);
        struct ks_spectrum *s = spectrum_new();
        struct ks_operator *a;
        size_t rank = 0;

        assert_ok(prepared_kind(kind, false, &q, &a));
        assert_ok(ks_exact(hold_operator(a), NULL, NULL, s));
        for (size_t i = 0; i < s->order; i++)
            rank += s->ritz[i] > 1e-13 * s->ritz[s->order - 1];
        assert_int_equal(rank, expected[k].rank);
        assert_int_equal(kind->operator_rank(&q), expected[k].rank);
    }
}
