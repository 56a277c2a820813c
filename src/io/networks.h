/* The networks of a checkpoint: /critic, /target, /actor, and what is laid out like them. */
#ifndef KS_IO_NETWORKS_H
#define KS_IO_NETWORKS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "io/checkpoint.h"
#include "io/h5.h"
#include "net/arch.h"

/* Reads description, parameters and running statistics of `group`, networks of `in` inputs whose
 * description ends in a loss, or in a policy where `actor`. Where the group has no attribute
 * `arch`, it is as `like` says (NULL: that is an error). Fails with KS_FORMAT or KS_IO; the caller
 * ends with ks_networks_clear in any case. */
ks_status ks_networks_read(const struct ks_h5 *h5, const char *group, size_t in, bool actor,
                           const struct ks_networks *like, struct ks_networks *networks);
ks_status ks_networks_write(struct ks_h5 *h5, const char *group, const struct ks_networks *networks,
                            bool single);

/* A group of arrays laid out as the parameters of `like`, into a fresh vector [E, P]. */
ks_status ks_parameters_read(const struct ks_h5 *h5, const char *group,
                             const struct ks_networks *like, double **w);
ks_status ks_parameters_write(struct ks_h5 *h5, const char *group, const struct ks_networks *like,
                              const double *w, bool single);

#endif
