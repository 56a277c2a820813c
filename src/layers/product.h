/* The matrix products of layers. */
#ifndef KS_LAYERS_PRODUCT_H
#define KS_LAYERS_PRODUCT_H

#include "core/products.h"
#include "core/real.h"

/* C += op(A) op(B), or with `sets` C = op(A) op(B). Sizes and strides fit an int. */
void KS(multiply)(const struct ks_product *p, const real *a, const real *b, real *c);

#endif
