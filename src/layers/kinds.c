#include "ks/layer.h"

const struct ks_layer_kind *const KS(layer_kinds)[] = {
    &KS(dense),
    &KS(batchnorm),
    &KS(layernorm),
    &KS(relu),
    NULL,
};
