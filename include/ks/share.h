/* A checkpoint that one process has read, among those that analyze it. */
#ifndef KS_SHARE_H
#define KS_SHARE_H

#include <stddef.h>

#include "ks/checkpoint.h"
#include "ks/error.h"
#include "ks/team.h"

/* Into how many groups, each with probes of its own, `processes` are best divided: where the last
 * one is done first, a minibatch a probe counting one. Of equal ones the most, which send least. */
size_t ks_share_groups(size_t processes, size_t probes, size_t minibatches);

/* *checkpoint, on process 0 of the world what was read, on the others NULL, becomes on every
 * process: the critics, Adam's second moment, and of the first `minibatches` those that fall to it
 * in its group, number rank, rank + size, and so on. In a world of one it stays what it is. The
 * caller frees it, also after a failure, which is one of all processes. */
ks_status ks_share_checkpoint(const struct ks_team *world, const struct ks_team *group,
                              size_t minibatches, struct ks_checkpoint **checkpoint);

#endif
