#include "layers/layer.h"

/* One row per kind. */
/* clang-format off */
const struct ks_layer_kind *const KS(layer_kinds)[] = {
    &KS(dense),
    &KS(batchnorm),
    &KS(layernorm),
    &KS(rmsnorm),
    &KS(l2norm),
    &KS(relu),
    &KS(tanh),
    &KS(silu),
    &KS(gelu),
    &KS(elu),
    &KS(mish),
    &KS(scaler),
    &KS(append),
    &KS(residual),
    &KS(lerp),
    NULL,
};
