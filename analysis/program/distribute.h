/* The work on one checkpoint, divided among processes. */
#ifndef KS_PROGRAM_DISTRIBUTE_H
#define KS_PROGRAM_DISTRIBUTE_H

#include <stddef.h>

#include "core/error.h"
#include "io/checkpoint.h"
#include "operators/team.h"

/* The number of groups, each with probes of its own, into which `processes` are best divided: the
 * last group is done first if every minibatch takes each probe the same time. Of equally good
 * numbers the largest: small groups send least. */
size_t ks_distribute_groups(size_t processes, size_t probes, size_t minibatches);

/* Takes the checkpoint that process 0 of the world has read; *checkpoint is NULL on the others.
 * Gives every process the critics, Adam's second moment and its part of the first `minibatches`:
 * numbers rank, rank + size, ... in its group (a world of one keeps everything). The caller frees
 * *checkpoint, also after a failure. All processes fail together. */
ks_status ks_distribute_checkpoint(const struct ks_team *world, const struct ks_team *group,
                                   size_t minibatches, struct ks_checkpoint **checkpoint);

#endif
