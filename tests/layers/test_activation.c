/* Elementwise activations: values, and tails, where finite differences are all zero. test_layers
 * checks for every layer that f' and f'' are the derivatives of f. */
#include "test.h"

#include "core/memory.h"
#include "layers/layer.h"

struct curve {
    double f, f1, f2; /* f, f', f'' */
};

/* Passes one number forward and back: y_bar = 1 gives f', and its tangent along x_dot = 1 gives
 * f''. */
static struct curve at_line(const struct KS(layer_kind) *kind, const char *text, double x)
{
    struct KS(layer) l = {.kind = kind, .in = 1};
    struct ks_line line;
    struct curve c;
    double one = 1, zero = 0, cache[4] = {0}, cache_dot[4] = {0}, y_dot;
    struct KS(pass) p = {.rows = 1,
                         .x = &x,
                         .y = &c.f,
                         .cache = cache,
                         .y_bar = &one,
                         .x_bar = &c.f1,
                         .x_dot = &one,
                         .y_dot = &y_dot,
                         .cache_dot = cache_dot,
                         .y_bar_dot = &zero,
                         .x_bar_dot = &c.f2};

    assert_ok(ks_line_split(&line, "test", 1, text));
    assert_ok(KS(layer_configure)(&l, &line));
    assert_true(l.cache_row <= sizeof cache / sizeof *cache);
    kind->forward(&l, &p);
    kind->backward(&l, &p);
    kind->tangent_forward(&l, &p);
    kind->tangent_backward(&l, &p);
    assert_close(y_dot, c.f1, 0);
    free(l.settings);
    return c;
}

static struct curve at(const struct KS(layer_kind) *kind, double x)
{
    return at_line(kind, kind->name, x);
}

/* The definitions at 1 and at -2. */
TEST(test_values)
{
    static const struct {
        const struct KS(layer_kind) *kind;
        double one, minus_two;
    } values[] = {
        {&KS(tanh), 0.7615941559557649, -0.9640275800758169},
        {&KS(silu), 0.7310585786300049, -0.2384058440442351},
        {&KS(gelu), 0.8411919906082768, -0.04540230591222498},
        {&KS(elu), 1, -0.8646647167633873},
        {&KS(mish), 0.8650983882673103, -0.25250148269570886},
        {&KS(sigmoid), 0.7310585786300049, 0.11920292202211755},
        {&KS(softplus), 1.3132616875182228, 0.12692801104297252},
        {&KS(leaky_relu), 1, -0.02},
        {&KS(relu6), 1, 0},
    };
    const struct curve gelu = at_line(&KS(gelu), "gelu approximate=none", -2);

    for (size_t k = 0; k < sizeof values / sizeof *values; k++) {
        assert_close(at(values[k].kind, 1).f, values[k].one, 4 * KS_EPSILON);
        assert_close(at(values[k].kind, -2).f, values[k].minus_two, 4 * KS_EPSILON);
    }
    assert_close(gelu.f, -0.04550026389635842, 4 * KS_EPSILON); /* -2 erfc(sqrt 2) / 2 */
    assert_close(at_line(&KS(gelu), "gelu approximate=tanh", -2).f, at(&KS(gelu), -2).f, 0);
    assert_close(at_line(&KS(leaky_relu), "leaky_relu negative_slope=0.25", -2).f, -0.5, 0);
}

/* At 0 a relu has the derivative 0, an elu 1, a leaky_relu its negative slope; a relu6 has 0 at 6
 * too. */
TEST(test_kinks)
{
    assert_close(at(&KS(relu), 0).f1, 0, 0);
    assert_close(at(&KS(elu), 0).f1, 1, 0);
    assert_close(at(&KS(leaky_relu), 0).f1, 0.01, 0);
    assert_close(at(&KS(relu6), 0).f1, 0, 0);
    assert_close(at(&KS(relu6), 5.9).f1, 1, 0);
    assert_close(at(&KS(relu6), 6).f1, 0, 0);
    assert_close(at(&KS(relu6), 7).f, 6, 0);
    assert_close(at(&KS(relu6), 7).f1, 0, 0);
}

static void assert_curve(const struct KS(layer_kind) *kind, double x, double f, double f1,
                         double f2)
{
    struct curve c = at(kind, x);

    assert_close(c.f, f, 1e-13 * fabs(f));
    assert_close(c.f1, f1, 1e-13 * fabs(f1));
    assert_close(c.f2, f2, 1e-13 * fabs(f2));
}

/* At x = +-40, where e^-40 is negligible compared to 1, results have full relative accuracy. */
TEST(test_tails)
{
    const double x = 40, e = exp(-x);

    assert_curve(&KS(tanh), x, 1, 4 * e * e, -8 * e * e);
    assert_curve(&KS(tanh), -x, -1, 4 * e * e, 8 * e * e);
    assert_curve(&KS(silu), x, x, 1, e * (2 - x));
    assert_curve(&KS(silu), -x, -x * e, e * (1 - x), e * (2 - x));
    assert_curve(&KS(elu), x, x, 1, 0);
    assert_curve(&KS(elu), -x, e - 1, e, e);
    assert_curve(&KS(mish), x, x, 1, 8 * e * e * (1 - x));
    assert_curve(&KS(mish), -x, -x * e, e * (1 - x), e * (2 - x));
    assert_curve(&KS(sigmoid), x, 1, e, -e);
    assert_curve(&KS(sigmoid), -x, e, e, e);
    assert_curve(&KS(softplus), x, x, 1, e);
    assert_curve(&KS(softplus), -x, e, e, e);
}

/* gelu at -10 is x e^v, v = sqrt(8/pi) (x + 0.044715 x^3) = -87: f' = e^v (1 + x v') and so on. */
TEST(test_gelu_tail)
{
    const double x = -10, c = sqrt(8 / 3.14159265358979323846);
    const double v = c * (x + 0.044715 * x * x * x), v1 = c * (1 + 3 * 0.044715 * x * x);
    const double v2 = 6 * c * 0.044715 * x, e = exp(v);

    assert_curve(&KS(gelu), x, x * e, e * (1 + x * v1), e * (2 * v1 + x * (v2 + v1 * v1)));
    assert_curve(&KS(gelu), -x, -x, 1, e * (2 * v1 + x * (v2 + v1 * v1)));
}

/* At -10 the exact gelu is -10 erfc(10 / sqrt 2) / 2, with erfc(10 / sqrt 2) = 1.52397...e-23
 * (twice the tail of the normal distribution). */
TEST(test_exact_gelu_tail)
{
    const double tail = 7.6198530241605260e-24, d = exp(-50) / sqrt(2 * 3.14159265358979323846);
    const struct curve c = at_line(&KS(gelu), "gelu approximate=none", -10);

    assert_close(c.f, -10 * tail, 1e-12 * fabs(c.f));
    assert_close(c.f1, tail - 10 * d, 1e-12 * fabs(c.f1));
    assert_close(c.f2, -98 * d, 1e-12 * fabs(c.f2));
    assert_close(at_line(&KS(gelu), "gelu approximate=none", 1e200).f1, 1, 0);
    assert_close(at_line(&KS(gelu), "gelu approximate=none", -1e200).f, 0, 0);
    assert_close(at_line(&KS(gelu), "gelu approximate=none", -1e200).f2, 0, 0);
}

/* For huge |x| every activation is a straight line: nothing overflows. */
TEST(test_far)
{
    static const struct KS(layer_kind) *const kinds[] = {
        &KS(tanh), &KS(silu), &KS(gelu), &KS(elu), &KS(mish), &KS(sigmoid), &KS(softplus)};
    static const double far[] = {1e3, 1e38, 1e200};

    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (size_t i = 0; i < sizeof far / sizeof *far; i++) {
            bool bounded = kinds[k] == &KS(tanh) || kinds[k] == &KS(sigmoid);
            bool odd = kinds[k] == &KS(tanh) || kinds[k] == &KS(elu);

            assert_curve(kinds[k], far[i], bounded ? 1 : far[i], !bounded, 0);
            assert_curve(kinds[k], -far[i], odd ? -1 : 0, 0, 0);
        }
}
