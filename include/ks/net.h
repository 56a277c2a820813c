/* A network at work: the layers of a description in a row, for a fixed number of rows.
 *
 * Nothing is allocated here after ks_net_new: the caller provides blocks whose sizes the net
 * states. A net holds no parameters and no activations, so one net serves any number of threads. */
#ifndef KS_NET_H
#define KS_NET_H

#include <stdbool.h>
#include <stddef.h>

#include "ks/arch.h"
#include "ks/error.h"
#include "ks/real.h"

struct ks_net {
    const struct ks_arch *arch; /* not owned: outlives the net */
    size_t rows;     /* R: rows that pass through the layers                                */
    size_t out_rows; /* B <= R: rows whose outputs are wanted; the last layer sees only these */
    bool evaluation; /* batchnorm uses running statistics                                   */
    size_t primal;   /* reals in a primal block: outputs and caches of all layers           */
    size_t adjoint;  /* reals in an adjoint block: the y_bar of all layers                  */
    size_t tangent;  /* reals in a tangent block: y_dot and cache_dot of all layers         */
    size_t scratch;  /* reals in a scratch block: two activations of the widest layer       */
    size_t *y_at, *cache_at; /* [n_layers]: places in a primal block, and in a tangent block */
    size_t *bar_at;          /* [n_layers]: places of y_bar in an adjoint block              */
};

ks_status KS(net_new)(const struct ks_arch *arch, size_t rows, size_t out_rows, bool evaluation,
                      struct ks_net **net);
void KS(net_free)(struct ks_net *net);

/* The outputs [out_rows, arch->out] inside a primal block; inside an adjoint block their adjoint,
 * which the caller fills before net_backward; inside a tangent block their tangent. */
real *KS(net_output)(const struct ks_net *net, real *primal);
real *KS(net_output_bar)(const struct ks_net *net, real *adjoint);
/* The input of the last layer, [out_rows, in of the last layer]: the penultimate features. */
const real *KS(net_features)(const struct ks_net *net, const real *primal);

/* y = f(x; w). x [rows, in]; state [states]: read in evaluation mode, moved in training mode, may
 * be NULL there: not moved. Fills the primal block. */
void KS(net_forward)(const struct ks_net *net, const real *w, real *state, const real *x,
                     real *primal);

/* From output_bar in the adjoint block: fills the rest of that block; w_bar [parameters] is added
 * to, x_bar [rows, in] set; either may be NULL: not wanted. */
void KS(net_backward)(const struct ks_net *net, const real *w, const real *x, const real *primal,
                      real *adjoint, real *x_bar, real *w_bar);

/* The tangent along w_dot of the outputs, x held constant; fills the tangent block. */
void KS(net_tangent_forward)(const struct ks_net *net, const real *w, const real *w_dot,
                             const real *x, const real *primal, real *tangent);

/* The tangent of net_backward: w_bar_dot [parameters] is added to. output_bar_dot [out_rows, out];
 * `adjoint` as net_backward left it. */
void KS(net_tangent_backward)(const struct ks_net *net, const real *w, const real *w_dot,
                              const real *x, const real *primal, const real *adjoint,
                              const real *tangent, const real *output_bar_dot, real *scratch,
                              real *w_bar_dot);

#endif
