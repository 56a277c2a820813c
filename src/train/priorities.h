/* Prioritized replay: the slots of replay are drawn with probabilities proportional to their
 * priorities, as in LAP (Fujimoto, Meger & Precup, "An Equivalence between Loss Functions and
 * Non-Uniform Sampling in Experience Replay", NeurIPS 2020) and MR.Q (ICLR 2025; code
 * facebookresearch/MRQ, 8a44a7d, buffer.py):
 *
 *   priority = max(|Q - y|, 1)^exponent after an update; of a new transition, the largest so far
 *
 * Only slots from which a window of `horizon` transitions can be taken are drawn: their episode has
 * a later transition than that window, or it ends in a terminal state within the window. So the
 * last `horizon` transitions of an episode that ends by a time limit are never drawn.
 *
 * A binary tree holds the sums of the weights below each node. A node is always computed as the sum
 * of its two children, so the tree depends only on the leaves, not on how they came about. */
#ifndef KS_TRAIN_PRIORITIES_H
#define KS_TRAIN_PRIORITIES_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "core/rng.h"
#include "train/replay.h"

struct ks_priorities {
    const struct ks_replay *replay; /* not owned */
    size_t horizon;
    double exponent;
    float *priority; /* [capacity]; owned */
    float largest;   /* given so far; at least 1 */
    bool terminates; /* a terminal state has been added to replay */
    bool built;      /* the tree holds the weights of all slots; else the next draw builds it */
    size_t leaves;   /* a power of two */
    double *tree;    /* [2 leaves]: the root is 1, the children of i are 2 i and 2 i + 1; owned */
};

/* For a replay that is empty. Fails with KS_MEMORY. The caller frees. */
ks_status ks_priorities_new(const struct ks_replay *replay, size_t horizon, double exponent,
                            struct ks_priorities **priorities);
void ks_priorities_free(struct ks_priorities *priorities);

/* To be called after every ks_replay_add; NULL: nothing is done. */
void ks_priorities_add(struct ks_priorities *priorities);
/* Draws slots [n], with as many random numbers; with equal weights if no window can be taken.
 * Replay must not be empty. */
void ks_priorities_draw(struct ks_priorities *priorities, struct ks_rng *rng, size_t n,
                        size_t *slots);
/* Sets the priorities of slots [n] from the deviations |Q - y| [n]. */
void ks_priorities_set(struct ks_priorities *priorities, size_t n, const size_t *slots,
                       const float *deviation);

#endif
