/* lerp (Lee et al., "Hyperspherical normalization for scalable deep reinforcement learning", ICML
 * 2025, arXiv 2502.15280): a container. Interpolates per feature between the body's input k (the
 * skip) and its output x, then normalizes each row to the unit sphere:
 *
 *   u = k + a (x - k),   a = c alpha,   c = init / scale,   y = r u,   r = 1 / max(|u|, eps)
 *
 * With h = 1 if |u| > eps, else 0, and <p q> the sum of p q over the features of the row:
 *
 *   backward, t = <y_bar y>:
 *     u_bar = r (y_bar - h y t)
 *     alpha_bar += sum_rows c u_bar (x - k)     x_bar = a u_bar     k_bar = (1 - a) u_bar
 *   tangent forward, s = <y u_dot>:
 *     u_dot = k_dot + a (x_dot - k_dot) + c alpha_dot (x - k)
 *     y_dot = r (u_dot - h y s)                               (r_dot = -h r^2 s)
 *   tangent backward, t_dot = <y_bar_dot y + y_bar y_dot>:
 *     u_bar_dot = -h r s u_bar + r (y_bar_dot - h (y_dot t + y t_dot))
 *     alpha_bar_dot += sum_rows c (u_bar_dot (x - k) + u_bar (x_dot - k_dot))
 *     x_bar_dot = a u_bar_dot + c alpha_dot u_bar
 *     k_bar_dot = (1 - a) u_bar_dot - c alpha_dot u_bar
 *
 * Cache, per row: r, h. Tangent cache, per row: s.
 */
#include <assert.h>
#include <math.h>

#include "layers/layer.h"

static const real EPS = (real)1e-8;

struct settings {
    real c;
};

static ks_status configure(struct KS(layer) *l, struct ks_line *line)
{
    double init = 1, scale = 1;
    struct settings *s = l->settings;

    KS_TRY(ks_line_option_number(line, "init", -1e12, 1e12, &init));
    KS_TRY(ks_line_option_number(line, "scale", 1e-12, 1e12, &scale));
    s->c = (real)(init / scale);
    l->out = l->in;
    l->param[l->n_params++] = (struct ks_array){.name = "alpha", .columns = l->in, .start = scale};
    l->cache_row = 2;
    l->uses = KS_USES_X | KS_USES_Y | KS_USES_Y_BAR | KS_USES_SKIP;
    return KS_OK;
}

/* One row of every array that a call reads; NULL if the pass has NULL. */
struct row {
    real c, r, h;
    const real *alpha, *alpha_dot;
    const real *x, *k, *y, *x_dot, *k_dot, *y_bar, *y_bar_dot;
};

static const real *at(const real *a, size_t first)
{
    return a ? a + first : NULL;
}

static struct row row(const struct KS(layer) *l, const struct KS(pass) *p, size_t i)
{
    size_t first = i * l->in;

    return (struct row){.c = ((const struct settings *)l->settings)->c,
                        .r = p->cache[2 * i],
                        .h = p->cache[2 * i + 1],
                        .alpha = p->w,
                        .alpha_dot = p->w_dot,
                        .x = p->x + first,
                        .k = p->skip + first,
                        .y = p->y + first,
                        .x_dot = at(p->x_dot, first),
                        .k_dot = at(p->skip_dot, first),
                        .y_bar = at(p->y_bar, first),
                        .y_bar_dot = at(p->y_bar_dot, first)};
}

/* x_dot - k_dot at feature j */
static inline real difference_dot(const struct row *q, size_t j)
{
    return (q->x_dot ? q->x_dot[j] : 0) - (q->k_dot ? q->k_dot[j] : 0);
}

static inline real u_dot(const struct row *q, size_t j)
{
    return (q->k_dot ? q->k_dot[j] : 0) + q->c * q->alpha[j] * difference_dot(q, j) +
           q->c * q->alpha_dot[j] * (q->x[j] - q->k[j]);
}

static void forward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    real c = ((const struct settings *)l->settings)->c;
    size_t d = l->in;

    for (size_t i = 0; i < p->rows; i++) {
        const real *restrict x = p->x + i * d, *restrict k = p->skip + i * d;
        real *restrict y = p->y + i * d;
        real squares = 0, norm, r;

#pragma omp simd reduction(+ : squares)
        for (size_t j = 0; j < d; j++) {
            y[j] = k[j] + c * p->w[j] * (x[j] - k[j]); /* u */
            squares += y[j] * y[j];
        }
        norm = (real)sqrt((double)squares);
        r = 1 / (norm > EPS ? norm : EPS);
        for (size_t j = 0; j < d; j++)
            y[j] *= r;
        p->cache[2 * i] = r;
        p->cache[2 * i + 1] = norm > EPS;
    }
}

static void backward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    size_t d = l->in;

    assert(p->y_bar);
    for (size_t i = 0; i < p->rows; i++) {
        struct row q = row(l, p, i);
        real t = 0;

#pragma omp simd reduction(+ : t)
        for (size_t j = 0; j < d; j++)
            t += q.y_bar[j] * q.y[j];
        for (size_t j = 0; j < d; j++) {
            real a = q.c * q.alpha[j], u_bar = q.r * (q.y_bar[j] - q.h * q.y[j] * t);

            if (p->w_bar)
                p->w_bar[j] += q.c * u_bar * (q.x[j] - q.k[j]);
            if (p->x_bar)
                p->x_bar[i * d + j] = a * u_bar;
            if (p->skip_bar)
                p->skip_bar[i * d + j] = (1 - a) * u_bar;
        }
    }
}

static void tangent_forward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    size_t d = l->in;

    for (size_t i = 0; i < p->rows; i++) {
        struct row q = row(l, p, i);
        real *restrict y_dot = p->y_dot + i * d;
        real s = 0;

#pragma omp simd reduction(+ : s)
        for (size_t j = 0; j < d; j++) {
            y_dot[j] = u_dot(&q, j);
            s += q.y[j] * y_dot[j];
        }
        for (size_t j = 0; j < d; j++)
            y_dot[j] = q.r * (y_dot[j] - q.h * q.y[j] * s);
        p->cache_dot[2 * i] = s;
    }
}

static void tangent_backward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    size_t d = l->in;

    assert(p->y_bar && p->y_bar_dot);
    for (size_t i = 0; i < p->rows; i++) {
        struct row q = row(l, p, i);
        real s = p->cache_dot[2 * i], t = 0, t_dot = 0;

#pragma omp simd reduction(+ : t, t_dot)
        for (size_t j = 0; j < d; j++) {
            real y_dot = q.r * (u_dot(&q, j) - q.h * q.y[j] * s);

            t += q.y_bar[j] * q.y[j];
            t_dot += q.y_bar_dot[j] * q.y[j] + q.y_bar[j] * y_dot;
        }
        for (size_t j = 0; j < d; j++) {
            real a = q.c * q.alpha[j], a_dot = q.c * q.alpha_dot[j];
            real y_dot = q.r * (u_dot(&q, j) - q.h * q.y[j] * s);
            real b = q.y_bar[j] - q.h * q.y[j] * t; /* u_bar = r b */
            real b_dot = q.y_bar_dot[j] - q.h * (y_dot * t + q.y[j] * t_dot);
            real u_bar = q.r * b, u_bar_dot = q.r * (b_dot - q.h * q.r * s * b);

            if (p->w_bar_dot)
                p->w_bar_dot[j] += q.c *
                                   (u_bar_dot * (q.x[j] - q.k[j]) + u_bar * difference_dot(&q, j));
            if (p->x_bar_dot)
                p->x_bar_dot[i * d + j] = a * u_bar_dot + a_dot * u_bar;
            if (p->skip_bar_dot)
                p->skip_bar_dot[i * d + j] = (1 - a) * u_bar_dot - a_dot * u_bar;
        }
    }
}

const struct KS(layer_kind) KS(lerp) = {
    .name = "lerp",
    .settings = sizeof(struct settings),
    .examples = (const char *const[]){"lerp {", "lerp init=0.5 scale=0.7 {", NULL},
    .container = true,
    KS_LAYER_FUNCTIONS,
};
