/* y = x / max(|x|, eps) per row: l2norm with the Euclidean norm of the row, avgl1norm with the mean
 * of the absolute values of its d features (Fujimoto et al., TD7, NeurIPS 2023).
 *
 * With r = 1 / max(|x|, eps), h = 1 if |x| > eps, else 0 (r is then constant), u the gradient of
 * |x| (l2norm: y where h = 1; avgl1norm: sign(x) / d, whose derivative is 0), and <a b> the sum of
 * a b over the features of the row:
 *
 *   backward, t = <y_bar y>:
 *     x_bar = r (y_bar - h u t)
 *   tangent forward, s = <u x_dot>:
 *     y_dot = r (x_dot - h y s)                               (r_dot = -h r^2 s)
 *   tangent backward, t_dot = <y_bar_dot y + y_bar y_dot>:
 *     x_bar_dot = -h r s x_bar + r (y_bar_dot - h (u_dot t + u t_dot))
 *
 * Cache, per row: r, h. Tangent cache, per row: s.
 */
#include <math.h>

#include "layers/layer.h"

struct settings {
    real eps;
    real by_d; /* avgl1norm: 1/d; l2norm: 0 */
};

static ks_status configure(struct KS(layer) *l, struct ks_line *line)
{
    double eps = 1e-8;
    struct settings *s = l->settings;

    KS_TRY(ks_line_option_number(line, "eps", 1e-12, 1e6, &eps));
    s->eps = (real)eps;
    s->by_d = l->kind == &KS(avgl1norm) ? 1 / (real)l->in : 0;
    l->out = l->in;
    l->cache_row = 2;
    l->uses = KS_USES_Y | KS_USES_Y_BAR;
    return KS_OK;
}

/* An entry of u. */
static inline real slope(real by_d, real y)
{
    return by_d == 0 ? y : y > 0 ? by_d : y < 0 ? -by_d : 0;
}

static real row_product(size_t d, const real *restrict a, const real *restrict b)
{
    real sum = 0;

#pragma omp simd reduction(+ : sum)
    for (size_t j = 0; j < d; j++)
        sum += a[j] * b[j];
    return sum;
}

static real row_norm(size_t d, real by_d, const real *restrict x)
{
    real sum = 0;

    if (by_d == 0)
        return (real)sqrt((double)row_product(d, x, x));
#pragma omp simd reduction(+ : sum)
    for (size_t j = 0; j < d; j++)
        sum += x[j] > 0 ? x[j] : -x[j];
    return sum * by_d;
}

static void forward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    const struct settings *s = l->settings;
    size_t d = l->in;

    for (size_t i = 0; i < p->rows; i++) {
        const real *restrict x = p->x + i * d;
        real *restrict y = p->y + i * d;
        real norm = row_norm(d, s->by_d, x), h = norm > s->eps;
        real r = 1 / (norm > s->eps ? norm : s->eps);

        for (size_t j = 0; j < d; j++)
            y[j] = x[j] * r;
        p->cache[2 * i] = r;
        p->cache[2 * i + 1] = h;
    }
}

static void backward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    const real by_d = ((const struct settings *)l->settings)->by_d;
    size_t d = l->in;

    for (size_t i = 0; i < p->rows && p->x_bar; i++) {
        const real *restrict y = p->y + i * d, *restrict y_bar = p->y_bar + i * d;
        real r = p->cache[2 * i], h = p->cache[2 * i + 1], t = row_product(d, y_bar, y);

        for (size_t j = 0; j < d; j++)
            p->x_bar[i * d + j] = r * (y_bar[j] - h * slope(by_d, y[j]) * t);
    }
}

static void tangent_forward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    const real by_d = ((const struct settings *)l->settings)->by_d;
    size_t d = l->in;

    for (size_t i = 0; i < p->rows; i++) {
        const real *restrict y = p->y + i * d;
        const real *restrict x_dot = p->x_dot ? p->x_dot + i * d : NULL;
        real *restrict y_dot = p->y_dot + i * d;
        real r = p->cache[2 * i], h = p->cache[2 * i + 1];
        real s = 0;

#pragma omp simd reduction(+ : s)
        for (size_t j = 0; j < (x_dot ? d : 0); j++)
            s += slope(by_d, y[j]) * x_dot[j];

        for (size_t j = 0; j < d; j++)
            y_dot[j] = x_dot ? r * (x_dot[j] - h * y[j] * s) : 0;
        p->cache_dot[2 * i] = s;
    }
}

static void tangent_backward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    const real by_d = ((const struct settings *)l->settings)->by_d;
    size_t d = l->in;

    for (size_t i = 0; i < p->rows && p->x_bar_dot; i++) {
        const real *restrict y = p->y + i * d;
        const real *restrict x_dot = p->x_dot ? p->x_dot + i * d : NULL;
        const real *restrict y_bar = p->y_bar + i * d, *restrict y_bar_dot = p->y_bar_dot + i * d;
        real r = p->cache[2 * i], h = p->cache[2 * i + 1], s = p->cache_dot[2 * i];
        real t = 0, t_dot = 0;

#pragma omp simd reduction(+ : t, t_dot)
        for (size_t j = 0; j < d; j++) {
            real y_dot = x_dot ? r * (x_dot[j] - h * y[j] * s) : 0;

            t += y_bar[j] * y[j];
            t_dot += y_bar_dot[j] * y[j] + y_bar[j] * y_dot;
        }
        for (size_t j = 0; j < d; j++) {
            real y_dot = x_dot ? r * (x_dot[j] - h * y[j] * s) : 0;
            real u = slope(by_d, y[j]), u_dot = by_d == 0 ? y_dot : 0;
            real c = y_bar[j] - h * u * t; /* x_bar = r c */
            real c_dot = y_bar_dot[j] - h * (u_dot * t + u * t_dot);

            p->x_bar_dot[i * d + j] = r * (c_dot - h * r * s * c);
        }
    }
}

/* tests/layers/test_layers.c draws rows whose norms are all above the default eps, all below 100,
 * and on both sides of 2.7. */
const struct KS(layer_kind) KS(l2norm) = {
    .name = "l2norm",
    .settings = sizeof(struct settings),
    .examples = (const char *const[]){"l2norm", "l2norm eps=100", "l2norm eps=2.7", NULL},
    .scale_free = true,
    KS_LAYER_FUNCTIONS,
};

const struct KS(layer_kind) KS(avgl1norm) = {
    .name = "avgl1norm",
    .settings = sizeof(struct settings),
    .examples = (const char *const[]){"avgl1norm", "avgl1norm eps=100", "avgl1norm eps=0.8", NULL},
    .scale_free = true,
    KS_LAYER_FUNCTIONS,
};
