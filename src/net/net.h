/* A network at work: the layers of a description in a row, for a fixed number of rows.
 *
 * Nothing is allocated here after ks_net_new: the caller provides blocks whose sizes the net
 * states. A net holds no parameters and no activations, so one net serves any number of threads. */
#ifndef KS_NET_NET_H
#define KS_NET_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "core/real.h"
#include "net/arch.h"

struct ks_net {
    const struct ks_arch *arch; /* not owned: outlives the net */
    size_t rows;     /* R: rows that pass through the layers                                */
    size_t out_rows; /* B <= R: rows whose outputs are wanted; the last layer sees only these */
    bool evaluation; /* batchnorm uses running statistics                                   */
    size_t primal;   /* reals in a primal block: outputs and caches of all layers           */
    size_t adjoint;  /* reals in an adjoint block: the y_bar of all layers                  */
    size_t kept;     /* reals in a kept block: what of both the tangent passes read         */
    size_t tangent;  /* reals in a tangent block: y_dot and cache_dot of all layers         */
    size_t scratch;  /* reals in a scratch block: y_bar_dot, x_bar_dot, one per open container */
    size_t scratch_array; /* reals in each array of it */
    bool input_invariant; /* the input is what ks_layout.invariant says of a layer's output */
    struct ks_layout *at; /* [n_layers] */
};

/* Where the arrays of a layer lie in their blocks. */
struct ks_layout {
    size_t y, cache;                       /* in a primal block                          */
    size_t y_bar, skip_bar;                /* in an adjoint block                        */
    size_t kept_y, kept_cache, kept_y_bar; /* in a kept block; KS_NOWHERE: not kept      */
    size_t y_dot, cache_dot;               /* in a tangent block                         */
    size_t skip_bar_dot;                   /* in a scratch block, for a container        */
    size_t rows;                           /* that the layer sees: out_rows if last      */
    size_t kept_own; /* the copy of y in a kept block that the layer itself reads; kept_y is the one
                      * that the layers behind it read, and the two may be the same */
    bool remade;     /* its y_bar comes from the tangent backward of the layer above */
    /* Adding one row vector to all rows of y leaves the loss as it is, for every theta: y reaches
     * nothing but batch norms in training mode, through linear layers and residual sums. Then the
     * columns of y_bar and of its tangent sum to zero. */
    bool invariant;
    bool lowered; /* kept_y is y less such a row: see net_keep */
};
#define KS_NOWHERE SIZE_MAX

ks_status KS(net_new)(const struct ks_arch *arch, size_t rows, size_t out_rows, bool evaluation,
                      struct ks_net **net);
void KS(net_free)(struct ks_net *net);

/* The outputs [out_rows, arch->out] inside a primal block, their tangent inside a tangent block,
 * and inside an adjoint block their adjoint, which the caller fills before net_backward. */
real *KS(net_output)(const struct ks_net *net, real *primal);
real *KS(net_output_dot)(const struct ks_net *net, real *tangent);
const real *KS(net_kept_output)(const struct ks_net *net, const real *kept);
real *KS(net_output_bar)(const struct ks_net *net, real *adjoint);
/* The input of the last layer, [out_rows, in of the last layer]: the penultimate features. */
const real *KS(net_features)(const struct ks_net *net, const real *primal);

/* y = f(x; w). x [rows, in]; state [states]: read in evaluation mode, moved in training mode, may
 * be NULL there: not moved. Fills the primal block. */
void KS(net_forward)(const struct ks_net *net, const real *w, real *state, const real *x,
                     real *primal);

/* From the output's adjoint to those of the parameters and of the input. */
struct ks_net_backward {
    const real *w, *x;
    real *primal;  /* as forward left it; backward completes the caches there */
    real *adjoint; /* net_output_bar is read, the rest filled                 */
    real *x_bar;   /* [rows, in], set; NULL: not wanted                       */
    real *w_bar;   /* [parameters], added to; NULL: not wanted                */
};
void KS(net_backward)(const struct ks_net *net, const struct ks_net_backward *pass);

/* Copies into a kept block what the tangent passes read of a primal and an adjoint block, which are
 * in float64 whatever the precision of the passes.
 *
 * Where an output is `invariant`, each of its columns is kept less its mean, found in float64. The
 * tangent passes read such an output x as X W_dot, of which the next batchnorm subtracts the mean
 * over the rows, and as X' Y_bar_dot, where the columns of Y_bar_dot sum to zero: so the result is
 * the same in exact arithmetic, but a mean that is large beside the deviations from it no longer
 * cancels in the precision of the passes. */
void KS(net_keep)(const struct ks_net *net, const double *primal, const double *adjoint,
                  real *kept);

/* x [rows, columns] less the mean of its rows, in place. */
void KS(net_centre)(size_t rows, size_t columns, double *x);

/* The tangent along w_dot, x held constant. */
struct ks_net_tangent {
    const real *w, *w_dot, *x, *kept;
    real *tangent;     /* block; filled by the forward pass                             */
    bool gauss_newton; /* the kept block is of an output adjoint of zero; then the backward
                        * pass is J' output_bar_dot                                     */
};
void KS(net_tangent_forward)(const struct ks_net *net, const struct ks_net_tangent *pass);
/* The tangent of net_backward: output_bar_dot [out_rows, out]; w_bar_dot [parameters] is added to.
 */
void KS(net_tangent_backward)(const struct ks_net *net, const struct ks_net_tangent *pass,
                              const real *output_bar_dot, real *scratch, real *w_bar_dot);

#endif
