/* The networks of a checkpoint: the groups /critic, /target and /actor, and Adam's moments, which
 * have the same layout. */
#ifndef KS_IO_NETWORKS_H
#define KS_IO_NETWORKS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "io/checkpoint.h"
#include "io/h5.h"
#include "net/arch.h"

/* A group of a file, and which networks it has to hold. */
struct ks_networks_group {
    const char *name; /* "/critic"                                                         */
    size_t in;        /* their inputs                                                      */
    bool actor;       /* their description ends in a policy; else it ends in a loss        */
    const struct ks_networks *like; /* if the group has no attribute `arch`, its description and
                                       ensemble are those of `like`; NULL: that is an error */
};
/* Reads description, parameters and running statistics. Fails with KS_FORMAT or KS_IO; the caller
 * ends with ks_networks_clear in any case. */
ks_status ks_networks_read(const struct ks_h5 *h5, const struct ks_networks_group *group,
                           struct ks_networks *networks);
ks_status ks_networks_write(struct ks_h5 *h5, const char *group, const struct ks_networks *networks,
                            bool single);

/* Read a group of arrays with the layout of the parameters of `like` into a new vector [E, P],
 * which the caller frees; write such a vector. */
ks_status ks_parameters_read(const struct ks_h5 *h5, const char *group,
                             const struct ks_networks *like, double **w);
ks_status ks_parameters_write(struct ks_h5 *h5, const char *group, const struct ks_networks *like,
                              const double *w, bool single);

#endif
