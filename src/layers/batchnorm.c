/* batchnorm (Ioffe & Szegedy, ICML 2015): per feature over the rows,
 *
 *   z = (x - m) r,   r = (var + eps)^(-1/2),   y = g z + b        (g = 1, b = 0 with affine=no)
 *
 * with the batch's mean and variance in training mode, running averages in evaluation mode. <u> is
 * the mean of u over the rows. The variance divides by the N rows, with unbiased=yes by N - 1; then
 * so do, below, s and the means of products with z.
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
 * g is the same for all rows, so <u z> = g <y_bar z>: the sums for the parameters serve for x,
 * too. z is recomputed from x, which costs one operation and saves an array of the size of x.
 * Each output is a linear combination of the input arrays with per-feature coefficients. Features
 * are processed in blocks of columns, so that a second pass over the rows finds the block in the
 * cache.
 *
 * Cache, per feature: m, r, and from backward sum y_bar, sum y_bar z. Tangent cache: <x_dot>, s.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "core/memory.h"
#include "layers/arrays.h"
#include "layers/layer.h"

struct settings {
    real eps, momentum, rest; /* rest: 1 - momentum, computed in double and then rounded */
    bool affine, unbiased;
    real constant[]; /* affine=no: [3 d], d times 1, then 0, in place of g, b and of their tangents
                      */
};

ks_status KS(batchnorm_settings)(struct ks_line *line, void *settings)
{
    struct settings *s = settings;
    double eps = 1e-3, momentum = 0.99;

    static_assert(sizeof *s <= KS_BATCHNORM_SETTINGS, "room for the settings");
    KS_TRY(ks_line_option_number(line, "eps", 1e-12, 1, &eps));
    KS_TRY(ks_line_option_number(line, "momentum", 0, 1, &momentum));
    KS_TRY(ks_line_option_flag(line, "unbiased", &s->unbiased));
    s->eps = (real)eps;
    s->momentum = (real)momentum;
    s->rest = (real)(1 - momentum);
    s->affine = true;
    return KS_OK;
}

static ks_status configure(struct KS(layer) *l, struct ks_line *line)
{
    bool affine = true;
    struct settings *s;

    KS_TRY(ks_line_option_flag(line, "affine", &affine));
    KS_TRY(ks_alloc(1, sizeof *s + (affine ? 0 : 3 * l->in * sizeof(real)), &l->settings));
    s = l->settings;
    KS_TRY(KS(batchnorm_settings)(line, s));
    s->affine = affine;
    for (size_t j = 0; j < l->in && !affine; j++)
        s->constant[j] = 1;
    l->out = l->in;
    if (s->affine) {
        l->param[l->n_params++] = (struct ks_array){.name = "scale", .columns = l->in, .start = 1};
        l->param[l->n_params++] = (struct ks_array){.name = "bias", .columns = l->in};
    }
    l->state[l->n_states++] = (struct ks_array){.name = "mean", .columns = l->in};
    l->state[l->n_states++] = (struct ks_array){.name = "var", .columns = l->in, .start = 1};
    l->cache_fixed = 4 * l->in;
    l->uses = KS_USES_X | KS_USES_Y_BAR;
    return KS_OK;
}

/* The pass, with constants in place of the parameters if there are none. */
static struct KS(pass) with_parameters(const struct KS(layer) *l, const struct KS(pass) *p)
{
    const struct settings *s = l->settings;
    struct KS(pass) q = *p;

    if (!s->affine) {
        q.w = s->constant;
        q.w_dot = s->constant + l->in;
        q.w_bar = q.w_bar_dot = NULL;
    }
    return q;
}

/* Block sizes. In forward and backward the arrays are still in the core's L2 cache, as the
 * neighbouring layer has just written them: three arrays of 512 rows and NARROW features fit into
 * it. The tangent passes read from memory, which is faster along long rows; there only the
 * coefficients of WIDE features have to fit into the L1 cache. */
enum {
    NARROW = 128, /* features */
    WIDE = 512,   /* features */
    CHUNK = 8     /* rows: a chunk of NARROW features and its sums fit into the L1 cache */
};

/* Features [at, at + n) of a matrix of d columns. */
struct block {
    size_t rows, d, at, n;
    const struct settings *settings;
};

/* What the sum of squares about the mean is divided by. */
static real variance_divisor(const struct block *b)
{
    return (real)(b->rows - b->settings->unbiased);
}

/* Calls f for all features, in blocks of at most `most`. */
static void each_block(const struct KS(layer) *l, const struct KS(pass) *p, size_t most,
                       void (*f)(const struct KS(pass) *p, const struct block *b))
{
    const struct KS(pass) q = with_parameters(l, p);

    for (size_t at = 0; at < l->in; at += most) {
        size_t left = l->in - at;

        f(&q, &(struct block){p->rows, l->in, at, left < most ? left : most, l->settings});
    }
}

/* The mean of n rows, and the sum of squares about it. Where n is a constant, the compiler keeps a
 * feature's n entries in registers. */
static inline void chunk_statistics(const struct block *b, size_t n, const real *restrict x,
                                    real *restrict m, real *restrict squares)
{
    for (size_t j = 0; j < b->n; j++) {
        real sum = 0, square = 0;

        for (size_t i = 0; i < n; i++)
            sum += x[i * b->d + j];
        sum /= (real)n;
        for (size_t i = 0; i < n; i++) {
            real c = x[i * b->d + j] - sum;

            square += c * c;
        }
        m[j] = sum;
        squares[j] = square;
    }
}

/* Mean and variance of the batch, accumulated over chunks of rows that fit into the L1 cache (Chan,
 * Golub & LeVeque, The American Statistician 37, 1983). With a rows so far, n rows in the chunk and
 * d the chunk's mean minus m:
 *
 *   m <- m + d n/(a + n),   squares <- squares + squares of the chunk + d^2 a n/(a + n)
 *
 * The sum of squares about zero would need only one pass, too, but suffers from cancellation. */
static void batch_statistics(const struct block *b, const real *restrict x, real *restrict m,
                             real *restrict var)
{
    real chunk_m[NARROW], chunk_squares[NARROW];

    for (size_t j = 0; j < b->n; j++)
        m[j] = var[j] = 0;
    for (size_t at = 0; at < b->rows; at += CHUNK) {
        size_t n = b->rows - at < CHUNK ? b->rows - at : CHUNK;
        real share = (real)n / (real)(at + n), weight = (real)at * share;

        if (n == CHUNK)
            chunk_statistics(b, CHUNK, x + at * b->d, chunk_m, chunk_squares);
        else
            chunk_statistics(b, n, x + at * b->d, chunk_m, chunk_squares);
        for (size_t j = 0; j < b->n; j++) {
            real d = chunk_m[j] - m[j];

            m[j] += share * d;
            var[j] += chunk_squares[j] + weight * d * d;
        }
    }
    for (size_t j = 0; j < b->n; j++)
        var[j] /= variance_divisor(b);
}

static void forward_block(const struct KS(pass) *p, const struct block *b)
{
    const struct settings *s = b->settings;
    const real *restrict g = p->w + b->at, *restrict bias = g + b->d, *restrict x = p->x + b->at;
    real *restrict m = p->cache + b->at, *restrict r = m + b->d, *restrict y = p->y + b->at;
    real *mean = p->state ? p->state + b->at : NULL, *var = mean ? mean + b->d : NULL;

    if (p->evaluation) {
        assert(mean && var);
        memcpy(m, mean, b->n * sizeof *m);
        memcpy(r, var, b->n * sizeof *r);
    } else {
        batch_statistics(b, x, m, r);
        for (size_t j = 0; j < b->n && p->state; j++) {
            mean[j] = s->momentum * mean[j] + s->rest * m[j];
            var[j] = s->momentum * var[j] + s->rest * r[j];
        }
    }
    for (size_t j = 0; j < b->n; j++)
        r[j] = 1 / (real)sqrt((double)(r[j] + s->eps));
    for (size_t i = 0; i < b->rows; i++)
        for (size_t j = 0; j < b->n; j++)
            y[i * b->d + j] = g[j] * ((x[i * b->d + j] - m[j]) * r[j]) + bias[j];
}

static void forward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    each_block(l, p, NARROW, forward_block);
}

/* x_bar = k (y_bar - sum_y/N) - k z sum_yz/N,   k = g r,   N rows; 1/N is 0 in evaluation mode */
static void backward_block(const struct KS(pass) *p, const struct block *b)
{
    const real *restrict m = p->cache + b->at, *restrict r = m + b->d, *restrict g = p->w + b->at;
    const real *restrict x = p->x + b->at, *restrict y_bar = p->y_bar + b->at;
    real *restrict sum_y = p->cache + 2 * b->d + b->at, *restrict sum_yz = sum_y + b->d;
    real *restrict x_bar = ks_offset(p->x_bar, b->at);
    real by_rows = p->evaluation ? 0 : 1 / (real)b->rows; /* 1/N */
    real by_squares = p->evaluation ? 0 : 1 / variance_divisor(b);
    real k[NARROW] = {0}, of_x[NARROW] = {0}, constant[NARROW] = {0};

    for (size_t j = 0; j < b->n; j++)
        sum_y[j] = sum_yz[j] = 0;
    for (size_t i = 0; i < b->rows; i++)
        for (size_t j = 0; j < b->n; j++) {
            sum_y[j] += y_bar[i * b->d + j];
            sum_yz[j] += y_bar[i * b->d + j] * (x[i * b->d + j] - m[j]);
        }
    for (size_t j = 0; j < b->n; j++) {
        sum_yz[j] *= r[j];
        k[j] = g[j] * r[j];
        of_x[j] = -k[j] * by_squares * sum_yz[j] * r[j];
        constant[j] = -k[j] * by_rows * sum_y[j];
    }
    for (size_t j = 0; j < b->n && p->w_bar; j++) {
        p->w_bar[b->at + j] += sum_yz[j];
        p->w_bar[b->d + b->at + j] += sum_y[j];
    }
    for (size_t i = 0; i < b->rows && p->x_bar; i++)
        for (size_t j = 0; j < b->n; j++)
            x_bar[i * b->d + j] = k[j] * y_bar[i * b->d + j] +
                                  (of_x[j] * (x[i * b->d + j] - m[j]) + constant[j]);
}

static void backward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    each_block(l, p, NARROW, backward_block);
}

/* Sets the tangent cache: <x_dot> and s. Both are 0 in evaluation mode, or if x_dot is 0. */
static void tangent_means(const struct KS(pass) *p, const struct block *b)
{
    const real *restrict m = p->cache + b->at, *restrict r = m + b->d;
    const real *restrict x = p->x + b->at, *restrict x_dot = (p->x_dot ? p->x_dot : p->x) + b->at;
    real *restrict mean = p->cache_dot + b->at, *restrict s = mean + b->d;

    for (size_t j = 0; j < b->n; j++)
        mean[j] = s[j] = 0;
    if (p->evaluation || !p->x_dot)
        return;
    for (size_t i = 0; i < b->rows; i++)
        for (size_t j = 0; j < b->n; j++) {
            mean[j] += x_dot[i * b->d + j];
            s[j] += x_dot[i * b->d + j] * (x[i * b->d + j] - m[j]);
        }
    for (size_t j = 0; j < b->n; j++) {
        mean[j] /= (real)b->rows;
        s[j] *= r[j] / variance_divisor(b);
    }
}

/* y_dot = k_dot (x - m) + k x_dot + (b_dot - k <x_dot>),   k = g r,   k_dot = r (g_dot - k s) */
static void tangent_forward_block(const struct KS(pass) *p, const struct block *b)
{
    const real *restrict m = p->cache + b->at, *restrict r = m + b->d, *restrict g = p->w + b->at;
    const real *restrict g_dot = p->w_dot + b->at, *restrict b_dot = g_dot + b->d;
    const real *restrict mean = p->cache_dot + b->at, *restrict s = mean + b->d;
    real k[WIDE], k_dot[WIDE], constant[WIDE];

    tangent_means(p, b);
    for (size_t j = 0; j < b->n; j++) {
        k[j] = p->x_dot ? g[j] * r[j] : 0;
        k_dot[j] = r[j] * (g_dot[j] - k[j] * s[j]);
        constant[j] = b_dot[j] - k[j] * mean[j];
    }
    for (size_t i = 0; i < b->rows; i++) {
        size_t at = i * b->d + b->at;
        const real *x = p->x + at, *x_dot = (p->x_dot ? p->x_dot : p->x) + at;
        real *y_dot = p->y_dot + at;

#pragma omp simd
        for (size_t j = 0; j < b->n; j++)
            y_dot[j] = k_dot[j] * (x[j] - m[j]) + (k[j] * x_dot[j] + constant[j]);
        if (p->gate)
            ks_gate(b->n, p->gate + at, y_dot, y_dot);
    }
}

static void tangent_forward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    each_block(l, p, WIDE, tangent_forward_block);
}

/* Coefficients of tangent_backward that do not depend on y_bar_dot. With c = y_bar - sum_y/N - z
 * sum_yz/N,
 *
 *   x_bar     = k c             = k y_bar + of_z (x - m) + offset
 *   x_bar_dot = k_dot c + k c_dot = k_dot y_bar + k y_bar_dot + of_z x_dot      (first_pass)
 *                                   + of_x (x - m) + constant                   (second_pass)
 *
 * where z_dot = r (x_dot - <x_dot>) - r s z. In evaluation mode 1/N is 0. */
struct coefficients {
    real by_rows, by_squares; /* 1/N; one over the divisor of the variance */
    real k[WIDE], k_dot[WIDE], of_z[WIDE], offset[WIDE];
};

static void set_coefficients(const struct KS(pass) *p, const struct block *b,
                             struct coefficients *c)
{
    const real *restrict r = p->cache + b->d + b->at, *restrict g = p->w + b->at;
    const real *restrict sum_y = r + b->d, *restrict sum_yz = sum_y + b->d;
    const real *restrict g_dot = p->w_dot + b->at, *restrict s = p->cache_dot + b->d + b->at;

    c->by_rows = p->evaluation ? 0 : 1 / (real)b->rows;
    c->by_squares = p->evaluation ? 0 : 1 / variance_divisor(b);
    for (size_t j = 0; j < b->n; j++) {
        c->k[j] = g[j] * r[j];
        c->k_dot[j] = r[j] * (g_dot[j] - c->k[j] * s[j]);
        c->of_z[j] = -c->k[j] * c->by_squares * sum_yz[j] * r[j];
        c->offset[j] = -c->k[j] * c->by_rows * sum_y[j];
    }
}

/* The sums that the second pass needs, and what can be set before they are known, so that y_bar,
 * y_bar_dot and x_dot are read only once:
 *
 *   sum_y_dot  = sum y_bar_dot
 *   sum_yz_dot = sum y_bar_dot z + y_bar z_dot
 *              = r (sum y_bar_dot (x - m) + y_bar (x_dot - <x_dot>) - s sum_yz) */
static void first_pass(const struct KS(pass) *p, const struct block *b,
                       const struct coefficients *c, real *sum_y_dot, real *sum_yz_dot)
{
    const real *m = p->cache + b->at, *r = m + b->d, *sum_yz = r + 2 * b->d;
    const real *mean = p->cache_dot + b->at, *s = mean + b->d;
    real moving = p->x_dot ? 1 : 0; /* 0: x_dot is zero, whatever the pointer refers to */
    real gated[WIDE];

    memset(sum_y_dot, 0, b->n * sizeof *sum_y_dot);
    memset(sum_yz_dot, 0, b->n * sizeof *sum_yz_dot);
    for (size_t i = 0; i < b->rows; i++) {
        size_t at = i * b->d + b->at;
        const real *x = p->x + at, *x_dot = (p->x_dot ? p->x_dot : p->x) + at;
        const real *y_bar = p->y_bar + at, *y_bar_dot = p->y_bar_dot + at;
        real *x_bar_dot = ks_offset(p->x_bar_dot, at), *x_bar = ks_offset(p->x_bar, at);

        if (p->gate) {
            ks_gate(b->n, p->gate + at, y_bar_dot, gated);
            y_bar_dot = gated;
        }
#pragma omp simd
        for (size_t j = 0; j < b->n; j++) {
            sum_y_dot[j] += y_bar_dot[j];
            sum_yz_dot[j] += y_bar_dot[j] * (x[j] - m[j]) +
                             y_bar[j] * (moving * x_dot[j] - mean[j]);
        }
#pragma omp simd
        for (size_t j = 0; j < (x_bar_dot ? b->n : 0); j++)
            x_bar_dot[j] = c->k_dot[j] * y_bar[j] + c->k[j] * y_bar_dot[j] +
                           c->of_z[j] * (moving * x_dot[j]);
#pragma omp simd
        for (size_t j = 0; j < (x_bar ? b->n : 0); j++)
            x_bar[j] = c->k[j] * y_bar[j] + (c->of_z[j] * (x[j] - m[j]) + c->offset[j]);
    }
    for (size_t j = 0; j < b->n; j++)
        sum_yz_dot[j] = r[j] * (sum_yz_dot[j] - s[j] * sum_yz[j]);
}

/* Adds of_x (x - m) + constant to x_bar_dot. */
static void second_pass(const struct KS(pass) *p, const struct block *b,
                        const struct coefficients *c, const real *sum_y_dot, const real *sum_yz_dot)
{
    const real *m = p->cache + b->at, *r = m + b->d, *sum_y = r + b->d, *sum_yz = sum_y + b->d;
    const real *mean = p->cache_dot + b->at, *s = mean + b->d;
    real of_x[WIDE], constant[WIDE];

    for (size_t j = 0; j < b->n; j++) {
        of_x[j] = -r[j] * (c->by_squares * (c->k_dot[j] * sum_yz[j] + c->k[j] * sum_yz_dot[j]) +
                           c->of_z[j] * s[j]);
        constant[j] = -c->by_rows * (c->k_dot[j] * sum_y[j] + c->k[j] * sum_y_dot[j]) -
                      c->of_z[j] * mean[j];
    }
    for (size_t i = 0; i < b->rows; i++) {
        size_t at = i * b->d + b->at;
        const real *x = p->x + at;
        real *x_bar_dot = p->x_bar_dot + at;

#pragma omp simd
        for (size_t j = 0; j < b->n; j++)
            x_bar_dot[j] += of_x[j] * (x[j] - m[j]) + constant[j];
    }
}

static void tangent_backward_block(const struct KS(pass) *p, const struct block *b)
{
    struct coefficients c;
    real sum_y_dot[WIDE], sum_yz_dot[WIDE];

    set_coefficients(p, b, &c);
    first_pass(p, b, &c, sum_y_dot, sum_yz_dot);
    for (size_t j = 0; j < b->n && p->w_bar_dot; j++) {
        p->w_bar_dot[b->at + j] += sum_yz_dot[j];
        p->w_bar_dot[b->d + b->at + j] += sum_y_dot[j];
    }
    if (p->x_bar_dot)
        second_pass(p, b, &c, sum_y_dot, sum_yz_dot);
}

static void tangent_backward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    each_block(l, p, WIDE, tangent_backward_block);
}

const struct KS(layer_kind) KS(batchnorm) = {
    .name = "batchnorm",
    .examples = (const char *const[]){"batchnorm", "batchnorm eps=1e-2 momentum=0.9",
                                      "batchnorm affine=no", "batchnorm unbiased=yes", NULL},
    .couples_rows = true,
    .sums = KS_SUMS_COLUMNS,
    .caches_mean = true,
    .affine = true,
    .recomputes_x_bar = true,
    .takes_gate = true,
    .role = KS_BATCH_NORM,
    .scale_free = true,
    KS_LAYER_FUNCTIONS,
};
