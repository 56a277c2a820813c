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
#include <assert.h>
#include <string.h>

#include "layers/kernel_norm.h"

static void configure(struct KS(layer) *l)
{
    const struct ks_array *kernel = &l->param[0];

    l->state[l->n_states++] = (struct ks_array){.name = "u", .columns = kernel->columns};
    l->state[l->n_states++] = (struct ks_array){.name = "v", .columns = kernel->rows};
    l->reads_state = true;
    l->cache_fixed = 2 * kernel->rows * kernel->columns + kernel->columns + kernel->rows + 2;
}

/* The arrays of a layer whose kernel has `rows` rows and n columns. */
struct arrays {
    size_t rows, n, size;
    real *w, *w_bar, *u, *v, *by_sigma, *t; /* the cache         */
    real *w_dot, *w_bar_dot, *q;            /* the tangent cache */
};

static struct arrays arrays(const struct KS(layer) *l, const struct KS(pass) *p)
{
    size_t rows = l->param[0].rows, n = l->out, size = rows * n;
    struct arrays k = {.rows = rows, .n = n, .size = size};

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
static double form(const struct arrays *k, const real *m)
{
    double sum = 0;

    for (size_t i = 0; i < k->rows; i++)
        sum += (double)k->v[i] * product(k->n, m + i * k->n, k->u);
    return sum;
}

static void forward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    struct arrays k = arrays(l, p);

    assert(p->state);
    memcpy(k.u, p->state, (k.n + k.rows) * sizeof *k.u); /* v follows u in both */
    *k.by_sigma = (real)(1 / form(&k, p->w));
    for (size_t i = 0; i < k.size; i++)
        k.w[i] = *k.by_sigma * p->w[i];
}

static void backward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    struct arrays k = arrays(l, p);

    *k.t = (real)product(k.size, k.w, k.w_bar);
    for (size_t i = 0; i < k.rows && p->w_bar; i++)
        for (size_t j = 0; j < k.n; j++)
            p->w_bar[i * k.n + j] += *k.by_sigma * (k.w_bar[i * k.n + j] - *k.t * k.v[i] * k.u[j]);
}

static void tangent_forward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    struct arrays k = arrays(l, p);

    assert(k.q);
    *k.q = (real)((double)*k.by_sigma * form(&k, p->w_dot));
    for (size_t i = 0; i < k.size; i++)
        k.w_dot[i] = *k.by_sigma * p->w_dot[i] - *k.q * k.w[i];
}

static void tangent_backward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    struct arrays k = arrays(l, p);
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
    .configure = configure,
    .forward = forward,
    .backward = backward,
    .tangent_forward = tangent_forward,
    .tangent_backward = tangent_backward,
};
