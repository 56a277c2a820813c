/* The layers of a description, as tables. */
#ifndef KS_INSPECT_LAYERS_H
#define KS_INSPECT_LAYERS_H

#include <stdio.h>

#include "io/checkpoint.h"
#include "operators/null_space.h"

/* A row per parameter array: its layer, shape and number of parameters; with `space` how many known
 * null directions start in it, and the Euclidean norm in each critic. `networks`: as in a
 * checkpoint; its `w` may be NULL, and then `space` is, too. Layers with trainable=no are marked
 * `frozen`. */
void ks_layers_print(FILE *out, const struct ks_networks *networks,
                     const struct ks_null_space *space);

/* "[512, 101]", or "[512]" for a vector. */
enum { KS_SHAPE_TEXT = 48 };
const char *ks_shape_text(const struct ks_array *array, char text[KS_SHAPE_TEXT]);

#endif
