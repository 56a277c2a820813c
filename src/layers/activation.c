/* Elementwise activations, y = f(x):
 *
 *   backward            x_bar     = f' y_bar
 *   tangent forward     y_dot     = f' x_dot
 *   tangent backward    x_bar_dot = f' y_bar_dot + f'' x_dot y_bar
 *
 *   tanh    tanh x
 *   silu    x p(x)                             Elfwing, Uchibe & Doya, arXiv 1702.03118
 *   gelu    x p(2 u(x)), u = sqrt(2/pi) (x + 0.044715 x^3), that is x (1 + tanh u) / 2
 *                                              Hendrycks & Gimpel, arXiv 1606.08415
 *   elu     x where x > 0, else e^x - 1        Clevert, Unterthiner & Hochreiter, ICLR 2016
 *   mish    x tanh(log(1 + e^x))               Misra, BMVC 2020
 *
 * p(x) = 1 / (1 + e^-x). Everything is written in terms of e^-|x|, so that nothing overflows and
 * the tails keep their relative accuracy (test_tails). The exponentials are computed once, in
 * forward, in double. Cache: f' of all elements, then f'' of all elements.
 *
 * To add an activation NAME: a function and a row in `curves`, a line ACTIVATION(NAME) at the end
 * of this file, and a row in KS_LAYER_KINDS (layer.h). */
#include <math.h>
#include <string.h>

#include "core/memory.h"
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

static const struct {
    const char *name;
    struct curve (*at)(double x);
} curves[] = {
    {"tanh", curve_tanh}, {"silu", curve_silu}, {"gelu", curve_gelu},
    {"elu", curve_elu},   {"mish", curve_mish},
};

struct settings {
    struct curve (*at)(double x);
};

static ks_status configure(struct ks_layer *l, struct ks_line *line)
{
    struct settings *s;

    (void)line;
    KS_TRY(ks_alloc(1, sizeof *s, &l->settings));
    s = l->settings;
    for (size_t k = 0; k < sizeof curves / sizeof *curves; k++)
        if (strcmp(l->kind->name, curves[k].name) == 0)
            s->at = curves[k].at;
    l->out = l->in;
    l->cache_row = 2 * l->in;
    l->uses = KS_USES_Y_BAR;
    return KS_OK;
}

static void forward(const struct ks_layer *l, const struct ks_pass *p)
{
    const struct settings *s = l->settings;
    size_t n = p->rows * l->in;

    for (size_t i = 0; i < n; i++) {
        struct curve c = s->at((double)p->x[i]);

        p->y[i] = (real)c.f;
        p->cache[i] = (real)c.f1;
        p->cache[n + i] = (real)c.f2;
    }
}

static void backward(const struct ks_layer *l, const struct ks_pass *p)
{
    const real *f1 = p->cache;

    for (size_t i = 0; i < p->rows * l->in && p->x_bar; i++)
        p->x_bar[i] = f1[i] * p->y_bar[i];
}

static void tangent_forward(const struct ks_layer *l, const struct ks_pass *p)
{
    const real *f1 = p->cache;

    for (size_t i = 0; i < p->rows * l->in; i++)
        p->y_dot[i] = p->x_dot ? f1[i] * p->x_dot[i] : 0;
}

static void tangent_backward(const struct ks_layer *l, const struct ks_pass *p)
{
    size_t n = p->rows * l->in;
    const real *f1 = p->cache, *f2 = p->cache + n;

    for (size_t i = 0; i < n && p->x_bar_dot; i++) {
        real x_dot = p->x_dot ? p->x_dot[i] : 0;

        p->x_bar_dot[i] = f1[i] * p->y_bar_dot[i] + f2[i] * x_dot * p->y_bar[i];
    }
}

#define ACTIVATION(word)                                                                           \
    static const char *const word##_examples[] = {#word, NULL};                                    \
    const struct ks_layer_kind KS(word) = {                                                        \
        .name = #word,                                                                             \
        .examples = word##_examples,                                                               \
        .role = KS_ACTIVATION,                                                                     \
        .configure = configure,                                                                    \
        .forward = forward,                                                                        \
        .backward = backward,                                                                      \
        .tangent_forward = tangent_forward,                                                        \
        .tangent_backward = tangent_backward,                                                      \
    }

ACTIVATION(tanh);
ACTIVATION(silu);
ACTIVATION(gelu);
ACTIVATION(elu);
ACTIVATION(mish);
