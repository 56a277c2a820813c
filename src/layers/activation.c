/* Elementwise activations, y = f(x):
 *
 *   backward            x_bar     = f' y_bar
 *   tangent forward     y_dot     = f' x_dot
 *   tangent backward    x_bar_dot = f' y_bar_dot + f'' x_dot y_bar
 *
 *   tanh        tanh x
 *   sigmoid     p(x)
 *   silu        x p(x)                         Elfwing, Uchibe & Doya, arXiv 1702.03118
 *   gelu        x p(2 u(x)), u = sqrt(2/pi) (x + 0.044715 x^3), that is x (1 + tanh u) / 2;
 *               with approximate=none x (1 + erf(x / sqrt 2)) / 2
 *                                              Hendrycks & Gimpel, arXiv 1606.08415
 *   elu         x where x > 0, else e^x - 1    Clevert, Unterthiner & Hochreiter, ICLR 2016
 *   mish        x tanh(log(1 + e^x))           Misra, BMVC 2020
 *   softplus    log(1 + e^x)                   Dugas et al., NIPS 2000
 *   leaky_relu  x where x > 0, else a x, a = negative_slope; derivative a at 0
 *                                              Maas, Hannun & Ng, ICML 2013
 *   relu6       min(max(x, 0), 6); derivative 0 at 0 and at 6
 *                                              Krizhevsky, CIFAR-10 technical report, 2010
 *
 * p(x) = 1 / (1 + e^-x). Everything is written in terms of e^-|x|, so that nothing overflows and
 * the tails keep their relative accuracy (test_tails). The exponentials are computed once, in
 * forward, in double. Cache: f' of all elements, then f'' of all elements.
 *
 * To add an activation NAME: a function and a row in `curves`, a line ACTIVATION(NAME, examples) at
 * the end of this file, and a row in KS_LAYER_KINDS (layer.h). */
#include <math.h>
#include <string.h>

#include "layers/layer.h"

struct curve {
    double f, f1, f2; /* f, f', f'' */
};

/* p(x) and q = 1 - p(x) */
static void logistic(double x, double *p, double *q)
{
    double e = exp(-fabs(x)), large = 1 / (1 + e), small = e / (1 + e);

    *p = x > 0 ? large : small;
    *q = x > 0 ? small : large;
}

/* f' = 1 - f^2 = 4 p q at 2 x */
static struct curve curve_tanh(double x)
{
    double f = tanh(x), p, q;

    logistic(2 * x, &p, &q);
    return (struct curve){f, 4 * p * q, -8 * f * p * q};
}

/* p' = p q, q' = -p q */
static struct curve curve_silu(double x)
{
    double p, q;

    logistic(x, &p, &q);
    return (struct curve){x * p, p * (1 + x * q), p * q * (2 + x * (q - p))};
}

/* With v = 2 u: f' = p + x p q v', f'' = p q (2 v' + x (v'' + (q - p) v'^2)). */
static struct curve curve_gelu(double x)
{
    static const double C = 0.79788456080286535588, CUBIC = 0.044715; /* sqrt(2/pi) */
    double v = 2 * C * (x + CUBIC * x * x * x);
    double v1 = 2 * C * (1 + 3 * CUBIC * x * x), v2 = 12 * C * CUBIC * x, p, q;

    logistic(v, &p, &q);
    if (p * q == 0) /* v'^2 may be infinite, and 0 times it NaN */
        return (struct curve){x * p, p, 0};
    return (struct curve){x * p, p + x * p * q * v1,
                          p * q * (2 * v1 + x * (v2 + (q - p) * v1 * v1))};
}

static struct curve curve_elu(double x)
{
    double e;

    if (x > 0)
        return (struct curve){x, 1, 0};
    e = exp(x);
    return (struct curve){expm1(x), e, e};
}

/* With t = tanh(log(1 + e^x)) = n / (n + 2), n = e^x (e^x + 2), and o = 1 - t = 2 / (n + 2):
 * t' = o (1 + t) p, t'' = t' (q - 2 t p). */
static struct curve curve_mish(double x)
{
    double e = exp(-fabs(x)), p, q, t, o, t1;

    if (x > 0) { /* numerator and denominator multiplied by e^-2x */
        t = (1 + 2 * e) / (1 + 2 * e + 2 * e * e);
        o = 2 * e * e / (1 + 2 * e + 2 * e * e);
    } else {
        t = e * (e + 2) / (e * (e + 2) + 2);
        o = 2 / (e * (e + 2) + 2);
    }
    logistic(x, &p, &q);
    t1 = o * (1 + t) * p;
    return (struct curve){x * t, t + x * t1, t1 * (2 + x * (q - 2 * t * p))};
}

/* f' = p q, f'' = p q (q - p) */
static struct curve curve_sigmoid(double x)
{
    double p, q;

    logistic(x, &p, &q);
    return (struct curve){p, p * q, p * q * (q - p)};
}

/* f' = p, f'' = p q */
static struct curve curve_softplus(double x)
{
    double p, q;

    logistic(x, &p, &q);
    return (struct curve){(x > 0 ? x : 0) + log1p(exp(-fabs(x))), p, p * q};
}

/* With P(x) = erfc(-x / sqrt 2) / 2 and D = P' = e^(-x^2/2) / sqrt(2 pi): f' = P + x D,
 * f'' = D (2 - x^2). */
static struct curve curve_gelu_erf(double x)
{
    static const double ROOT_HALF = 0.70710678118654752440, C = 0.39894228040143267794;
    double p = erfc(-x * ROOT_HALF) / 2, d = C * exp(-x * x / 2);

    if (d == 0) /* x^2 may be infinite, and 0 times it NaN */
        return (struct curve){x * p, p, 0};
    return (struct curve){x * p, p + x * d, d * (2 - x * x)};
}

static struct curve curve_relu6(double x)
{
    return (struct curve){x < 0 ? 0 : x > 6 ? 6 : x, x > 0 && x < 6, 0};
}

/* leaky_relu, which has an option, is in `forward`. Where two rows have the same name,
 * approximate=tanh, the default, chooses the first and approximate=none the second. */
static const struct {
    const char *name;
    struct curve (*at)(double x);
} curves[] = {
    {"tanh", curve_tanh}, {"sigmoid", curve_sigmoid},   {"silu", curve_silu},
    {"gelu", curve_gelu}, {"gelu", curve_gelu_erf},     {"elu", curve_elu},
    {"mish", curve_mish}, {"softplus", curve_softplus}, {"relu6", curve_relu6},
    {"leaky_relu", NULL},
};
static const char *const approximations[] = {"tanh", "none", NULL};

struct settings {
    struct curve (*at)(double x); /* NULL: leaky_relu */
    double negative_slope;
};

static ks_status configure(struct KS(layer) *l, struct ks_line *line)
{
    const size_t n = sizeof curves / sizeof *curves;
    size_t k = 0, variant = 0;
    struct settings *s = l->settings;

    while (strcmp(l->kind->name, curves[k].name) != 0)
        k++;
    if (k + 1 < n && strcmp(curves[k + 1].name, curves[k].name) == 0)
        KS_TRY(ks_line_option_choice(line, "approximate", approximations, &variant));
    s->at = curves[k + variant].at;
    s->negative_slope = 0.01;
    if (!s->at)
        KS_TRY(ks_line_option_number(line, "negative_slope", -1e6, 1e6, &s->negative_slope));
    l->out = l->in;
    l->cache_row = 2 * l->in;
    l->uses = KS_USES_Y_BAR;
    return KS_OK;
}

static void forward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    const struct settings *s = l->settings;
    const double a = s->negative_slope;
    size_t n = p->rows * l->in;

    for (size_t i = 0; i < n; i++) {
        double x = (double)p->x[i];
        struct curve c = s->at   ? s->at(x)
                         : x > 0 ? (struct curve){x, 1, 0}
                                 : (struct curve){a * x, a, 0};

        p->y[i] = (real)c.f;
        p->cache[i] = (real)c.f1;
        p->cache[n + i] = (real)c.f2;
    }
}

/* out = f' in; in NULL counts as zero, out NULL: not computed */
static void scale(const struct KS(layer) *l, const struct KS(pass) *p, const real *in, real *out)
{
    for (size_t i = 0; i < p->rows * l->in && out; i++)
        out[i] = in ? p->cache[i] * in[i] : 0;
}

static void tangent_backward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    size_t n = p->rows * l->in;
    const real *f1 = p->cache, *f2 = p->cache + n;

    for (size_t i = 0; i < n && p->x_bar_dot; i++) {
        real x_dot = p->x_dot ? p->x_dot[i] : 0;

        p->x_bar_dot[i] = f1[i] * p->y_bar_dot[i] + f2[i] * x_dot * p->y_bar[i];
    }
}

#define ACTIVATION(word, ...)                                                                      \
    const struct KS(layer_kind) KS(word) = {                                                       \
        .name = #word,                                                                             \
        .settings = sizeof(struct settings),                                                       \
        .examples = (const char *const[]){__VA_ARGS__, NULL},                                      \
        .role = KS_ACTIVATION,                                                                     \
        .map = scale,                                                                              \
        .adjoint = scale,                                                                          \
        .configure = configure,                                                                    \
        .forward = forward,                                                                        \
        .backward = KS(linear_backward),                                                           \
        .tangent_forward = KS(linear_tangent_forward),                                             \
        .tangent_backward = tangent_backward,                                                      \
    }

ACTIVATION(tanh, "tanh");
ACTIVATION(sigmoid, "sigmoid");
ACTIVATION(silu, "silu");
ACTIVATION(gelu, "gelu", "gelu approximate=none");
ACTIVATION(elu, "elu");
ACTIVATION(mish, "mish");
ACTIVATION(softplus, "softplus");
ACTIVATION(leaky_relu, "leaky_relu", "leaky_relu negative_slope=0.3");
ACTIVATION(relu6, "relu6");
