/* Every layer kind of the table, in every example of it, in training and evaluation mode: adjoint,
 * tangent, second order, symmetry, manners. Compiled in both precisions; differences only in
 * double. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

#include "ks/layer.h"
#include "ks/memory.h"
#include "ks/rng.h"

enum { ROWS = 7, WIDTH = 6, MAX_EXAMPLES = 64 };
static const double FAR_FROM_KINK = 0.05;

/* A layer with everything that one call can need. */
struct subject {
    struct ks_layer layer;
    bool evaluation;
    size_t nx, ny, nw, ns, nc;
    real *x, *w, *state, *y, *cache, *y_bar, *x_bar, *w_bar;
    real *x_dot, *w_dot, *y_dot, *cache_dot, *y_bar_dot, *x_bar_dot, *w_bar_dot;
};

static struct ks_rng rng;

static real *random_array(size_t n)
{
    real *a;

    assert_ok(ks_alloc(n, sizeof *a, &a));
    for (size_t i = 0; i < n; i++) {
        double z = ks_rng_normal(&rng);

        a[i] = (real)(z + (z < 0 ? -FAR_FROM_KINK : FAR_FROM_KINK));
    }
    return a;
}

static size_t count(const struct ks_array *arrays, size_t n)
{
    size_t sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += (arrays[i].rows ? arrays[i].rows : 1) * arrays[i].columns;
    return sum;
}

static void setup(struct subject *s, const struct ks_layer_kind *kind, const char *example,
                  bool evaluation)
{
    struct ks_line line;

    memset(s, 0, sizeof *s);
    rng = ks_rng_start(1, 0);
    assert_ok(ks_line_split(&line, "example", 1, example));
    s->evaluation = evaluation;
    s->layer.kind = kind;
    s->layer.in = WIDTH;
    assert_ok(kind->configure(&s->layer, &line));
    assert_ok(ks_line_end(&line));
    s->nx = ROWS * s->layer.in, s->ny = ROWS * s->layer.out;
    s->nw = count(s->layer.param, s->layer.n_params);
    s->ns = count(s->layer.state, s->layer.n_states);
    s->nc = ROWS * s->layer.cache_row + s->layer.cache_fixed;
    s->layer.parameters = s->nw, s->layer.states = s->ns;
    s->x = random_array(s->nx), s->w = random_array(s->nw), s->state = random_array(s->ns);
    for (size_t i = 0; i < s->ns; i++)
        s->state[i] = (real)fabs((double)s->state[i]); /* a variance must be positive */
    s->y = random_array(s->ny), s->cache = random_array(s->nc);
    s->y_bar = random_array(s->ny), s->x_bar = random_array(s->nx), s->w_bar = random_array(s->nw);
    s->x_dot = random_array(s->nx), s->w_dot = random_array(s->nw);
    s->y_dot = random_array(s->ny), s->cache_dot = random_array(s->nc);
    s->y_bar_dot = random_array(s->ny);
    s->x_bar_dot = random_array(s->nx), s->w_bar_dot = random_array(s->nw);
}

static void teardown(struct subject *s)
{
    real *all[] = {s->x,     s->w,         s->state,     s->y,         s->cache,
                   s->y_bar, s->x_bar,     s->w_bar,     s->x_dot,     s->w_dot,
                   s->y_dot, s->cache_dot, s->y_bar_dot, s->x_bar_dot, s->w_bar_dot};

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    free(s->layer.settings);
}

static struct ks_pass pass(const struct subject *s)
{
    return (struct ks_pass){.rows = ROWS,
                            .evaluation = s->evaluation,
                            .x = s->x,
                            .w = s->w,
                            .y = s->y,
                            .cache = s->cache,
                            .state = s->evaluation ? s->state : NULL,
                            .y_bar = s->y_bar,
                            .x_bar = s->x_bar,
                            .w_bar = s->w_bar,
                            .x_dot = s->x_dot,
                            .w_dot = s->w_dot,
                            .y_dot = s->y_dot,
                            .cache_dot = s->cache_dot,
                            .y_bar_dot = s->y_bar_dot,
                            .x_bar_dot = s->x_bar_dot,
                            .w_bar_dot = s->w_bar_dot};
}

static void clear(real *a, size_t n)
{
    memset(a, 0, n * sizeof *a);
}

static void first_order(struct subject *s)
{
    struct ks_pass p = pass(s);

    clear(s->w_bar, s->nw);
    s->layer.kind->forward(&s->layer, &p);
    s->layer.kind->backward(&s->layer, &p);
}

static void second_order(struct subject *s)
{
    struct ks_pass p = pass(s);

    first_order(s);
    clear(s->w_bar_dot, s->nw);
    s->layer.kind->tangent_forward(&s->layer, &p);
    s->layer.kind->tangent_backward(&s->layer, &p);
}

static double dot(size_t n, const real *a, const real *b)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

static double norm(size_t n, const real *a)
{
    return sqrt(dot(n, a, a));
}

/* <y_bar, J v> = <J' y_bar, v> */
static void check_adjoint(struct subject *s)
{
    double left, right, scale;

    second_order(s);
    left = dot(s->ny, s->y_bar, s->y_dot);
    right = dot(s->nx, s->x_bar, s->x_dot) + dot(s->nw, s->w_bar, s->w_dot);
    scale = norm(s->ny, s->y_bar) * norm(s->ny, s->y_dot) +
            norm(s->nx, s->x_bar) * norm(s->nx, s->x_dot);
    assert_close(left, right, 50 * KS_EPSILON * scale);
}

#ifndef KS_SINGLE
static const double STEP = 1e-5;

static void move(struct subject *s, double h)
{
    for (size_t i = 0; i < s->nx; i++)
        s->x[i] += h * s->x_dot[i];
    for (size_t i = 0; i < s->nw; i++)
        s->w[i] += h * s->w_dot[i];
    for (size_t i = 0; i < s->ny; i++)
        s->y_bar[i] += h * s->y_bar_dot[i];
}

/* found[i] against (plus[i] - minus[i]) / 2h */
static void compare(size_t n, const real *found, const real *plus, const real *minus)
{
    for (size_t i = 0; i < n; i++)
        assert_close(found[i], (plus[i] - minus[i]) / (2 * STEP), 1e-8 * (1 + norm(n, found)));
}

/* Tangents against central differences of forward and backward. */
static void check_differences(struct subject *s)
{
    real *copy[2][3];

    for (int side = 0; side < 2; side++) {
        move(s, side == 0 ? STEP : -2 * STEP);
        first_order(s);
        copy[side][0] = random_array(s->ny), memcpy(copy[side][0], s->y, s->ny * sizeof(real));
        copy[side][1] = random_array(s->nx), memcpy(copy[side][1], s->x_bar, s->nx * sizeof(real));
        copy[side][2] = random_array(s->nw), memcpy(copy[side][2], s->w_bar, s->nw * sizeof(real));
    }
    move(s, STEP);
    second_order(s);
    compare(s->ny, s->y_dot, copy[0][0], copy[1][0]);
    compare(s->nx, s->x_bar_dot, copy[0][1], copy[1][1]);
    compare(s->nw, s->w_bar_dot, copy[0][2], copy[1][2]);
    for (int i = 0; i < 6; i++)
        free(copy[i / 3][i % 3]);
}
#endif

/* With y_bar held, the second derivative of <y_bar, y> is symmetric: <a, H b> = <b, H a>. */
static void check_symmetry(struct subject *s)
{
    real *xb = random_array(s->nx), *wb = random_array(s->nw), *xa = s->x_dot, *wa = s->w_dot;
    double bha, ahb, scale;

    clear(s->y_bar_dot, s->ny);
    second_order(s);
    bha = dot(s->nx, xb, s->x_bar_dot) + dot(s->nw, wb, s->w_bar_dot);
    scale = norm(s->nx, xb) * norm(s->nx, s->x_bar_dot) +
            norm(s->nw, wb) * norm(s->nw, s->w_bar_dot);
    s->x_dot = xb, s->w_dot = wb;
    second_order(s);
    ahb = dot(s->nx, xa, s->x_bar_dot) + dot(s->nw, wa, s->w_bar_dot);
    scale += norm(s->nx, xa) * norm(s->nx, s->x_bar_dot);
    assert_close(bha, ahb, 200 * KS_EPSILON * scale);
    free(xa), free(wa);
}

/* A copy of `a`, to be compared later. */
static real *keep(size_t n, const real *a)
{
    real *copy = random_array(n);

    memcpy(copy, a, n * sizeof *a);
    return copy;
}

static void check_same(size_t n, const real *a, real *kept)
{
    assert_memory_equal(a, kept, n * sizeof *a);
    free(kept);
}

/* Inputs stay as they are, a second call gives the same bits, what may be NULL may be NULL. */
static void check_manners(struct subject *s)
{
    real *x = keep(s->nx, s->x), *w = keep(s->nw, s->w), *y_bar = keep(s->ny, s->y_bar);
    real *x_dot = keep(s->nx, s->x_dot), *w_dot = keep(s->nw, s->w_dot);
    real *y_bar_dot = keep(s->ny, s->y_bar_dot), *x_bar_dot, *w_bar_dot, *w_bar;
    struct ks_pass p = pass(s);

    second_order(s);
    x_bar_dot = keep(s->nx, s->x_bar_dot), w_bar_dot = keep(s->nw, s->w_bar_dot);
    w_bar = keep(s->nw, s->w_bar);
    second_order(s);
    check_same(s->nx, s->x_bar_dot, keep(s->nx, x_bar_dot));
    check_same(s->nw, s->w_bar_dot, keep(s->nw, w_bar_dot));
    check_same(s->nx, s->x, x), check_same(s->nw, s->w, w), check_same(s->ny, s->y_bar, y_bar);
    check_same(s->nx, s->x_dot, x_dot), check_same(s->nw, s->w_dot, w_dot);
    check_same(s->ny, s->y_bar_dot, y_bar_dot);
    s->layer.kind->backward(&s->layer, &p); /* w_bar is added to */
    s->layer.kind->tangent_backward(&s->layer, &p);
    for (size_t i = 0; i < s->nw; i++) {
        assert_close(s->w_bar[i], 2 * w_bar[i], 20 * KS_EPSILON * (1 + norm(s->nw, w_bar)));
        assert_close(s->w_bar_dot[i], 2 * w_bar_dot[i],
                     20 * KS_EPSILON * (1 + norm(s->nw, w_bar_dot)));
    }
    p.x_bar = p.w_bar = p.x_bar_dot = p.w_bar_dot = NULL;
    s->layer.kind->backward(&s->layer, &p);
    s->layer.kind->tangent_backward(&s->layer, &p);
    free(x_bar_dot), free(w_bar_dot), free(w_bar);
}

/* x_dot = NULL is x_dot = 0. */
static void check_constant_input(struct subject *s)
{
    struct ks_pass p = pass(s);
    real *y_dot, *w_bar_dot;

    clear(s->x_dot, s->nx);
    second_order(s);
    y_dot = keep(s->ny, s->y_dot), w_bar_dot = keep(s->nw, s->w_bar_dot);
    p.x_dot = NULL;
    clear(s->w_bar_dot, s->nw);
    s->layer.kind->tangent_forward(&s->layer, &p);
    s->layer.kind->tangent_backward(&s->layer, &p);
    for (size_t i = 0; i < s->ny; i++)
        assert_close(s->y_dot[i], y_dot[i], 10 * KS_EPSILON * (1 + norm(s->ny, y_dot)));
    for (size_t i = 0; i < s->nw; i++)
        assert_close(s->w_bar_dot[i], w_bar_dot[i], 10 * KS_EPSILON * (1 + norm(s->nw, w_bar_dot)));
    free(y_dot), free(w_bar_dot);
}

struct example {
    const struct ks_layer_kind *kind;
    const char *line;
    bool evaluation;
};

static void test_example(void **state)
{
    static void (*const checks[])(struct subject *) = {check_adjoint,
#ifndef KS_SINGLE
                                                       check_differences,
#endif
                                                       check_symmetry, check_manners,
                                                       check_constant_input};
    const struct example *e = *state;

    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        struct subject s;

        setup(&s, e->kind, e->line, e->evaluation);
        checks[i](&s);
        teardown(&s);
    }
}

/* The running statistics after one batch: momentum * old + (1 - momentum) * batch's. */
static void test_running_statistics(void **state)
{
    struct subject s;
    struct ks_pass p;
    double mean = 0, var = 0;

    (void)state;
    setup(&s, &KS(batchnorm), "batchnorm momentum=0.9", false);
    for (size_t i = 0; i < ROWS; i++)
        mean += (double)s.x[i * WIDTH] / ROWS;
    for (size_t i = 0; i < ROWS; i++)
        var += pow((double)s.x[i * WIDTH] - mean, 2) / ROWS;
    s.state[0] = 2, s.state[WIDTH] = 3;
    p = pass(&s);
    p.state = s.state;
    s.layer.kind->forward(&s.layer, &p);
    assert_close(s.state[0], 0.9 * 2 + 0.1 * mean, 10 * KS_EPSILON);
    assert_close(s.state[WIDTH], 0.9 * 3 + 0.1 * var, 10 * KS_EPSILON);
    teardown(&s);
}

int main(void)
{
    static struct example examples[MAX_EXAMPLES];
    static char names[MAX_EXAMPLES][96];
    struct CMUnitTest tests[MAX_EXAMPLES + 1] = {cmocka_unit_test(test_running_statistics)};
    size_t n = 1;

    for (size_t k = 0; KS(layer_kinds)[k]; k++)
        for (size_t i = 0; KS(layer_kinds)[k]->examples[i]; i++)
            for (int evaluation = 0; evaluation < 2 && n < MAX_EXAMPLES; evaluation++) {
                const char *line = KS(layer_kinds)[k]->examples[i];

                examples[n] = (struct example){KS(layer_kinds)[k], line, evaluation};
                snprintf(names[n], sizeof names[n], "%s%s", line,
                         evaluation ? " (evaluation)" : "");
                tests[n] = (struct CMUnitTest){names[n], test_example, NULL, NULL, &examples[n]};
                n++;
            }
    return _cmocka_run_group_tests("layers " KS_PRECISION, tests, n, NULL, NULL);
}
