/* The Lanczos process with full reorthogonalization. */
#ifndef KS_LANCZOS_H
#define KS_LANCZOS_H

#include <stddef.h>
#include <stdint.h>

#include "ks/error.h"
#include "ks/operator.h"

/* One probe's Jacobi matrix and its spectral decomposition. */
struct ks_lanczos {
    size_t order, steps;     /* asked for; taken: fewer after a breakdown */
    double *alpha, *beta;    /* [order]: beta[j] couples j and j+1, the last one is the residual norm;
                              * NaN from `steps` on */
    double *ritz, *weight, *residual; /* [order]: ascending nodes, weights with sum 1, residual bounds
                                       * beta_m |s_mi|; NaN from `steps` on */
};

#endif
