/* Proofs: what the program that exported a critic computed for its minibatches. A reader that
 * computes the same has the same critic.
 *
 * A description, parameters and minibatches may fit each other in all shapes and still be wrong: a
 * square kernel that was not transposed, another eps, or inputs in another order give another
 * critic. Such errors change the outputs. Wrong targets or another loss change only the loss and
 * the gradient. Frozen parameters and detached batch statistics change only the gradient. */
#ifndef KS_IO_PROOFS_H
#define KS_IO_PROOFS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"

struct ks_checkpoint;
struct ks_h5;

/* Numbers for each of the first `minibatches` minibatches. */
struct ks_proof {
    double *value;      /* owned; NULL if the file does not have this proof                 */
    size_t minibatches; /* N, or 1                                                          */
    size_t rows;        /* B or R for the outputs, else 1                                   */
    bool wide;          /* it is stored as float64, and must agree to rounding of float64   */
};

struct ks_proofs {
    struct ks_proof output;        /* [minibatches, rows, E, K], batchnorm in training mode    */
    struct ks_proof loss;          /* [minibatches], the mean over the B rows, summed over the
                                    * critics, without weight decay                            */
    struct ks_proof gradient_norm; /* [minibatches], the Euclidean norm of the gradient of this
                                    * loss in all E P parameters                               */
};

/* Whether there is any proof. */
bool ks_proofs_exist(const struct ks_proofs *proofs);

/* Reads /batch/output, /batch/loss and /batch/gradient_norm, if they exist, into c->proofs. The
 * critics and the rest of the batch must have been read before. Fails with KS_FORMAT or KS_IO. */
ks_status ks_proofs_read(const struct ks_h5 *h5, struct ks_checkpoint *c);
/* Writes the proofs that are not NULL, in float64 where `wide` is set, else in float32. */
ks_status ks_proofs_write(struct ks_h5 *h5, const struct ks_checkpoint *c);
void ks_proofs_clear(struct ks_proofs *proofs); /* frees the values */

/* Computes proofs of a checkpoint's critics in float64. The caller sets `minibatches` and `rows` of
 * those that it wants. They get their `value`, which ks_proofs_clear frees. The results are the
 * same for any number of threads. Fails with KS_MEMORY. */
ks_status ks_proofs_compute(const struct ks_checkpoint *c, struct ks_proofs *proofs);
/* The bytes that ks_proofs_compute would allocate for the same arguments. */
ks_status ks_proofs_bytes(const struct ks_checkpoint *c, const struct ks_proofs *proofs,
                          double *bytes);

/* Computes the proofs of the first `minibatches` minibatches of the checkpoint, and fails with
 * KS_FORMAT if a stored value differs from the computed one. Allowed is 1e-4 of the root mean
 * square of the dataset, or 1e-9 if it is `wide`; of outputs, the root mean square is that of the
 * critic. The message starts with "PATH: GROUPoutput: " (for a checkpoint `group` is "/batch/") and
 * names minibatch, row and both values. Does nothing if there are no proofs. */
ks_status ks_proofs_compare(const struct ks_checkpoint *c, const char *path, const char *group,
                            size_t minibatches);

#endif
