/* layernorm (Ba, Kiros & Hinton, arXiv 1607.06450): per row over the features,
 *
 *   z = (x - m) r,   r = (var + eps)^(-1/2),   y = g z + b        (g = 1, b = 0 with affine=no)
 *
 * m the row's mean, var its biased variance. <u> is the mean of u over the features of the row.
 *
 *   backward, u = g y_bar:
 *     g_bar += sum_rows y_bar z      b_bar += sum_rows y_bar
 *     x_bar = r (u - <u> - z <u z>)
 *   tangent forward, s = <z x_dot>:
 *     z_dot = r (x_dot - <x_dot> - z s)                       (r_dot = -r^2 s)
 *     y_dot = g_dot z + g z_dot + b_dot
 *   tangent backward, u_dot = g y_bar_dot + g_dot y_bar:
 *     g_bar_dot += sum_rows y_bar_dot z + y_bar z_dot     b_bar_dot += sum_rows y_bar_dot
 *     x_bar_dot = -r s x_bar + r (u_dot - <u_dot> - z_dot <u z> - z <u_dot z + u z_dot>)
 *
 * Cache, per row: m, r. Tangent cache, per row: <x_dot>, s.
 */
#include <math.h>

#include "ks/layer.h"
#include "ks/memory.h"

struct settings {
    real eps;
    bool affine;
};

static const char *const no_yes[] = {"no", "yes", NULL};

static ks_status configure(struct ks_layer *l, struct ks_line *line)
{
    double eps = 1e-6;
    size_t affine = true;
    struct settings *s;

    KS_TRY(ks_line_number(line, "eps", 1e-12, 1, &eps));
    KS_TRY(ks_line_choice(line, "affine", no_yes, &affine));
    KS_TRY(ks_alloc(1, sizeof *s, &l->settings));
    s = l->settings;
    s->eps = (real)eps;
    s->affine = affine;
    l->out = l->in;
    if (s->affine) {
        l->param[l->n_params++] = (struct ks_array){.name = "scale", .columns = l->in, .start = 1};
        l->param[l->n_params++] = (struct ks_array){.name = "bias", .columns = l->in};
    }
    l->cache_row = 2;
    return KS_OK;
}

/* g, b and their tangents at feature j: a constant where there are no parameters. */
static real scale(const struct settings *s, const real *w, size_t j)
{
    return s->affine ? w[j] : 1;
}

static real scale_dot(const struct settings *s, const real *w_dot, size_t j)
{
    return s->affine ? w_dot[j] : 0;
}

static real bias(const struct settings *s, const real *w, size_t d, size_t j)
{
    return s->affine ? w[d + j] : 0;
}

static void forward(const struct ks_layer *l, const struct ks_pass *p)
{
    const struct settings *s = l->settings;
    size_t d = l->in;

    for (size_t i = 0; i < p->rows; i++) {
        const real *restrict x = p->x + i * d;
        real *restrict y = p->y + i * d;
        real m = 0, var = 0, r;

#pragma omp simd reduction(+ : m)
        for (size_t j = 0; j < d; j++)
            m += x[j];
        m /= (real)d;
#pragma omp simd reduction(+ : var)
        for (size_t j = 0; j < d; j++)
            var += (x[j] - m) * (x[j] - m);
        r = 1 / (real)sqrt((double)(var / (real)d + s->eps));
        for (size_t j = 0; j < d; j++)
            y[j] = scale(s, p->w, j) * ((x[j] - m) * r) + bias(s, p->w, d, j);
        p->cache[2 * i] = m;
        p->cache[2 * i + 1] = r;
    }
}

static void backward(const struct ks_layer *l, const struct ks_pass *p)
{
    const struct settings *s = l->settings;
    size_t d = l->in;

    for (size_t i = 0; i < p->rows; i++) {
        const real *restrict x = p->x + i * d, *restrict y_bar = p->y_bar + i * d;
        real m = p->cache[2 * i], r = p->cache[2 * i + 1], mean_u = 0, mean_uz = 0;

        if (p->w_bar && s->affine)
            for (size_t j = 0; j < d; j++) {
                p->w_bar[j] += y_bar[j] * ((x[j] - m) * r);
                p->w_bar[d + j] += y_bar[j];
            }
        if (!p->x_bar)
            continue;
#pragma omp simd reduction(+ : mean_u, mean_uz)
        for (size_t j = 0; j < d; j++) {
            real u = scale(s, p->w, j) * y_bar[j];

            mean_u += u;
            mean_uz += u * ((x[j] - m) * r);
        }
        mean_u /= (real)d;
        mean_uz /= (real)d;
        for (size_t j = 0; j < d; j++)
            p->x_bar[i * d + j] = r * (scale(s, p->w, j) * y_bar[j] - mean_u -
                                       (x[j] - m) * r * mean_uz);
    }
}

static void tangent_forward(const struct ks_layer *l, const struct ks_pass *p)
{
    const struct settings *s = l->settings;
    size_t d = l->in;

    for (size_t i = 0; i < p->rows; i++) {
        const real *restrict x = p->x + i * d;
        const real *restrict x_dot = p->x_dot ? p->x_dot + i * d : NULL;
        real *restrict y_dot = p->y_dot + i * d;
        real m = p->cache[2 * i], r = p->cache[2 * i + 1], mean = 0, sum_zx = 0;

        if (x_dot) {
#pragma omp simd reduction(+ : mean, sum_zx)
            for (size_t j = 0; j < d; j++) {
                mean += x_dot[j];
                sum_zx += (x[j] - m) * r * x_dot[j];
            }
        }
        mean /= (real)d;
        sum_zx /= (real)d;
        for (size_t j = 0; j < d; j++) {
            real z = (x[j] - m) * r;
            real z_dot = x_dot ? r * (x_dot[j] - mean - z * sum_zx) : 0;

            y_dot[j] = scale(s, p->w, j) * z_dot + scale_dot(s, p->w_dot, j) * z +
                       bias(s, p->w_dot, d, j);
        }
        p->cache_dot[2 * i] = mean;
        p->cache_dot[2 * i + 1] = sum_zx;
    }
}

static void tangent_backward(const struct ks_layer *l, const struct ks_pass *p)
{
    const struct settings *s = l->settings;
    size_t d = l->in;

    for (size_t i = 0; i < p->rows; i++) {
        const real *restrict x = p->x + i * d;
        const real *restrict x_dot = p->x_dot ? p->x_dot + i * d : NULL;
        const real *restrict y_bar = p->y_bar + i * d, *restrict y_bar_dot = p->y_bar_dot + i * d;
        real m = p->cache[2 * i], r = p->cache[2 * i + 1];
        real mean_x = p->cache_dot[2 * i], zx = p->cache_dot[2 * i + 1];
        real mean_u = 0, mean_uz = 0, mean_u_dot = 0, mean_uz_dot = 0; /* uz_dot: (u z)_dot */

#pragma omp simd reduction(+ : mean_u, mean_uz, mean_u_dot, mean_uz_dot)
        for (size_t j = 0; j < d; j++) {
            real z = (x[j] - m) * r, z_dot = x_dot ? r * (x_dot[j] - mean_x - z * zx) : 0;
            real u = scale(s, p->w, j) * y_bar[j];
            real u_dot = scale(s, p->w, j) * y_bar_dot[j] + scale_dot(s, p->w_dot, j) * y_bar[j];

            mean_u += u;
            mean_uz += u * z;
            mean_u_dot += u_dot;
            mean_uz_dot += u_dot * z + u * z_dot;
        }
        mean_u /= (real)d, mean_uz /= (real)d, mean_u_dot /= (real)d, mean_uz_dot /= (real)d;
        if (p->w_bar_dot && s->affine)
            for (size_t j = 0; j < d; j++) {
                real z = (x[j] - m) * r, z_dot = x_dot ? r * (x_dot[j] - mean_x - z * zx) : 0;

                p->w_bar_dot[j] += y_bar_dot[j] * z + y_bar[j] * z_dot;
                p->w_bar_dot[d + j] += y_bar_dot[j];
            }
        for (size_t j = 0; j < d && p->x_bar_dot; j++) {
            real z = (x[j] - m) * r, z_dot = x_dot ? r * (x_dot[j] - mean_x - z * zx) : 0;
            real u = scale(s, p->w, j) * y_bar[j];
            real u_dot = scale(s, p->w, j) * y_bar_dot[j] + scale_dot(s, p->w_dot, j) * y_bar[j];
            real c = u - mean_u - z * mean_uz; /* x_bar = r c */
            real c_dot = u_dot - mean_u_dot - z_dot * mean_uz - z * mean_uz_dot;

            p->x_bar_dot[i * d + j] = r * (c_dot - r * zx * c);
        }
    }
}

static const char *const examples[] = {"layernorm", "layernorm eps=1e-2", "layernorm affine=no",
                                       NULL};

const struct ks_layer_kind KS(layernorm) = {
    .name = "layernorm",
    .examples = examples,
    .configure = configure,
    .forward = forward,
    .backward = backward,
    .tangent_forward = tangent_forward,
    .tangent_backward = tangent_backward,
};
