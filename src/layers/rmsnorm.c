/* rmsnorm (Zhang & Sennrich, NeurIPS 2019, arXiv 1910.07467): per row over the features,
 *
 *   z = x r,   r = (<x^2> + eps)^(-1/2),   y = g z
 *
 * <u> is the mean of u over the features of the row.
 *
 *   backward, u = g y_bar:
 *     g_bar += sum_rows y_bar z
 *     x_bar = r (u - z <u z>)
 *   tangent forward, s = <z x_dot>:
 *     z_dot = r (x_dot - z s)                                 (r_dot = -r^2 s)
 *     y_dot = g_dot z + g z_dot
 *   tangent backward, u_dot = g y_bar_dot + g_dot y_bar:
 *     g_bar_dot += sum_rows y_bar_dot z + y_bar z_dot
 *     x_bar_dot = -r s x_bar + r (u_dot - z_dot <u z> - z <u_dot z + u z_dot>)
 *
 * Cache, per row: r. Tangent cache, per row: s.
 */
#include <math.h>

#include "layers/layer.h"

struct settings {
    real eps;
};

static ks_status configure(struct KS(layer) *l, struct ks_line *line)
{
    double eps = 1e-6;
    struct settings *s = l->settings;

    KS_TRY(ks_line_option_number(line, "eps", 1e-12, 1, &eps));
    s->eps = (real)eps;
    l->out = l->in;
    l->param[l->n_params++] = (struct ks_array){.name = "scale", .columns = l->in, .start = 1};
    l->cache_row = 1;
    l->uses = KS_USES_X | KS_USES_Y_BAR;
    return KS_OK;
}

static void forward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    const struct settings *s = l->settings;
    size_t d = l->in;

    for (size_t i = 0; i < p->rows; i++) {
        const real *restrict x = p->x + i * d;
        real *restrict y = p->y + i * d;
        real squares = 0, r;

#pragma omp simd reduction(+ : squares)
        for (size_t j = 0; j < d; j++)
            squares += x[j] * x[j];
        r = 1 / (real)sqrt((double)(squares / (real)d + s->eps));
        for (size_t j = 0; j < d; j++)
            y[j] = p->w[j] * (x[j] * r);
        p->cache[i] = r;
    }
}

static void backward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    size_t d = l->in;
    const real *restrict g = p->w;

    for (size_t i = 0; i < p->rows; i++) {
        const real *restrict x = p->x + i * d, *restrict y_bar = p->y_bar + i * d;
        real r = p->cache[i], mean_uz = 0;

        for (size_t j = 0; j < d && p->w_bar; j++)
            p->w_bar[j] += y_bar[j] * (x[j] * r);
#pragma omp simd reduction(+ : mean_uz)
        for (size_t j = 0; j < d; j++)
            mean_uz += g[j] * y_bar[j] * (x[j] * r);
        mean_uz /= (real)d;
        for (size_t j = 0; j < d && p->x_bar; j++)
            p->x_bar[i * d + j] = r * (g[j] * y_bar[j] - x[j] * r * mean_uz);
    }
}

static void tangent_forward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    size_t d = l->in;
    const real *restrict g = p->w, *restrict g_dot = p->w_dot;

    for (size_t i = 0; i < p->rows; i++) {
        const real *restrict x = p->x + i * d;
        const real *restrict x_dot = p->x_dot ? p->x_dot + i * d : NULL;
        real *restrict y_dot = p->y_dot + i * d;
        real r = p->cache[i], s = 0;

        if (x_dot) {
#pragma omp simd reduction(+ : s)
            for (size_t j = 0; j < d; j++)
                s += x[j] * r * x_dot[j];
        }
        s /= (real)d;
        for (size_t j = 0; j < d; j++) {
            real z = x[j] * r, z_dot = x_dot ? r * (x_dot[j] - z * s) : 0;

            y_dot[j] = g_dot[j] * z + g[j] * z_dot;
        }
        p->cache_dot[i] = s;
    }
}

static void tangent_backward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    size_t d = l->in;
    const real *restrict g = p->w, *restrict g_dot = p->w_dot;

    for (size_t i = 0; i < p->rows; i++) {
        const real *restrict x = p->x + i * d;
        const real *restrict x_dot = p->x_dot ? p->x_dot + i * d : NULL;
        const real *restrict y_bar = p->y_bar + i * d, *restrict y_bar_dot = p->y_bar_dot + i * d;
        real r = p->cache[i], s = p->cache_dot[i], mean_uz = 0, mean_uz_dot = 0;

#pragma omp simd reduction(+ : mean_uz, mean_uz_dot)
        for (size_t j = 0; j < d; j++) {
            real z = x[j] * r, z_dot = x_dot ? r * (x_dot[j] - z * s) : 0;
            real u = g[j] * y_bar[j], u_dot = g[j] * y_bar_dot[j] + g_dot[j] * y_bar[j];

            mean_uz += u * z;
            mean_uz_dot += u_dot * z + u * z_dot;
        }
        mean_uz /= (real)d, mean_uz_dot /= (real)d;
        for (size_t j = 0; j < d && p->w_bar_dot; j++) {
            real z = x[j] * r, z_dot = x_dot ? r * (x_dot[j] - z * s) : 0;

            p->w_bar_dot[j] += y_bar_dot[j] * z + y_bar[j] * z_dot;
        }
        for (size_t j = 0; j < d && p->x_bar_dot; j++) {
            real z = x[j] * r, z_dot = x_dot ? r * (x_dot[j] - z * s) : 0;
            real u = g[j] * y_bar[j], u_dot = g[j] * y_bar_dot[j] + g_dot[j] * y_bar[j];
            real c = u - z * mean_uz; /* x_bar = r c */
            real c_dot = u_dot - z_dot * mean_uz - z * mean_uz_dot;

            p->x_bar_dot[i * d + j] = r * (c_dot - r * s * c);
        }
    }
}

const struct KS(layer_kind) KS(rmsnorm) = {
    .name = "rmsnorm",
    .settings = sizeof(struct settings),
    .examples = (const char *const[]){"rmsnorm", "rmsnorm eps=1e-1", NULL},
    .affine = true,
    .scale_free = true,
    KS_LAYER_FUNCTIONS,
};
