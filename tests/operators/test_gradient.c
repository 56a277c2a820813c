/* The gradients of minibatches in the coordinates of each operator, and the loss along the step of
 * Adam. */
#include "critics.h"
#include "spectra.h"

#include "operators/gradient.h"
#include "operators/step.h"

enum { IN = 4, ENSEMBLE = 2, MINIBATCHES = 5, ROWS = 9, LOSS_ROWS = 6 };
static const char PROJECTED[] =
    "batchnorm\ndense 5 project=unit\nbatchnorm\nrelu\ndense 4 bias=no project=unit-kernel\n"
    "layernorm\nrelu\ndense 3 project=unit-kernel\nloss ce min=-1 max=1 weight=1e6\n";
static const char SMOOTH[] = "dense 5\ntanh\ndense 1\nloss mse\n";

static struct ks_checkpoint *make(const char *text)
{
    const struct critic_sizes sizes = {ENSEMBLE, IN, MINIBATCHES, ROWS, LOSS_ROWS};

    return keep_checkpoint(settle(random_critic(text, sizes, 43), 43));
}

/* A problem with its selection, until the next one is posed. */
static struct ks_problem pose(const struct ks_checkpoint *c, const char *kind, int critic,
                              int layer)
{
    static struct ks_selection *selection;
    struct ks_problem q = {.checkpoint = c,
                           .minibatches = c->minibatches,
                           .scale = 1.5,
                           .weight_decay = 0.01,
                           .critic = critic,
                           .layer = layer,
                           .kind = ks_operator_kind_find(kind)};

    ks_selection_free(selection);
    assert_ok(ks_selection_new(&q, q.kind->moving, &selection));
    q.selection = selection;
    return q;
}

/* --- scalar products --- */

/* out [n] = the gradient of one minibatch, as that of a loss of its own. */
static void find_alone(const struct ks_problem *q, size_t minibatch, double *out)
{
    const struct ks_checkpoint one = ks_checkpoint_minibatch(q->checkpoint, minibatch);
    double *g = hold(calloc(q->selection->of, sizeof *g)), loss;
    struct ks_problem alone = *q;

    alone.checkpoint = &one;
    alone.minibatches = 1;
    assert_ok(ks_gradient(&alone, &loss, g));
    ks_gradient_coordinates(q, g, out);
}

static void compare(const char *text, const struct ks_problem *q)
{
    const size_t n = q->selection->n;
    double *g = hold(calloc(MINIBATCHES * n, sizeof *g)), expected[MINIBATCHES][MINIBATCHES];
    double found[MINIBATCHES * MINIBATCHES];

    for (size_t i = 0; i < MINIBATCHES; i++) {
        find_alone(q, i, g + i * n);
        for (size_t j = 0; j <= i; j++)
            expected[i][j] = expected[j][i] = cblas_ddot((int)n, g + i * n, 1, g + j * n, 1);
    }
    for (size_t held = 1; held <= MINIBATCHES + 1; held++) {
        assert_ok(ks_gradient_gram(q, held, found));
        for (size_t i = 0; i < MINIBATCHES * MINIBATCHES; i++) {
            const double at = expected[i / MINIBATCHES][i % MINIBATCHES];
            const double size = sqrt(expected[i / MINIBATCHES][i / MINIBATCHES] *
                                     expected[i % MINIBATCHES][i % MINIBATCHES]);

            if (!(fabs(found[i] - at) <= 1e-12 * size))
                fail_msg("%s, %s, critic %d, layer %d, held %zu: %g, expected %g", text,
                         q->kind->name, q->critic, q->layer, held, found[i], at);
        }
    }
}

TEST(test_scalar_products)
{
    static const char *const kinds[] = {"hessian", "ggn", "preconditioned", "manifold", "fisher"};

    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (int critic = -1; critic < ENSEMBLE; critic++)
            for (int layer = -1; layer < 2; layer++) {
                const struct ks_checkpoint *c = make(PROJECTED);
                const struct ks_problem q = pose(c, kinds[k], critic, layer == 0 ? 4 : layer);

                compare("projected", &q);
            }
}

/* --- along the step --- */

static double loss_at(const struct ks_problem *q, const double *u, double eta)
{
    const size_t n = q->selection->of;
    struct ks_checkpoint c = *q->checkpoint;
    struct ks_problem there = *q;
    double *w = hold(calloc(n, sizeof *w)), loss;

    for (size_t i = 0; i < n; i++)
        w[i] = c.critic.w[i] - eta * u[i];
    c.critic.w = w;
    there.checkpoint = &c;
    assert_ok(ks_gradient(&there, &loss, NULL));
    return loss;
}

/* The step by the definition of Adam, on the selected coordinates. */
static double *find_step(const struct ks_problem *q)
{
    const struct ks_checkpoint *c = q->checkpoint;
    const struct ks_selection *s = q->selection;
    double *u = hold(calloc(s->of, sizeof *u));

    for (size_t k = 0; k < s->n; k++) {
        const size_t i = s->index ? s->index[k] : k;
        const double m = c->adam_m[i] / (1 - pow(0.9, 20)), v = c->adam_v[i] / (1 - pow(0.999, 20));

        u[i] = c->adam_v[i] > 0 ? m / (sqrt(v) + 1e-8) : 0;
    }
    return u;
}

/* Every number against losses alone: the loss along the step is a function of one number, whose
 * derivatives at 0 are found by differences. */
static void check_step(const struct ks_problem *q, double eta)
{
    static const double d = 1e-4;
    double *u = find_step(q), l0 = loss_at(q, u, 0), up, down, change;
    const double square = cblas_ddot((int)q->selection->of, u, 1, u, 1);
    struct ks_step step;

    assert_ok(ks_step_measure(q, eta, &step));
    up = loss_at(q, u, -d / sqrt(square)), down = loss_at(q, u, d / sqrt(square));
    assert_close(step.curvature, (up - 2 * l0 + down) / (d * d),
                 1e-4 * fabs(step.curvature) + 1e-6);
    change = loss_at(q, u, eta) - l0;
    assert_close(step.change, change, 1e-12 * l0);
    assert_close(step.quadratic,
                 -eta * (up - down) / (2 * d) * sqrt(square) +
                     eta * eta / 2 * step.curvature * square,
                 1e-6 * fabs(step.quadratic) + 1e-10);
    if (up <= l0) { /* uphill */
        assert_true(isnan(step.critical) && isnan(step.in.lower) && isnan(step.in.upper));
        return;
    }
    assert_true(step.in.lower < step.critical && step.critical < step.in.upper);
    assert_true(step.in.upper <= 1.0201 * step.in.lower);
    assert_true(loss_at(q, u, 2 / step.in.upper) <= l0 && loss_at(q, u, 2 / step.in.lower) > l0);
}

TEST(test_step)
{
    static const char *const texts[] = {PROJECTED, SMOOTH};
    size_t uphill = 0, downhill = 0;

    for (size_t k = 0; k < 2; k++)
        for (int critic = -1; critic < ENSEMBLE; critic++)
            for (int sign = -1; sign <= 1; sign += 2) {
                struct ks_checkpoint *c = make(texts[k]);
                const struct ks_problem q = pose(c, critic < 0 ? "hessian" : "ggn", critic,
                                                 critic == 1 ? 0 : -1);
                struct ks_step step;

                cblas_dscal((int)q.selection->of, sign, c->adam_m, 1);
                check_step(&q, 1e-3);
                assert_ok(ks_step_measure(&q, NAN, &step));
                assert_true(isnan(step.change) && isnan(step.quadratic));
                assert_true(isfinite(step.curvature));
                *(isnan(step.critical) ? &uphill : &downhill) += 1;
            }
    assert_true(uphill > 0 && downhill > 0);
}

/* On a quadratic, along the gradient, 2/eta_c is the curvature: moments that are the gradient and
 * 1, and a step without bias. */
TEST(test_quadratic)
{
    struct ks_checkpoint *c = make("dense 1\nloss mse\n");
    const struct ks_problem q = pose(c, "hessian", -1, -1);
    struct ks_step step;
    double loss;

    c->adam = (struct ks_adam_constants){0, 0, 0};
    assert_ok(ks_gradient(&q, &loss, c->adam_m));
    for (size_t i = 0; i < q.selection->of; i++)
        c->adam_v[i] = 1;
    assert_ok(ks_step_measure(&q, 0.01, &step));
    assert_true(step.in.lower * (1 - 1e-12) <= step.curvature);
    assert_true(step.curvature <= step.in.upper * (1 + 1e-12));
    assert_close(step.change, step.quadratic, 1e-10 * fabs(step.change));
}

/* No update yet; a loss that never rises again. */
TEST(test_no_critical_length)
{
    struct ks_checkpoint *c = make("dense 3\nloss ce min=-1 max=1\n");
    struct ks_problem q;
    struct ks_step step;
    double loss;

    memset(c->adam_m, 0, ks_networks_parameters(&c->critic) * sizeof *c->adam_m);
    q = pose(c, "hessian", -1, -1);
    assert_ok(ks_step_measure(&q, 0.1, &step));
    assert_true(isnan(step.curvature) && isnan(step.change) && isnan(step.critical));
    /* rows that logits tell apart: on the way to infinity the loss falls for ever */
    memset(c->target, 0, MINIBATCHES * LOSS_ROWS * 3 * sizeof *c->target);
    for (size_t i = 0; i < MINIBATCHES * LOSS_ROWS; i++)
        c->target[3 * i] = 1;
    q.weight_decay = 0;
    assert_ok(ks_gradient(&q, &loss, c->adam_m));
    for (size_t e = 0; e < ENSEMBLE; e++) /* by the biases alone */
        memset(c->adam_m + e * c->critic.arch->parameters, 0, 3 * IN * sizeof *c->adam_m);
    for (size_t i = 0; i < q.selection->of; i++)
        c->adam_v[i] = 1;
    assert_ok(ks_step_measure(&q, 0.1, &step));
    assert_true(step.change < 0 && isnan(step.critical) && isnan(step.in.upper));
    assert_true(ks_step_exists(&q));
    free(c->adam_m);
    c->adam_m = NULL;
    assert_false(ks_step_exists(&q));
}
