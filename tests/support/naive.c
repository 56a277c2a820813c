#include "naive.h"

static const char NAIVE[] = NAIVE_BODY "loss mse\n";

void naive_dense(size_t out, const double *w, const double *b, const double *x, double *y)
{
    for (size_t j = 0; j < out; j++) {
        y[j] = b[j];
        for (size_t i = 0; i < SIDE; i++)
            y[j] += x[i] * w[i * out + j];
    }
}

static void naive_layernorm(double eps, const double *w, double *x)
{
    double mean = 0, var = 0;

    for (size_t i = 0; i < SIDE; i++)
        mean += x[i] / SIDE;
    for (size_t i = 0; i < SIDE; i++)
        var += (x[i] - mean) * (x[i] - mean) / SIDE;
    for (size_t i = 0; i < SIDE; i++)
        x[i] = (x[i] - mean) / sqrt(var + eps) * w[i] + w[SIDE + i];
}

/* Batch norm number k of x [BATCH_ROWS, SIDE], in place; fills the moments unless they are held. */
static void naive_batchnorm(size_t k, const double *w, const struct how *how, struct moments *m,
                            double (*x)[SIDE])
{
    const size_t n = how->alone ? BATCH_LOSS_ROWS : BATCH_ROWS;

    for (size_t j = 0; j < SIDE; j++) {
        double mean = 0, var = 0;

        for (size_t i = 0; i < n; i++)
            mean += x[i][j] / (double)n;
        for (size_t i = 0; i < n; i++)
            var += (x[i][j] - mean) * (x[i][j] - mean) / (double)n;
        if (!how->held)
            m->mean[k][j] = mean, m->var[k][j] = var;
        for (size_t i = 0; i < BATCH_ROWS; i++)
            x[i][j] = (x[i][j] - m->mean[k][j]) / sqrt(m->var[k][j] + 1e-3) * w[j] + w[SIDE + j];
    }
}

static double naive_gelu(bool erf_form, double x)
{
    const double c = 0.79788456080286535588; /* sqrt(2 / pi) */

    return erf_form ? 0.5 * x * (1 + erf(x / sqrt(2.0)))
                    : 0.5 * x * (1 + tanh(c * (x + 0.044715 * x * x * x)));
}

void naive_outputs(const double *w, const double *input, const struct how *how, struct moments *m,
                   double *f)
{
    double x[BATCH_ROWS][SIDE], y[BATCH_ROWS][SIDE];

    for (size_t i = 0; i < BATCH_ROWS; i++)
        for (size_t j = 0; j < SIDE; j++)
            x[i][j] = input[i * SIDE + j];
    naive_batchnorm(0, w + SCALE0, how, m, x);
    for (size_t i = 0; i < BATCH_ROWS; i++) {
        naive_dense(SIDE, w + KERNEL1, w + BIAS1, x[i], y[i]);
        naive_layernorm(how->eps, w + SCALE2, y[i]);
        for (size_t j = 0; j < SIDE; j++)
            y[i][j] = fmax(y[i][j], 0);
        naive_dense(SIDE, w + KERNEL4, w + BIAS4, y[i], x[i]);
    }
    naive_batchnorm(1, w + SCALE5, how, m, x);
    for (size_t i = 0; i < BATCH_ROWS; i++) {
        for (size_t j = 0; j < SIDE; j++)
            x[i][j] = naive_gelu(how->erf, x[i][j]);
        naive_dense(1, w + KERNEL7, w + BIAS7, x[i], f + i);
    }
}

/* The moments of critic e's running statistics: mean and variance of both batch norms. */
static struct moments naive_running(const struct ks_checkpoint *c, size_t e)
{
    struct moments m;
    const double *state = c->critic.state + e * 4 * SIDE;

    for (size_t k = 0; k < 2; k++)
        for (size_t j = 0; j < SIDE; j++) {
            m.mean[k][j] = state[2 * k * SIDE + j];
            m.var[k][j] = state[(2 * k + 1) * SIDE + j];
        }
    return m;
}

/* The loss of critic e on minibatch n at parameters w. */
static double naive_loss(const struct ks_checkpoint *c, const double *w, size_t n,
                         const struct how *how, struct moments *m)
{
    const double *t = c->target + n * BATCH_LOSS_ROWS;
    double f[BATCH_ROWS], loss = 0;

    naive_outputs(w, c->input + n * BATCH_ROWS * SIDE, how, m, f);
    for (size_t i = 0; i < BATCH_LOSS_ROWS; i++)
        loss += 0.5 * (f[i] - t[i]) * (f[i] - t[i]) / BATCH_LOSS_ROWS;
    return loss;
}

/* The squared norm of critic e's gradient on minibatch n, by central differences. */
static double naive_squares(const struct ks_checkpoint *c, size_t e, size_t n,
                            const struct how *how, struct moments *m)
{
    const double step = 1e-5;
    double *w = c->critic.w + e * PARAMETERS, squares = 0;

    for (size_t i = 0; i < PARAMETERS; i++) {
        const double at = w[i];
        double more, less;

        if (i >= how->from && i < how->behind)
            continue;
        w[i] = at + step;
        more = naive_loss(c, w, n, how, m);
        w[i] = at - step;
        less = naive_loss(c, w, n, how, m);
        w[i] = at;
        squares += (more - less) * (more - less) / (4 * step * step);
    }
    return squares;
}

void naive_references(struct ks_checkpoint *c, size_t rows, struct how forward, struct how backward)
{
    struct ks_references *p = &c->references;

    ks_references_clear(p);
    p->output = (struct ks_reference){.minibatches = BATCHES, .rows = rows, .wide = true};
    p->loss = (struct ks_reference){.minibatches = BATCHES, .rows = 1, .wide = true};
    p->gradient_norm = (struct ks_reference){.minibatches = BATCHES, .rows = 1};
    assert_ok(ks_alloc(BATCHES * rows * CRITICS, sizeof(double), &p->output.value));
    assert_ok(ks_alloc(BATCHES, sizeof(double), &p->loss.value));
    assert_ok(ks_alloc(BATCHES, sizeof(double), &p->gradient_norm.value));
    for (size_t n = 0; n < BATCHES; n++) {
        double squares = 0, f[BATCH_ROWS];

        for (size_t e = 0; e < CRITICS; e++) {
            struct moments m = naive_running(c, e);

            forward.held = forward.evaluation;
            naive_outputs(c->critic.w + e * PARAMETERS, c->input + n * BATCH_ROWS * SIDE, &forward,
                          &m, f);
            p->loss.value[n] += naive_loss(c, c->critic.w + e * PARAMETERS, n, &forward, &m);
            for (size_t i = 0; i < rows; i++)
                p->output.value[(n * rows + i) * CRITICS + e] = f[i];
            squares += naive_squares(c, e, n, &backward, &m);
        }
        p->gradient_norm.value[n] = sqrt(squares);
    }
}

struct ks_checkpoint *naive_critic(void)
{
    const struct critic_sizes sizes = {.ensemble = CRITICS,
                                       .in = SIDE,
                                       .minibatches = BATCHES,
                                       .rows = BATCH_ROWS,
                                       .loss_rows = BATCH_LOSS_ROWS};
    struct ks_checkpoint *c = keep_checkpoint(random_critic(NAIVE, sizes, 5));

    assert_int_equal(c->critic.arch->parameters, PARAMETERS);
    naive_references(c, BATCH_LOSS_ROWS, RIGHT, RIGHT);
    return c;
}

struct ks_checkpoint *linear_critic(const char *text)
{
    const struct critic_sizes sizes = {.ensemble = 1,
                                       .in = SIDE,
                                       .minibatches = BATCHES,
                                       .rows = BATCH_ROWS,
                                       .loss_rows = BATCH_LOSS_ROWS};

    return keep_checkpoint(random_critic(text, sizes, 6));
}

void describe(struct ks_checkpoint *c, const char *text)
{
    ks_arch_free_f64(c->critic.arch);
    free(c->critic.text);
    assert_ok(ks_copy_string(text, &c->critic.text));
    assert_ok(ks_arch_parse_f64(text, "test", SIDE, &c->critic.arch));
}

void write_file(const char *name, const struct ks_checkpoint *c)
{
    assert_ok(ks_checkpoint_write(scratch(name), c, false));
}
