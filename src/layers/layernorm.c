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

static const char *const no_yes[] = {"no", "yes", NULL};

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
    size_t affine = true, bias = true;
    struct settings *s;

    l->groups = 1;
    if (l->kind == &KS(groupnorm))
        KS_TRY(read_groups(l, line));
    KS_TRY(ks_line_option_number(line, "eps", 1e-12, 1, &eps));
    KS_TRY(ks_line_option_choice(line, "affine", no_yes, &affine));
    KS_TRY(ks_line_option_choice(line, "bias", no_yes, &bias));
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

/* Group k of all rows, row k / groups, and its arrays: d features that start at x of an array
 * [rows, in]. Of the parameters that the layer lacks, constants stand for the values, and the
 * adjoints are NULL. */
struct group {
    size_t d, x;
    const real *g, *b, *g_dot, *b_dot;
    real *g_bar, *b_bar, *g_bar_dot, *b_bar_dot;
    real *cache, *cache_dot;
};

static struct group group(const struct KS(layer) *l, const struct KS(pass) *p, size_t k)
{
    const real *ones = ((const struct settings *)l->settings)->constant, *zeros = ones + l->in;
    size_t d = l->in / l->groups, at = k % l->groups * d;
    bool scale = l->n_params > 0, bias = l->n_params > 1;

    return (struct group){.d = d,
                          .x = k * d,
                          .g = scale ? p->w + at : ones,
                          .b = bias ? p->w + l->in + at : zeros,
                          .g_dot = scale && p->w_dot ? p->w_dot + at : zeros,
                          .b_dot = bias && p->w_dot ? p->w_dot + l->in + at : zeros,
                          .g_bar = scale ? ks_part(p->w_bar, at) : NULL,
                          .b_bar = bias ? ks_part(p->w_bar, l->in + at) : NULL,
                          .g_bar_dot = scale ? ks_part(p->w_bar_dot, at) : NULL,
                          .b_bar_dot = bias ? ks_part(p->w_bar_dot, l->in + at) : NULL,
                          .cache = p->cache + k * CACHE,
                          .cache_dot = ks_part(p->cache_dot, k * CACHE)};
}

static void forward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    const struct settings *s = l->settings;

    for (size_t k = 0; k < p->rows * l->groups; k++) {
        const struct group at = group(l, p, k);
        const size_t d = at.d;
        const real *restrict x = p->x + at.x, *restrict g = at.g, *restrict b = at.b;
        real *restrict y = p->y + at.x;
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
            y[j] = g[j] * ((x[j] - m) * r) + b[j];
        at.cache[M] = m;
        at.cache[R] = r;
    }
}

/* x_bar may be NULL. Outputs are arguments because GCC vectorizes better with `restrict` there. */
static void backward_group(const struct group *at, const real *restrict x,
                           const real *restrict y_bar, real *restrict x_bar)
{
    const size_t d = at->d;
    const real *restrict g = at->g;
    real m = at->cache[M], r = at->cache[R], mean_u = 0, mean_uz = 0;

    for (size_t j = 0; j < d && at->g_bar; j++)
        at->g_bar[j] += y_bar[j] * ((x[j] - m) * r);
    for (size_t j = 0; j < d && at->b_bar; j++)
        at->b_bar[j] += y_bar[j];
#pragma omp simd reduction(+ : mean_u, mean_uz)
    for (size_t j = 0; j < d; j++) {
        real u = g[j] * y_bar[j];

        mean_u += u;
        mean_uz += u * ((x[j] - m) * r);
    }
    at->cache[MEAN_U] = mean_u /= (real)d;
    at->cache[MEAN_UZ] = mean_uz /= (real)d;
    for (size_t j = 0; j < d && x_bar; j++)
        x_bar[j] = r * (g[j] * y_bar[j] - mean_u - (x[j] - m) * r * mean_uz);
}

static void backward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    for (size_t k = 0; k < p->rows * l->groups; k++) {
        const struct group at = group(l, p, k);

        backward_group(&at, p->x + at.x, p->y_bar + at.x, ks_part(p->x_bar, at.x));
    }
}

/* x_dot NULL: zero */
static void tangent_forward_group(const struct group *at, const real *restrict x,
                                  const real *restrict x_dot, real *restrict y_dot)
{
    const size_t d = at->d;
    const real *restrict g = at->g, *restrict g_dot = at->g_dot, *restrict b_dot = at->b_dot;
    real m = at->cache[M], r = at->cache[R], mean = 0, zx = 0;

    if (!x_dot) {
        for (size_t j = 0; j < d; j++)
            y_dot[j] = g_dot[j] * ((x[j] - m) * r) + b_dot[j];
        at->cache_dot[MEAN_X_DOT] = at->cache_dot[MEAN_ZX_DOT] = 0;
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
    at->cache_dot[MEAN_X_DOT] = mean;
    at->cache_dot[MEAN_ZX_DOT] = zx;
}

static void tangent_forward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    for (size_t k = 0; k < p->rows * l->groups; k++) {
        const struct group at = group(l, p, k);

        tangent_forward_group(&at, p->x + at.x, p->x_dot ? p->x_dot + at.x : NULL, p->y_dot + at.x);
    }
}

/* What tangent_backward reads of one group: its first entries. */
struct inputs {
    const real *x, *x_dot, *y_bar, *y_bar_dot;
    real moving; /* 1, or 0 if x_dot is zero, whatever the pointer refers to */
};

/* x_bar and x_bar_dot may be NULL. */
static void tangent_backward_group(const struct group *at, const struct inputs *in,
                                   real *restrict x_bar, real *restrict x_bar_dot)
{
    const size_t d = at->d;
    const real *restrict x = in->x, *restrict x_dot = in->x_dot, *restrict y_bar = in->y_bar;
    const real *restrict y_bar_dot = in->y_bar_dot, *restrict g = at->g,
                         *restrict g_dot = at->g_dot;
    real m = at->cache[M], r = at->cache[R], mean_u = at->cache[MEAN_U];
    real mean_uz = at->cache[MEAN_UZ], mean_x = at->cache_dot[MEAN_X_DOT];
    real zx = at->cache_dot[MEAN_ZX_DOT], moving = in->moving;
    real mean_u_dot = 0, mean_uz_dot = 0, ux = 0; /* uz_dot is the tangent of u z */

    for (size_t j = 0; j < d && at->g_bar_dot; j++) {
        real z = (x[j] - m) * r, z_dot = r * (moving * x_dot[j] - mean_x - z * zx);

        at->g_bar_dot[j] += y_bar_dot[j] * z + y_bar[j] * z_dot;
    }
    for (size_t j = 0; j < d && at->b_bar_dot; j++)
        at->b_bar_dot[j] += y_bar_dot[j];
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
    for (size_t k = 0; k < p->rows * l->groups; k++) {
        const struct group at = group(l, p, k);
        const struct inputs in = {p->x + at.x, (p->x_dot ? p->x_dot : p->x) + at.x, p->y_bar + at.x,
                                  p->y_bar_dot + at.x, p->x_dot ? 1 : 0};

        tangent_backward_group(&at, &in, ks_part(p->x_bar, at.x), ks_part(p->x_bar_dot, at.x));
    }
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
