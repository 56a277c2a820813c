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
    KS_TRY(ks_alloc(1, sizeof *s, &l->settings));
    s = l->settings;
    s->eps = (real)eps;
    l->out = l->in;
    if (affine)
        l->param[l->n_params++] = (struct ks_array){.name = "scale", .columns = l->in, .start = 1};
    if (affine && bias)
        l->param[l->n_params++] = (struct ks_array){.name = "bias", .columns = l->in};
    l->cache_row = l->groups * CACHE;
    l->uses = KS_USES_X | KS_USES_Y_BAR;
    return KS_OK;
}

/* w[j], of g, b or their tangents, or `constant` if the layer lacks this parameter. The functions
 * for one group are inlined for each number of parameters, which is a compile-time constant there.
 */
static inline real parameter(const real *w, bool has, size_t j, real constant)
{
    return has ? w[j] : constant;
}

/* Group k of all rows: row k / groups, group k % groups. Its d features start at x of an array
 * [rows, in], its scales at w of the parameters and its biases at w + in. */
struct group {
    size_t d, x, w, in;
};

static struct group group(const struct KS(layer) *l, size_t k)
{
    size_t d = l->in / l->groups;

    return (struct group){d, k * d, k % l->groups * d, l->in};
}

static inline void forward_group(const struct KS(layer) *l, const struct KS(pass) *p, size_t k,
                                 size_t parameters)
{
    const struct settings *s = l->settings;
    struct group at = group(l, k);
    size_t d = at.d;
    const real *restrict x = p->x + at.x, *w = p->w + at.w;
    real *restrict y = p->y + at.x, *restrict cache = p->cache + k * CACHE;
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
        y[j] = parameter(w, parameters > 0, j, 1) * ((x[j] - m) * r) +
               parameter(w, parameters > 1, at.in + j, 0);
    cache[M] = m;
    cache[R] = r;
}

static void forward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    for (size_t k = 0; k < p->rows * l->groups; k++)
        if (l->n_params > 1)
            forward_group(l, p, k, 2);
        else if (l->n_params > 0)
            forward_group(l, p, k, 1);
        else
            forward_group(l, p, k, 0);
}

/* The inputs of the backward functions for one group: its first entries. */
struct inputs {
    struct group at;
    const real *x, *y_bar, *w;
    real *cache;
    /* tangent_backward_group only: */
    const real *x_dot, *y_bar_dot, *w_dot, *cache_dot;
    real moving; /* 1, or 0 if x_dot is zero, whatever the pointer refers to */
};

/* x_bar and w_bar may be NULL. Outputs are arguments because GCC vectorizes better with `restrict`
 * there. */
static inline void backward_group(const struct inputs *in, size_t parameters, real *restrict x_bar,
                                  real *restrict w_bar)
{
    size_t d = in->at.d, bias = in->at.in;
    const real *restrict x = in->x, *restrict y_bar = in->y_bar, *w = in->w;
    real *restrict cache = in->cache;
    real m = cache[M], r = cache[R], mean_u = 0, mean_uz = 0;

    for (size_t j = 0; j < d && parameters > 0 && w_bar; j++) {
        w_bar[j] += y_bar[j] * ((x[j] - m) * r);
        if (parameters > 1)
            w_bar[bias + j] += y_bar[j];
    }
#pragma omp simd reduction(+ : mean_u, mean_uz)
    for (size_t j = 0; j < d; j++) {
        real u = parameter(w, parameters > 0, j, 1) * y_bar[j];

        mean_u += u;
        mean_uz += u * ((x[j] - m) * r);
    }
    cache[MEAN_U] = mean_u /= (real)d;
    cache[MEAN_UZ] = mean_uz /= (real)d;
    for (size_t j = 0; j < d && x_bar; j++)
        x_bar[j] = r * (parameter(w, parameters > 0, j, 1) * y_bar[j] - mean_u -
                        (x[j] - m) * r * mean_uz);
}

static void backward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    for (size_t k = 0; k < p->rows * l->groups; k++) {
        struct group at = group(l, k);
        struct inputs in = {.at = at,
                            .x = p->x + at.x,
                            .y_bar = p->y_bar + at.x,
                            .w = p->w + at.w,
                            .cache = p->cache + k * CACHE};
        real *x_bar = ks_part(p->x_bar, at.x), *w_bar = ks_part(p->w_bar, at.w);

        if (l->n_params > 1)
            backward_group(&in, 2, x_bar, w_bar);
        else if (l->n_params > 0)
            backward_group(&in, 1, x_bar, w_bar);
        else
            backward_group(&in, 0, x_bar, NULL);
    }
}

static inline void tangent_forward_group(const struct KS(layer) *l, const struct KS(pass) *p,
                                         size_t k, size_t parameters)
{
    struct group at = group(l, k);
    size_t d = at.d, bias = at.in;
    const real *restrict x = p->x + at.x, *restrict x_dot = p->x_dot ? p->x_dot + at.x : NULL;
    const real *w = p->w + at.w, *w_dot = p->w_dot + at.w, *cache = p->cache + k * CACHE;
    real *restrict y_dot = p->y_dot + at.x, *restrict cache_dot = p->cache_dot + k * CACHE;
    real m = cache[M], r = cache[R], mean = 0, zx = 0;

    if (!x_dot) {
        for (size_t j = 0; j < d; j++)
            y_dot[j] = parameter(w_dot, parameters > 0, j, 0) * ((x[j] - m) * r) +
                       parameter(w_dot, parameters > 1, bias + j, 0);
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

        y_dot[j] = parameter(w, parameters > 0, j, 1) * z_dot +
                   parameter(w_dot, parameters > 0, j, 0) * z +
                   parameter(w_dot, parameters > 1, bias + j, 0);
    }
    cache_dot[MEAN_X_DOT] = mean;
    cache_dot[MEAN_ZX_DOT] = zx;
}

static void tangent_forward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    for (size_t k = 0; k < p->rows * l->groups; k++)
        if (l->n_params > 1)
            tangent_forward_group(l, p, k, 2);
        else if (l->n_params > 0)
            tangent_forward_group(l, p, k, 1);
        else
            tangent_forward_group(l, p, k, 0);
}

/* x_bar, x_bar_dot and w_bar_dot may be NULL. */
static inline void tangent_backward_group(const struct inputs *in, size_t parameters,
                                          real *restrict x_bar, real *restrict x_bar_dot,
                                          real *restrict w_bar_dot)
{
    size_t d = in->at.d, bias = in->at.in;
    const real *restrict x = in->x, *restrict x_dot = in->x_dot, *restrict y_bar = in->y_bar;
    const real *restrict y_bar_dot = in->y_bar_dot, *restrict w = in->w,
                         *restrict w_dot = in->w_dot;
    real m = in->cache[M], r = in->cache[R], mean_u = in->cache[MEAN_U];
    real mean_uz = in->cache[MEAN_UZ], mean_x = in->cache_dot[MEAN_X_DOT];
    real zx = in->cache_dot[MEAN_ZX_DOT], moving = in->moving;
    real mean_u_dot = 0, mean_uz_dot = 0, ux = 0; /* uz_dot is the tangent of u z */

    for (size_t j = 0; j < d && parameters > 0 && w_bar_dot; j++) {
        real z = (x[j] - m) * r, z_dot = r * (moving * x_dot[j] - mean_x - z * zx);

        w_bar_dot[j] += y_bar_dot[j] * z + y_bar[j] * z_dot;
        if (parameters > 1)
            w_bar_dot[bias + j] += y_bar_dot[j];
    }
    if (!x_bar_dot)
        return;
#pragma omp simd reduction(+ : mean_u_dot, mean_uz_dot, ux)
    for (size_t j = 0; j < d; j++) {
        real g = parameter(w, parameters > 0, j, 1);
        real u_dot = g * y_bar_dot[j] + parameter(w_dot, parameters > 0, j, 0) * y_bar[j];

        mean_u_dot += u_dot;
        mean_uz_dot += u_dot * ((x[j] - m) * r);
        ux += g * y_bar[j] * (moving * x_dot[j]);
    }
    mean_u_dot /= (real)d;
    mean_uz_dot = mean_uz_dot / (real)d + r * (ux / (real)d - mean_x * mean_u - zx * mean_uz);
    for (size_t j = 0; j < d; j++) {
        real z = (x[j] - m) * r, z_dot = r * (moving * x_dot[j] - mean_x - z * zx);
        real g = parameter(w, parameters > 0, j, 1), u = g * y_bar[j];
        real u_dot = g * y_bar_dot[j] + parameter(w_dot, parameters > 0, j, 0) * y_bar[j];
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
        struct group at = group(l, k);
        struct inputs in = {.at = at,
                            .x = p->x + at.x,
                            .x_dot = (p->x_dot ? p->x_dot : p->x) + at.x,
                            .y_bar = p->y_bar + at.x,
                            .y_bar_dot = p->y_bar_dot + at.x,
                            .w = p->w + at.w,
                            .w_dot = p->w_dot + at.w,
                            .cache = p->cache + k * CACHE,
                            .cache_dot = p->cache_dot + k * CACHE,
                            .moving = p->x_dot ? 1 : 0};
        real *x_bar_dot = ks_part(p->x_bar_dot, at.x), *x_bar = ks_part(p->x_bar, at.x);
        real *w_bar_dot = ks_part(p->w_bar_dot, at.w);

        if (l->n_params > 1)
            tangent_backward_group(&in, 2, x_bar, x_bar_dot, w_bar_dot);
        else if (l->n_params > 0)
            tangent_backward_group(&in, 1, x_bar, x_bar_dot, w_bar_dot);
        else
            tangent_backward_group(&in, 0, x_bar, x_bar_dot, NULL);
    }
}

static const char *const layernorm_examples[] = {"layernorm", "layernorm eps=1e-2",
                                                 "layernorm affine=no", "layernorm bias=no", NULL};

const struct KS(layer_kind) KS(layernorm) = {
    .name = "layernorm",
    .examples = layernorm_examples,
    .sums = KS_SUMS_ROWS,
    .affine = true,
    .recomputes_x_bar = true,
    .scale_free = true,
    .configure = configure,
    .forward = forward,
    .backward = backward,
    .tangent_forward = tangent_forward,
    .tangent_backward = tangent_backward,
};

static const char *const groupnorm_examples[] = {
    "groupnorm groups=2", "groupnorm groups=3 eps=1e-2", "groupnorm groups=2 affine=no",
    "groupnorm groups=2 bias=no eps=0.1", NULL};

const struct KS(layer_kind) KS(groupnorm) = {
    .name = "groupnorm",
    .examples = groupnorm_examples,
    .sums = KS_SUMS_ROWS,
    .affine = true,
    .recomputes_x_bar = true,
    .scale_free = true,
    .configure = configure,
    .forward = forward,
    .backward = backward,
    .tangent_forward = tangent_forward,
    .tangent_backward = tangent_backward,
};
