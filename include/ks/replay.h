/* Replay: the last transitions of a run, in float32, drawn uniformly with replacement. Memory is
 * taken as it fills, a block at a time, and never moved. */
#ifndef KS_REPLAY_H
#define KS_REPLAY_H

#include <stddef.h>

#include "ks/error.h"
#include "ks/rng.h"

struct ks_replay {
    size_t capacity, observations, actions;
    size_t count, next;       /* transitions held; the slot that the next one takes           */
    size_t width, block_rows; /* floats of a transition: s, a, next_s, reward, mask; of a block */
    size_t n_blocks;
    float **block; /* [n_blocks] of [block_rows, width], NULL until they are reached; owned */
};

/* What a slot holds: views into a block. */
struct ks_transition {
    const float *s, *a, *next_s; /* [observations], [actions], as s           */
    float reward, mask;          /* raw; 0 after a true terminal state, else 1 */
};

/* Rows of a minibatch; whoever draws provides the arrays. */
struct ks_rows {
    size_t n;
    float *s, *a, *next_s, *mask; /* [n, ...] as above */
    double *reward;               /* [n], raw          */
};

ks_status ks_replay_new(size_t capacity, size_t observations, size_t actions,
                        struct ks_replay **replay);
void ks_replay_free(struct ks_replay *replay);

/* Overwrites the oldest transition once the buffer is full. Fails with KS_MEMORY. */
ks_status ks_replay_add(struct ks_replay *replay, const float *s, const float *a, double reward,
                        float mask, const float *next_s);
/* Draws rows->n transitions; uses as many draws. The buffer is not empty. */
void ks_replay_draw(const struct ks_replay *replay, struct ks_rng *rng, const struct ks_rows *rows);

/* The transition in a slot, which holds one: number k of the run is in slot k % capacity. */
struct ks_transition ks_replay_get(const struct ks_replay *replay, size_t slot);

/* For keeping it elsewhere: the transitions [*n, width] that lie side by side from a slot on, at
 * most *n of them; and the way back, an empty buffer whose next transition is number k, and the
 * next transition as [width] floats. */
const float *ks_replay_rows(const struct ks_replay *replay, size_t slot, size_t *n);
void ks_replay_clear(struct ks_replay *replay, size_t k);
ks_status ks_replay_put(struct ks_replay *replay, const float *row);

#endif
