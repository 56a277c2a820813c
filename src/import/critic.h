/* Makes critics of the sources of a match. All shapes are checked before values are read. */
#ifndef KS_IMPORT_CRITIC_H
#define KS_IMPORT_CRITIC_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "import/match.h"
#include "io/checkpoint.h"

/* Axes that the arrays of a file have and those of a critic do not. They count from 0 in the shapes
 * of the file. */
struct ks_axes {
    bool has_ensemble, has_slice;
    size_t ensemble;     /* each index of this axis belongs to another critic */
    size_t slice, index; /* only this index of this axis is taken             */
};

/* Sets *critics to the number of critics in the file. Fails with KS_FORMAT if a source has another
 * shape than the array of the critic, or no real numbers. */
ks_status ks_critic_count(const struct ks_match *match, const struct ks_axes *axes,
                          size_t *critics);
/* Reads the critics of the file, which ks_critic_count counted, into networks `first`, first + 1,
 * ... The arrays of `networks` must have room for them. Sets *wide if a source has the type
 * float64. */
ks_status ks_critic_take(const struct ks_match *match, const struct ks_axes *axes, size_t first,
                         struct ks_networks *networks, bool *wide);

#endif
