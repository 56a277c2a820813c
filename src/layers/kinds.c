#include "ks/layer.h"

/* clang-format off: one row a kind */
const struct ks_layer_kind *const KS(layer_kinds)[] = {
    &KS(dense), &KS(batchnorm), &KS(layernorm), &KS(relu), NULL,
};
