/* Prints what is in a file, for a person. */
#ifndef KS_INSPECT_INSPECT_H
#define KS_INSPECT_INSPECT_H

#include <stddef.h>
#include <stdio.h>

#include "core/error.h"
#include "io/checkpoint.h"

/* The most characters of a printed line, apart from lines with a long path. */
enum { KS_INSPECT_WIDTH = 100 };

/* Prints what `path` is and what is in it. `inputs`: columns of the input, for an architecture
 * file; 0: not known. A file is checked as the analyzer checks it, so that a damaged or hostile one
 * gives one line. KS_FORMAT, KS_IO, KS_MEMORY; KS_USAGE if `inputs` is given for a file of another
 * kind. */
ks_status ks_inspect(const char *path, size_t inputs, FILE *out);

/* For inspect.c: checkpoints and architecture files. */
ks_status ks_inspect_checkpoint(const char *path, FILE *out);
ks_status ks_inspect_architecture(const char *path, size_t inputs, FILE *out);

/* ks_checkpoint_read_loss, after a check that the arrays which the file declares fit. Fails
 * in the same way, and with KS_MEMORY. The caller frees with ks_checkpoint_free. */
ks_status ks_inspect_read(const char *path, struct ks_checkpoint **checkpoint);

#endif
