/* Weight normalization of a dense layer (Salimans & Kingma, NIPS 2016, equation 2): the parameters
 * are a matrix v of the shape of the kernel W and a number g for each of its columns. Per column,
 *
 *   W = g e,   e = v r,   r = 1/|v|
 *
 * <u> is the sum of u over the column.
 *
 *   backward, a = <e W_bar>, k = g r:
 *     g_bar += a              v_bar += k (W_bar - e a)
 *   tangent forward, s = r <e v_dot>:
 *     e_dot = r v_dot - e s   k_dot = r (g_dot - g s)         (r_dot = -r s)
 *     W_dot = k_dot v + k v_dot
 *   tangent backward, a_dot = <e_dot W_bar + e W_bar_dot>:
 *     g_bar_dot += a_dot
 *     v_bar_dot += k_dot (W_bar - e a) + k (W_bar_dot - e_dot a - e a_dot)
 *
 * Cache: W, W_bar, and per column r and a. Tangent cache: W_dot, W_bar_dot, and per column s and
 * a_dot.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "layers/kernel_norm.h"

static void configure(struct KS(layer) *l)
{
    struct ks_array *v = &l->param[0];

    v->name = "v";
    l->param[l->n_params++] = (struct ks_array){
        .name = "g", .columns = l->out, .column_norms = true};
    l->cache_fixed = 2 * v->rows * v->columns + 2 * v->columns;
}

/* The arrays of a layer whose kernel has `rows` rows and n columns. */
struct arrays {
    size_t rows, n;
    const real *v, *g, *v_dot, *g_dot;   /* parameters: g is behind v */
    real *w, *w_bar, *r, *a;             /* the cache                 */
    real *w_dot, *w_bar_dot, *s, *a_dot; /* the tangent cache         */
    real *v_bar, *g_bar;                 /* results, or NULL          */
    real *v_bar_dot, *g_bar_dot;
};

static struct arrays arrays(const struct KS(layer) *l, const struct KS(pass) *p)
{
    size_t rows = l->param[0].rows, n = l->out, size = rows * n;
    struct arrays k = {.rows = rows, .n = n, .v = p->w, .g = p->w + size};

    k.w = p->cache, k.w_bar = k.w + size, k.r = k.w_bar + size, k.a = k.r + n;
    if (p->w_bar)
        k.v_bar = p->w_bar, k.g_bar = k.v_bar + size;
    if (p->cache_dot) {
        k.v_dot = p->w_dot, k.g_dot = k.v_dot + size;
        k.w_dot = p->cache_dot, k.w_bar_dot = k.w_dot + size;
        k.s = k.w_bar_dot + size, k.a_dot = k.s + n;
    }
    if (p->w_bar_dot)
        k.v_bar_dot = p->w_bar_dot, k.g_bar_dot = k.v_bar_dot + size;
    return k;
}

/* sum_j += <x y> for each column j. */
static void add_products(const struct arrays *k, const real *restrict x, const real *restrict y,
                         real *restrict sum)
{
    for (size_t i = 0; i < k->rows; i++)
        for (size_t j = 0; j < k->n; j++)
            sum[j] += x[i * k->n + j] * y[i * k->n + j];
}

static void forward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    struct arrays k = arrays(l, p);

    memset(k.r, 0, k.n * sizeof *k.r);
    add_products(&k, k.v, k.v, k.r);
    for (size_t j = 0; j < k.n; j++)
        k.r[j] = 1 / (real)sqrt((double)k.r[j]);
    for (size_t i = 0; i < k.rows; i++)
        for (size_t j = 0; j < k.n; j++)
            k.w[i * k.n + j] = k.g[j] * k.r[j] * k.v[i * k.n + j];
}

static void backward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    struct arrays k = arrays(l, p);

    memset(k.a, 0, k.n * sizeof *k.a);
    add_products(&k, k.v, k.w_bar, k.a);
    for (size_t j = 0; j < k.n; j++)
        k.a[j] *= k.r[j];
    if (!k.v_bar)
        return;
    for (size_t j = 0; j < k.n; j++)
        k.g_bar[j] += k.a[j];
    for (size_t i = 0; i < k.rows; i++)
        for (size_t j = 0; j < k.n; j++) {
            size_t at = i * k.n + j;

            k.v_bar[at] += k.g[j] * k.r[j] * (k.w_bar[at] - k.v[at] * k.r[j] * k.a[j]);
        }
}

static real k_dot(const struct arrays *k, size_t j)
{
    return k->r[j] * (k->g_dot[j] - k->g[j] * k->s[j]);
}

static void tangent_forward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    struct arrays k = arrays(l, p);

    assert(k.s);
    memset(k.s, 0, k.n * sizeof *k.s);
    add_products(&k, k.v, k.v_dot, k.s);
    for (size_t j = 0; j < k.n; j++)
        k.s[j] *= k.r[j] * k.r[j];
    for (size_t i = 0; i < k.rows; i++)
        for (size_t j = 0; j < k.n; j++) {
            size_t at = i * k.n + j;

            k.w_dot[at] = k_dot(&k, j) * k.v[at] + k.g[j] * k.r[j] * k.v_dot[at];
        }
}

static void tangent_backward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    struct arrays k = arrays(l, p);

    assert(k.a_dot && k.g_bar_dot);
    memset(k.a_dot, 0, k.n * sizeof *k.a_dot);
    add_products(&k, k.v_dot, k.w_bar, k.a_dot);
    add_products(&k, k.v, k.w_bar_dot, k.a_dot);
    for (size_t j = 0; j < k.n; j++) {
        k.a_dot[j] = k.r[j] * k.a_dot[j] - k.s[j] * k.a[j];
        k.g_bar_dot[j] += k.a_dot[j];
    }
    for (size_t i = 0; i < k.rows; i++)
        for (size_t j = 0; j < k.n; j++) {
            size_t at = i * k.n + j;
            real e = k.v[at] * k.r[j], e_dot = k.r[j] * k.v_dot[at] - e * k.s[j];

            k.v_bar_dot[at] += k_dot(&k, j) * (k.w_bar[at] - e * k.a[j]) +
                               k.g[j] * k.r[j] *
                                   (k.w_bar_dot[at] - e_dot * k.a[j] - e * k.a_dot[j]);
        }
}

const struct KS(kernel_norm) KS(weight_norm) = {
    KS_LAYER_FUNCTIONS,
};

/* Spectral normalization of a dense layer (Miyato et al., ICLR 2018, equations 8 and 9): the
 * parameter is a matrix K, and the kernel is
 *
 *   W = K / sigma,   sigma = v' K u
 *
 * with stored vectors u and v, which approximate the singular vectors of the largest singular value
 * of K. They are constants for derivatives, as in PyTorch (K is the transpose of its weight, so its
 * sigma = u' K' v is the same number). They are state arrays, which are read in training mode, too,
 * and never updated: a step of the power iteration would be part of training. <A B> is the sum of
 * the products of all entries.
 *
 *   backward, t = <W W_bar>:
 *     K_bar += (W_bar - t v u') / sigma
 *   tangent forward, q = sigma_dot / sigma = v' K_dot u / sigma:
 *     W_dot = K_dot / sigma - q W
 *   tangent backward, t_dot = <W_dot W_bar> + <W W_bar_dot>:
 *     K_bar_dot += (W_bar_dot - t_dot v u') / sigma - q (W_bar - t v u') / sigma
 *
 * Cache: W, W_bar, u, v, 1/sigma, t. Tangent cache: W_dot, W_bar_dot, q.
 */

static void spectral_norm_configure(struct KS(layer) *l)
{
    const struct ks_array *kernel = &l->param[0];

    l->state[l->n_states++] = (struct ks_array){.name = "u", .columns = kernel->columns};
    l->state[l->n_states++] = (struct ks_array){.name = "v", .columns = kernel->rows};
    l->reads_state = true;
    l->cache_fixed = 2 * kernel->rows * kernel->columns + kernel->columns + kernel->rows + 2;
}

/* The spectral_norm_arrays of a layer whose kernel has `rows` rows and n columns. */
struct spectral_norm_arrays {
    size_t rows, n, size;
    real *w, *w_bar, *u, *v, *by_sigma, *t; /* the cache         */
    real *w_dot, *w_bar_dot, *q;            /* the tangent cache */
};

static struct spectral_norm_arrays spectral_norm_arrays(const struct KS(layer) *l,
                                                        const struct KS(pass) *p)
{
    size_t rows = l->param[0].rows, n = l->out, size = rows * n;
    struct spectral_norm_arrays k = {.rows = rows, .n = n, .size = size};

    k.w = p->cache, k.w_bar = k.w + size, k.u = k.w_bar + size, k.v = k.u + n;
    k.by_sigma = k.v + rows, k.t = k.by_sigma + 1;
    if (p->cache_dot)
        k.w_dot = p->cache_dot, k.w_bar_dot = k.w_dot + size, k.q = k.w_bar_dot + size;
    return k;
}

static double product(size_t n, const real *a, const real *b)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

/* v' M u */
static double form(const struct spectral_norm_arrays *k, const real *m)
{
    double sum = 0;

    for (size_t i = 0; i < k->rows; i++)
        sum += (double)k->v[i] * product(k->n, m + i * k->n, k->u);
    return sum;
}

static void spectral_norm_forward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    struct spectral_norm_arrays k = spectral_norm_arrays(l, p);

    assert(p->state);
    memcpy(k.u, p->state, (k.n + k.rows) * sizeof *k.u); /* v follows u in both */
    *k.by_sigma = (real)(1 / form(&k, p->w));
    for (size_t i = 0; i < k.size; i++)
        k.w[i] = *k.by_sigma * p->w[i];
}

static void spectral_norm_backward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    struct spectral_norm_arrays k = spectral_norm_arrays(l, p);

    *k.t = (real)product(k.size, k.w, k.w_bar);
    for (size_t i = 0; i < k.rows && p->w_bar; i++)
        for (size_t j = 0; j < k.n; j++)
            p->w_bar[i * k.n + j] += *k.by_sigma * (k.w_bar[i * k.n + j] - *k.t * k.v[i] * k.u[j]);
}

static void spectral_norm_tangent_forward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    struct spectral_norm_arrays k = spectral_norm_arrays(l, p);

    assert(k.q);
    *k.q = (real)((double)*k.by_sigma * form(&k, p->w_dot));
    for (size_t i = 0; i < k.size; i++)
        k.w_dot[i] = *k.by_sigma * p->w_dot[i] - *k.q * k.w[i];
}

static void spectral_norm_tangent_backward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    struct spectral_norm_arrays k = spectral_norm_arrays(l, p);
    real t_dot;

    assert(k.q && p->w_bar_dot);
    t_dot = (real)(product(k.size, k.w_dot, k.w_bar) + product(k.size, k.w, k.w_bar_dot));
    for (size_t i = 0; i < k.rows; i++)
        for (size_t j = 0; j < k.n; j++) {
            size_t at = i * k.n + j;
            real outer = k.v[i] * k.u[j];

            p->w_bar_dot[at] += *k.by_sigma * (k.w_bar_dot[at] - t_dot * outer -
                                               *k.q * (k.w_bar[at] - *k.t * outer));
        }
}

const struct KS(kernel_norm) KS(spectral_norm) = {
    .configure = spectral_norm_configure,
    .forward = spectral_norm_forward,
    .backward = spectral_norm_backward,
    .tangent_forward = spectral_norm_tangent_forward,
    .tangent_backward = spectral_norm_tangent_backward,
};
