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
 * With n = 1 it is the transition itself. A target has the entropy bonus of s_{t+k} only.
 *
 * Of a task from pixels, replay holds single frames in bytes, as a state consists of the last
 * KS_FRAMES frames (the first one of an episode repeatedly). A transition's row has the newest
 * frame of s; behind the last transition of an episode there is a row with its last frame. Only
 * windows of n transitions within an episode are drawn, and all frames of a drawn state are moved
 * by the same random number of pixels, as in DrQ-v2 (Yarats et al., ICLR 2022; code
 * facebookresearch/drqv2, c0c650b, replay_buffer.py and drqv2.py). */
#ifndef KS_TRAIN_REPLAY_H
#define KS_TRAIN_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/encoder.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/rng.h"

struct ks_replay {
    size_t capacity, observations, actions;
    bool frames;              /* of a task from pixels                         */
    size_t count, next;       /* rows held; the slot of the next one           */
    size_t added;             /* rows added since the start of the run         */
    size_t width, block_rows; /* floats per row; rows per block                */
    size_t n_blocks;
    float **block; /* [n_blocks] of [block_rows, width], NULL until needed; owned */
};

/* A transition; the arrays are views into a block. */
struct ks_transition {
    const float *s, *a, *next_s; /* [observations], [actions], as s; with frames only a */
    float reward, mask;          /* raw; 0 after a true terminal state, else 1          */
    bool last;                   /* of its episode, also if that ends by a time limit   */
    bool only_frame;             /* the row behind the last one, without action and reward; it is
                                  * `last`, too */
    const uint8_t *frame;        /* [KS_FRAME]: the newest of s; NULL: no frames        */
};

/* Rows to be drawn: their slots, and by how many pixels, minus KS_SHIFT, the frames of s and of
 * next_s are moved to the left and up. */
enum { KS_SHIFT = 4, KS_SHIFTS = 4 };
struct ks_drawn {
    size_t *slot;                /* [n]                        */
    uint8_t (*shift)[KS_SHIFTS]; /* [n]: of s x, y; of next_s x, y */
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

/* capacity > 0; no observations: of a task from pixels. Fails with KS_MEMORY. The caller frees. */
ks_status ks_replay_new(size_t capacity, size_t observations, size_t actions,
                        struct ks_replay **replay);
void ks_replay_free(struct ks_replay *replay);
KS_OWNER(ks_replay_free, struct ks_replay *)

/* Adds a transition, with frames one of an episode's last frame, too (`only_frame`); overwrites the
 * oldest one if replay is full. Fails with KS_MEMORY. */
ks_status ks_replay_add(struct ks_replay *replay, const struct ks_transition *transition);
/* Draws rows->n rows, with as many random numbers. Replay must not be empty. */
void ks_replay_draw(const struct ks_replay *replay, struct ks_rng *rng,
                    const struct ks_window *window, const struct ks_rows *rows);
/* With frames: draws n slots at which a window of `steps` transitions starts, and their shifts. A
 * row is not drawn if fewer than `margin` further ones would overwrite it. KS_RUN if hardly any
 * window can be drawn. */
ks_status ks_replay_draw_frames(const struct ks_replay *replay, struct ks_rng *rng, size_t steps,
                                size_t margin, size_t n, const struct ks_drawn *drawn);
/* With frames: sets s [KS_FRAMES KS_FRAME] to the state in a slot, moved by x, y pixels as in
 * ks_drawn: channels of the oldest frame first, pixels as pixel/255 - 0.5. Pixels from outside are
 * those of the frame's edge. */
void ks_replay_see(const struct ks_replay *replay, size_t slot, size_t x, size_t y, float *s);
/* Fills row i with the window that starts at a slot. With frames, without s and next_s. Returns the
 * slot of the window's last transition. */
size_t ks_replay_take(const struct ks_replay *replay, const struct ks_window *window, size_t slot,
                      const struct ks_rows *rows, size_t i);
/* Fills window i of `windows`, for a model that is unrolled, with the transitions that start at a
 * slot. `kept` is 1 up to the end of the episode; behind it there are copies of the last
 * transition, with kept 0. */
void ks_replay_unroll(const struct ks_replay *replay, size_t slot, const struct ks_windows *windows,
                      size_t i);
/* The mean of |reward| over all transitions; replay must not be empty. */
double ks_replay_mean_reward(const struct ks_replay *replay);
/* Draws what ks_replay_draw would draw after one more ks_replay_add. If a row would span that new
 * transition, draws nothing and returns false. */
bool ks_replay_draw_ahead(const struct ks_replay *replay, struct ks_rng *rng,
                          const struct ks_window *window, const struct ks_rows *rows);

/* The transition in a slot that is in use. Number k of the run is in slot k % capacity. */
struct ks_transition ks_replay_get(const struct ks_replay *replay, size_t slot);

/* The slot of the k-th transition before the newest one. */
size_t ks_replay_before_newest(const struct ks_replay *replay, size_t k);

/* For the replay log. The transitions [*n, width] that are contiguous in memory from a slot on; *n
 * is reduced to their number. */
const float *ks_replay_rows(const struct ks_replay *replay, size_t slot, size_t *n);
/* For restoring replay from the log: empties it, so that the next row is number k of the run; adds
 * a row, given as [width] floats (KS_MEMORY). */
void ks_replay_clear(struct ks_replay *replay, size_t k);
ks_status ks_replay_put(struct ks_replay *replay, const float *row);

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
KS_OWNER(ks_priorities_free, struct ks_priorities *)

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
