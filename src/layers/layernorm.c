/* groupnorm (Wu & He, ECCV 2018): the features of a row are cut into groups of equal size, which
 * are consecutive; per row and group,
 *
 *   z = (x - m) r,   r = (var + eps)^(-1/2),   y = g z + b
 *
 * with the mean m and the biased variance var of the group's features; g and b have a number for
 * each feature (b = 0 with bias=no, g = 1 and b = 0 with affine=no). layernorm (Ba, Kiros & Hinton,
 * arXiv 1607.06450) is the case of one group. <u> is the mean of u over the features of the group.
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
 * where <u_dot z + u z_dot> = <u_dot z> + r (<u x_dot> - <x_dot> <u> - s <u z>).
 *
 * Cache, per row and group: m, r, and from backward <u>, <u z>. Tangent cache: <x_dot>, s.
 */
#include <math.h>

#include "core/memory.h"
#include "layers/arrays.h"
#include "layers/layer.h"

enum { M, R, MEAN_U, MEAN_UZ, CACHE }; /* entries of a group's cache            */
enum { MEAN_X_DOT, MEAN_ZX_DOT };      /* entries of a group's tangent cache    */

struct settings {
    real eps;
    real constant[]; /* [2 in], ones and then zeros, in place of parameters that the layer lacks */
};

static ks_status read_groups(struct KS(layer) *l, struct ks_line *line)
{
    double groups = 0;

    if (!ks_line_has_option(line, "groups"))
        return ks_line_fail(line, "groupnorm: expected groups=G, a divisor of %zu", l->in);
    KS_TRY(ks_line_option_number(line, "groups", 1, (double)l->in, &groups));
    l->groups = (size_t)groups;
    if ((double)l->groups != groups || l->in % l->groups != 0)
        return ks_line_fail(line, "groups: expected a divisor of %zu, found %g", l->in, groups);
    return KS_OK;
}

static ks_status configure(struct KS(layer) *l, struct ks_line *line)
{
    double eps = 1e-6;
    bool affine = true, bias = true;
    struct settings *s;

    l->groups = 1;
    if (l->kind == &KS(groupnorm))
        KS_TRY(read_groups(l, line));
    KS_TRY(ks_line_option_number(line, "eps", 1e-12, 1, &eps));
    KS_TRY(ks_line_option_flag(line, "affine", &affine));
    KS_TRY(ks_line_option_flag(line, "bias", &bias));
    if (!affine && bias && ks_line_has_option(line, "bias"))
        return ks_line_fail(line, "%s: bias=yes contradicts affine=no", l->kind->name);
    KS_TRY(ks_alloc(1, sizeof *s + 2 * l->in * sizeof(real), &l->settings));
    s = l->settings;
    s->eps = (real)eps;
    for (size_t j = 0; j < l->in; j++)
        s->constant[j] = 1;
    l->out = l->in;
    if (affine)
        l->param[l->n_params++] = (struct ks_array){.name = "scale", .columns = l->in, .start = 1};
    if (affine && bias)
        l->param[l->n_params++] = (struct ks_array){.name = "bias", .columns = l->in};
    l->cache_row = l->groups * CACHE;
    l->uses = KS_USES_X | KS_USES_Y_BAR;
    return KS_OK;
}

/* The arrays of the parameters, and one group. Of the parameters that the layer lacks, constants
 * stand for the values, and the adjoints are NULL. */
struct group {
    const real *g, *b, *g_dot, *b_dot;
    real *g_bar, *b_bar, *g_bar_dot, *b_bar_dot;
    real eps;
    size_t d, w; /* features; the first of its parameters */
    size_t k;    /* its number in all rows: in an array [rows, in] it starts at k d */
};

/* Calls f for every group of every row. */
static void each_group(const struct KS(layer) *l, const struct KS(pass) *p,
                       void (*f)(const struct KS(pass) *p, const struct group *at))
{
    const struct settings *s = l->settings;
    const real *ones = s->constant, *zeros = ones + l->in;
    const bool scale = l->n_params > 0, bias = l->n_params > 1;
    struct group at = {.g = scale ? p->w : ones,
                       .b = bias ? p->w + l->in : zeros,
                       .g_dot = scale && p->w_dot ? p->w_dot : zeros,
                       .b_dot = bias && p->w_dot ? p->w_dot + l->in : zeros,
                       .g_bar = scale ? p->w_bar : NULL,
                       .b_bar = bias ? ks_offset(p->w_bar, l->in) : NULL,
                       .g_bar_dot = scale ? p->w_bar_dot : NULL,
                       .b_bar_dot = bias ? ks_offset(p->w_bar_dot, l->in) : NULL,
                       .eps = s->eps,
                       .d = l->in / l->groups};

    for (; at.k < p->rows * l->groups; at.k++) {
        f(p, &at);
        at.w += at.d;
        if (at.w == l->in)
            at.w = 0;
    }
}

static void forward_group(const struct KS(pass) *p, const struct group *at)
{
    const size_t d = at->d, k = at->k;
    const real *restrict x = p->x + k * d, *restrict g = at->g + at->w, *restrict b = at->b + at->w;
    real *restrict y = p->y + k * d, *restrict cache = p->cache + k * CACHE;
    real m = 0, var = 0, r;

#pragma omp simd reduction(+ : m)
    for (size_t j = 0; j < d; j++)
        m += x[j];
    m /= (real)d;
#pragma omp simd reduction(+ : var)
    for (size_t j = 0; j < d; j++)
        var += (x[j] - m) * (x[j] - m);
    r = 1 / (real)sqrt((double)(var / (real)d + at->eps));
    for (size_t j = 0; j < d; j++)
        y[j] = g[j] * ((x[j] - m) * r) + b[j];
    cache[M] = m;
    cache[R] = r;
}

static void forward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    each_group(l, p, forward_group);
}

static void backward_group(const struct KS(pass) *p, const struct group *at)
{
    const size_t d = at->d, k = at->k;
    const real *restrict x = p->x + k * d, *restrict y_bar = p->y_bar + k * d,
                         *restrict g = at->g + at->w;
    real *restrict x_bar = ks_offset(p->x_bar, k * d), *restrict cache = p->cache + k * CACHE;
    real *restrict g_bar = ks_offset(at->g_bar, at->w), *restrict b_bar = ks_offset(at->b_bar,
                                                                                    at->w);
    real m = cache[M], r = cache[R], mean_u = 0, mean_uz = 0;

    for (size_t j = 0; j < d && g_bar; j++) {
        g_bar[j] += y_bar[j] * ((x[j] - m) * r);
        if (b_bar)
            b_bar[j] += y_bar[j];
    }
#pragma omp simd reduction(+ : mean_u, mean_uz)
    for (size_t j = 0; j < d; j++) {
        real u = g[j] * y_bar[j];

        mean_u += u;
        mean_uz += u * ((x[j] - m) * r);
    }
    cache[MEAN_U] = mean_u /= (real)d;
    cache[MEAN_UZ] = mean_uz /= (real)d;
    for (size_t j = 0; j < d && x_bar; j++)
        x_bar[j] = r * (g[j] * y_bar[j] - mean_u - (x[j] - m) * r * mean_uz);
}

static void backward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    each_group(l, p, backward_group);
}

static void tangent_forward_group(const struct KS(pass) *p, const struct group *at)
{
    const size_t d = at->d, k = at->k;
    const real *restrict x = p->x + k * d, *restrict x_dot = p->x_dot ? p->x_dot + k * d : NULL;
    const real *restrict g = at->g + at->w, *restrict g_dot = at->g_dot + at->w,
                         *restrict b_dot = at->b_dot + at->w;
    const real *restrict cache = p->cache + k * CACHE;
    real *restrict y_dot = p->y_dot + k * d, *restrict cache_dot = p->cache_dot + k * CACHE;
    real m = cache[M], r = cache[R], mean = 0, zx = 0;

    if (!x_dot) {
        for (size_t j = 0; j < d; j++)
            y_dot[j] = g_dot[j] * ((x[j] - m) * r) + b_dot[j];
        cache_dot[MEAN_X_DOT] = cache_dot[MEAN_ZX_DOT] = 0;
        return;
    }
#pragma omp simd reduction(+ : mean, zx)
    for (size_t j = 0; j < d; j++) {
        mean += x_dot[j];
        zx += (x[j] - m) * r * x_dot[j];
    }
    mean /= (real)d;
    zx /= (real)d;
    for (size_t j = 0; j < d; j++) {
        real z = (x[j] - m) * r, z_dot = r * (x_dot[j] - mean - z * zx);

        y_dot[j] = g[j] * z_dot + g_dot[j] * z + b_dot[j];
    }
    cache_dot[MEAN_X_DOT] = mean;
    cache_dot[MEAN_ZX_DOT] = zx;
}

static void tangent_forward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    each_group(l, p, tangent_forward_group);
}

static void tangent_backward_group(const struct KS(pass) *p, const struct group *at)
{
    const size_t d = at->d, k = at->k;
    const real *restrict x = p->x + k * d, *restrict x_dot = (p->x_dot ? p->x_dot : p->x) + k * d;
    const real *restrict y_bar = p->y_bar + k * d, *restrict y_bar_dot = p->y_bar_dot + k * d;
    const real *restrict g = at->g + at->w, *restrict g_dot = at->g_dot + at->w;
    const real *cache = p->cache + k * CACHE, *cache_dot = p->cache_dot + k * CACHE;
    real *restrict x_bar = ks_offset(p->x_bar, k * d);
    real *restrict x_bar_dot = ks_offset(p->x_bar_dot, k * d);
    real *restrict g_bar_dot = ks_offset(at->g_bar_dot, at->w);
    real *restrict b_bar_dot = ks_offset(at->b_bar_dot, at->w);
    real m = cache[M], r = cache[R], mean_u = cache[MEAN_U], mean_uz = cache[MEAN_UZ];
    real mean_x = cache_dot[MEAN_X_DOT], zx = cache_dot[MEAN_ZX_DOT];
    real moving = p->x_dot ? 1 : 0; /* 0: x_dot is zero, whatever the pointer refers to */
    real mean_u_dot = 0, mean_uz_dot = 0, ux = 0; /* uz_dot is the tangent of u z */

    for (size_t j = 0; j < d && g_bar_dot; j++) {
        real z = (x[j] - m) * r, z_dot = r * (moving * x_dot[j] - mean_x - z * zx);

        g_bar_dot[j] += y_bar_dot[j] * z + y_bar[j] * z_dot;
        if (b_bar_dot)
            b_bar_dot[j] += y_bar_dot[j];
    }
    if (!x_bar_dot)
        return;
#pragma omp simd reduction(+ : mean_u_dot, mean_uz_dot, ux)
    for (size_t j = 0; j < d; j++) {
        real u_dot = g[j] * y_bar_dot[j] + g_dot[j] * y_bar[j];

        mean_u_dot += u_dot;
        mean_uz_dot += u_dot * ((x[j] - m) * r);
        ux += g[j] * y_bar[j] * (moving * x_dot[j]);
    }
    mean_u_dot /= (real)d;
    mean_uz_dot = mean_uz_dot / (real)d + r * (ux / (real)d - mean_x * mean_u - zx * mean_uz);
#pragma omp simd
    for (size_t j = 0; j < d; j++) {
        real z = (x[j] - m) * r, z_dot = r * (moving * x_dot[j] - mean_x - z * zx);
        real u = g[j] * y_bar[j], u_dot = g[j] * y_bar_dot[j] + g_dot[j] * y_bar[j];
        real c = u - mean_u - z * mean_uz; /* x_bar = r c */
        real c_dot = u_dot - mean_u_dot - z_dot * mean_uz - z * mean_uz_dot;

        if (x_bar)
            x_bar[j] = r * c;
        x_bar_dot[j] = r * (c_dot - r * zx * c);
    }
}

static void tangent_backward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    each_group(l, p, tangent_backward_group);
}

#define ROW                                                                                        \
    .sums = KS_SUMS_ROWS, .affine = true, .recomputes_x_bar = true, .scale_free = true,            \
    KS_LAYER_FUNCTIONS

const struct KS(layer_kind) KS(layernorm) = {
    .name = "layernorm",
    .examples = (const char *const[]){"layernorm", "layernorm eps=1e-2", "layernorm affine=no",
                                      "layernorm bias=no", NULL},
    ROW,
};

const struct KS(layer_kind) KS(groupnorm) = {
    .name = "groupnorm",
    .examples = (const char *const[]){"groupnorm groups=2", "groupnorm groups=3 eps=1e-2",
                                      "groupnorm groups=2 affine=no",
                                      "groupnorm groups=2 bias=no eps=0.1", NULL},
    ROW,
};
