/* The minibatches of an import. They come from a file, normally an .npz, with the arrays `input`
 * and `target`. It may have `weight`, and the reference results `output`, `loss` and
 * `gradient_norm`. The shapes are those of a checkpoint (checkpoints/README.md). */
#ifndef KS_IMPORT_BATCH_H
#define KS_IMPORT_BATCH_H

#include <stdbool.h>

#include "core/error.h"
#include "import/weights.h"
#include "io/checkpoint.h"

/* Checks names and types, and that `input` and `target` exist. Sets *in to the columns of the
 * inputs. Fails with KS_FORMAT. */
ks_status ks_batch_check(const struct ks_weights *batch, size_t *in);
/* Reads all arrays into c, whose critics have been read, and compares the reference results. Sets
 * *wide if inputs, targets or weights have the type float64. Fails with KS_FORMAT or KS_MEMORY. */
ks_status ks_batch_take(const struct ks_weights *batch, struct ks_checkpoint *c, bool *wide);

#endif
