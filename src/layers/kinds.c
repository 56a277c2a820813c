/* The table of layer kinds, from the list at the end of layer.h. */
#include "layers/layer.h"

#define ADDRESS(name) &KS(name),

const struct KS(layer_kind) *const KS(layer_kinds)[] = {KS_LAYER_KINDS(ADDRESS) NULL};
