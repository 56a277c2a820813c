/* An environment with what its agent sees of the present state, and its action. */
#ifndef KS_TRAIN_PLAYER_H
#define KS_TRAIN_PLAYER_H

#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "env/env.h"
#include "env/render.h"
#include "train/settings.h"

struct ks_player {
    const char *task, *role; /* for messages; role: "" or " (evaluation)" */
    struct ks_env *env;      /* owned, as all below */
    /* The environment computes in double; networks and replay use float32. */
    double *observation, *action; /* [observations], [actions]                            */
    float *s, *a;                 /* [seen]: the observation, rounded to float32, or the frames as
                                   * pixel/255 - 0.5; the action, rounded                 */
    float *previous_s;            /* [seen]: s before the last ks_player_observe */
    size_t divergences;           /* of the simulation, reported so far                   */
    /* Of a task from pixels; else NULL. */
    struct ks_render *render;
    uint8_t
        *frames; /* [KS_FRAMES, KS_FRAME]: the last ones, channel by channel, the oldest first */
    uint8_t *picture; /* [KS_FRAME_SIDE, KS_FRAME_SIDE, 3]: as it is drawn */
};

/* `player` is zero. On failure (KS_USAGE, KS_IO, KS_MISSING, KS_MEMORY) the caller still frees it.
 */
ks_status ks_player_init(const struct ks_train_options *options, const char *role,
                         struct ks_player *player);
void ks_player_free(struct ks_player *player); /* frees what it holds */

/* Starts an episode, as ks_env_reset, and observes its first state. */
ks_status ks_player_start(struct ks_player *player, struct ks_rng *rng);
/* Moves s to previous_s and sets s to the present state, after a step of the environment: rounds
 * `observation`, or draws a frame, as ks_render_frame. */
ks_status ks_player_observe(struct ks_player *player);
/* Sets s again from `observation`, or from the frames. */
void ks_player_see(struct ks_player *player);
/* The newest frame of the state before the present one. */
const uint8_t *ks_player_previous_frame(const struct ks_player *player);
/* The newest frame. */
const uint8_t *ks_player_frame(const struct ks_player *player);
/* Sets `action` to a, so that the environment gets exactly the action that replay stores. */
void ks_player_set_action(struct ks_player *player);
/* Reports a divergence of the simulation since the last call on standard error. */
void ks_player_report(struct ks_player *player, size_t env_step);

#endif
