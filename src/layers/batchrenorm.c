/* batchrenorm (Ioffe, "Batch renormalization", NIPS 2017): batchnorm whose output in training mode
 * is corrected towards the output with the running statistics,
 *
 *   y = g (q z + d) + b,   z as in batchnorm,   q = s / S within [1/rmax, rmax],
 *                                               d = (m - M) / S within [-dmax, dmax]
 *
 * with the batch's m and s = sqrt(var + eps), and the running M and S before this batch. q and d
 * are constants for derivatives, as in that paper. So all passes are a batchnorm's passes with
 *
 *   g' = q g,   b' = d g + b       g_bar = q g'_bar + d b'_bar,   b_bar = b'_bar
 *
 * and likewise for the tangents. A bias in front has no gradient, though it moves d. In evaluation
 * mode it is a batchnorm: q = 1, d = 0.
 *
 * Cache: batchnorm's cache, then q, d, g', b' and room for g'_bar, b'_bar. Tangent cache:
 * batchnorm's, then g'_dot, b'_dot and room for g'_bar_dot, b'_bar_dot.
 */
#include <math.h>
#include <stdalign.h>
#include <string.h>

#include "layers/layer.h"

struct settings {
    double eps, momentum, rmax, dmax;
    struct KS(layer) inner; /* a batchnorm; its settings are the next field */
    alignas(16) char batchnorm[KS_BATCHNORM_SETTINGS];
};

enum { INNER = 4, Q = INNER, D, WEIGHT, ROOM = WEIGHT + 2, ARRAYS = ROOM + 2 }; /* of [in] each */
enum { WEIGHT_DOT = INNER, ROOM_DOT = WEIGHT_DOT + 2 };

static ks_status configure(struct KS(layer) *l, struct ks_line *line)
{
    double eps = 1e-3, momentum = 0.99, rmax = 3, dmax = 5;
    struct settings *s = l->settings;

    KS_TRY(ks_line_option_number(line, "eps", 1e-12, 1, &eps));
    KS_TRY(ks_line_option_number(line, "momentum", 0, 1, &momentum));
    KS_TRY(ks_line_option_number(line, "rmax", 1, 1e6, &rmax));
    KS_TRY(ks_line_option_number(line, "dmax", 0, 1e6, &dmax));
    s->eps = eps, s->momentum = momentum, s->rmax = rmax, s->dmax = dmax;
    KS_TRY(KS(batchnorm_settings)(line, s->batchnorm));
    l->out = l->in;
    s->inner = (struct KS(layer)){
        .kind = &KS(batchnorm), .in = l->in, .out = l->in, .settings = s->batchnorm};
    l->param[l->n_params++] = (struct ks_array){.name = "scale", .columns = l->in, .start = 1};
    l->param[l->n_params++] = (struct ks_array){.name = "bias", .columns = l->in};
    l->state[l->n_states++] = (struct ks_array){.name = "mean", .columns = l->in};
    l->state[l->n_states++] = (struct ks_array){.name = "var", .columns = l->in, .start = 1};
    l->reads_state = true;
    l->cache_fixed = ARRAYS * l->in;
    l->uses = KS_USES_X | KS_USES_Y_BAR;
    return KS_OK;
}

static const struct KS(layer) *inner(const struct KS(layer) *l)
{
    return &((const struct settings *)l->settings)->inner;
}

static double clip(double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}

/* Sets q and d of feature j, and updates its running statistics. */
static void correct(const struct KS(layer) *l, const struct KS(pass) *p, size_t j)
{
    const struct settings *s = l->settings;
    size_t n = l->in;
    double m = (double)p->cache[j], width = 1 / (double)p->cache[n + j];
    real *mean = p->state + j, *var = mean + n;
    double running = sqrt((double)*var + s->eps);

    p->cache[Q * n + j] = (real)clip(width / running, 1 / s->rmax, s->rmax);
    p->cache[D * n + j] = (real)clip((m - (double)*mean) / running, -s->dmax, s->dmax);
    *mean = (real)(s->momentum * (double)*mean + (1 - s->momentum) * m);
    *var = (real)(s->momentum * (double)*var + (1 - s->momentum) * (width * width - s->eps));
}

static void forward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    size_t n = l->in;
    real *weight = p->cache + WEIGHT * n, *q = p->cache + Q * n, *d = p->cache + D * n;
    struct KS(pass) z = *p;

    for (size_t j = 0; j < n; j++) {
        weight[j] = q[j] = 1;
        weight[n + j] = d[j] = 0;
    }
    z.w = weight;
    z.state = p->evaluation ? p->state : NULL;
    KS(batchnorm).forward(inner(l), &z); /* y = z */
    for (size_t j = 0; j < n && !p->evaluation && p->state; j++)
        correct(l, p, j);
    for (size_t j = 0; j < n; j++) {
        weight[j] = q[j] * p->w[j];
        weight[n + j] = d[j] * p->w[j] + p->w[n + j];
    }
    for (size_t i = 0; i < p->rows; i++)
        for (size_t j = 0; j < n; j++)
            p->y[i * n + j] = weight[j] * p->y[i * n + j] + weight[n + j];
}

/* bar += the adjoints of g and b, from the adjoints of g' and b' */
static void add_adjoint(const struct KS(layer) *l, const struct KS(pass) *p, const real *room,
                        real *bar)
{
    size_t n = l->in;

    for (size_t j = 0; j < n && bar; j++) {
        bar[j] += p->cache[Q * n + j] * room[j] + p->cache[D * n + j] * room[n + j];
        bar[n + j] += room[n + j];
    }
}

static void backward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    struct KS(pass) z = *p;

    z.w = p->cache + WEIGHT * l->in;
    z.w_bar = p->cache + ROOM * l->in;
    memset(z.w_bar, 0, 2 * l->in * sizeof *z.w_bar);
    KS(batchnorm).backward(inner(l), &z);
    add_adjoint(l, p, z.w_bar, p->w_bar);
    memset(z.w_bar, 0, 2 * l->in * sizeof *z.w_bar);
}

static void tangent_forward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    size_t n = l->in;
    real *weight_dot = p->cache_dot + WEIGHT_DOT * n;
    struct KS(pass) z = *p;

    for (size_t j = 0; j < n; j++) {
        weight_dot[j] = p->cache[Q * n + j] * p->w_dot[j];
        weight_dot[n + j] = p->cache[D * n + j] * p->w_dot[j] + p->w_dot[n + j];
    }
    z.w = p->cache + WEIGHT * n;
    z.w_dot = weight_dot;
    KS(batchnorm).tangent_forward(inner(l), &z);
}

static void tangent_backward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    struct KS(pass) z = *p;

    z.w = p->cache + WEIGHT * l->in;
    z.w_dot = p->cache_dot + WEIGHT_DOT * l->in;
    z.w_bar_dot = p->cache_dot + ROOM_DOT * l->in;
    memset(z.w_bar_dot, 0, 2 * l->in * sizeof *z.w_bar_dot);
    KS(batchnorm).tangent_backward(inner(l), &z);
    add_adjoint(l, p, z.w_bar_dot, p->w_bar_dot);
}

/* momentum=1 leaves the running statistics alone. The bounds are such that q and d are at them: the
 * tests' differences would see them move. */
const struct KS(layer_kind) KS(batchrenorm) = {
    .name = "batchrenorm",
    .settings = sizeof(struct settings),
    .examples = (const char *const[]){"batchrenorm momentum=1 rmax=1.01 dmax=0.01",
                                      "batchrenorm momentum=1 eps=1e-2 rmax=1 dmax=0",
                                      "batchrenorm momentum=1 rmax=1.001 dmax=0.01 unbiased=yes",
                                      NULL},
    .couples_rows = true,
    .sums = KS_SUMS_COLUMNS,
    .caches_mean = true,
    .recomputes_x_bar = true,
    .role = KS_BATCH_NORM,
    KS_LAYER_FUNCTIONS,
};
