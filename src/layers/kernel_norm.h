/* Parametrizations of the kernel W of a dense layer: W is a function of the layer's parameters, and
 * the layer multiplies its input by W. The dense computes W_bar = X' Y_bar and its tangent; the
 * functions here compute W from the parameters, and the parameters' adjoints from W_bar. */
#ifndef KS_LAYERS_KERNEL_NORM_H
#define KS_LAYERS_KERNEL_NORM_H

#include "core/real.h"
#include "layers/layer.h"

/* The cache and the tangent cache of such a layer start with two matrices of the size of the
 * kernel: W and W_bar, W_dot and W_bar_dot. The dense sets W_bar and W_bar_dot before it calls
 * `backward` and `tangent_backward`. These two add to p->w_bar and p->w_bar_dot; w_bar may be NULL,
 * and then only what the tangents read is computed. */
struct KS(kernel_norm) {
    /* Adds to a layer whose first array is the kernel what this parametrization has besides. */
    void (*configure)(struct KS(layer) *l);
    void (*forward)(const struct KS(layer) *l, const struct KS(pass) *p);
    void (*backward)(const struct KS(layer) *l, const struct KS(pass) *p);
    void (*tangent_forward)(const struct KS(layer) *l, const struct KS(pass) *p);
    void (*tangent_backward)(const struct KS(layer) *l, const struct KS(pass) *p);
};

extern const struct KS(kernel_norm) KS(weight_norm), KS(spectral_norm);

#endif
