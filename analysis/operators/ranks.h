/* A problem that several MPI ranks share. Each has the critics and some of the minibatches; what it
 * computes of a loss, a gradient or a product is its share of a sum over the ranks. With a single
 * rank (the problem's `team` is NULL) these functions do nothing.
 *
 * All ranks call them in the same order, until one fails: then the others fail as well, in their
 * next communication (team.h). */
#ifndef KS_OPERATORS_RANKS_H
#define KS_OPERATORS_RANKS_H

#include <stddef.h>

#include "core/error.h"
#include "io/checkpoint.h"
#include "operators/operator.h"

/* How many ranks there are, and the number of this one. Rank 0 reads, writes and prints. */
size_t ks_ranks_count(const struct ks_problem *problem);
size_t ks_ranks_number(const struct ks_problem *problem);

/* The status and message of the first rank that failed: before rank 0 writes or prints. */
ks_status ks_ranks_agree(const struct ks_problem *problem, ks_status status);
/* Copies `bytes` bytes from rank 0 to all ranks. */
ks_status ks_ranks_copy(const struct ks_problem *problem, size_t bytes, void *data);
/* values [n] = the sum of all ranks' values, the same bits on each; NaN if a rank has failed. */
ks_status ks_ranks_sum(const struct ks_problem *problem, size_t n, double *values);

/* Distributes the checkpoint that rank 0 has read, of which the other ranks have nothing yet, and
 * of it the first `minibatches`: rank r gets the critics, Adam's second moment and the minibatches
 * r, r + ranks, ... Sets the numbers of minibatches of the problem, and who adds the weight decay.
 * KS_MEMORY. */
ks_status ks_ranks_distribute(struct ks_problem *problem, size_t minibatches,
                              struct ks_checkpoint **checkpoint);

#endif
