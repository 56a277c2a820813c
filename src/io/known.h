/* What a checkpoint may hold under /critic and /batch, and which attributes some objects may have.
 *
 * Everything else there is refused: it may be a parameter that the description lacks, such as a
 * bias, or a setting that nothing reads, and the analysis would be that of another critic. */
#ifndef KS_IO_KNOWN_H
#define KS_IO_KNOWN_H

#include "core/error.h"
#include "io/checkpoint.h"
#include "io/h5.h"

/* Fail with KS_FORMAT and the name of the first object or attribute that is not known. The groups
 * must exist. /critic: the arrays of the description, and the attributes `arch` and `ensemble`. */
ks_status ks_known_critic(const struct ks_h5 *h5, const struct ks_networks *critic);
ks_status ks_known_batch(const struct ks_h5 *h5);

/* Fails unless all attributes of the object are among `known`, which ends in NULL. */
ks_status ks_known_attributes(const struct ks_h5 *h5, const char *object, const char *const *known);

#endif
