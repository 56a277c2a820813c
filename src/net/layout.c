/* The layout of a network's blocks: which arrays may share memory, and which must be kept because
 * the tangent passes read them. */
#include "net/net.h"

/* Arrays inside a block start at multiples of 16 reals, a cache line in float32. */
static size_t padded(size_t n)
{
    return (n + 15) / 16 * 16;
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

    for (size_t c = i + 2; c < arch->n_layers; c++)
        if (arch->layer[c].body == i + 1)
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
        for (size_t c = i + 1; c < arch->n_layers; c++)
            if (arch->layer[c].body == i)
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
           !ks_arch_opens(arch, i + 1);
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
    return arch->layer[i].kind->in_place && i > 0 && !ks_arch_opens(arch, i);
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
