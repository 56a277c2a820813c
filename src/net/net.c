#include "net/net.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"

ks_status KS(net_new)(const struct KS(arch) *arch, size_t rows, size_t out_rows, bool evaluation,
                      struct KS(net) **net)
{
    ks_status status = KS_OK;
    struct KS(net) *n = NULL;

    assert(rows > 0 && out_rows > 0 && out_rows <= rows);
    *net = NULL;
    KS_GO(ks_alloc(1, sizeof *n, &n));
    n->arch = arch;
    n->rows = rows;
    n->out_rows = out_rows;
    n->evaluation = evaluation;
    KS_GO(ks_alloc(arch->n_layers, sizeof *n->at, &n->at));
    KS(layout_fill)(n);
    *net = n;
    return KS_OK;
done:
    KS(net_free)(n);
    return status;
}

void KS(net_free)(struct KS(net) *net)
{
    if (!net)
        return;
    free(net->at);
    free(net);
}

size_t KS(net_microbatches)(const struct KS(arch) *arch, size_t rows, bool evaluation)
{
    const bool whole = (arch->joint && !evaluation) || rows <= KS_MINIBATCH;

    return whole ? 1 : (rows - 1) / KS_MICROBATCH + 1;
}

static const struct ks_layout *last(const struct KS(net) *net)
{
    return &net->at[net->arch->n_layers - 1];
}

real *KS(net_output)(const struct KS(net) *net, real *primal)
{
    return primal + last(net)->y;
}

real *KS(net_output_dot)(const struct KS(net) *net, real *tangent)
{
    return tangent + last(net)->y_dot;
}

const real *KS(net_kept_output)(const struct KS(net) *net, const real *kept)
{
    return kept + last(net)->kept_y;
}

real *KS(net_output_bar)(const struct KS(net) *net, real *adjoint)
{
    return adjoint + last(net)->y_bar;
}

const real *KS(net_features)(const struct KS(net) *net, const real *primal)
{
    assert(net->arch->n_layers > 1);
    return primal + net->at[net->arch->n_layers - 2].y;
}

/* The input of layer i, and of a body that starts there. */
static const real *input(const struct KS(net) *net, size_t i, const real *x, const real *primal)
{
    return i == 0 ? x : primal + net->at[i - 1].y;
}

/* The adjoint of the layer's parameters; NULL if it is frozen or not wanted. */
static real *adjoint_of(const struct KS(layer) *l, real *w_bar)
{
    return w_bar && l->frozen == 0 ? w_bar + l->offset : NULL;
}

/* The arrays of layer i for forward and backward. */
static struct KS(pass) pass(const struct KS(net) *net, size_t i, const real *w, const real *x,
                            real *primal)
{
    const struct KS(layer) *l = &net->arch->layer[i];
    struct KS(pass) p = {
        .rows = net->at[i].rows,
        .evaluation = net->evaluation,
        .products = net->arch->products,
        .x = input(net, i, x, primal),
        .w = w + l->offset,
        .y = primal + net->at[i].y,
        .cache = primal + net->at[i].cache,
    };

    if (l->kind->container)
        p.skip = input(net, l->body, x, primal);
    return p;
}

void KS(net_forward)(const struct KS(net) *net, const real *w, real *state, const real *x,
                     real *primal)
{
    for (size_t i = 0; i < net->arch->n_layers; i++) {
        const struct KS(layer) *l = &net->arch->layer[i];
        struct KS(pass) p = pass(net, i, w, x, primal);

        p.input = x;
        p.state = state ? state + l->state_offset : NULL;
        l->kind->forward(l, &p);
    }
}

/* The last layer sets only the first out_rows rows of x_bar; the others are zero. */
static void clear_other_rows(const struct KS(net) *net, size_t columns, real *bar)
{
    memset(bar + net->out_rows * columns, 0, (net->rows - net->out_rows) * columns * sizeof *bar);
}

/* x_bar += skip_bar, for a container whose body starts at this layer. */
static void add_skip(size_t n, const real *restrict skip_bar, real *restrict x_bar)
{
    for (size_t i = 0; i < n; i++)
        x_bar[i] += skip_bar[i];
}

void KS(net_backward)(const struct KS(net) *net, const struct KS(net_backward) *b)
{
    const struct KS(arch) *arch = net->arch;

    for (size_t i = arch->n_layers; i-- > 0;) {
        const struct KS(layer) *l = &arch->layer[i];
        struct KS(pass) p = pass(net, i, b->w, b->x, b->primal);

        p.y_bar = b->adjoint + net->at[i].y_bar;
        p.x_bar = i == 0 ? b->x_bar : b->adjoint + net->at[i - 1].y_bar;
        p.w_bar = adjoint_of(l, b->w_bar);
        p.skip_bar = l->kind->container ? b->adjoint + net->at[i].skip_bar : NULL;
        l->kind->backward(l, &p);
        if (i + 1 == arch->n_layers && p.x_bar)
            clear_other_rows(net, l->in, p.x_bar);
        for (size_t c = i + 1; c < arch->n_layers && p.x_bar; c++)
            if (arch->layer[c].body == i)
                add_skip(net->rows * l->in, b->adjoint + net->at[c].skip_bar, p.x_bar);
    }
}

static const real *kept_array(const real *kept, size_t at)
{
    return at == KS_NOWHERE ? NULL : kept + at;
}

static const real *kept_input(const struct KS(net) *net, size_t i, const real *x, const real *kept)
{
    return i == 0 ? x : kept_array(kept, net->at[i - 1].kept_y);
}

static const real *input_dot(const struct KS(net) *net, size_t i, const real *tangent)
{
    return i == 0 ? NULL : tangent + net->at[i - 1].y_dot;
}

/* The arrays of layer i for the tangent functions, which do not write y and the cache. */
static struct KS(pass) tangent_pass(const struct KS(net) *net, size_t i,
                                    const struct KS(net_tangent) *t)
{
    const struct KS(layer) *l = &net->arch->layer[i];
    const struct ks_layout *at = &net->at[i];
    struct KS(pass) p = {
        .rows = net->at[i].rows,
        .evaluation = net->evaluation,
        .products = net->arch->products,
        .x = kept_input(net, i, t->x, t->kept),
        .w = t->w + l->offset,
        .y = (real *)kept_array(t->kept, at->kept_own),
        .cache = (real *)t->kept + at->kept_cache,
        .y_bar = kept_array(t->kept, at->kept_y_bar),
        .gauss_newton = t->gauss_newton,
        .w_dot = t->w_dot + l->offset,
        .x_dot = input_dot(net, i, t->tangent),
        .y_dot = t->tangent + at->y_dot,
        .cache_dot = t->tangent + at->cache_dot,
    };

    if (i + 1 < net->arch->n_layers && net->at[i + 1].gate)
        p.gate = kept_array(t->kept, net->at[i + 1].kept_own);

    if (l->kind->container) {
        p.skip = kept_input(net, l->body, t->x, t->kept);
        p.skip_dot = input_dot(net, l->body, t->tangent);
    }
    return p;
}

void KS(net_tangent_forward)(const struct KS(net) *net, const struct KS(net_tangent) *t)
{
    for (size_t i = 0; i < net->arch->n_layers; i++) {
        const struct KS(layer) *l = &net->arch->layer[i];
        struct KS(pass) p = tangent_pass(net, i, t);

        if (!net->at[i].gate)
            l->kind->tangent_forward(l, &p);
    }
}

void KS(net_tangent_backward)(const struct KS(net) *net, const struct KS(net_tangent) *t,
                              const real *output_bar_dot, real *scratch, real *w_bar_dot)
{
    const struct KS(arch) *arch = net->arch;
    size_t one = net->scratch_array;
    const real *bar_dot = output_bar_dot;
    real *own = scratch;     /* where bar_dot is, except that it starts in the caller's array */
    real *recomputed = NULL; /* x_bar of the next layer */

    for (size_t i = arch->n_layers; i-- > 0;) {
        const struct KS(layer) *l = &arch->layer[i];
        struct KS(pass) p = tangent_pass(net, i, t);
        real *other = own == scratch ? scratch + one : scratch;

        if (net->at[i].gate)
            continue;
        p.y_bar_dot = bar_dot;
        p.x_bar_dot = i == 0 ? NULL : l->kind->in_place && bar_dot == own ? own : other;
        p.w_bar_dot = adjoint_of(l, w_bar_dot);
        if (net->at[i].recomputed)
            p.y_bar = recomputed;
        recomputed = scratch + (i % 2 == 0 ? 2 : 3) * one;
        p.x_bar = i > 0 && net->at[i - 1].recomputed ? recomputed : NULL;
        p.skip_bar_dot = l->kind->container ? scratch + net->at[i].skip_bar_dot : NULL;
        l->kind->tangent_backward(l, &p);
        if (i == 0)
            return;
        if (i + 1 == arch->n_layers)
            clear_other_rows(net, l->in, p.x_bar_dot);
        for (size_t c = i + 1; c < arch->n_layers; c++)
            if (arch->layer[c].body == i)
                add_skip(net->rows * l->in, scratch + net->at[c].skip_bar_dot, p.x_bar_dot);
        bar_dot = own = p.x_bar_dot;
    }
}

/* net_keep copies what the tangent passes read, rounded to their precision. Where the passes allow
 * to subtract a constant from a column, it is subtracted first. Then the digits of the lower
 * precision describe the deviations from the constant. */

enum { COLUMNS = 256 };

/* A shift of the features [at, at + n) of a matrix y [rows, d]. It replaces y by (y - base) + rest,
 * where base is an entry of the column, so that base - rest is subtracted in all. With one number
 * in place of these two, a constant column would not become exactly zero. */
struct shift {
    size_t rows, d, at, n;
    double base[COLUMNS], rest[COLUMNS];
};

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static double shifted(const struct shift *a, size_t j, double y)
{
    return y - a->base[j] + a->rest[j];
}

/* The shift that subtracts the mean. */
static void find_mean(struct shift *a, const double *y)
{
    y += a->at;
    for (size_t j = 0; j < a->n; j++) {
        a->base[j] = y[j];
        a->rest[j] = 0;
    }
    for (size_t i = 0; i < a->rows; i++)
        for (size_t j = 0; j < a->n; j++)
            a->rest[j] -= y[i * a->d + j] - a->base[j];
    for (size_t j = 0; j < a->n; j++)
        a->rest[j] /= (double)a->rows;
}

/* The shift that keeps the signs (for KS_USES_SIGN). It subtracts a little less than the smallest
 * entry if all entries are positive, and nothing otherwise. Little precision is lost, because the
 * mean of nonnegative entries of which one is zero is at most sqrt(rows) standard deviations. */
static void find_positive(struct shift *a, const double *y)
{
    static const double MARGIN = 0.125, TINY = 1e-30;

    find_mean(a, y);
    y += a->at;
    for (size_t j = 0; j < a->n; j++) {
        double mean = a->base[j] - a->rest[j], smallest = a->base[j], margin;

        for (size_t i = 0; i < a->rows; i++)
            smallest = fmin(smallest, y[i * a->d + j]);
        margin = fmax(MARGIN * (mean - smallest), fmin(smallest, TINY));
        a->base[j] = smallest > margin ? smallest : 0;
        a->rest[j] = smallest > margin ? margin : 0;
    }
}

static void keep(size_t n, const double *from, size_t at, real *kept)
{
    if (at == KS_NOWHERE)
        return;
    for (size_t i = 0; i < n; i++)
        kept[at + i] = (real)from[i];
}

/* Keeps the output of layer i, shifted, and its means in the next layer's cache, with the same
 * shift. */
static void keep_shifted(const struct KS(net) *net, size_t i, const double *primal, real *kept)
{
    const struct KS(layer) *l = &net->arch->layer[i];
    const struct ks_layout *at = &net->at[i];
    const double *y = primal + at->y, *mean = primal + at[1].cache;
    struct shift a = {.rows = at->rows, .d = l->out};

    for (a.at = 0; a.at < l->out; a.at += COLUMNS) {
        a.n = least(l->out - a.at, COLUMNS);
        if (l->uses & KS_USES_SIGN)
            find_positive(&a, y);
        else
            find_mean(&a, y);
        for (size_t k = 0; k < a.rows; k++)
            for (size_t j = 0; j < a.n; j++)
                kept[at->kept_y + k * a.d + a.at + j] = (real)shifted(&a, j, y[k * a.d + a.at + j]);
        for (size_t j = 0; j < a.n && l[1].kind->caches_mean; j++)
            kept[at[1].kept_cache + a.at + j] = (real)shifted(&a, j, mean[a.at + j]);
    }
}

void KS(net_keep)(const struct KS(net) *net, const double *primal, const double *adjoint,
                  real *kept)
{
    for (size_t i = 0; i < net->arch->n_layers; i++) {
        const struct KS(layer) *l = &net->arch->layer[i];
        const struct ks_layout *at = &net->at[i];

        keep(at->rows * l->out, primal + at->y, at->kept_own, kept);
        keep(at->rows * l->cache_row + l->cache_fixed, primal + at->cache, at->kept_cache, kept);
        keep(at->rows * l->out, adjoint + at->y_bar, at->kept_y_bar, kept);
    }
    for (size_t i = 0; i < net->arch->n_layers; i++)
        if (net->at[i].shifted)
            keep_shifted(net, i, primal, kept);
}

void KS(net_centre)(size_t rows, size_t columns, double *x)
{
    struct shift a = {.rows = rows, .d = columns};

    for (a.at = 0; a.at < columns; a.at += COLUMNS) {
        a.n = least(columns - a.at, COLUMNS);
        find_mean(&a, x);
        for (size_t k = 0; k < rows; k++)
            for (size_t j = 0; j < a.n; j++)
                x[k * columns + a.at + j] = shifted(&a, j, x[k * columns + a.at + j]);
    }
}
