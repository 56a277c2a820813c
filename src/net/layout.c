/* Where the arrays of a network's layers lie in their blocks: which of them may share a place, and
 * which the tangent passes read, so that they are kept. */
#include "net/layout.h"

/* Arrays inside a block start at multiples of 16 reals: one cache line in float. */
static size_t padded(size_t n)
{
    return (n + 15) / 16 * 16;
}

size_t KS(layout_container)(const struct ks_arch *arch, size_t i, size_t c)
{
    for (c = c > i ? c : i + 1; c < arch->n_layers; c++)
        if (arch->layer[c].body == i)
            return c;
    return arch->n_layers;
}

static bool opens(const struct ks_arch *arch, size_t i)
{
    return KS(layout_container)(arch, i, 0) < arch->n_layers;
}

/* Containers around the place where layer i stands. */
static size_t depth(const struct ks_arch *arch, size_t i)
{
    size_t containers = 0;

    for (size_t c = i + 1; c < arch->n_layers; c++)
        containers += arch->layer[c].body <= i;
    return containers;
}

/* The tangent passes read the output of layer i in other layers than i, or it is that of the net.
 */
static bool is_read(const struct ks_arch *arch, size_t i)
{
    bool read = i + 1 == arch->n_layers || (arch->layer[i + 1].uses & KS_USES_X) != 0;

    for (size_t c = KS(layout_container)(arch, i + 1, 0); c < arch->n_layers;
         c = KS(layout_container)(arch, i + 1, c + 1))
        read = read || (arch->layer[c].uses & KS_USES_SKIP) != 0;
    return read;
}

/* Finds what is invariant, from the outputs back to the input: see what null_space.c says of the
 * columns of adjoints. */
static void find_invariant(struct ks_net *net)
{
    const struct ks_arch *arch = net->arch;
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
    net->input_invariant = invariant;
}

/* The layer above gives layer i its adjoint once more, in its tangent's backward pass. */
static bool is_remade(const struct ks_arch *arch, size_t i)
{
    return i + 1 < arch->n_layers && arch->layer[i + 1].kind->remakes_x_bar && !opens(arch, i + 1);
}

/* The tangent passes read the adjoint of layer i's output from the kept block. */
static bool keeps_y_bar(const struct ks_arch *arch, size_t i)
{
    return (arch->layer[i].uses & KS_USES_Y_BAR) != 0 && !is_remade(arch, i);
}

/* Layer i may write its outputs' tangent over its input's, and adjoints likewise. */
static bool in_place(const struct ks_arch *arch, size_t i)
{
    return arch->layer[i].kind->in_place && i > 0 && !opens(arch, i);
}

/* Layer i may write its outputs over its inputs, too: nobody reads those any more, neither the
 * passes that follow nor who measures activations. */
static bool covers_x(const struct ks_arch *arch, size_t i)
{
    const struct ks_layer *l = &arch->layer[i];

    return in_place(arch, i) && !(l->uses & KS_USES_X) && !(l[-1].uses & KS_USES_Y) &&
           l[-1].kind->role != KS_ACTIVATION;
}

/* A place for n reals at the end of a block, which grows. */
static size_t take(size_t *block, size_t n)
{
    size_t at = *block;

    *block += padded(n);
    return at;
}

/* Reals of one array in a scratch block: an activation of the widest layer. */
static size_t scratch_array(const struct ks_net *net)
{
    size_t widest = 0;

    for (size_t i = 0; i < net->arch->n_layers; i++) {
        const struct ks_layer *l = &net->arch->layer[i];

        widest = l->in > widest ? l->in : widest;
        widest = l->out > widest ? l->out : widest;
    }
    return padded(net->rows * widest);
}

static void place_layer(struct ks_net *net, size_t i)
{
    const struct ks_arch *arch = net->arch;
    const struct ks_layer *l = &arch->layer[i];
    struct ks_layout *at = &net->at[i];
    size_t rows = i + 1 == arch->n_layers ? net->out_rows : net->rows;
    size_t cache = rows * l->cache_row + l->cache_fixed;
    bool over = in_place(arch, i), over_y_bar = over && !(l->uses & KS_USES_Y_BAR);
    bool own = (l->uses & KS_USES_Y) != 0, read = is_read(arch, i);

    at->rows = rows;
    at->remade = is_remade(arch, i);
    at->y = covers_x(arch, i) ? at[-1].y : take(&net->primal, rows * l->out);
    at->cache = take(&net->primal, cache);
    at->y_bar = over_y_bar ? at[-1].y_bar : take(&net->adjoint, net->rows * l->out);
    at->lowered = at->invariant && read;
    at->kept_y = own || read ? take(&net->kept, rows * l->out) : KS_NOWHERE;
    at->kept_own = at->kept_y;
    if (own && at->lowered && !(l->uses & KS_USES_SIGN))
        at->kept_own = take(&net->kept, rows * l->out);
    at->kept_cache = take(&net->kept, cache);
    at->kept_y_bar = keeps_y_bar(arch, i) ? take(&net->kept, rows * l->out) : KS_NOWHERE;
    at->y_dot = over ? at[-1].y_dot : take(&net->tangent, rows * l->out);
    at->cache_dot = take(&net->tangent, cache);
    at->skip_bar = at->skip_bar_dot = KS_NOWHERE;
    if (l->kind->container)
        at->skip_bar = take(&net->adjoint, net->rows * l->in);
}

/* A scratch block: y_bar_dot and x_bar_dot in turn, y_bar and x_bar in turn, then the skip_bar_dot
 * of open containers. */
enum { FIXED = 4 };

void KS(layout_fill)(struct ks_net *net)
{
    const struct ks_arch *arch = net->arch;
    size_t one = scratch_array(net), deepest = 0;

    find_invariant(net);
    for (size_t i = 0; i < arch->n_layers; i++)
        place_layer(net, i);
    for (size_t i = 0; i < arch->n_layers; i++)
        if (arch->layer[i].kind->container) {
            size_t level = depth(arch, i);

            net->at[i].skip_bar_dot = (FIXED + level) * one;
            deepest = level + 1 > deepest ? level + 1 : deepest;
        }
    net->scratch = (FIXED + deepest) * one;
    net->scratch_array = one;
}
