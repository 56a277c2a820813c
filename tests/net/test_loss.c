/* Every example of every loss: gradient, curvature, values computed by hand. Compiled in both
 * precisions; finite differences only in double. */
#include "test.h"

#include "core/rng.h"
#include "net/loss.h"

enum { ROWS = 6, OUTPUTS = 5 };

struct fixture {
    struct KS(loss) loss;
    real f[ROWS * OUTPUTS], t[ROWS * OUTPUTS], v[ROWS * OUTPUTS];
    real f_bar[ROWS * OUTPUTS], f_bar_dot[ROWS * OUTPUTS];
};

/* Draws outputs, and targets of the same magnitude, or distributions whose sums are not exactly 1.
 */
static void draw(struct fixture *s)
{
    struct ks_rng rng = ks_rng_start(3, 0);
    size_t n = s->loss.outputs;

    for (size_t i = 0; i < ROWS; i++) {
        bool distribution = s->loss.kind->distribution;
        double sum = 0;

        for (size_t k = 0; k < n; k++) {
            s->f[i * n + k] = (real)(2 * ks_rng_normal(&rng));
            s->v[i * n + k] = (real)ks_rng_normal(&rng);
            s->t[i * n + k] = (real)(distribution ? ks_rng_uniform(&rng, 0, 1)
                                                  : 2 * ks_rng_normal(&rng));
            sum += (double)s->t[i * n + k];
        }
        for (size_t k = 0; k < n && distribution; k++)
            s->t[i * n + k] *= (real)((1 + 0.0005 * (double)i) / sum);
    }
}

/* Returns false if the loss does not allow this number of outputs. */
static bool setup(struct fixture *s, const struct KS(loss_kind) *kind, const char *example,
                  size_t outputs)
{
    struct ks_line line;

    memset(s, 0, sizeof *s);
    s->loss = (struct KS(loss)){.kind = kind, .outputs = outputs, .targets = outputs, .weight = 1};
    assert_ok(ks_line_split(&line, "example", 1, example));
    line.taken[1] = true;
    assert_ok(ks_line_option_number(&line, "weight", 0, 10, &s->loss.weight));
    if (kind->configure && kind->configure(&s->loss, &line) != KS_OK)
        return false;
    assert_ok(ks_line_end(&line));
    draw(s);
    return true;
}

static struct KS(outputs) outputs_of(const struct fixture *s)
{
    return (struct KS(outputs)){ROWS, s->f, s->t};
}

/* The sum of the losses of rows; their gradient, times the scale, unless f_bar is NULL. */
static double evaluate(const struct KS(loss) *l, struct KS(outputs) at, real scale, real *f_bar)
{
    return l->kind->gradient(l, &at, scale, f_bar);
}

/* f_bar_dot = scale (d2l/df2) v */
static void multiply(const struct KS(loss) *l, struct KS(outputs) at, real scale, const real *v,
                     real *f_bar_dot)
{
    real c[ROWS * OUTPUTS];

    memcpy(c, at.f, at.rows * l->outputs * sizeof *c);
    l->kind->curvature(l, &(struct KS(outputs)){at.rows, c, at.t},
                       c); /* c aliases f, as in an analysis */
    KS(loss_multiply)(l, &(struct KS(loss_inner)){KS_INNER_HESSIAN, at.rows, c, scale}, v,
                      f_bar_dot);
}

#ifndef KS_SINGLE
static double gradient(struct fixture *s, real scale)
{
    return evaluate(&s->loss, outputs_of(s), scale, s->f_bar);
}

static void check_differences(struct fixture *s)
{
    const double h = 1e-5, scale = 0.3;
    size_t n = ROWS * s->loss.outputs;
    double plus, minus;
    real bar[2][ROWS * OUTPUTS];

    for (size_t i = 0; i < n; i++)
        s->f[i] += h * s->v[i];
    plus = gradient(s, scale), memcpy(bar[0], s->f_bar, sizeof bar[0]);
    for (size_t i = 0; i < n; i++)
        s->f[i] -= 2 * h * s->v[i];
    minus = gradient(s, scale), memcpy(bar[1], s->f_bar, sizeof bar[1]);
    for (size_t i = 0; i < n; i++)
        s->f[i] += h * s->v[i];
    gradient(s, scale);
    assert_close(dot(n, s->f_bar, s->v), scale * (plus - minus) / (2 * h), 1e-8);
    multiply(&s->loss, outputs_of(s), scale, s->v, s->f_bar_dot);
    for (size_t i = 0; i < n; i++)
        assert_close(s->f_bar_dot[i], (bar[0][i] - bar[1][i]) / (2 * h), 1e-8);
}
#endif

/* The curvature is positive semidefinite, and linear in v. */
static void check_curvature(struct fixture *s)
{
    size_t n = ROWS * s->loss.outputs;
    real once[ROWS * OUTPUTS];

    multiply(&s->loss, outputs_of(s), 1, s->v, once);
    assert_true(dot(n, s->v, once) > 0);
    for (size_t i = 0; i < n; i++)
        s->v[i] *= 2;
    multiply(&s->loss, outputs_of(s), 1, s->v, s->f_bar_dot);
    for (size_t i = 0; i < n; i++)
        assert_close(s->f_bar_dot[i], 2 * (double)once[i], 0);
}

/* The value does not depend on whether the gradient is computed, nor on its scale, apart from
 * rounding: a compiler may contract multiplications and additions in one case and not in the other.
 * The weight multiplies value, gradient and curvature. */
static void check_weight(struct fixture *s)
{
    size_t n = ROWS * s->loss.outputs;
    double value = evaluate(&s->loss, outputs_of(s), 1, s->f_bar);
    struct KS(loss) heavy = s->loss;
    struct fixture twice = *s;

    assert_close(evaluate(&s->loss, outputs_of(s), 3, NULL), value, 4 * DBL_EPSILON * fabs(value));
    multiply(&s->loss, outputs_of(s), 1, s->v, s->f_bar_dot);
    heavy.weight *= 2;
    assert_close(evaluate(&heavy, outputs_of(s), 1, twice.f_bar), 2 * value, 0);
    multiply(&heavy, outputs_of(s), 1, s->v, twice.f_bar_dot);
    for (size_t i = 0; i < n; i++) {
        assert_close(twice.f_bar[i], 2 * (double)s->f_bar[i], 0);
        assert_close(twice.f_bar_dot[i], 2 * (double)s->f_bar_dot[i], 0);
    }
}

/* A weight multiplies the value, the gradient and the curvature of its row. */
static void check_row_weights(struct fixture *s)
{
    static const real weight[ROWS] = {2, 0, 1, (real)0.5, 4, 0};
    size_t n = s->loss.outputs;
    struct KS(outputs) at = {ROWS, s->f, s->t};
    real bar[ROWS * OUTPUTS], c[ROWS * OUTPUTS], plain_c[ROWS * OUTPUTS];
    double value = KS(loss_gradient)(&s->loss, &at, weight, (real)0.5, bar);

    s->loss.kind->gradient(&s->loss, &at, (real)0.5, s->f_bar);
    KS(loss_curvature)(&s->loss, &at, weight, c);
    s->loss.kind->curvature(&s->loss, &at, plain_c);
    for (size_t i = 0; i < ROWS; i++) {
        struct KS(outputs) row = {1, s->f + i * n, s->t + i * s->loss.targets};

        value -= (double)weight[i] * s->loss.kind->gradient(&s->loss, &row, 1, NULL);
        for (size_t k = 0; k < n; k++) {
            assert_close(bar[i * n + k], (double)weight[i] * (double)s->f_bar[i * n + k],
                         4 * KS_EPSILON * fabs((double)bar[i * n + k]));
            assert_close(c[i * n + k], (double)weight[i] * (double)plain_c[i * n + k], 0);
        }
    }
    assert_close(value, 0, 1e-12);
}

TEST(test_all_losses)
{
    static const size_t outputs[] = {1, OUTPUTS};

    for (size_t k = 0; KS(loss_kinds)[k]; k++)
        for (size_t i = 0; KS(loss_kinds)[k]->examples[i]; i++) {
            size_t known = 0;

            for (size_t j = 0; j < 2; j++) {
                struct fixture s;

                if (!setup(&s, KS(loss_kinds)[k], KS(loss_kinds)[k]->examples[i], outputs[j]))
                    continue;
                check_weight(&s);
                check_row_weights(&s);
#ifndef KS_SINGLE
                check_differences(&s);
#endif
                check_curvature(&s);
                known++;
            }
            assert_true(known > 0);
        }
}

static struct KS(loss) find(const char *name, const char *text, size_t outputs)
{
    struct KS(loss) l = {.outputs = outputs, .targets = outputs, .weight = 1};
    struct ks_line line;

    for (size_t k = 0; KS(loss_kinds)[k]; k++)
        if (strcmp(KS(loss_kinds)[k]->name, name) == 0)
            l.kind = KS(loss_kinds)[k];
    assert_ok(ks_line_split(&line, "test", 1, text));
    if (l.kind->configure)
        assert_ok(l.kind->configure(&l, &line));
    return l;
}

/* mse: (3 - 1)^2 / 2 = 2. ce at equal logits: log K whatever the target; far logits do not
 * overflow. */
TEST(test_values)
{
    struct KS(loss) mse = find("mse", "loss mse", 1), ce = find("ce", "loss ce min=0 max=1", 3);
    real three = 3, one = 1, bar = 0, equal[3] = {7, 7, 7}, t[3] = {(real)0.25, (real)0.75, 0};
    real far[3] = {1000, 0, -1000}, first[3] = {1, 0, 0}, bars[3];
    const real last[3] = {0, 0, 1};

    assert_close(evaluate(&mse, (struct KS(outputs)){1, &three, &one}, (real)0.5, &bar), 2, 0);
    assert_close(bar, 1, 0);
    assert_close(evaluate(&ce, (struct KS(outputs)){1, equal, t}, 1, bars), log(3), 4 * KS_EPSILON);
    assert_close(bars[1], 1.0 / 3 - 0.75, 4 * KS_EPSILON);
    assert_close(evaluate(&ce, (struct KS(outputs)){1, far, first}, 1, bars), 0, 0);
    assert_close(bars[0], 0, 0);
    assert_close(evaluate(&ce, (struct KS(outputs)){1, far, last}, 1, bars), 2000, 0);
    far[2] = 3000;
    assert_close(evaluate(&ce, (struct KS(outputs)){1, far, last}, 1, bars), 0, 0);
    assert_close(evaluate(&ce, (struct KS(outputs)){1, equal, t}, 1, NULL), log(3), 4 * KS_EPSILON);
}

/* Only what differs from the defaults. */
TEST(test_options)
{
    static const struct {
        const char *line, *options;
    } cases[] = {
        {"loss mse", ""},
        {"loss mse weight=0.5", "weight=0.5"},
        {"loss huber", ""},
        {"loss huber delta=1", ""},
        {"loss huber weight=3 delta=100", "delta=100 weight=3"},
        {"loss quantile kappa=0.8", "kappa=0.8"},
        {"loss ce min=-5 max=5", ""},
    };
    struct KS(loss) head[2], heads = {.kind = &KS(heads), .weight = 1, .n_heads = 2, .head = head};
    struct ks_line line;
    char text[64];

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_ok(ks_line_split(&line, "test", 1, cases[i].line));
        assert_ok(KS(loss_parse)(&line, 3, &head[0]));
        KS(loss_options)(&head[0], sizeof text, text);
        assert_string_equal(text, cases[i].options);
    }
    head[0] = find("mse", "loss mse", 1);
    head[1] = find("quantile", "loss quantile kappa=2", 3);
    KS(loss_options)(&heads, sizeof text, text);
    assert_string_equal(text, "+kappa=2");
    head[1] = find("quantile", "loss quantile", 3);
    KS(loss_options)(&heads, sizeof text, text);
    assert_string_equal(text, "");
    KS(loss_options)(&heads, 1, text);
    assert_string_equal(text, "");
}

/* Each row is normalized separately. */
TEST(test_softmax)
{
    real f[4] = {0, (real)log(3), 5, 5}, one[2] = {0, (real)log(3)}, p[2];

    KS(softmax)(2, 2, f, f);
    assert_close(f[0], 0.25, 2 * KS_EPSILON);
    assert_close(f[1], 0.75, 2 * KS_EPSILON);
    assert_close(f[2], 0.5, KS_EPSILON);
    assert_close(f[3], 0.5, KS_EPSILON);
    KS(softmax)(1, 2, one, p);
    assert_close(p[0], f[0], 0);
}

/* Up to a distance of delta the same as mse, beyond it a straight line: with delta 2, at a distance
 * of 3, 2 (3 - 1) = 4. */
TEST(test_huber)
{
    struct KS(loss) huber = find("huber", "loss huber delta=2", 1);
    const real f[5] = {1, 5, -5, 2, -2}, t[5] = {2, 2, -2, 0, 0}, v[5] = {7, 7, 7, 7, 7};
    const double slope[5] = {-1, 2, -2, 2, -2}, curvature[5] = {7, 0, 0, 7, 7};
    real bar[5], bar_dot[5];

    assert_close(evaluate(&huber, (struct KS(outputs)){5, f, t}, 1, bar), 0.5 + 4 + 4 + 2 + 2, 0);
    multiply(&huber, (struct KS(outputs)){5, f, t}, 1, v, bar_dot);
    for (size_t i = 0; i < 5; i++) {
        assert_close(bar[i], slope[i], 0);
        assert_close(bar_dot[i], curvature[i], 0);
    }
    huber = find("huber", "loss huber delta=2", 5); /* one row of five outputs: their mean */
    assert_close(evaluate(&huber, (struct KS(outputs)){1, f, t}, 1, bar), 12.5 / 5,
                 KS_EPSILON * 12.5);
    multiply(&huber, (struct KS(outputs)){1, f, t}, 1, v, bar_dot);
    for (size_t i = 0; i < 5; i++) {
        assert_close(bar[i], slope[i] / 5, KS_EPSILON);
        assert_close(bar_dot[i], curvature[i] / 5, 7 * KS_EPSILON);
    }
}

/* f - t = (1, -3, 2): (1 + 9 + 4) / (2 3). */
TEST(test_mean_over_outputs)
{
    struct KS(loss) mse = find("mse", "loss mse", 3);
    const real f[3] = {2, 0, 2}, t[3] = {1, 3, 0}, v[3] = {3, 6, 9};
    real bar[3], bar_dot[3];

    assert_close(evaluate(&mse, (struct KS(outputs)){1, f, t}, 1, bar), 14. / 6, 14 * KS_EPSILON);
    multiply(&mse, (struct KS(outputs)){1, f, t}, 1, v, bar_dot);
    for (size_t k = 0; k < 3; k++) {
        assert_close(bar[k], (f[k] - t[k]) / 3, 4 * KS_EPSILON);
        assert_close(bar_dot[k], v[k] / 3, 8 * KS_EPSILON);
    }
}

/* q = 1/4, 3/4; f = (0, 4), t = (1/2, 2), kappa 1:
 *   f_0 is below both: 1/4 huber(1/2) + 1/4 huber(2) = 1/32 + 3/8
 *   f_1 is above both: 1/4 huber(7/2) + 1/4 huber(2) = 3/4 + 3/8 */
TEST(test_quantile)
{
    struct KS(loss) quantile = find("quantile", "loss quantile", 2);
    const real f[2] = {0, 4}, t[2] = {(real)0.5, 2}, v[2] = {3, 3};
    real bar[2], bar_dot[2];

    assert_close(evaluate(&quantile, (struct KS(outputs)){1, f, t}, 1, bar), 49. / 64, 0);
    assert_close(bar[0], -(0.125 + 0.25) / 2, 0);
    assert_close(bar[1], 0.5 / 2, 0);
    multiply(&quantile, (struct KS(outputs)){1, f, t}, 1, v, bar_dot);
    assert_close(bar_dot[0], 3 * 0.25 / 2, 0);
    assert_close(bar_dot[1], 0, 0);
}

/* One target for two quantiles, and a mean over the targets: f = (0, 4), t = 1:
 *   1/4 huber(1) + 1/4 huber(3) = 1/8 + 5/8 */
TEST(test_other_targets)
{
    struct KS(loss) quantile = find("quantile", "loss quantile", 2);
    const real f[2] = {0, 4}, once[1] = {1}, three[3] = {1, 1, 1};
    real bar[2];

    quantile.targets = 1;
    assert_close(evaluate(&quantile, (struct KS(outputs)){1, f, once}, 1, bar), 0.75, 0);
    assert_close(bar[0], -0.25, 0);
    assert_close(bar[1], 0.25, 0);
    quantile.targets = 3;
    assert_close(evaluate(&quantile, (struct KS(outputs)){1, f, three}, 1, NULL), 0.75,
                 4 * KS_EPSILON);
}

/* If one probability is nearly 1, its entry of the product is as accurate as the others: the
 * entries sum to zero. p = (1, e, e^2), v = (3, 1, 2), e = exp(-50): <v> = 3 - 2 e. */
TEST(test_saturated)
{
    struct KS(loss) ce = find("ce", "loss ce min=0 max=1", 3);
    const real f[3] = {0, -50, -100}, t[3] = {0, 1, 0}, v[3] = {3, 1, 2};
    real bar_dot[3];
    double e = exp(-50);

    multiply(&ce, (struct KS(outputs)){1, f, t}, 1, v, bar_dot);
    assert_close(bar_dot[0], 2 * e, 8 * KS_EPSILON * e);
    assert_close(bar_dot[1], -2 * e, 8 * KS_EPSILON * e);
}

/* With one output the quantile loss is half the Huber loss, as q = 1/2. */
TEST(test_median)
{
    struct KS(loss) quantile = find("quantile", "loss quantile kappa=2", 1);
    real five = 5, two = 2, bar;

    assert_close(evaluate(&quantile, (struct KS(outputs)){1, &five, &two}, 1, &bar), 2, 0);
    assert_close(bar, 1, 0);
}
