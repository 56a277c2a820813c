/* The group /batch of a checkpoint: minibatches, targets, weights of rows and reference results.
 * For checkpoint_read.c only; other callers include checkpoint.h. */
#ifndef KS_IO_CHECKPOINT_BATCH_H
#define KS_IO_CHECKPOINT_BATCH_H

#include "core/error.h"
#include "io/checkpoint.h"
#include "io/h5.h"

/* The most rows or columns of a minibatch, because sizes in BLAS are of type int. */
enum { KS_CHECKPOINT_SIDE = 1 << 30 };

/* Sets *input to the shape [N, R, D] of /batch/input. Fails with KS_FORMAT unless all three numbers
 * are at least 1, R and D are at most KS_CHECKPOINT_SIDE, and the dataset has real numbers. */
ks_status ks_checkpoint_input_shape(const struct ks_h5 *h5, struct ks_h5_shape *input);

/* Reads and checks the whole group into c, whose critics have been read. `input` is the shape of
 * /batch/input. Fails with KS_FORMAT, KS_IO or KS_MEMORY. ks_checkpoint_free frees the arrays, also
 * after a failure. */
ks_status ks_checkpoint_read_batch(const struct ks_h5 *h5, const struct ks_h5_shape *input,
                                   struct ks_checkpoint *c);

#endif
