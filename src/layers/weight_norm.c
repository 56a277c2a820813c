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
    .configure = configure,
    .forward = forward,
    .backward = backward,
    .tangent_forward = tangent_forward,
    .tangent_backward = tangent_backward,
};
