/* Replay: the last transitions of a run, in float32, drawn uniformly with replacement. Memory is
 * taken as it fills, a block at a time, and never moved.
 *
 * What is drawn may span n transitions (n-step returns; Sutton & Barto, 2018, chapter 7): from the
 * one that was drawn, number t, to number t + k - 1, with k = n, or fewer where the episode ends
 * before, terminal state or time limit, or where no more have been made yet:
 *
 *   reward  r_t + gamma r_{t+1} + ... + gamma^(k-1) r_{t+k-1}
 *   mask    gamma^(k-1) times that of number t + k - 1: a target discounts by gamma mask
 *   next_s  s_{t+k}
 *
 * With n = 1 it is the transition. A target's entropy bonus is that of s_{t+k} alone. */
#ifndef KS_TRAIN_REPLAY_H
#define KS_TRAIN_REPLAY_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "core/rng.h"

struct ks_replay {
    size_t capacity, observations, actions;
    size_t count, next;       /* transitions held; the slot that the next one takes           */
    size_t width, block_rows; /* floats of a transition, with all below; transitions of a block */
    size_t n_blocks;
    float **block; /* [n_blocks] of [block_rows, width], NULL until they are reached; owned */
};

/* What a slot holds, with views into a block. */
struct ks_transition {
    const float *s, *a, *next_s; /* [observations], [actions], as s                   */
    float reward, mask;          /* raw; 0 after a true terminal state, else 1        */
    bool last;                   /* of its episode, at a terminal state or time limit */
};

/* How many transitions a row spans at most. */
struct ks_window {
    size_t n;
    double gamma;
};

/* Rows of a minibatch; whoever draws provides the arrays. */
struct ks_rows {
    size_t n;
    float *s, *a, *next_s, *mask; /* [n, ...] as above */
    double *reward;               /* [n], raw          */
};

/* capacity > 0. Fails with KS_MEMORY. The caller frees. */
ks_status ks_replay_new(size_t capacity, size_t observations, size_t actions,
                        struct ks_replay **replay);
void ks_replay_free(struct ks_replay *replay);

/* Overwrites the oldest transition once the buffer is full. Fails with KS_MEMORY. */
ks_status ks_replay_add(struct ks_replay *replay, const struct ks_transition *transition);
/* Draws rows->n transitions; uses as many draws. The buffer is not empty. */
void ks_replay_draw(const struct ks_replay *replay, struct ks_rng *rng,
                    const struct ks_window *window, const struct ks_rows *rows);
/* Draws what ks_replay_draw would after one more ks_replay_add, unless a row spans that transition:
 * then it draws nothing and returns false. */
bool ks_replay_draw_ahead(const struct ks_replay *replay, struct ks_rng *rng,
                          const struct ks_window *window, const struct ks_rows *rows);

/* The transition in a slot, which holds one: number k of the run is in slot k % capacity. */
struct ks_transition ks_replay_get(const struct ks_replay *replay, size_t slot);

/* For keeping it elsewhere: the transitions [*n, width] that lie side by side from a slot on, at
 * most *n of them; and the way back, an empty buffer whose next transition is number k, and the
 * next transition as [width] floats (KS_MEMORY as ks_replay_add). */
const float *ks_replay_rows(const struct ks_replay *replay, size_t slot, size_t *n);
void ks_replay_clear(struct ks_replay *replay, size_t k);
ks_status ks_replay_put(struct ks_replay *replay, const float *row);

#endif
