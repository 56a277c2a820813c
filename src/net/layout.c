/* The layout of a network's blocks: which arrays may share memory, and which must be kept because
 * the tangent passes read them. */
#include "net/layout.h"

#include <math.h>

#include "net/net.h"

/* Arrays inside a block start at multiples of 16 reals, a cache line in float32. */
static size_t padded(size_t n)
{
    return (n + 15) / 16 * 16;
}

size_t KS(layout_container)(const struct KS(arch) *arch, size_t i, size_t c)
{
    for (c = c > i ? c : i + 1; c < arch->n_layers; c++)
        if (arch->layer[c].body == i)
            return c;
    return arch->n_layers;
}

/* Whether a container's body starts at layer i. */
static bool opens(const struct KS(arch) *arch, size_t i)
{
    return KS(layout_container)(arch, i, 0) < arch->n_layers;
}

/* The number of containers around layer i. */
static size_t depth(const struct KS(arch) *arch, size_t i)
{
    size_t containers = 0;

    for (size_t c = i + 1; c < arch->n_layers; c++)
        containers += arch->layer[c].body <= i;
    return containers;
}

/* Whether the output of layer i is the network's, or the tangent passes of another layer read it.
 */
static bool output_is_read(const struct KS(arch) *arch, size_t i)
{
    bool read = i + 1 == arch->n_layers || (arch->layer[i + 1].uses & KS_USES_X) != 0;

    for (size_t c = KS(layout_container)(arch, i + 1, 0); c < arch->n_layers;
         c = KS(layout_container)(arch, i + 1, c + 1))
        read = read || (arch->layer[c].uses & KS_USES_SKIP) != 0;
    return read;
}

/* Sets ks_layout.invariant of all layers, from the last to the first. The rules are those for the
 * column sums of adjoints in analysis/operators/null_space.c. */
static void find_invariant(struct KS(net) *net)
{
    const struct KS(arch) *arch = net->arch;
    bool invariant = false;

    for (size_t i = arch->n_layers; i-- > 0;) {
        enum ks_sums sums = arch->layer[i].kind->sums;

        net->at[i].invariant = invariant;
        if (sums == KS_SUMS_COLUMNS && !net->evaluation)
            invariant = true;
        else if (sums != KS_SUMS_COLUMNS && sums != KS_SUMS_LINEAR && sums != KS_SUMS_COPIED)
            invariant = false;
        for (size_t c = KS(layout_container)(arch, i, 0); c < arch->n_layers;
             c = KS(layout_container)(arch, i, c + 1))
            invariant = invariant && net->at[c].invariant &&
                        arch->layer[c].kind->sums == KS_SUMS_COPIED;
    }
    for (size_t i = 0; i < arch->n_layers; i++)
        invariant = invariant && !arch->layer[i].kind->reads_input && !arch->layer[i].reads_state;
    net->input_invariant = invariant;
}

/* Whether tangent_backward of the next layer recomputes the adjoint y_bar of layer i. */
static bool is_recomputed(const struct KS(arch) *arch, size_t i)
{
    return i + 1 < arch->n_layers && arch->layer[i + 1].kind->recomputes_x_bar &&
           !opens(arch, i + 1);
}

/* Whether the tangent passes read y_bar of layer i from the kept block. */
static bool keeps_y_bar(const struct KS(arch) *arch, size_t i)
{
    return (arch->layer[i].uses & KS_USES_Y_BAR) != 0 && !is_recomputed(arch, i);
}

/* Whether layer i may overwrite x_dot with y_dot, and y_bar with x_bar. The input of a container's
 * body must not be overwritten, as the container reads it again. */
static bool in_place(const struct KS(arch) *arch, size_t i)
{
    return arch->layer[i].kind->in_place && i > 0 && !opens(arch, i);
}

/* Whether layer i may also overwrite x with y: neither the later passes nor the metrics of
 * activations read x. */
static bool overwrites_x(const struct KS(arch) *arch, size_t i)
{
    const struct KS(layer) *l = &arch->layer[i];

    return in_place(arch, i) && !(l->uses & KS_USES_X) && !(l[-1].uses & KS_USES_Y) &&
           l[-1].kind->role != KS_ACTIVATION;
}

/* Whether the tangent functions of layer i - 1 do the work of the gate that is layer i. */
static bool is_gate(const struct KS(arch) *arch, size_t i)
{
    const struct KS(layer) *l = &arch->layer[i];

    return l->kind->gates && (l->uses & KS_USES_SIGN) != 0 && in_place(arch, i) &&
           i + 1 < arch->n_layers && l[-1].kind->takes_gate;
}

/* Reserves n reals at the end of a block and returns their offset. */
static size_t reserve(size_t *block, size_t n)
{
    size_t at = *block;

    *block += padded(n);
    return at;
}

/* The size of one array in a scratch block: the widest activation. */
static size_t scratch_array(const struct KS(net) *net)
{
    size_t widest = 0;

    for (size_t i = 0; i < net->arch->n_layers; i++) {
        const struct KS(layer) *l = &net->arch->layer[i];

        widest = l->in > widest ? l->in : widest;
        widest = l->out > widest ? l->out : widest;
    }
    return padded(net->rows * widest);
}

static void lay_out_layer(struct KS(net) *net, size_t i)
{
    const struct KS(arch) *arch = net->arch;
    const struct KS(layer) *l = &arch->layer[i];
    struct ks_layout *at = &net->at[i];
    size_t rows = i + 1 == arch->n_layers ? net->out_rows : net->rows;
    size_t cache = rows * l->cache_row + l->cache_fixed;
    bool over = in_place(arch, i), over_y_bar = over && !(l->uses & KS_USES_Y_BAR);
    bool own = (l->uses & KS_USES_Y) != 0, read = output_is_read(arch, i);

    at->rows = rows;
    at->gate = is_gate(arch, i);
    at->recomputed = is_recomputed(arch, i);
    at->y = overwrites_x(arch, i) ? at[-1].y : reserve(&net->primal, rows * l->out);
    at->cache = reserve(&net->primal, cache);
    at->y_bar = over_y_bar ? at[-1].y_bar : reserve(&net->adjoint, net->rows * l->out);
    at->shifted = at->invariant && read;
    at->kept_y = own || read ? reserve(&net->kept, rows * l->out) : KS_NOWHERE;
    at->kept_own = at->kept_y;
    if (own && at->shifted && !(l->uses & KS_USES_SIGN))
        at->kept_own = reserve(&net->kept, rows * l->out);
    at->kept_cache = reserve(&net->kept, cache);
    at->kept_y_bar = keeps_y_bar(arch, i) ? reserve(&net->kept, rows * l->out) : KS_NOWHERE;
    at->y_dot = over ? at[-1].y_dot : reserve(&net->tangent, rows * l->out);
    at->cache_dot = reserve(&net->tangent, cache);
    at->skip_bar = at->skip_bar_dot = KS_NOWHERE;
    if (l->kind->container)
        at->skip_bar = reserve(&net->adjoint, net->rows * l->in);
}

/* A scratch block starts with FIXED arrays: two that alternate as y_bar_dot and x_bar_dot, two that
 * alternate as y_bar and x_bar. Then follows a skip_bar_dot per level of nested containers. */
enum { FIXED = 4 };

void KS(layout_fill)(struct KS(net) *net)
{
    const struct KS(arch) *arch = net->arch;
    size_t one = scratch_array(net), deepest = 0;

    find_invariant(net);
    for (size_t i = 0; i < arch->n_layers; i++)
        lay_out_layer(net, i);
    for (size_t i = 0; i < arch->n_layers; i++)
        if (arch->layer[i].kind->container) {
            size_t level = depth(arch, i);

            net->at[i].skip_bar_dot = (FIXED + level) * one;
            deepest = level + 1 > deepest ? level + 1 : deepest;
        }
    net->scratch = (FIXED + deepest) * one;
    net->scratch_array = one;
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
