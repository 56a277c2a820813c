/* An environment with its current observation and action. */
#ifndef KS_TRAIN_PLAYER_H
#define KS_TRAIN_PLAYER_H

#include <stddef.h>

#include "core/error.h"
#include "env/env.h"
#include "train/settings.h"

struct ks_player {
    const char *task, *role; /* for messages; role: "" or " (evaluation)" */
    struct ks_env *env;      /* owned, as all below */
    /* The environment computes in double; networks and replay use float32. */
    double *observation, *action; /* [observations], [actions]                            */
    float *s, *a;                 /* both, rounded to float32                             */
    float *previous_s;            /* [observations]: s before the last ks_player_observe  */
    size_t divergences;           /* of the simulation, reported so far                   */
};

/* `player` is zero. On failure (KS_USAGE, KS_IO, KS_MISSING, KS_MEMORY) the caller still frees it.
 */
ks_status ks_player_init(const struct ks_train_options *options, const char *role,
                         struct ks_player *player);
void ks_player_free(struct ks_player *player); /* frees what it holds */

/* Moves s to previous_s and rounds `observation` into s. */
void ks_player_observe(struct ks_player *player);
/* Sets `action` to a, so that the environment gets exactly the action that replay stores. */
void ks_player_set_action(struct ks_player *player);
/* Reports a divergence of the simulation since the last call on standard error. */
void ks_player_report(struct ks_player *player, size_t env_step);

#endif
