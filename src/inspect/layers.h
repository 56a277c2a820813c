/* The layers of a description as a table, and its loss. */
#ifndef KS_INSPECT_LAYERS_H
#define KS_INSPECT_LAYERS_H

#include <stdio.h>

#include "io/checkpoint.h"
#include "operators/null_space.h"

/* A line for the loss; if the critic has several heads, a line for that of each. */
void ks_loss_print(FILE *out, const struct ks_loss *loss);

/* A row per parameter array: its layer, shape and number of parameters; with `space` how many known
 * null directions of a critic start in it, and its Euclidean norm in each critic. `networks`: as in
 * a checkpoint; its `w` may be NULL, and then `space` is, too. Layers with trainable=no are marked
 * `frozen`. */
void ks_layers_print(FILE *out, const struct ks_networks *networks,
                     const struct ks_null_space *space);

#endif
