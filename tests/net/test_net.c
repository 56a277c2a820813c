/* Networks: gradient and Hessian-vector product against finite differences, symmetry, rows without
 * loss, evaluation mode. Compiled in both precisions; finite differences only in double. */
#include "test.h"

#include "core/rng.h"
#include "net/net.h"

enum { ROWS = 9, OUT_ROWS = 5, IN = 4 };
static const char *const TEXTS[] = {
    "batchnorm\ndense 6 bias=no\nbatchnorm\nrelu\ndense 5\nbatchnorm\ndense 4\nloss ce min=0 "
    "max=1\n",
    "layernorm\ndense 6\nlayernorm\nrelu\ndense 4\nloss ce min=0 max=1\n",
    "dense 6\nrelu\ndense 5\nrelu\ndense 1\nloss mse\n",
    "dense 1\nloss mse\n",
    /* Containers at the start, whose input is constant. */
    "residual {\nbatchnorm\ndense 4\n}\ndense 1\nloss mse\n",
    "lerp init=0.5 scale=0.7 {\ndense 4\ntanh\n}\ndense 2\nloss quantile\n",
    "residual {\nlerp init=0.4 {\nrelu\ndense 4\n}\n}\ndense 1\nloss huber delta=2\n",
    /* Only the lerp itself reads its input. */
    "dense 5\nlerp init=0.3 {\ntanh\n}\ndense 1\nloss mse\n",
    /* Two and three containers that open at the same layer, followed by an in-place layer. */
    "dense 5\nresidual {\nlerp init=0.3 {\nresidual {\nrelu\ndense 5 bias=no\n}\n}\nbatchnorm\n"
    "}\ndense 3\nloss ce min=0 max=1\n",
    "dense 5\nresidual {\nresidual {\nrelu\n}\n}\ndense 1\nloss mse\n",
    "dense 6\nresidual {\nrelu\nresidual {\nrelu\nrelu shift=-0.1\n}\nscaler init=2\n}\ndense 1\n"
    "loss mse\n",
    /* Consecutive and nested containers, before an in-place layer and before the last layer. */
    "append 0.5\nl2norm\nresidual {\ndense 5\nsilu\n}\nresidual {\nbatchnorm\ndense 5\n}\nrelu\n"
    "dense 4\nlerp init=0.6 {\nrmsnorm\nresidual {\ndense 4\nmish\n}\ndense 3\nappend 1\n}\n"
    "dense 3\nloss quantile kappa=0.5\n",
    "residual {\nrepeat 2 {\ndense 4\nresidual {\nbatchnorm\nrelu\ndense 4\n}\nlerp init=0.2 {\n"
    "layernorm affine=no\ngelu\ndense 4\n}\n}\n}\nbatchnorm\ndense 1\nloss mse\n",
};
enum { N_TEXTS = sizeof TEXTS / sizeof *TEXTS };

struct fixture {
    struct KS(arch) *arch;
    struct KS(net) *net;
    real *w, *x, *t, *state, *primal, *adjoint, *kept, *tangent, *scratch, *f_bar_dot, *v, *g, *hv;
};

static real *random_array(struct ks_rng *rng, size_t n)
{
    real *a = hold(calloc(n + 1, sizeof *a));

    for (size_t i = 0; i < n; i++)
        a[i] = (real)ks_rng_normal(rng);
    return a;
}

static void setup(struct fixture *s, const char *text, bool evaluation)
{
    struct ks_rng rng = ks_rng_start(5, 0);
    size_t n;

    assert_ok(KS(arch_parse)(text, "test", IN, &s->arch));
    assert_ok(KS(net_new)(s->arch, ROWS, OUT_ROWS, evaluation, &s->net));
    n = s->arch->parameters;
    s->w = random_array(&rng, n), s->v = random_array(&rng, n);
    s->g = random_array(&rng, n), s->hv = random_array(&rng, n);
    s->x = random_array(&rng, ROWS * IN);
    s->t = random_array(&rng, OUT_ROWS * s->arch->out);
    s->state = random_array(&rng, s->arch->states);
    for (size_t i = 0; i < s->arch->states; i++)
        s->state[i] = (real)fabs((double)s->state[i]);
    for (size_t i = 0; i < OUT_ROWS * s->arch->out && s->arch->loss.kind->distribution; i++)
        s->t[i] = i % s->arch->out == i / s->arch->out % s->arch->out ? (real)0.5 : (real)0.5 / 3;
    s->primal = random_array(&rng, s->net->primal),
    s->adjoint = random_array(&rng, s->net->adjoint);
    s->kept = random_array(&rng, s->net->kept);
    s->tangent = random_array(&rng, s->net->tangent);
    s->scratch = random_array(&rng, s->net->scratch);
    s->f_bar_dot = random_array(&rng, OUT_ROWS * s->arch->out);
}

static double *widen(size_t n, const real *a)
{
    double *wide = hold(calloc(n + 1, sizeof *wide));

    for (size_t i = 0; i < n; i++)
        wide[i] = (double)a[i];
    return wide;
}

static void teardown(struct fixture *s)
{
    KS(net_free)(s->net);
    KS(arch_free)(s->arch);
}

/* The backward pass from the output's adjoint; x_bar and w_bar may be NULL. */
static void backward(struct fixture *s, real *x_bar, real *w_bar)
{
    KS(net_backward)
    (s->net, &(struct KS(net_backward)){.w = s->w,
                                        .x = s->x,
                                        .primal = s->primal,
                                        .adjoint = s->adjoint,
                                        .x_bar = x_bar,
                                        .w_bar = w_bar});
}

static struct KS(net_tangent) tangent_along(const struct fixture *s, const real *v)
{
    return (struct KS(net_tangent)){
        .w = s->w, .w_dot = v, .x = s->x, .kept = s->kept, .tangent = s->tangent};
}

/* Returns the loss; its gradient is in g. */
static double gradient(struct fixture *s)
{
    const struct KS(loss) *l = &s->arch->loss;
    double value;

    memset(s->g, 0, s->arch->parameters * sizeof *s->g);
    KS(net_forward)(s->net, s->w, s->net->evaluation ? s->state : NULL, s->x, s->primal);
    value = l->kind->gradient(
        l, &(struct KS(outputs)){OUT_ROWS, KS(net_output)(s->net, s->primal), s->t}, 1,
        KS(net_output_bar)(s->net, s->adjoint));
    backward(s, NULL, s->g);
    return value;
}

/* hv = H v, after gradient(). */
static void product(struct fixture *s, const real *v)
{
    const struct KS(loss) *l = &s->arch->loss;
    double *primal = widen(s->net->primal, s->primal);
    double *adjoint = widen(s->net->adjoint, s->adjoint);
    struct KS(net_tangent) pass = tangent_along(s, v);
    real *c = (real *)KS(net_kept_output)(s->net, s->kept);

    memset(s->hv, 0, s->arch->parameters * sizeof *s->hv);
    KS(net_keep)(s->net, primal, adjoint, s->kept);
    KS(net_tangent_forward)(s->net, &pass);
    l->kind->curvature(l, &(struct KS(outputs)){OUT_ROWS, c, s->t}, c);
    KS(loss_multiply)
    (l, &(struct KS(loss_inner)){KS_INNER_HESSIAN, OUT_ROWS, c, 1},
     KS(net_output_dot)(s->net, s->tangent), s->f_bar_dot);
    KS(net_tangent_backward)(s->net, &pass, s->f_bar_dot, s->scratch, s->hv);
}

static void check_symmetry(struct fixture *s)
{
    size_t n = s->arch->parameters;
    struct ks_rng rng = ks_rng_start(6, 0);
    real *u = random_array(&rng, n);
    double uhv, vhu, scale;

    gradient(s);
    product(s, s->v);
    uhv = dot(n, u, s->hv);
    scale = sqrt(dot(n, u, u) * dot(n, s->hv, s->hv));
    product(s, u);
    vhu = dot(n, s->v, s->hv);
    assert_close(uhv, vhu, 100 * KS_EPSILON * scale);
}

#ifndef KS_SINGLE
static void check_differences(struct fixture *s)
{
    const double h = 1e-6;
    size_t n = s->arch->parameters;
    double value[2], slope, scale;
    real *g[2];

    for (int side = 0; side < 2; side++) {
        for (size_t i = 0; i < n; i++)
            s->w[i] += (side == 0 ? h : -2 * h) * s->v[i];
        value[side] = gradient(s);
        g[side] = hold(calloc(n, sizeof **g));
        memcpy(g[side], s->g, n * sizeof **g);
    }
    for (size_t i = 0; i < n; i++)
        s->w[i] += h * s->v[i];
    gradient(s);
    slope = (value[0] - value[1]) / (2 * h);
    assert_close(dot(n, s->g, s->v), slope, 1e-7 * (1 + fabs(slope)));
    product(s, s->v);
    scale = sqrt(dot(n, s->hv, s->hv));
    for (size_t i = 0; i < n; i++)
        assert_close(s->hv[i], (g[0][i] - g[1][i]) / (2 * h), 1e-7 * (1 + scale));
}
#endif

TEST(test_derivatives)
{
    for (size_t i = 0; i < N_TEXTS; i++)
        for (int evaluation = 0; evaluation < 2; evaluation++) {
            struct fixture s;

            setup(&s, TEXTS[i], evaluation);
            check_symmetry(&s);
#ifndef KS_SINGLE
            check_differences(&s);
#endif
            teardown(&s);
        }
}

/* Rows without loss contribute only through the batch statistics. */
TEST(test_rows_without_loss)
{
    for (size_t i = 0; i < N_TEXTS; i++) {
        struct fixture s;
        double before;

        setup(&s, TEXTS[i], false);
        before = gradient(&s);
        s.x[(ROWS - 1) * IN] += 1;
        if (s.arch->joint)
            assert_true(fabs(gradient(&s) - before) > 1e-4);
        else
            assert_close(gradient(&s), before, 0);
        teardown(&s);
    }
}

/* The input's adjoint (used by the actor's loss) agrees with finite differences of the loss. */
static void check_input_adjoint(const char *text, size_t at)
{
    struct fixture s;
    real x_bar[ROWS * IN];
    double h = sizeof(real) == 4 ? 1e-2 : 1e-5, plus, minus;

    setup(&s, text, false);
    gradient(&s);
    backward(&s, x_bar, NULL);
    s.x[at] += (real)h;
    plus = gradient(&s);
    s.x[at] -= (real)(2 * h);
    minus = gradient(&s);
    assert_close(x_bar[at], (plus - minus) / (2 * h), 100 * h * h + 1e3 * KS_EPSILON / h);
    teardown(&s);
}

TEST(test_input_adjoint)
{
    check_input_adjoint(TEXTS[1], 2);
    for (size_t i = 0; i < N_TEXTS && sizeof(real) == sizeof(double); i++)
        for (size_t at = 0; at < ROWS * IN; at += 5)
            check_input_adjoint(TEXTS[i], at);
}

/* With an output adjoint of zero, the tangent of the backward pass equals the backward pass. */
TEST(test_gauss_newton)
{
    for (size_t i = 0; i < N_TEXTS; i++) {
        struct fixture s;
        struct KS(net_tangent) pass;
        double *primal, *adjoint, scale;
        real *u;

        setup(&s, TEXTS[i], false);
        gradient(&s);
        u = KS(net_output_bar)(s.net, s.adjoint);
        memset(u, 0, OUT_ROWS * s.arch->out * sizeof *u);
        backward(&s, NULL, NULL);
        primal = widen(s.net->primal, s.primal), adjoint = widen(s.net->adjoint, s.adjoint);
        KS(net_keep)(s.net, primal, adjoint, s.kept);
        pass = tangent_along(&s, s.v);
        pass.gauss_newton = true;
        KS(net_tangent_forward)(s.net, &pass);
        memset(s.hv, 0, s.arch->parameters * sizeof *s.hv);
        KS(net_tangent_backward)(s.net, &pass, s.f_bar_dot, s.scratch, s.hv);
        memcpy(u, s.f_bar_dot, OUT_ROWS * s.arch->out * sizeof *u);
        memset(s.g, 0, s.arch->parameters * sizeof *s.g);
        backward(&s, NULL, s.g);
        scale = sqrt(dot(s.arch->parameters, s.g, s.g));
        for (size_t k = 0; k < s.arch->parameters; k++)
            assert_close(s.hv[k], s.g[k], 50 * KS_EPSILON * scale);
        teardown(&s);
    }
}
