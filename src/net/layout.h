/* A network for a fixed number of rows, and the layout of its blocks: where the arrays of each
 * layer lie. */
#ifndef KS_NET_LAYOUT_H
#define KS_NET_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "core/real.h"
#include "net/arch.h"

struct KS(net) {
    const struct KS(arch) *arch; /* not owned; must outlive the net */
    size_t rows;          /* R: rows of the input                                                */
    size_t out_rows;      /* B <= R: the last layer computes only the first B rows               */
    bool evaluation;      /* batchnorm uses running statistics                                   */
    size_t primal;        /* reals in a primal block: outputs and caches of all layers           */
    size_t adjoint;       /* reals in an adjoint block: the y_bar of all layers                  */
    size_t kept;          /* reals in a kept block: what the tangent passes read of these two    */
    size_t tangent;       /* reals in a tangent block: y_dot and cache_dot of all layers         */
    size_t scratch;       /* reals in a scratch block: work space of net_tangent_backward        */
    size_t scratch_array; /* reals in each array of a scratch block */
    bool input_invariant; /* as ks_layout.invariant, for the network's input; false if a later
                           * layer reads it, or running statistics depend on its mean */
    struct ks_layout *at; /* [n_layers] */
};

/* The offsets of a layer's arrays in the blocks. */
struct ks_layout {
    size_t y, cache;                       /* in a primal block                          */
    size_t y_bar, skip_bar;                /* in an adjoint block                        */
    size_t kept_y, kept_cache, kept_y_bar; /* in a kept block; KS_NOWHERE: not kept        */
    size_t y_dot, cache_dot;               /* in a tangent block                         */
    size_t skip_bar_dot;                   /* in a scratch block, for a container        */
    size_t rows;                           /* rows of y: out_rows for the last layer, else rows */
    size_t kept_own; /* the copy of y in a kept block that the layer itself reads. kept_y is the
                      * copy that later layers read; the two may be the same */
    bool recomputed; /* the tangent backward of the next layer recomputes y_bar */
    bool gate;       /* the tangent functions of the layer before do the work of this layer's */
    /* Adding the same row vector to all rows of y never changes the loss: y enters only batch norms
     * in training mode, through linear layers and residual sums. Then the columns of y_bar and of
     * its tangent sum to zero. */
    bool invariant;
    bool shifted; /* kept_y is y minus such a row: see net_keep */
};
#define KS_NOWHERE SIZE_MAX

/* Sets net->at and the sizes of the blocks, from arch, rows, out_rows and evaluation. */
void KS(layout_fill)(struct KS(net) *net);

#endif
