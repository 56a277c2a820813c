/* Makes a checkpoint from the files of another program.
 *
 * Includes go one way:
 *
 *   weights <- {real_type, npz, ...}   arrays in files; each format has a source of its own
 *   weights <- view                    copies of arrays with other axes
 *   glob <- map                        patterns for names, and the map of names
 *   {weights, map, objects} <- match <- critic
 *   {weights, view} <- batch
 *   all of these <- import */
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

/* Prints the listing on standard output and writes the checkpoint. It is in float64 if a source is,
 * else in float32. A failure leaves no checkpoint, and an existing one as it is. */
ks_status ks_import_run(const struct ks_import *import);

#endif
