/* Prints what is in a file, for a person. */
#ifndef KS_INSPECT_INSPECT_H
#define KS_INSPECT_INSPECT_H

#include <stddef.h>
#include <stdio.h>

#include "core/error.h"

/* The most characters of a printed line, apart from lines with a long path. */
enum { KS_INSPECT_WIDTH = 100 };

/* Prints what `path` is and what is in it. `inputs`: columns of the input, for an architecture
 * file; 0: not known. A file is checked as the analyzer checks it, so that a damaged or hostile one
 * gives one line. KS_FORMAT, KS_IO, KS_MEMORY; KS_USAGE if `inputs` is given for a file of another
 * kind. */
ks_status ks_inspect(const char *path, size_t inputs, FILE *out);

/* The same for one kind of file each. */
ks_status ks_inspect_checkpoint(const char *path, FILE *out);
ks_status ks_inspect_spectrum(const char *path, FILE *out);
ks_status ks_inspect_vectors(const char *path, FILE *out);
ks_status ks_inspect_architecture(const char *path, size_t inputs, FILE *out);
/* A .study file, or a study's folder. `out` is standard output. */
ks_status ks_inspect_study(const char *path, FILE *out);

#endif
