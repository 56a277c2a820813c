/* A training run: what was asked for, all that it works with, and how far it is. */
#ifndef KS_RUN_H
#define KS_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ks/agent.h"
#include "ks/env.h"
#include "ks/error.h"
#include "ks/metrics.h"
#include "ks/replay.h"
#include "ks/returns.h"
#include "ks/rng.h"
#include "ks/train.h"

/* Environment steps at which something is due, ascending. */
struct ks_due {
    size_t n, *step; /* owned */
};

/* An environment, and the observation and the action of the moment as it and as the nets see them.
 */
struct ks_player {
    struct ks_env *env; /* all owned */
    double *observation, *action;
    float *s, *a;
    size_t divergences; /* of the environment, reported so far */
};

struct ks_run {
    const struct ks_train_options *options;
    char *critic_text, *actor_text, *folder, *name; /* descriptions, --out, architecture; owned */
    struct ks_player player, evaluator;
    struct ks_agent *agent;
    struct ks_replay *replay;
    struct ks_returns returns;
    struct ks_metrics *metrics;
    double gamma;
    /* Where the run is. */
    size_t end; /* environment steps to do: steps, or stop_at, in whole agent steps */
    bool whole; /* end is that of the whole run                           */
    size_t agent_steps, env_step;
    struct ks_rng resets; /* the stream of start states          */
    bool interrupted;     /* a signal has ended the run           */
    struct ks_due evaluations, checkpoints;
    double return_mean;      /* of the last evaluation; NaN: none yet        */
    double *episode_returns; /* [eval_episodes] of it; owned            */
    double *noise;           /* [actions]; owned      */
    float *last_s;           /* [observations]: where the action was chosen; owned */
    struct ks_rows rows;     /* a minibatch; owned    */
    char started[32];        /* UTC, ISO 8601 */
};

enum ks_run_state { KS_RUNNING, KS_STOPPED, KS_FINISHED, KS_FAILED };

/* Builds all of it. Fails before anything is written. */
ks_status ks_run_new(const struct ks_train_options *options, struct ks_run **run);
void ks_run_free(struct ks_run *run);
/* A file of the run's folder; the caller frees *path. */
ks_status ks_run_path(const struct ks_run *run, const char *name, char **path);

/* Makes the folder and refuses one that holds another run: other than in `threads` and --stop-at.
 * *finished: it holds this one, finished, with all its checkpoints. */
ks_status ks_run_claim(const struct ks_run *run, bool *finished);
/* run.json, whole: settings, command line, versions, state. `reason`: why it ended before its time,
 * NULL where it did not. */
ks_status ks_run_describe(const struct ks_run *run, enum ks_run_state state, const char *reason);
/* Sets run->started to now. */
void ks_run_start_clock(struct ks_run *run);
/* "kappascope 0.1.0; OpenBLAS 0.3.21 Haswell; ...": the caller frees. */
ks_status ks_run_versions(char **text);

/* The mean return of eval_episodes episodes of a = tanh(mean), into run->return_mean and
 * episode_returns. `number` keys the start states. */
ks_status ks_run_evaluate(struct ks_run *run, size_t number);
/* A checkpoint of the run as it is now. */
ks_status ks_run_save(struct ks_run *run);
/* *all: the checkpoints of all scheduled steps are there. */
ks_status ks_run_find_checkpoints(const struct ks_run *run, bool *all);
/* Removes those that an earlier start of the same run has left. Fails with KS_IO. */
ks_status ks_run_remove_checkpoints(const struct ks_run *run);

/* player->s from player->observation: the nets see float32. */
void ks_player_observe(struct ks_player *player);
/* player->action from player->a: the environment does what replay keeps. */
void ks_player_decide(struct ks_player *player);

/* Says on standard error where the player's simulation has diverged since the last call. */
void ks_run_report(const struct ks_run *run, struct ks_player *player);

/* The start of the next training episode. */
ks_status ks_run_start_episode(struct ks_run *run);
/* One agent step: acts, stores, and after the random steps makes the updates; starts the next
 * episode where one is over. */
ks_status ks_run_step(struct ks_run *run);

/* Draws a minibatch into run->rows and shows it as the loss sees it; rewards are divided by the
 * running scale unless `raw`. */
struct ks_batch ks_run_batch(struct ks_run *run, struct ks_rng *rng, bool raw);

/* A signal asked for the end: notes it in run->interrupted and fails with KS_RUN, naming it. */
ks_status ks_run_check_signal(struct ks_run *run);

#endif
