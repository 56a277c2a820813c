/* What a run computes with: the agent, the environment it acts in, replay, and the scale of
 * rewards; and its counters of steps. */
#ifndef KS_TRAIN_LEARNER_H
#define KS_TRAIN_LEARNER_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/agent.h"
#include "core/error.h"
#include "core/rng.h"
#include "train/plan.h"
#include "train/replay.h"
#include "train/returns.h"

/* An environment with what its agent sees of the present state, and its action. */
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
    uint8_t *frames;  /* [KS_FRAMES, KS_FRAME]: the last ones, by channels, the oldest first */
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
/* The newest frame of the present state, or that of the state before it. */
const uint8_t *ks_player_frame(const struct ks_player *player, bool before);
/* Sets `action` to a, so that the environment gets exactly the action that replay stores. */
void ks_player_set_action(struct ks_player *player);
/* Reports a divergence of the simulation since the last call on standard error. */
void ks_player_report(struct ks_player *player, size_t env_step);

struct ks_learner {
    const struct ks_plan *plan; /* not owned */
    struct ks_player player;
    struct ks_agent_f32 *agent;       /* owned */
    struct ks_replay *replay;         /* owned */
    struct ks_priorities *priorities; /* of an agent with an encoder; else NULL; owned */
    struct ks_returns returns;
    struct ks_normalizer *normalizer; /* of the observations; NULL: raw ones; owned */
    struct ks_rng resets;             /* the random stream of start states */
    size_t agent_steps, env_step;
    /* Work space, in the arena. */
    struct ks_arena arena;
    struct ks_rows rows;          /* a minibatch */
    double *noise;                /* [actions]   */
    struct ks_drawn drawn, other; /* [batch]: with priorities or frames, what was drawn for the last
                                   * update; for other purposes */
    struct ks_windows windows;    /* a minibatch of the encoder */
};

/* How the plan's agent is made. The texts are the plan's. */
struct ks_agent_config ks_learner_config(const struct ks_plan *plan, const struct ks_env *env);

/* `learner` is zero, except for its player. On failure (KS_FORMAT, KS_MEMORY) the caller still
 * frees it. */
ks_status ks_learner_init(const struct ks_plan *plan, struct ks_learner *learner);
void ks_learner_free(struct ks_learner *learner); /* frees what it holds, with the player */

/* The rows that replay gets in so many agent steps: one for each, and with frames one more per
 * episode, if none ends early. */
size_t ks_learner_rows(const struct ks_learner *learner, size_t steps);

/* The random numbers with which the next update draws its minibatch. */
struct ks_rng ks_learner_minibatch_rng(const struct ks_learner *learner);

/* To be called before every update. Before every target_period-th update (0: never) it measures the
 * magnitude of rewards, copies the networks to their targets, and trains an encoder for
 * target_period steps. KS_NUMBER. */
ks_status ks_learner_refresh(struct ks_learner *learner);
/* Draws the minibatch of the next update; after that update, sets the priorities of its rows. */
ks_status ks_learner_next_batch(struct ks_learner *learner, struct ks_batch *batch);
void ks_learner_set_priorities(struct ks_learner *learner);
/* Draws a minibatch into learner->rows; *batch is a view of it. Its observations are as the
 * networks see them now, its rewards are raw. This and the other functions that draw fail with
 * KS_RUN if replay of frames has hardly any window to draw. */
ks_status ks_learner_batch(struct ks_learner *learner, struct ks_rng *rng, struct ks_batch *batch);
/* Draws the next update's minibatch before this step's transition is stored. Returns false and
 * draws nothing if that minibatch could depend on the transition: because it would be drawn
 * (replay.h), changes priorities, or changes what ks_learner_refresh does; and with frames. */
bool ks_learner_batch_ahead(struct ks_learner *learner, struct ks_batch *batch);
/* Draws the minibatch of the last update again. The last agent step must have made an update, or
 * with frames one of the last update_every. */
ks_status ks_learner_last_batch(struct ks_learner *learner, struct ks_batch *batch);
/* The divisor of rewards for an agent with that entropy temperature; 1 if reward_normalization is
 * not set. */
double ks_learner_reward_scale(const struct ks_learner *learner, double temperature);
/* Divides the rewards in learner->rows, and thus in views of it, by that scale. Call it once per
 * minibatch. */
void ks_learner_scale_rewards(struct ks_learner *learner, double temperature);

/* Evaluation: episodes of the actor's mean action in an environment of their own. */
struct ks_evaluation {
    const struct ks_plan *plan; /* not owned */
    struct ks_player player;
    double return_mean;      /* of the last evaluation; NaN before the first */
    double *episode_returns; /* [eval_episodes] of the last one; owned       */
    double success;          /* share of its episodes that solved the task; 0 without a goal */
};

/* `evaluation` is zero. On failure the caller still frees it. */
ks_status ks_evaluation_init(const struct ks_plan *plan, struct ks_evaluation *evaluation);
void ks_evaluation_free(struct ks_evaluation *evaluation); /* frees what it holds */

/* Plays eval_episodes episodes of a = tanh(mean), with the learner's agent as it is; `number`
 * determines their start states. Fails as ks_env_step, and with KS_RUN if the run is asked to stop.
 */
ks_status ks_evaluate(struct ks_evaluation *evaluation, const struct ks_learner *learner,
                      size_t number);

struct ks_metrics;

/* step.c. Starts the next training episode. */
ks_status ks_learner_start_episode(struct ks_learner *learner);
/* One agent step: acts, stores the transition and, after the random steps, makes the updates, which
 * are added to `metrics`. Starts the next episode if this one has ended. Fails with KS_NUMBER,
 * KS_RUN, KS_MEMORY; the learner is then in an inconsistent state and may only be described and
 * freed. */
ks_status ks_learner_step(struct ks_learner *learner, struct ks_metrics *metrics);

#endif
