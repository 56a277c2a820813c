/* Which objects a checkpoint may have under /critic and /batch, and which attributes the objects of
 * a file may have.
 *
 * Everything else there is refused. It may be a parameter that the description lacks, such as a
 * bias, or a setting that the analysis would ignore: then another critic would be analyzed. */
#ifndef KS_IO_KNOWN_H
#define KS_IO_KNOWN_H

#include "core/error.h"
#include "io/checkpoint.h"
#include "io/h5.h"

/* Check /critic and /batch, which must exist. Known are the datasets of /batch that
 * checkpoints/README.md lists, the arrays of the description in /critic, and the attributes `arch`
 * and `ensemble` of /critic. Fail with KS_FORMAT and the name of the first unknown object or
 * attribute. */
ks_status ks_known_critic(const struct ks_h5 *h5, const struct ks_networks *critic);
ks_status ks_known_batch(const struct ks_h5 *h5);

/* Fails with KS_FORMAT unless all attributes of the object are among `known`, which ends in NULL.
 */
ks_status ks_known_attributes(const struct ks_h5 *h5, const char *object, const char *const *known);

#endif
