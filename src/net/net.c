#include "ks/net.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "ks/memory.h"

/* Arrays inside a block start at multiples of 16 reals: one cache line in float. */
static size_t padded(size_t n)
{
    return (n + 15) / 16 * 16;
}

/* Rows that layer i sees: the last one only those whose outputs are wanted. */
static size_t layer_rows(const struct ks_net *net, size_t i)
{
    return i + 1 == net->arch->n_layers ? net->out_rows : net->rows;
}

/* A container opens in front of layer i, whose input must therefore stay: one that closes as layer
 * c (the next one from c on) has its place returned; n_layers: none. */
static size_t opening(const struct ks_arch *arch, size_t i, size_t c)
{
    for (c = c > i ? c : i + 1; c < arch->n_layers; c++)
        if (arch->layer[c].body == i)
            return c;
    return arch->n_layers;
}

static bool opens(const struct ks_arch *arch, size_t i)
{
    return opening(arch, i, 0) < arch->n_layers;
}

/* Containers around the place where layer i stands. */
static size_t depth(const struct ks_arch *arch, size_t i)
{
    size_t containers = 0;

    for (size_t c = i + 1; c < arch->n_layers; c++)
        containers += arch->layer[c].body <= i;
    return containers;
}

/* The tangent passes read the output of layer i. */
static bool keeps_y(const struct ks_arch *arch, size_t i)
{
    const struct ks_layer *l = &arch->layer[i];
    bool last = i + 1 == arch->n_layers, read = last || (l->uses & KS_USES_Y) != 0;

    if (!last) {
        read = read || (l[1].uses & KS_USES_X) != 0;
        for (size_t c = opening(arch, i + 1, 0); c < arch->n_layers;
             c = opening(arch, i + 1, c + 1))
            read = read || (arch->layer[c].uses & KS_USES_SKIP) != 0;
    }
    return read;
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
    struct ks_places *at = &net->at[i];
    size_t rows = layer_rows(net, i), cache = rows * l->cache_row + l->cache_fixed;
    bool over = in_place(arch, i), over_y_bar = over && !(l->uses & KS_USES_Y_BAR);

    at->y = covers_x(arch, i) ? at[-1].y : take(&net->primal, rows * l->out);
    at->cache = take(&net->primal, cache);
    at->y_bar = over_y_bar ? at[-1].y_bar : take(&net->adjoint, net->rows * l->out);
    at->kept_y = keeps_y(arch, i) ? take(&net->kept, rows * l->out) : KS_NOWHERE;
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

static void lay_out(struct ks_net *net)
{
    const struct ks_arch *arch = net->arch;
    size_t one = scratch_array(net), deepest = 0;

    for (size_t i = 0; i < arch->n_layers; i++)
        place_layer(net, i);
    for (size_t i = 0; i < arch->n_layers; i++)
        if (arch->layer[i].kind->container) {
            size_t level = depth(arch, i);

            net->at[i].skip_bar_dot = (FIXED + level) * one;
            deepest = level + 1 > deepest ? level + 1 : deepest;
        }
    net->scratch = (FIXED + deepest) * one;
}

ks_status KS(net_new)(const struct ks_arch *arch, size_t rows, size_t out_rows, bool evaluation,
                      struct ks_net **net)
{
    ks_status status = KS_OK;
    struct ks_net *n = NULL;

    assert(rows > 0 && out_rows > 0 && out_rows <= rows);
    *net = NULL;
    KS_GO(ks_alloc(1, sizeof *n, &n));
    n->arch = arch;
    n->rows = rows;
    n->out_rows = out_rows;
    n->evaluation = evaluation;
    KS_GO(ks_alloc(arch->n_layers, sizeof *n->at, &n->at));
    lay_out(n);
    *net = n;
    return KS_OK;
done:
    KS(net_free)(n);
    return status;
}

void KS(net_free)(struct ks_net *net)
{
    if (!net)
        return;
    free(net->at);
    free(net);
}

static const struct ks_places *last(const struct ks_net *net)
{
    return &net->at[net->arch->n_layers - 1];
}

real *KS(net_output)(const struct ks_net *net, real *primal)
{
    return primal + last(net)->y;
}

real *KS(net_output_dot)(const struct ks_net *net, real *tangent)
{
    return tangent + last(net)->y_dot;
}

const real *KS(net_kept_output)(const struct ks_net *net, const real *kept)
{
    return kept + last(net)->kept_y;
}

real *KS(net_output_bar)(const struct ks_net *net, real *adjoint)
{
    return adjoint + last(net)->y_bar;
}

const real *KS(net_features)(const struct ks_net *net, const real *primal)
{
    assert(net->arch->n_layers > 1);
    return primal + net->at[net->arch->n_layers - 2].y;
}

/* What enters layer i, or the body that starts there: the network's input, or an output. */
static const real *input(const struct ks_net *net, size_t i, const real *x, const real *primal)
{
    return i == 0 ? x : primal + net->at[i - 1].y;
}

/* The arrays of layer i for the first two functions. */
static struct ks_pass pass(const struct ks_net *net, size_t i, const real *w, const real *x,
                           real *primal)
{
    const struct ks_layer *l = &net->arch->layer[i];
    struct ks_pass p = {
        .rows = layer_rows(net, i),
        .evaluation = net->evaluation,
        .x = input(net, i, x, primal),
        .w = w + l->offset,
        .y = primal + net->at[i].y,
        .cache = primal + net->at[i].cache,
    };

    if (l->kind->container)
        p.skip = input(net, l->body, x, primal);
    return p;
}

void KS(net_forward)(const struct ks_net *net, const real *w, real *state, const real *x,
                     real *primal)
{
    for (size_t i = 0; i < net->arch->n_layers; i++) {
        const struct ks_layer *l = &net->arch->layer[i];
        struct ks_pass p = pass(net, i, w, x, primal);

        p.state = state ? state + l->state_offset : NULL;
        l->kind->forward(l, &p);
    }
}

/* The last layer gives adjoints to its rows only; those of the other rows are zero. */
static void clear_other_rows(const struct ks_net *net, size_t columns, real *bar)
{
    memset(bar + net->out_rows * columns, 0, (net->rows - net->out_rows) * columns * sizeof *bar);
}

/* x_bar += skip_bar of the containers that open in front of layer i. */
static void add_skip(size_t n, const real *restrict skip_bar, real *restrict x_bar)
{
    for (size_t i = 0; i < n; i++)
        x_bar[i] += skip_bar[i];
}

void KS(net_backward)(const struct ks_net *net, const struct ks_net_backward *b)
{
    const struct ks_arch *arch = net->arch;

    for (size_t i = arch->n_layers; i-- > 0;) {
        const struct ks_layer *l = &arch->layer[i];
        struct ks_pass p = pass(net, i, b->w, b->x, b->primal);

        p.y_bar = b->adjoint + net->at[i].y_bar;
        p.x_bar = i == 0 ? b->x_bar : b->adjoint + net->at[i - 1].y_bar;
        p.w_bar = b->w_bar ? b->w_bar + l->offset : NULL;
        p.skip_bar = l->kind->container ? b->adjoint + net->at[i].skip_bar : NULL;
        l->kind->backward(l, &p);
        if (i + 1 == arch->n_layers && p.x_bar)
            clear_other_rows(net, l->in, p.x_bar);
        for (size_t c = opening(arch, i, 0); c < arch->n_layers && p.x_bar;
             c = opening(arch, i, c + 1))
            add_skip(net->rows * l->in, b->adjoint + net->at[c].skip_bar, p.x_bar);
    }
}

static void keep(size_t n, const double *from, size_t at, real *kept)
{
    if (at == KS_NOWHERE)
        return;
    for (size_t i = 0; i < n; i++)
        kept[at + i] = (real)from[i];
}

void KS(net_keep)(const struct ks_net *net, const double *primal, const double *adjoint, real *kept)
{
    for (size_t i = 0; i < net->arch->n_layers; i++) {
        const struct ks_layer *l = &net->arch->layer[i];
        const struct ks_places *at = &net->at[i];
        size_t rows = layer_rows(net, i);

        keep(rows * l->out, primal + at->y, at->kept_y, kept);
        keep(rows * l->cache_row + l->cache_fixed, primal + at->cache, at->kept_cache, kept);
        keep(rows * l->out, adjoint + at->y_bar, at->kept_y_bar, kept);
    }
}

static const real *kept_array(const real *kept, size_t at)
{
    return at == KS_NOWHERE ? NULL : kept + at;
}

static const real *kept_input(const struct ks_net *net, size_t i, const real *x, const real *kept)
{
    return i == 0 ? x : kept_array(kept, net->at[i - 1].kept_y);
}

static const real *input_dot(const struct ks_net *net, size_t i, const real *tangent)
{
    return i == 0 ? NULL : tangent + net->at[i - 1].y_dot;
}

/* The arrays of layer i for the tangent functions, which only read y and the cache. */
static struct ks_pass tangent_pass(const struct ks_net *net, size_t i,
                                   const struct ks_net_tangent *t)
{
    const struct ks_layer *l = &net->arch->layer[i];
    const struct ks_places *at = &net->at[i];
    struct ks_pass p = {
        .rows = layer_rows(net, i),
        .evaluation = net->evaluation,
        .x = kept_input(net, i, t->x, t->kept),
        .w = t->w + l->offset,
        .y = (real *)kept_array(t->kept, at->kept_y),
        .cache = (real *)t->kept + at->kept_cache,
        .y_bar = kept_array(t->kept, at->kept_y_bar),
        .gauss_newton = t->gauss_newton,
        .w_dot = t->w_dot + l->offset,
        .x_dot = input_dot(net, i, t->tangent),
        .y_dot = t->tangent + at->y_dot,
        .cache_dot = t->tangent + at->cache_dot,
    };

    if (l->kind->container) {
        p.skip = kept_input(net, l->body, t->x, t->kept);
        p.skip_dot = input_dot(net, l->body, t->tangent);
    }
    return p;
}

void KS(net_tangent_forward)(const struct ks_net *net, const struct ks_net_tangent *t)
{
    for (size_t i = 0; i < net->arch->n_layers; i++) {
        const struct ks_layer *l = &net->arch->layer[i];
        struct ks_pass p = tangent_pass(net, i, t);

        l->kind->tangent_forward(l, &p);
    }
}

void KS(net_tangent_backward)(const struct ks_net *net, const struct ks_net_tangent *t,
                              const real *output_bar_dot, real *scratch, real *w_bar_dot)
{
    const struct ks_arch *arch = net->arch;
    size_t one = scratch_array(net);
    const real *bar_dot = output_bar_dot;
    real *own = scratch; /* where bar_dot lies, or would: it is the caller's at first */
    real *remade = NULL; /* x_bar of the layer above */

    for (size_t i = arch->n_layers; i-- > 0;) {
        const struct ks_layer *l = &arch->layer[i];
        struct ks_pass p = tangent_pass(net, i, t);
        real *other = own == scratch ? scratch + one : scratch;

        p.y_bar_dot = bar_dot;
        p.x_bar_dot = i == 0 ? NULL : l->kind->in_place && bar_dot == own ? own : other;
        p.w_bar_dot = w_bar_dot + l->offset;
        if (is_remade(arch, i))
            p.y_bar = remade;
        remade = scratch + (i % 2 == 0 ? 2 : 3) * one;
        p.x_bar = i > 0 && is_remade(arch, i - 1) ? remade : NULL;
        p.skip_bar_dot = l->kind->container ? scratch + net->at[i].skip_bar_dot : NULL;
        l->kind->tangent_backward(l, &p);
        if (i == 0)
            return;
        if (i + 1 == arch->n_layers)
            clear_other_rows(net, l->in, p.x_bar_dot);
        for (size_t c = opening(arch, i, 0); c < arch->n_layers; c = opening(arch, i, c + 1))
            add_skip(net->rows * l->in, scratch + net->at[c].skip_bar_dot, p.x_bar_dot);
        bar_dot = own = p.x_bar_dot;
    }
}
