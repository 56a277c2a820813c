/* Replay: the last transitions of a run, in float32, drawn uniformly with replacement. */
#ifndef KS_REPLAY_H
#define KS_REPLAY_H

#include <stddef.h>

#include "ks/error.h"
#include "ks/rng.h"

struct ks_replay {
    size_t capacity, observations, actions;
    size_t count, next;    /* transitions held; the slot that the next one takes        */
    float *s, *a, *next_s; /* [capacity, observations], [capacity, actions], as s; owned */
    float *reward, *mask;  /* [capacity]: raw; 0 after a true terminal state, else 1; owned */
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

/* Overwrites the oldest transition once the buffer is full. */
void ks_replay_add(struct ks_replay *replay, const float *s, const float *a, double reward,
                   float mask, const float *next_s);
/* Draws rows->n transitions; uses as many draws. The buffer is not empty. */
void ks_replay_draw(const struct ks_replay *replay, struct ks_rng *rng, const struct ks_rows *rows);

#endif
