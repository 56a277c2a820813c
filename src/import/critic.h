/* From the sources of a match to critics: shapes are checked first, then values are read. */
#ifndef KS_IMPORT_CRITIC_H
#define KS_IMPORT_CRITIC_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "import/match.h"
#include "io/checkpoint.h"

/* Axes of the arrays of a file that are no axes of a critic's array; they count from 0 in the
 * file's shapes. */
struct ks_axes {
    bool has_ensemble, has_slice;
    size_t ensemble;     /* this axis has the critics: it is moved to the front */
    size_t slice, index; /* of this axis, only one index is taken               */
};

/* The number of critics in the file. Fails with KS_FORMAT if a shape is not the expected one or a
 * source is not of real numbers. */
ks_status ks_critic_count(const struct ks_match *match, const struct ks_axes *axes,
                          size_t *critics);
/* Reads `critics` critics, as ks_critic_count returned, into networks `first`, first + 1, ... w and
 * state (unless NULL) must have room for them. Sets *wide if a source is of float64. */
ks_status ks_critic_take(const struct ks_match *match, const struct ks_axes *axes, size_t first,
                         struct ks_networks *networks, bool *wide);

#endif
