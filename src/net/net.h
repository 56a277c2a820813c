/* A network: the passes through all layers of a description, for a fixed number of rows.
 *
 * A net holds no parameters and no activations, so any number of threads can share it. The caller
 * allocates the blocks that the passes work on; ks_net states their sizes. Only ks_net_new
 * allocates. */
#ifndef KS_NET_NET_H
#define KS_NET_NET_H

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

/* layout.c. Sets net->at and the sizes of the blocks, from arch, rows, out_rows and evaluation. */
void KS(layout_fill)(struct KS(net) *net);

/* A net for inputs of `rows` rows, of which the last layer computes the first out_rows.
 * `evaluation` is the mode of batchnorm. Fails only for lack of memory; the caller frees with
 * net_free. */
ks_status KS(net_new)(const struct KS(arch) *arch, size_t rows, size_t out_rows, bool evaluation,
                      struct KS(net) **net);
void KS(net_free)(struct KS(net) *net);

/* Into how many microbatches of at most KS_MICROBATCH rows a minibatch of `rows` rows is divided,
 * so that the blocks of a pass stay small: one if it has at most KS_MINIBATCH rows, or if a layer
 * couples rows. It depends on nothing else, so that sums have the same order on every machine. */
enum { KS_MINIBATCH = 4096, KS_MICROBATCH = 1024 };
size_t KS(net_microbatches)(const struct KS(arch) *arch, size_t rows, bool evaluation);

/* The network's output [out_rows, arch->out] inside a primal or a kept block, its tangent inside a
 * tangent block, and its adjoint inside an adjoint block: the caller sets the adjoint before
 * net_backward. */
real *KS(net_output)(const struct KS(net) *net, real *primal);
real *KS(net_output_dot)(const struct KS(net) *net, real *tangent);
const real *KS(net_kept_output)(const struct KS(net) *net, const real *kept);
real *KS(net_output_bar)(const struct KS(net) *net, real *adjoint);
/* The penultimate features: the input of the last layer, [out_rows, in of the last layer]. */
const real *KS(net_features)(const struct KS(net) *net, const real *primal);

/* Parameters w are extended vectors (arch.h), and so are their tangents w_dot, with zeros behind
 * the parameters. Adjoints w_bar are not: frozen layers have none.
 *
 * y = f(x; w): fills the primal block. x [rows, in]; state [states] holds the running averages,
 * which are read in evaluation mode and updated in training mode. NULL in training mode: they are
 * not updated, and batchrenorm is batchnorm; norm=spectral needs them. */
void KS(net_forward)(const struct KS(net) *net, const real *w, real *state, const real *x,
                     real *primal);

/* The backward pass: from the output's adjoint to the adjoints of the parameters and of the input.
 */
struct KS(net_backward) {
    const real *w, *x;
    real *primal;  /* as filled by net_forward; the caches are completed */
    real *adjoint; /* in: net_output_bar; the rest is filled             */
    real *x_bar;   /* [rows, in], set; NULL: not computed                */
    real *w_bar;   /* [parameters], added to; NULL: not computed         */
};
void KS(net_backward)(const struct KS(net) *net, const struct KS(net_backward) *pass);

/* Fills a kept block with what the tangent passes read of a primal and an adjoint block. Those are
 * in float64 whatever the precision of the tangent passes.
 *
 * From an output that is `invariant`, the mean of each column is subtracted in float64 first (or,
 * if its signs matter, a smaller number). This does not change the result in exact arithmetic: the
 * tangent passes use such an output x only as X W_dot, from which the next batchnorm subtracts the
 * mean over the rows, and as X' Y_bar_dot, where the columns of Y_bar_dot sum to zero. But it
 * avoids the cancellation, in the precision of the passes, of a mean that is large compared to the
 * deviations from it. */
void KS(net_keep)(const struct KS(net) *net, const double *primal, const double *adjoint,
                  real *kept);

/* Subtracts from each column of x [rows, columns] its mean, in place. */
void KS(net_centre)(size_t rows, size_t columns, double *x);

/* The tangents of both passes in the direction w_dot, with x constant. */
struct KS(net_tangent) {
    const real *w, *w_dot, *x;
    const real *kept;  /* as filled by net_keep                                             */
    real *tangent;     /* block, filled by net_tangent_forward                         */
    bool gauss_newton; /* the kept block was made with an output adjoint of zero: then the
                        * backward pass computes J' output_bar_dot, J = dy/dw          */
};
void KS(net_tangent_forward)(const struct KS(net) *net, const struct KS(net_tangent) *pass);
/* The tangent of net_backward. output_bar_dot [out_rows, out] is read; w_bar_dot [parameters] is
 * added to. Needs a preceding net_tangent_forward. */
void KS(net_tangent_backward)(const struct KS(net) *net, const struct KS(net_tangent) *pass,
                              const real *output_bar_dot, real *scratch, real *w_bar_dot);

#endif
