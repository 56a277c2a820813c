/* The minibatches of an import: a file (normally an .npz) with the arrays `input` and `target`, and
 * if wanted `weight` and the proofs `output`, `loss` and `gradient_norm`, as a checkpoint has them
 * (checkpoints/README.md).
 */
#ifndef KS_IMPORT_BATCH_H
#define KS_IMPORT_BATCH_H

#include <stdbool.h>

#include "core/error.h"
#include "import/weights.h"
#include "io/checkpoint.h"

/* Checks names, types and numbers of dimensions. *in: the columns of the inputs. Fails with
 * KS_FORMAT. */
ks_status ks_batch_check(const struct ks_weights *batch, size_t *in);
/* Reads all arrays into c, whose critics are set, and compares the proofs. Sets *wide if inputs or
 * targets are of float64. Fails with KS_FORMAT. */
ks_status ks_batch_take(const struct ks_weights *batch, struct ks_checkpoint *c, bool *wide);

#endif
