/* batchnorm (Ioffe & Szegedy, ICML 2015): per feature over the rows,
 *
 *   z = (x - m) r,   r = (var + eps)^(-1/2),   y = g z + b
 *
 * with the batch's mean and biased variance in training mode, the running ones in evaluation mode.
 * <u> is the mean of u over the rows.
 *
 *   backward, u = g y_bar:
 *     g_bar += sum y_bar z        b_bar += sum y_bar
 *     x_bar = r (u - <u> - z <u z>)
 *   tangent forward, s = <z x_dot>:
 *     z_dot = r (x_dot - <x_dot> - z s)                       (r_dot = -r^2 s)
 *     y_dot = g_dot z + g z_dot + b_dot
 *   tangent backward, u_dot = g y_bar_dot + g_dot y_bar:
 *     g_bar_dot += sum y_bar_dot z + y_bar z_dot     b_bar_dot += sum y_bar_dot
 *     x_bar_dot = -r s x_bar + r (u_dot - <u_dot> - z_dot <u z> - z <u_dot z + u z_dot>)
 *
 * In evaluation mode m and r are constants: every <.> and s above is 0.
 *
 * g is the same for all rows, so <u z> = g <y_bar z>: the sums that the parameters need are those
 * that x needs. z is recomputed from x, which costs one operation and saves an array of the size of
 * x. Cache, per feature: m, r, and from backward sum y_bar, sum y_bar z. Tangent cache: <x_dot>, s,
 * and from tangent_backward the sums of g_bar_dot and b_bar_dot.
 */
#include <math.h>
#include <string.h>

#include "ks/layer.h"
#include "ks/memory.h"

struct settings {
    real eps, momentum;
};

static ks_status configure(struct ks_layer *l, struct ks_line *line)
{
    double eps = 1e-3, momentum = 0.99;
    struct settings *s;

    KS_TRY(ks_line_number(line, "eps", 1e-12, 1, &eps));
    KS_TRY(ks_line_number(line, "momentum", 0, 1, &momentum));
    KS_TRY(ks_alloc(1, sizeof *s, &l->settings));
    s = l->settings;
    s->eps = (real)eps;
    s->momentum = (real)momentum;
    l->out = l->in;
    l->param[l->n_params++] = (struct ks_array){.name = "scale", .columns = l->in, .start = 1};
    l->param[l->n_params++] = (struct ks_array){.name = "bias", .columns = l->in};
    l->state[l->n_states++] = (struct ks_array){.name = "mean", .columns = l->in};
    l->state[l->n_states++] = (struct ks_array){.name = "var", .columns = l->in, .start = 1};
    l->cache_fixed = 4 * l->in;
    return KS_OK;
}

/* sum[j] += sum_i x_ij */
static void add_sums(size_t rows, size_t d, const real *restrict x, real *restrict sum)
{
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < d; j++)
            sum[j] += x[i * d + j];
}

/* m and var of the batch, in two passes: the sum of squares about zero would cancel. */
static void batch_statistics(size_t rows, size_t d, const real *restrict x, real *restrict m,
                             real *restrict var)
{
    memset(m, 0, d * sizeof *m);
    memset(var, 0, d * sizeof *var);
    add_sums(rows, d, x, m);
    for (size_t j = 0; j < d; j++)
        m[j] /= (real)rows;
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < d; j++) {
            real c = x[i * d + j] - m[j];

            var[j] += c * c;
        }
    for (size_t j = 0; j < d; j++)
        var[j] /= (real)rows;
}

static void forward(const struct ks_layer *l, const struct ks_pass *p)
{
    const struct settings *s = l->settings;
    size_t d = l->in;
    const real *restrict g = p->w, *restrict b = p->w + d, *restrict x = p->x;
    real *restrict m = p->cache, *restrict r = p->cache + d, *restrict y = p->y;

    if (p->evaluation) {
        memcpy(m, p->state, 2 * d * sizeof *m); /* mean, var */
    } else {
        batch_statistics(p->rows, d, x, m, r);
        if (p->state)
            for (size_t j = 0; j < 2 * d; j++)
                p->state[j] = s->momentum * p->state[j] + (1 - s->momentum) * m[j];
    }
    for (size_t j = 0; j < d; j++)
        r[j] = 1 / (real)sqrt((double)(r[j] + s->eps));
    for (size_t i = 0; i < p->rows; i++)
        for (size_t j = 0; j < d; j++)
            y[i * d + j] = g[j] * ((x[i * d + j] - m[j]) * r[j]) + b[j];
}

/* sum_y = sum y_bar, sum_yz = sum y_bar z */
static void backward_sums(const struct ks_layer *l, const struct ks_pass *p, real *restrict sum_y,
                          real *restrict sum_yz)
{
    size_t d = l->in;
    const real *restrict m = p->cache, *restrict r = p->cache + d;
    const real *restrict x = p->x, *restrict y_bar = p->y_bar;

    memset(sum_y, 0, d * sizeof *sum_y);
    memset(sum_yz, 0, d * sizeof *sum_yz);
    for (size_t i = 0; i < p->rows; i++)
        for (size_t j = 0; j < d; j++) {
            sum_y[j] += y_bar[i * d + j];
            sum_yz[j] += y_bar[i * d + j] * ((x[i * d + j] - m[j]) * r[j]);
        }
}

static void backward(const struct ks_layer *l, const struct ks_pass *p)
{
    size_t d = l->in;
    real *sum_y = p->cache + 2 * d, *sum_yz = p->cache + 3 * d;
    const real *restrict m = p->cache, *restrict r = p->cache + d, *restrict g = p->w;
    const real *restrict x = p->x, *restrict y_bar = p->y_bar;
    real *restrict x_bar = p->x_bar;
    real mean = p->evaluation ? 0 : 1 / (real)p->rows; /* <u> = mean * sum u */

    backward_sums(l, p, sum_y, sum_yz);
    if (p->w_bar)
        for (size_t j = 0; j < d; j++) {
            p->w_bar[j] += sum_yz[j];
            p->w_bar[d + j] += sum_y[j];
        }
    if (!x_bar)
        return;
    for (size_t i = 0; i < p->rows; i++)
        for (size_t j = 0; j < d; j++) {
            real z = (x[i * d + j] - m[j]) * r[j];

            x_bar[i * d + j] = g[j] * r[j] *
                               (y_bar[i * d + j] - mean * sum_y[j] - mean * sum_yz[j] * z);
        }
}

/* The tangent cache's <x_dot> and s; both stay 0 in evaluation mode and where x_dot is 0. */
static void tangent_means(const struct ks_layer *l, const struct ks_pass *p, real *restrict mean,
                          real *restrict s)
{
    size_t d = l->in;
    const real *restrict m = p->cache, *restrict r = p->cache + d;
    const real *restrict x = p->x, *restrict x_dot = p->x_dot;

    memset(mean, 0, d * sizeof *mean);
    memset(s, 0, d * sizeof *s);
    if (p->evaluation || !x_dot)
        return;
    for (size_t i = 0; i < p->rows; i++)
        for (size_t j = 0; j < d; j++) {
            mean[j] += x_dot[i * d + j];
            s[j] += x_dot[i * d + j] * (x[i * d + j] - m[j]);
        }
    for (size_t j = 0; j < d; j++) {
        mean[j] /= (real)p->rows;
        s[j] *= r[j] / (real)p->rows;
    }
}

static void tangent_forward(const struct ks_layer *l, const struct ks_pass *p)
{
    size_t d = l->in;
    const real *restrict m = p->cache, *restrict r = p->cache + d, *restrict g = p->w;
    const real *restrict g_dot = p->w_dot, *restrict b_dot = p->w_dot + d;
    const real *restrict x = p->x, *restrict x_dot = p->x_dot;
    const real *mean = p->cache_dot, *s = p->cache_dot + d;
    real *restrict y_dot = p->y_dot;

    tangent_means(l, p, p->cache_dot, p->cache_dot + d);
    for (size_t i = 0; i < p->rows; i++)
        for (size_t j = 0; j < d; j++) {
            real z = (x[i * d + j] - m[j]) * r[j];
            real z_dot = x_dot ? r[j] * (x_dot[i * d + j] - mean[j] - z * s[j]) : 0;

            y_dot[i * d + j] = g_dot[j] * z + g[j] * z_dot + b_dot[j];
        }
}

/* sum_y_dot = sum y_bar_dot, sum_yz_dot = sum y_bar_dot z + y_bar z_dot */
static void tangent_sums(const struct ks_layer *l, const struct ks_pass *p,
                         real *restrict sum_y_dot, real *restrict sum_yz_dot)
{
    size_t d = l->in;
    const real *restrict m = p->cache, *restrict r = p->cache + d;
    const real *restrict mean = p->cache_dot, *restrict s = p->cache_dot + d;
    const real *restrict x = p->x, *restrict x_dot = p->x_dot;
    const real *restrict y_bar = p->y_bar, *restrict y_bar_dot = p->y_bar_dot;

    memset(sum_y_dot, 0, d * sizeof *sum_y_dot);
    memset(sum_yz_dot, 0, d * sizeof *sum_yz_dot);
    for (size_t i = 0; i < p->rows; i++)
        for (size_t j = 0; j < d; j++) {
            real z = (x[i * d + j] - m[j]) * r[j];
            real z_dot = x_dot ? r[j] * (x_dot[i * d + j] - mean[j] - z * s[j]) : 0;

            sum_y_dot[j] += y_bar_dot[i * d + j];
            sum_yz_dot[j] += y_bar_dot[i * d + j] * z + y_bar[i * d + j] * z_dot;
        }
}

static void tangent_backward(const struct ks_layer *l, const struct ks_pass *p)
{
    size_t d = l->in;
    const real *restrict m = p->cache, *restrict r = p->cache + d;
    const real *restrict sum_y = p->cache + 2 * d, *restrict sum_yz = p->cache + 3 * d;
    const real *restrict mean_x = p->cache_dot, *restrict s = p->cache_dot + d;
    real *restrict sum_y_dot = p->cache_dot + 2 * d, *restrict sum_yz_dot = p->cache_dot + 3 * d;
    const real *restrict g = p->w, *restrict g_dot = p->w_dot;
    const real *restrict x = p->x, *restrict x_dot = p->x_dot;
    const real *restrict y_bar = p->y_bar, *restrict y_bar_dot = p->y_bar_dot;
    real *restrict x_bar_dot = p->x_bar_dot;
    real mean = p->evaluation ? 0 : 1 / (real)p->rows;

    tangent_sums(l, p, sum_y_dot, sum_yz_dot);
    if (p->w_bar_dot)
        for (size_t j = 0; j < d; j++) {
            p->w_bar_dot[j] += sum_yz_dot[j];
            p->w_bar_dot[d + j] += sum_y_dot[j];
        }
    if (!x_bar_dot)
        return;
    for (size_t i = 0; i < p->rows; i++)
        for (size_t j = 0; j < d; j++) {
            real z = (x[i * d + j] - m[j]) * r[j];
            real z_dot = x_dot ? r[j] * (x_dot[i * d + j] - mean_x[j] - z * s[j]) : 0;
            /* c: y_bar without its projections on 1 and z, so that x_bar = g r c */
            real c = y_bar[i * d + j] - mean * sum_y[j] - mean * sum_yz[j] * z;
            real c_dot = y_bar_dot[i * d + j] - mean * sum_y_dot[j] -
                         mean * (sum_yz_dot[j] * z + sum_yz[j] * z_dot);

            x_bar_dot[i * d + j] = r[j] * ((g_dot[j] - g[j] * r[j] * s[j]) * c + g[j] * c_dot);
        }
}

static const char *const examples[] = {"batchnorm", "batchnorm eps=1e-2 momentum=0.9", NULL};

const struct ks_layer_kind KS(batchnorm) = {
    .name = "batchnorm",
    .examples = examples,
    .configure = configure,
    .forward = forward,
    .backward = backward,
    .tangent_forward = tangent_forward,
    .tangent_backward = tangent_backward,
};
