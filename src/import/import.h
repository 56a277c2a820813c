/* From the files of another program to a checkpoint.
 *
 * Includes go one way:
 *
 *   weights <- {real_type, npz, ...}          arrays in files, one source per format
 *   weights <- view,  glob <- map             strided copies; patterns, and the map of names
 *   {weights, map, objects} <- match <- critic,  {weights, view} <- batch,  all <- import */
#ifndef KS_IMPORT_IMPORT_H
#define KS_IMPORT_IMPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "import/critic.h"

struct ks_import {
    const char *arch, *map, *batch; /* paths */
    const char *const *weights;     /* [n_weights] paths; the critics of the first come first */
    size_t n_weights;
    struct ks_axes axes;
    const char *output; /* NULL: only the listing */
    bool quiet;         /* no listing             */
};

/* Prints the listing on standard output and writes the checkpoint, in float64 if a source is, else
 * in float32. Fails with KS_USAGE, KS_FORMAT or KS_IO before anything is written. */
ks_status ks_import_run(const struct ks_import *import);

#endif
