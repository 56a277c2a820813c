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

static void lay_out(struct ks_net *net)
{
    size_t widest = 0;

    for (size_t i = 0; i < net->arch->n_layers; i++) {
        const struct ks_layer *l = &net->arch->layer[i];
        size_t rows = layer_rows(net, i);

        net->y_at[i] = net->primal;
        net->cache_at[i] = net->y_at[i] + padded(rows * l->out);
        net->primal = net->cache_at[i] + padded(rows * l->cache_row + l->cache_fixed);
        net->bar_at[i] = net->adjoint;
        net->adjoint += padded(net->rows * l->out);
        widest = l->in > widest ? l->in : widest;
        widest = l->out > widest ? l->out : widest;
    }
    net->tangent = net->primal;
    net->scratch = 2 * padded(net->rows * widest);
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
    KS_GO(ks_alloc(arch->n_layers, sizeof *n->y_at, &n->y_at));
    KS_GO(ks_alloc(arch->n_layers, sizeof *n->cache_at, &n->cache_at));
    KS_GO(ks_alloc(arch->n_layers, sizeof *n->bar_at, &n->bar_at));
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
    free(net->y_at);
    free(net->cache_at);
    free(net->bar_at);
    free(net);
}

real *KS(net_output)(const struct ks_net *net, real *primal)
{
    return primal + net->y_at[net->arch->n_layers - 1];
}

real *KS(net_output_bar)(const struct ks_net *net, real *adjoint)
{
    return adjoint + net->bar_at[net->arch->n_layers - 1];
}

const real *KS(net_features)(const struct ks_net *net, const real *primal)
{
    assert(net->arch->n_layers > 1);
    return primal + net->y_at[net->arch->n_layers - 2];
}

/* The arrays of layer i that all four functions share. */
static struct ks_pass pass(const struct ks_net *net, size_t i, const real *w, const real *x,
                           const real *primal)
{
    const struct ks_layer *l = &net->arch->layer[i];

    return (struct ks_pass){
        .rows = layer_rows(net, i),
        .evaluation = net->evaluation,
        .x = i == 0 ? x : primal + net->y_at[i - 1],
        .w = w + l->offset,
        .y = (real *)primal + net->y_at[i],
        .cache = (real *)primal + net->cache_at[i],
    };
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

void KS(net_backward)(const struct ks_net *net, const real *w, const real *x, const real *primal,
                      real *adjoint, real *x_bar, real *w_bar)
{
    size_t last = net->arch->n_layers - 1;

    for (size_t i = last + 1; i-- > 0;) {
        const struct ks_layer *l = &net->arch->layer[i];
        struct ks_pass p = pass(net, i, w, x, primal);

        p.y_bar = adjoint + net->bar_at[i];
        p.x_bar = i == 0 ? x_bar : adjoint + net->bar_at[i - 1];
        p.w_bar = w_bar ? w_bar + l->offset : NULL;
        l->kind->backward(l, &p);
        if (i == last && p.x_bar)
            clear_other_rows(net, l->in, p.x_bar);
    }
}

/* Adds the tangent's arrays to a pass. */
static void add_tangent(const struct ks_net *net, size_t i, const real *w_dot, const real *tangent,
                        struct ks_pass *p)
{
    p->w_dot = w_dot + net->arch->layer[i].offset;
    p->x_dot = i == 0 ? NULL : tangent + net->y_at[i - 1];
    p->y_dot = (real *)tangent + net->y_at[i];
    p->cache_dot = (real *)tangent + net->cache_at[i];
}

void KS(net_tangent_forward)(const struct ks_net *net, const real *w, const real *w_dot,
                             const real *x, const real *primal, real *tangent)
{
    for (size_t i = 0; i < net->arch->n_layers; i++) {
        const struct ks_layer *l = &net->arch->layer[i];
        struct ks_pass p = pass(net, i, w, x, primal);

        add_tangent(net, i, w_dot, tangent, &p);
        l->kind->tangent_forward(l, &p);
    }
}

void KS(net_tangent_backward)(const struct ks_net *net, const real *w, const real *w_dot,
                              const real *x, const real *primal, const real *adjoint,
                              const real *tangent, const real *output_bar_dot, real *scratch,
                              real *w_bar_dot)
{
    size_t last = net->arch->n_layers - 1;
    real *bar_dot[2] = {scratch, scratch + net->scratch / 2}; /* in turn: y's and x's */

    for (size_t i = last + 1; i-- > 0;) {
        const struct ks_layer *l = &net->arch->layer[i];
        struct ks_pass p = pass(net, i, w, x, primal);

        add_tangent(net, i, w_dot, tangent, &p);
        p.y_bar = adjoint + net->bar_at[i];
        p.y_bar_dot = i == last ? output_bar_dot : bar_dot[i % 2];
        p.x_bar_dot = i == 0 ? NULL : bar_dot[(i + 1) % 2];
        p.w_bar_dot = w_bar_dot + l->offset;
        l->kind->tangent_backward(l, &p);
        if (i == last && p.x_bar_dot)
            clear_other_rows(net, l->in, p.x_bar_dot);
    }
}
