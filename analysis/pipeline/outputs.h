/* The files that the analyzer writes: their names, and checks before any work that they can be
 * written and replace no input. */
#ifndef KS_PIPELINE_OUTPUTS_H
#define KS_PIPELINE_OUTPUTS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"

/* The names of n spectra: "DIR/CHECKPOINT.spectrum.h5" for "CHECKPOINT.h5", or with a `name` (NULL:
 * none) "DIR/CHECKPOINT.NAME.spectrum.h5". Without `folder` (NULL), DIR is the checkpoint's folder;
 * else `folder`, which is created if its parent exists. KS_USAGE if two spectra would be the
 * same file, or one would replace a checkpoint; KS_IO or KS_FULL (file.h) if `folder` cannot be
 * written. The caller frees *outputs with ks_outputs_free. */
ks_status ks_outputs_new(size_t n, const char *const *checkpoints, const char *folder,
                         const char *name, char ***outputs);
void ks_outputs_free(size_t n, char **outputs);

/* Checks that `output` can be written, by a temporary file, which is removed; so are temporary
 * files that killed analyses left in that folder. KS_IO or KS_FULL if it cannot; KS_USAGE if
 * it would replace the file `input` (NULL: none), under any path or link, or has its path if it
 * does not exist. */
ks_status ks_output_check(const char *output, const char *input);

/* Whether two outputs are the same file: the same name in the same folder, under any path to it. */
bool ks_output_same(const char *a, const char *b);

#endif
