/* Values of layers computed by hand, and properties that the generic tests cannot check: running
 * statistics, both sides of a branch. Compiled in both precisions. */
#include "layer.h"

/* One row of two features; all parameters are 1/2; a container's skip is (6, 0). */
TEST(test_values)
{
    static const struct {
        const char *line;
        double x[2], y[4];
    } values[] = {
        {"layernorm eps=0.44 affine=no", {3, 5}, {-1 / 1.2, 1 / 1.2}},
        {"layernorm eps=0.44", {3, 5}, {0.5 - 0.5 / 1.2, 0.5 + 0.5 / 1.2}},
        {"layernorm", {0, 2e-3}, {0.5 - sqrt(0.125), 0.5 + sqrt(0.125)}}, /* variance = eps */
        {"layernorm eps=0.44 bias=no", {3, 5}, {-0.5 / 1.2, 0.5 / 1.2}},
        {"groupnorm groups=1 eps=0.44", {3, 5}, {0.5 - 0.5 / 1.2, 0.5 + 0.5 / 1.2}},
        {"groupnorm groups=2 eps=0.44", {3, 5}, {0.5, 0.5}},
        {"dense 1 norm=weight", {3, 5}, {0.5 + 8 * 0.25 * sqrt(2)}},
        {"dense 2 norm=weight bias=no groups=2", {3, 5}, {1.5, 2.5}},
        {"dense 1 norm=spectral", {3, 5}, {0.5 + 8 * 0.125}},
        {"conv2d 1 channels=1 height=1 width=2 size=1", {3, 5}, {2, 3}},
        {"conv2d 1 channels=2 height=1 width=1 size=1 bias=no", {3, 5}, {4}},
        {"rmsnorm eps=1", {1, 5}, {1 / sqrt(56), 5 / sqrt(56)}},
        {"rmsnorm", {1e-3, -1e-3}, {sqrt(0.125), -sqrt(0.125)}},
        {"l2norm", {3, -4}, {0.6, -0.8}},
        {"l2norm", {3e-9, -4e-9}, {0.3, -0.4}},
        {"l2norm eps=10", {3, -4}, {0.3, -0.4}},
        {"simnorm dim=2", {1000, 1000}, {0.5, 0.5}},
        {"simnorm dim=1", {3, -4}, {1, 1}},
        {"relu shift=-2", {3, -4}, {1, -2}},
        {"scaler init=6 scale=2", {3, -4}, {4.5, -6}},
        {"append -7", {3, -4}, {3, -4, -7}},
        {"concat input[1:3]", {3, -4}, {3, -4, 8, 9}},
        {"concat input[:1]", {3, -4}, {3, -4, 7}},
        {"slice [1:]", {3, -4}, {-4}},
        {"dropout input[1:3] rate=0.5", {3, -4}, {2 * 3 * 8, -2 * 4 * 9}},
        {"dueling", {3, -4}, {3}},
        {"select input[1:3]", {3, -4}, {3 * 8 - 4 * 9}},
        {"residual {", {3, -4}, {9, -4}},
        {"lerp {", {0, 8}, {0.6, 0.8}},
        {"lerp {", {-6, 8e-9}, {0, 0.4}},
        {"lerp init=3 scale=2 {", {2, -4}, {3 / sqrt(18), -3 / sqrt(18)}},
    };

    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        real x[2] = {(real)values[i].x[0], (real)values[i].x[1]}, w[4], y[4], cache[16];
        const real skip[2] = {6, 0}, input[3] = {7, 8, 9};
        real states[] = {2, 1, 3}; /* u, v */
        struct KS(pass) p = {.rows = 1,
                             .input = input,
                             .x = x,
                             .skip = skip,
                             .w = w,
                             .y = y,
                             .cache = cache,
                             .state = states};
        struct KS(layer) l = {.in = 2, .network_in = 3};
        struct ks_line line;

        assert_ok(ks_line_split(&line, "test", 1, values[i].line));
        for (size_t k = 0; KS(layer_kinds)[k]; k++)
            if (strcmp(KS(layer_kinds)[k]->name, line.word[0]) == 0)
                l.kind = KS(layer_kinds)[k];
        assert_ok(KS(layer_configure)(&l, &line));
        for (size_t k = 0; k < 4; k++)
            w[k] = (real)0.5;
        l.kind->forward(&l, &p);
        for (size_t j = 0; j < l.out; j++)
            assert_close(y[j], values[i].y[j], 8 * KS_EPSILON);
        free(l.settings);
    }
}

/* A groupnorm is a layernorm of each group of columns, with its part of the parameters. */
TEST(test_groupnorm)
{
    enum { GROUPS = 2, D = WIDTH / GROUPS };
    struct fixture all, one;

    setup(&all, &KS(groupnorm), "groupnorm groups=2", false);
    second_order(&all);
    for (size_t g = 0; g < GROUPS; g++) {
        struct variable *x = &all.in[X], *w = &all.in[W];

        setup_width(&one, &KS(layernorm), "layernorm", D);
        for (size_t i = 0; i < ROWS * D; i++) {
            size_t at = i / D * WIDTH + g * D + i % D;

            one.in[X].value[i] = x->value[at], one.in[X].dot[i] = x->dot[at];
            one.y.bar[i] = all.y.bar[at], one.y.bar_dot[i] = all.y.bar_dot[at];
        }
        for (size_t i = 0; i < 2 * D; i++) {
            one.in[W].value[i] = w->value[i / D * WIDTH + g * D + i % D];
            one.in[W].dot[i] = w->dot[i / D * WIDTH + g * D + i % D];
        }
        second_order(&one);
        for (size_t i = 0; i < ROWS * D; i++) {
            size_t at = i / D * WIDTH + g * D + i % D;

            assert_close(all.y.value[at], one.y.value[i], 0);
            assert_close(x->bar_dot[at], one.in[X].bar_dot[i], 0);
        }
        for (size_t i = 0; i < 2 * D; i++)
            assert_close(w->bar_dot[i / D * WIDTH + g * D + i % D], one.in[W].bar_dot[i], 0);
    }
}

/* Entry (channel, line, column) of an image [2, 2, 3], 0 outside of it. */
static double pixel(const real *x, size_t channel, long line, long column)
{
    bool inside = line >= 0 && line < 2 && column >= 0 && column < 3;

    return inside ? (double)x[(channel * 2 + (size_t)line) * 3 + (size_t)column] : 0;
}

/* A convolution by its definition, with padding, two channels and two filters, for both strides. */
static void check_conv2d(const char *text, long stride, long lines, long columns)
{
    enum { IN = 12, FILTERS = 2, PATCH = 8 };
    struct fixture s;

    setup_width(&s, &KS(conv2d), text, IN);
    assert_int_equal(s.layer.out, FILTERS * lines * columns);
    first_order(&s);
    for (long at = 0; at < FILTERS * lines * columns; at++) {
        long f = at / (lines * columns), i = at / columns % lines, j = at % columns;
        const real *w = s.in[W].value;
        double sum = (double)w[PATCH * FILTERS + f];

        for (long k = 0; k < PATCH; k++)
            sum += (double)w[k * FILTERS + f] * pixel(s.in[X].value, (size_t)k / 4,
                                                      stride * i + k / 2 % 2 - 1,
                                                      stride * j + k % 2 - 1);
        assert_close(s.y.value[at], sum, 50 * (double)KS_EPSILON);
    }
}

TEST(test_conv2d)
{
    check_conv2d("conv2d 2 size=2 padding=1 channels=2 height=2 width=3", 1, 3, 4);
    check_conv2d("conv2d 2 size=2 padding=1 channels=2 height=2 width=3 stride=2", 2, 2, 2);
}

/* The running statistics after one batch: momentum * old + (1 - momentum) * batch's. */
static void check_running_statistics(const char *line, double divisor)
{
    struct fixture s;
    struct KS(pass) p;
    double mean = 0, var = 0;

    setup(&s, &KS(batchnorm), line, false);
    for (size_t i = 0; i < ROWS; i++)
        mean += (double)s.in[X].value[i * WIDTH] / ROWS;
    for (size_t i = 0; i < ROWS; i++)
        var += pow((double)s.in[X].value[i * WIDTH] - mean, 2) / divisor;
    s.state[0] = 2, s.state[WIDTH] = 3;
    p = pass_of(&s);
    p.state = s.state;
    s.layer.kind->forward(&s.layer, &p);
    assert_close(s.state[0], 0.9 * 2 + 0.1 * mean, 10 * KS_EPSILON);
    assert_close(s.state[WIDTH], 0.9 * 3 + 0.1 * var, 10 * KS_EPSILON);
}

TEST(test_running_statistics)
{
    check_running_statistics("batchnorm momentum=0.9", ROWS);
    check_running_statistics("batchnorm momentum=0.9 unbiased=yes", ROWS - 1);
}

/* With wide bounds a batchrenorm gives what a batchnorm gives with the running statistics; with the
 * bounds 1 and 0 what a batchnorm gives with those of the batch. It updates them as batchnorm does.
 */
TEST(test_batchrenorm)
{
    static const char *const lines[] = {"batchrenorm rmax=1e6 dmax=1e6",
                                        "batchrenorm rmax=1 dmax=0"};

    for (int bounded = 0; bounded < 2; bounded++) {
        struct fixture plain, s;
        struct KS(pass) p, q;

        setup(&plain, &KS(batchnorm), "batchnorm", !bounded);
        setup(&s, &KS(batchrenorm), lines[bounded], false);
        for (size_t i = 0; i < plain.in[X].n; i++)
            s.in[X].value[i] = plain.in[X].value[i];
        for (size_t i = 0; i < 2 * WIDTH; i++) {
            s.in[W].value[i] = plain.in[W].value[i];
            s.state[i] = plain.state[i];
        }
        p = pass_of(&plain), q = pass_of(&s);
        p.state = plain.state;
        plain.layer.kind->forward(&plain.layer, &p);
        s.layer.kind->forward(&s.layer, &q);
        for (size_t i = 0; i < s.y.n; i++)
            assert_close(s.y.value[i], plain.y.value[i], 50 * KS_EPSILON);
        p.evaluation = false;
        if (!bounded)
            plain.layer.kind->forward(&plain.layer, &p);
        for (size_t i = 0; i < 2 * WIDTH; i++)
            assert_close(s.state[i], plain.state[i], 50 * KS_EPSILON);
    }
}

/* 1 - momentum is computed before rounding: from running statistics of 0 follow 0.01 times the
 * batch's, to the last digits. The batch has mean 1 and variance 6. */
TEST(test_rest_of_momentum)
{
    struct fixture s;
    struct KS(pass) p;

    setup(&s, &KS(batchnorm), "batchnorm momentum=0.99", false);
    for (size_t i = 0; i < ROWS; i++)
        s.in[X].value[i * WIDTH] = i == 0 ? 7 : 0;
    s.state[0] = s.state[WIDTH] = 0;
    p = pass_of(&s);
    p.state = s.state;
    s.layer.kind->forward(&s.layer, &p);
    assert_close(s.state[0], (1 - 0.99), 0.01 * 2 * KS_EPSILON);
    assert_close(s.state[WIDTH], (1 - 0.99) * 6, 0.06 * 4 * KS_EPSILON);
}

static double mean_size(size_t n, const real *x)
{
    double sum = 0;

    for (size_t j = 0; j < n; j++)
        sum += fabs((double)x[j]) / (double)n;
    return sum;
}

/* For this eps some rows have a larger norm, and get norm 1; the others do not. */
static void check_both_sides(const struct KS(layer_kind) *kind, const char *line, double eps,
                             double (*size)(size_t n, const real *x))
{
    struct fixture s;
    size_t above = 0, below = 0;

    setup(&s, kind, line, false);
    first_order(&s);
    for (size_t i = 0; i < ROWS; i++) {
        double x = size(WIDTH, s.in[X].value + i * WIDTH), y = size(WIDTH, s.y.value + i * WIDTH);

        assert_close(y, x > eps ? 1 : x / eps, 10 * KS_EPSILON);
        above += x > eps, below += x < eps;
    }
    assert_true(above > 0 && below > 0);
}

TEST(test_both_sides_of_eps)
{
    check_both_sides(&KS(l2norm), "l2norm eps=2.7", 2.7, norm);
    check_both_sides(&KS(avgl1norm), "avgl1norm eps=0.8", 0.8, mean_size);
}
