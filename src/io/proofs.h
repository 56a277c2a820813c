/* Proofs: what the program that exported a critic computed for its minibatches, so that a reader
 * can check that it computes the same.
 *
 * A description, parameters and minibatches may fit each other in all shapes and still be those of
 * another critic: a square kernel that was not transposed, another eps, swapped inputs. The outputs
 * differ then. The loss differs too if targets or loss are wrong, and the norm of the gradient if
 * parameters were frozen or batch statistics detached. */
#ifndef KS_IO_PROOFS_H
#define KS_IO_PROOFS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"

struct ks_checkpoint;
struct ks_h5;

/* One number or array for each of the first `minibatches` minibatches. */
struct ks_proof {
    double *value;      /* NULL: not in the file; owned                                   */
    size_t minibatches; /* N, or 1                                                        */
    size_t rows;        /* of the outputs: B or R; else 1                                 */
    bool wide;          /* stored as float64: so it has to agree to rounding of float64   */
};

struct ks_proofs {
    struct ks_proof output;        /* [minibatches, rows, E, K], batchnorm in training mode  */
    struct ks_proof loss;          /* [minibatches]: mean over the rows, sum over the critics,
                                    * without weight decay                                   */
    struct ks_proof gradient_norm; /* [minibatches]: Euclidean norm over all E P parameters  */
};

/* Whether there is any proof. */
bool ks_proofs_exist(const struct ks_proofs *proofs);

/* Reads /batch/output, /batch/loss and /batch/gradient_norm where present into c->proofs. The rest
 * of the batch and the critics have been read. KS_FORMAT, KS_IO. */
ks_status ks_proofs_read(const struct ks_h5 *h5, struct ks_checkpoint *c);
/* Writes those that are not NULL; `wide` says in which type. */
ks_status ks_proofs_write(struct ks_h5 *h5, const struct ks_checkpoint *c);
void ks_proofs_clear(struct ks_proofs *proofs); /* frees what they hold */

/* Computes in float64 what /batch/target, the inputs and the parameters of the critics give.
 * `proofs` says how much: those with `minibatches` above 0 get their `value`, which
 * ks_proofs_clear frees. The results are the same for any number of threads. KS_MEMORY. */
ks_status ks_proofs_compute(const struct ks_checkpoint *c, struct ks_proofs *proofs);
/* The bytes that ks_proofs_compute allocates, with `proofs` as there. */
ks_status ks_proofs_bytes(const struct ks_checkpoint *c, const struct ks_proofs *proofs,
                          double *bytes);

/* Computes the proofs of the first `minibatches` minibatches of the checkpoint again, and fails
 * with KS_FORMAT if a value differs by more than 1e-4 of the root mean square of all values of its
 * dataset, or 1e-9 if that is `wide`. The message names file, object, minibatch, row and both
 * values. Does nothing if there are no proofs. */
ks_status ks_proofs_compare(const struct ks_checkpoint *c, const char *path, size_t minibatches);

#endif
