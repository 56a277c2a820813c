/* Replay: the most recent transitions of a run, in float32, drawn uniformly with replacement.
 * Memory is allocated in blocks as it fills, and never moved.
 *
 * A drawn row spans a window of up to n transitions (n-step returns; Sutton & Barto, 2018, chapter
 * 7): from the drawn one, number t, to number t + k - 1. k = n, or less if the episode ends (at a
 * terminal state or a time limit) or the newest transition is reached before:
 *
 *   reward  r_t + gamma r_{t+1} + ... + gamma^(k-1) r_{t+k-1}
 *   mask    gamma^(k-1) mask_{t+k-1}, so that a target discounts the value by gamma mask
 *   next_s  s_{t+k}
 *
 * With n = 1 it is the transition itself. A target has the entropy bonus of s_{t+k} only. */
#ifndef KS_TRAIN_REPLAY_H
#define KS_TRAIN_REPLAY_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "core/rng.h"

struct ks_replay {
    size_t capacity, observations, actions;
    size_t count, next;       /* transitions held; the slot of the next one    */
    size_t width, block_rows; /* floats per transition; transitions per block  */
    size_t n_blocks;
    float **block; /* [n_blocks] of [block_rows, width], NULL until needed; owned */
};

/* A transition; the arrays are views into a block. */
struct ks_transition {
    const float *s, *a, *next_s; /* [observations], [actions], as s                   */
    float reward, mask;          /* raw; 0 after a true terminal state, else 1        */
    bool last;                   /* of its episode, also if that ends by a time limit */
};

/* The largest number of transitions that a row spans, and the discount. drops_last: the reward of a
 * transition into a terminal state does not count, as in the published code of MR.Q
 * (facebookresearch/MRQ, 8a44a7d, multi_step_reward). */
struct ks_window {
    size_t n;
    double gamma;
    bool drops_last;
};

/* The rows of a minibatch. The caller provides the arrays. */
struct ks_rows {
    size_t n;
    float *s, *a, *next_s, *mask; /* [n, ...] as above */
    double *reward;               /* [n], raw          */
};

/* Windows of `steps` transitions each, for a model that is unrolled: n of them, [steps, n, ...]; of
 * the states there is one step more. The caller provides the arrays. `kept` is 1 up to the end of
 * the episode; behind it there are copies of the last transition, with kept 0. */
struct ks_unrolled {
    size_t n, steps;
    float *s, *a, *reward, *mask, *kept;
};

/* capacity > 0. Fails with KS_MEMORY. The caller frees. */
ks_status ks_replay_new(size_t capacity, size_t observations, size_t actions,
                        struct ks_replay **replay);
void ks_replay_free(struct ks_replay *replay);

/* Adds a transition; overwrites the oldest one if replay is full. Fails with KS_MEMORY. */
ks_status ks_replay_add(struct ks_replay *replay, const struct ks_transition *transition);
/* Draws rows->n rows, with as many random numbers. Replay must not be empty. */
void ks_replay_draw(const struct ks_replay *replay, struct ks_rng *rng,
                    const struct ks_window *window, const struct ks_rows *rows);
/* Fills row i with the window that starts at a slot. */
void ks_replay_take(const struct ks_replay *replay, const struct ks_window *window, size_t slot,
                    const struct ks_rows *rows, size_t i);
/* The same for window i. */
void ks_replay_unroll(const struct ks_replay *replay, size_t slot,
                      const struct ks_unrolled *windows, size_t i);
/* The mean of |reward| over all transitions; replay must not be empty. */
double ks_replay_mean_reward(const struct ks_replay *replay);
/* Draws what ks_replay_draw would draw after one more ks_replay_add. If a row would span that new
 * transition, draws nothing and returns false. */
bool ks_replay_draw_ahead(const struct ks_replay *replay, struct ks_rng *rng,
                          const struct ks_window *window, const struct ks_rows *rows);

/* The transition in a slot that is in use. Number k of the run is in slot k % capacity. */
struct ks_transition ks_replay_get(const struct ks_replay *replay, size_t slot);

/* For the replay log. The transitions [*n, width] that are contiguous in memory from a slot on; *n
 * is reduced to their number. */
const float *ks_replay_rows(const struct ks_replay *replay, size_t slot, size_t *n);
/* For restoring replay from the log: empties it, so that the next transition is number k of the
 * run; adds a transition, given as [width] floats (KS_MEMORY). */
void ks_replay_clear(struct ks_replay *replay, size_t k);
ks_status ks_replay_put(struct ks_replay *replay, const float *row);

#endif
