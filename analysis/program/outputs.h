/* The files that the analyzer writes: their names, known and tried before any work. */
#ifndef KS_PROGRAM_OUTPUTS_H
#define KS_PROGRAM_OUTPUTS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"

/* The names of n spectra, "DIR/CHECKPOINT.spectrum.h5" for "CHECKPOINT.h5", with a `name` (NULL:
 * none) "DIR/CHECKPOINT.NAME.spectrum.h5", in *outputs, which the caller frees with
 * ks_outputs_free. Makes `folder` if it is missing but its parent is there. KS_USAGE where two
 * spectra would be the same file or one would be a checkpoint, KS_IO or KS_FULL (file.h) where
 * `folder` cannot be written. */
ks_status ks_outputs_new(size_t n, const char *const *checkpoints, const char *folder,
                         const char *name, char ***outputs);
void ks_outputs_free(size_t n, char **outputs);

/* Tries to write, and leaves nothing behind: what analyses that were killed have left in the folder
 * is removed, too. KS_IO or KS_FULL where that fails; KS_USAGE where the
 * output is the file `input` (NULL: none), by whatever path or link, or would be if that existed.
 */
ks_status ks_output_check(const char *output, const char *input);

/* Whether two outputs are one: the same name in the same folder, however the folder is spelt. */
bool ks_output_same(const char *a, const char *b);

/* A spectrum's name without its ending, which the files beside it share; the caller frees. */
ks_status ks_output_stem(const char *output, char **stem);

#endif
