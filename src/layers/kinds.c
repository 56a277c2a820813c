#include "ks/layer.h"

/* One row a kind. */
/* clang-format off */
const struct ks_layer_kind *const KS(layer_kinds)[] = {
    &KS(dense),
    &KS(batchnorm),
    &KS(layernorm),
    &KS(relu),
    NULL,
};
