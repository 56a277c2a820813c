/* Reference results: what the program that exported a critic computed for its minibatches. A reader
 * that computes the same has the same critic.
 *
 * A description, parameters and minibatches may fit each other in all shapes and still be wrong: a
 * square kernel that was not transposed, another eps, or inputs in another order give another
 * critic. Such errors change the outputs. Wrong targets or another loss change only the loss and
 * the gradient. Frozen parameters and detached batch statistics change only the gradient. */
#ifndef KS_IO_REFERENCE_H
#define KS_IO_REFERENCE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"

struct ks_checkpoint;
struct ks_h5;

/* Numbers for each of the first `minibatches` minibatches. */
struct ks_reference {
    double *value;      /* owned; NULL if the file does not have it                         */
    size_t minibatches; /* N, or 1                                                          */
    size_t rows;        /* B or R for the outputs, else 1                                   */
    bool wide;          /* it is stored as float64, and must agree to rounding of float64   */
};

enum { KS_REFERENCES = 3 };
struct ks_references {
    union {
        struct {
            struct ks_reference output; /* [minibatches, rows, E, K], batchnorm in training mode  */
            struct ks_reference loss;   /* [minibatches], the mean over the B rows, summed over the
                                         * critics, without weight decay                          */
            struct ks_reference gradient_norm; /* [minibatches], the Euclidean norm of the gradient
                                                * of this loss in all E P parameters */
        };
        struct ks_reference all[KS_REFERENCES];
    };
};

/* Whether there is any reference result. */
bool ks_references_exist(const struct ks_references *references);

/* Reads /batch/output, /batch/loss and /batch/gradient_norm, if they exist, into c->references. The
 * critics and the rest of the batch must have been read before. Fails with KS_FORMAT or KS_IO. */
ks_status ks_references_read(const struct ks_h5 *h5, struct ks_checkpoint *c);
/* Writes the reference results that are not NULL, in float64 where `wide` is set, else in float32.
 */
void ks_references_write(struct ks_h5 *h5, const struct ks_checkpoint *c);
void ks_references_clear(struct ks_references *references); /* frees the values */

/* Computes reference results of a checkpoint's critics in float64. The caller sets `minibatches`
 * and `rows` of the results that it wants. They get their `value`, which ks_references_clear frees.
 * The results are the same for any number of threads. Fails with KS_MEMORY. */
ks_status ks_references_compute(const struct ks_checkpoint *c, struct ks_references *references);
/* The bytes that ks_references_compute would allocate for the same arguments. */
ks_status ks_references_bytes(const struct ks_checkpoint *c, const struct ks_references *references,
                              double *bytes);

/* Computes the reference results of the first `minibatches` minibatches of the checkpoint, and
 * fails with KS_FORMAT if a stored value differs from the computed one. Allowed is 1e-4 of the root
 * mean square of the dataset, or 1e-9 if it is `wide`; for outputs, of the critic's outputs. The
 * message starts with "PATH: /batch/output: " and names minibatch, row and both values. Does
 * nothing if there are no reference results. */
ks_status ks_references_compare(const struct ks_checkpoint *c, const char *path,
                                size_t minibatches);

#endif
