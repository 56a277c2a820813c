/* Prints what is in a file, for a person. */
#ifndef KS_INSPECT_INSPECT_H
#define KS_INSPECT_INSPECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "core/error.h"
#include "document/document.h"
#include "io/attribute.h"
#include "io/checkpoint.h"

/* Prints what `path` is and what is in it; nothing if that fails. `inputs`: columns of the input,
 * for an architecture file; 0: not known. A file is checked as the analyzer checks it, so that a
 * damaged or hostile one gives one line. KS_FORMAT, KS_IO, KS_MEMORY; KS_USAGE if `inputs` is given
 * for a file of another kind. */
ks_status ks_inspect(const char *path, size_t inputs, FILE *out);

/* Prints how far the leading eigenspaces of two vector files of one architecture agree, for the
 * first 1, 2, ... eigenvectors of both; `json`: as one object on a line. KS_FORMAT if a file has no
 * eigenvectors, or if the critics differ; otherwise fails as ks_inspect. */
ks_status ks_inspect_overlap(const char *path, const char *against, bool json, FILE *out);

/* For inspect.c: add what is in checkpoints, vectors and architecture files to a document. Failures
 * of adding are in its status alone. */
ks_status ks_inspect_checkpoint(struct ks_h5 *h5, struct ks_document *document);
ks_status ks_inspect_vectors(struct ks_h5 *h5, struct ks_document *document);
ks_status ks_inspect_architecture(const char *path, size_t inputs, struct ks_document *document);
/* Adds an attribute as a line: a number; a string, whose end is replaced by ... if it is too long
 * for the line; how many numbers a list has, the first and the last. */
void ks_inspect_attribute(const struct ks_attribute *attribute, struct ks_document *document);

/* Fails with KS_MEMORY if `bytes` are more than half of the free memory. The message starts with
 * `path` and says how many bytes `what` take. */
ks_status ks_inspect_expect_memory(const char *path, const char *what, double bytes);
/* ks_checkpoint_read_loss, after a check that the arrays which the file declares fit. Fails
 * in the same way, and with KS_MEMORY. The caller frees with ks_checkpoint_free. */
ks_status ks_inspect_read(struct ks_h5 *h5, struct ks_checkpoint **checkpoint);

/* --- dead units: outputs of an activation function that are zero in all rows of the minibatches.
 * No gradient reaches the weights in front of a dead relu. --- */

struct ks_dead_layer {
    const struct KS(layer) *layer; /* an activation function               */
    size_t *dead;                  /* [ensemble] dead units of each critic */
    size_t first;                  /* units of the layers before it        */
};

struct ks_dead_units {
    size_t minibatches;          /* how many were used */
    size_t n, all;               /* layers; units of them       */
    struct ks_dead_layer *layer; /* [n]; owned, with its arrays */
};

/* Counts them by forward passes in float64 over all R rows of the first minibatches, at most
 * KS_DEAD_UNITS_TRIED, with batch normalization in training mode, which is the analyzer's default
 * (dormant units of agent/agent_metrics.h, with threshold 0). Without the state arrays that
 * these passes read, no layer is counted. KS_MEMORY. The caller ends with ks_dead_units_clear, also
 * after a failure. */
enum { KS_DEAD_UNITS_TRIED = 4 };
ks_status ks_dead_units_count(const struct ks_checkpoint *checkpoint, struct ks_dead_units *units);
void ks_dead_units_clear(struct ks_dead_units *units);

#endif
