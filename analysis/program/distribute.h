/* Divides the work on one checkpoint among the ranks. */
#ifndef KS_PROGRAM_DISTRIBUTE_H
#define KS_PROGRAM_DISTRIBUTE_H

#include <stddef.h>

#include "core/error.h"
#include "io/checkpoint.h"
#include "operators/team.h"

/* The number of groups into which `ranks` are divided, each group with its own probes. It
 * minimizes the time of the slowest group, ceil(probes / groups) ceil(minibatches / r) for a group
 * of r ranks, in units of a product with one minibatch. Of equally good numbers it is the largest,
 * since small groups communicate least. */
size_t ks_distribute_groups(size_t ranks, size_t probes, size_t minibatches);

/* Distributes the checkpoint that rank 0 of the world has read; *checkpoint is NULL on the others.
 * Every rank gets the critics, Adam's second moment and its part of the first `minibatches`:
 * numbers rank, rank + size, ... by its rank in its group. A world of one rank keeps everything.
 * The caller frees *checkpoint, also after a failure. Collective: all ranks fail together. */
ks_status ks_distribute_checkpoint(const struct ks_team *world, const struct ks_team *group,
                                   size_t minibatches, struct ks_checkpoint **checkpoint);

#endif
