/* Every loss of the table in every example of it: gradient, curvature, hand-worked values. Compiled
 * in both precisions; differences only in double. */
#include <stdlib.h>
#include <string.h>

#include "test.h"

#include "ks/loss.h"
#include "ks/rng.h"

enum { ROWS = 4, OUTPUTS = 5 };

struct subject {
    struct ks_loss loss;
    real f[ROWS * OUTPUTS], t[ROWS * OUTPUTS], v[ROWS * OUTPUTS];
    real f_bar[ROWS * OUTPUTS], f_bar_dot[ROWS * OUTPUTS];
};

static void setup(struct subject *s, const struct ks_loss_kind *kind, const char *example)
{
    struct ks_rng rng = ks_rng_start(3, 0);
    struct ks_line line;
    size_t n;

    memset(s, 0, sizeof *s);
    s->loss = (struct ks_loss){.kind = kind, .weight = 1};
    s->loss.outputs = s->loss.targets = strcmp(kind->name, "mse") == 0 ? 1 : OUTPUTS;
    assert_ok(ks_line_split(&line, "example", 1, example));
    line.taken[1] = true;
    assert_ok(ks_line_number(&line, "weight", 0, 10, &s->loss.weight));
    assert_ok(kind->configure(&s->loss, &line));
    n = s->loss.outputs;
    for (size_t i = 0; i < ROWS; i++) {
        double sum = 0;

        for (size_t k = 0; k < n; k++) {
            s->f[i * n + k] = (real)(2 * ks_rng_normal(&rng));
            s->v[i * n + k] = (real)ks_rng_normal(&rng);
            s->t[i * n + k] = (real)ks_rng_uniform(&rng, 0, 1);
            sum += (double)s->t[i * n + k];
        }
        for (size_t k = 0; k < n && n > 1; k++) /* sums near 1, not exactly 1 */
            s->t[i * n + k] *= (real)((1 + 0.0005 * (double)i) / sum);
    }
}

static double dot(size_t n, const real *a, const real *b)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

#ifndef KS_SINGLE
static double value(struct subject *s, real scale)
{
    return s->loss.kind->gradient(&s->loss, ROWS, s->f, s->t, scale, s->f_bar);
}

static void check_differences(struct subject *s)
{
    const double h = 1e-5, scale = 0.3;
    size_t n = ROWS * s->loss.outputs;
    double plus, minus;
    real bar[2][ROWS * OUTPUTS];

    for (size_t i = 0; i < n; i++)
        s->f[i] += h * s->v[i];
    plus = value(s, scale), memcpy(bar[0], s->f_bar, sizeof bar[0]);
    for (size_t i = 0; i < n; i++)
        s->f[i] -= 2 * h * s->v[i];
    minus = value(s, scale), memcpy(bar[1], s->f_bar, sizeof bar[1]);
    for (size_t i = 0; i < n; i++)
        s->f[i] += h * s->v[i];
    value(s, scale);
    assert_close(dot(n, s->f_bar, s->v), scale * (plus - minus) / (2 * h), 1e-8);
    s->loss.kind->curvature(&s->loss, ROWS, s->f, s->t, scale, s->v, s->f_bar_dot);
    for (size_t i = 0; i < n; i++)
        assert_close(s->f_bar_dot[i], (bar[0][i] - bar[1][i]) / (2 * h), 1e-8);
}
#endif

/* The curvature of these losses is positive semidefinite, and linear in v. */
static void check_curvature(struct subject *s)
{
    size_t n = ROWS * s->loss.outputs;
    double twice;

    s->loss.kind->curvature(&s->loss, ROWS, s->f, s->t, 1, s->v, s->f_bar_dot);
    assert_true(dot(n, s->v, s->f_bar_dot) > 0);
    twice = 2 * (double)s->f_bar_dot[0];
    for (size_t i = 0; i < n; i++)
        s->v[i] *= 2;
    s->loss.kind->curvature(&s->loss, ROWS, s->f, s->t, 1, s->v, s->f_bar_dot);
    assert_close(s->f_bar_dot[0], twice, 1e-5 * fabs(twice));
}

static void test_all_losses(void **state)
{
    (void)state;
    for (size_t k = 0; KS(loss_kinds)[k]; k++)
        for (size_t i = 0; KS(loss_kinds)[k]->examples[i]; i++) {
            struct subject s;

            setup(&s, KS(loss_kinds)[k], KS(loss_kinds)[k]->examples[i]);
#ifndef KS_SINGLE
            check_differences(&s);
#endif
            check_curvature(&s);
        }
}

static struct ks_loss find(const char *name, const char *text, size_t outputs)
{
    struct ks_loss l = {.outputs = outputs, .targets = outputs, .weight = 1};
    struct ks_line line;

    for (size_t k = 0; KS(loss_kinds)[k]; k++)
        if (strcmp(KS(loss_kinds)[k]->name, name) == 0)
            l.kind = KS(loss_kinds)[k];
    assert_ok(ks_line_split(&line, "test", 1, text));
    assert_ok(l.kind->configure(&l, &line));
    return l;
}

/* mse: (3 - 1)^2 / 2 = 2. ce at equal logits: log K whatever the target; far logits do not
 * overflow. */
static void test_values(void **state)
{
    struct ks_loss mse = find("mse", "loss mse", 1), ce = find("ce", "loss ce min=0 max=1", 3);
    real three = 3, one = 1, bar = 0, equal[3] = {7, 7, 7}, t[3] = {(real)0.25, (real)0.75, 0};
    real far[3] = {1000, 0, -1000}, first[3] = {1, 0, 0}, bars[3];

    (void)state;
    assert_close(mse.kind->gradient(&mse, 1, &three, &one, (real)0.5, &bar), 2, 0);
    assert_close(bar, 1, 0);
    assert_close(ce.kind->gradient(&ce, 1, equal, t, 1, bars), log(3), 4 * KS_EPSILON);
    assert_close(bars[1], 1.0 / 3 - 0.75, 4 * KS_EPSILON);
    assert_close(ce.kind->gradient(&ce, 1, far, first, 1, bars), 0, 0);
    assert_close(bars[0], 0, 0);
    assert_close(ce.kind->gradient(&ce, 1, equal, t, 1, NULL), log(3), 4 * KS_EPSILON);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_losses),
        cmocka_unit_test(test_values),
    };
    return cmocka_run_group_tests_name("loss " KS_PRECISION, tests, NULL, NULL);
}
