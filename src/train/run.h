/* A training run: what was asked for, all that it works with, and how far it is. */
#ifndef KS_TRAIN_RUN_H
#define KS_TRAIN_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/agent.h"
#include "core/error.h"
#include "core/rng.h"
#include "env/env.h"
#include "train/metrics.h"
#include "train/replay.h"
#include "train/returns.h"
#include "train/train.h"

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

struct ks_resume_points; /* point.h */
struct json_t;           /* of jansson */

struct ks_run {
    const struct ks_train_options *options;
    char *critic_text, *actor_text, *folder, *name; /* descriptions, --out, architecture; owned */
    struct ks_player player, evaluator;
    struct ks_agent *agent;
    struct ks_replay *replay;
    struct ks_returns returns;
    struct ks_metrics *metrics;
    struct ks_resume_points *points;
    int lock; /* descriptor of the folder while it is the run's; -1: none */
    double gamma;
    size_t steps; /* agent steps of the whole run */
    /* Where the run is. */
    size_t end; /* environment steps to do: steps, or stop_at, in whole agent steps */
    bool whole; /* end is that of the whole run                           */
    size_t agent_steps, env_step;
    bool recorded;        /* what is due at env_step has been done */
    struct ks_rng resets; /* the stream of start states          */
    bool interrupted;     /* a signal has ended the run           */
    struct ks_due evaluations, checkpoints;
    double return_mean;            /* of the last evaluation; NaN: none yet        */
    double *episode_returns;       /* [eval_episodes] of it; owned            */
    double *noise;                 /* [actions]; owned      */
    double *env_state;             /* [ks_env_state_size]: scratch; owned */
    float *last_s;                 /* [observations]: where the action was chosen; owned */
    struct ks_rows rows;           /* a minibatch; owned    */
    char started[32], resumed[32]; /* UTC, ISO 8601; "": it was not resumed */
    struct json_t *changes;        /* an array, see ks_run_changes; NULL: none; owned */
};

/* A failure that would come again is one for good: such a run is not resumed. */
enum ks_run_state { KS_RUNNING, KS_STOPPED, KS_FINISHED, KS_FAILED, KS_FAILED_FOR_GOOD };

/* Builds all of it. Fails before anything is written: KS_USAGE, KS_FORMAT, KS_IO, KS_MISSING,
 * KS_MEMORY. */
ks_status ks_run_new(const struct ks_train_options *options, struct ks_run **run);
void ks_run_free(struct ks_run *run);
/* A file of the run's folder; the caller frees *path. */
ks_status ks_run_path(const struct ks_run *run, const char *name, char **path);

/* Makes the folder and keeps other processes that train out of it. Refuses one that holds another
 * run: other than in `threads` and --stop-at; with --resume also this one, failed for good: KS_RUN.
 * *finished: it holds this one, finished, with all its checkpoints. */
ks_status ks_run_claim(struct ks_run *run, bool *finished);
/* What makes two runs the same run, as JSON: all that decides what is computed. NULL where names
 * are no UTF-8 text; the caller frees. And the words for the states. */
struct json_t *ks_run_identity(const struct ks_run *run);
extern const char *const ks_run_states[];
/* run.json, whole: settings, command line, versions, state. `reason`: why it ended before its time,
 * NULL where it did not. */
ks_status ks_run_write_json(const struct ks_run *run, enum ks_run_state state, const char *reason);
/* Whether `found`, a description of a run in JSON, is that of this one. A setting that it lacks,
 * because an older version wrote it, counts as its default, and is added to it. KS_USAGE, naming
 * `path`, `what` went wrong and what differs, where it is of another run. And the same for a single
 * value, NULL where there is none. */
ks_status ks_run_compare_identity(const struct ks_run *run, const char *path, const char *what,
                                  struct json_t *found);
ks_status ks_run_compare_value(const char *path, const char *what, const char *key,
                               const struct json_t *found, const struct json_t *want);
/* The key of a resume point, as JSON: the identity; the conditions, which are threads, versions,
 * BLAS kernel, MuJoCo's flags and the processor's name; the changes so far. The caller frees. */
ks_status ks_run_fingerprint(const struct ks_run *run, char **key);
/* Whether a point with this key is one of this run; and whether the run may go on from there, for
 * which all conditions but the processor's name have to be the same, unless options->resume is
 * KS_RESUME_ANY. KS_USAGE, naming `path` and what differs, where not. */
ks_status ks_run_compare_fingerprint(const struct ks_run *run, const char *path, const char *key);
ks_status ks_run_compare_conditions(const struct ks_run *run, const char *path, const char *key);
/* Sets run->changes for a run that goes on, at run->env_step, from a point with this key: those
 * that the point names, and with KS_RESUME_ANY each condition that differs now. */
ks_status ks_run_note_changes(struct ks_run *run, const char *key);
/* The changes of conditions since the start of the run: an array of {env_step, what, from, to},
 * which the caller frees; and their number. A run with changes is not bit for bit one that was left
 * alone. */
struct json_t *ks_run_changes(const struct ks_run *run);
size_t ks_run_count_changes(const struct ks_run *run);
/* Sets run->started to now, or where the run goes on run->resumed. */
void ks_run_start_clock(struct ks_run *run, bool resumes);
/* "kappascope 0.2.0; OpenBLAS 0.3.21 Haswell; ...": the caller frees. */
ks_status ks_run_versions(char **text);

/* The mean return of eval_episodes episodes of a = tanh(mean), into run->return_mean and
 * episode_returns. `number` keys the start states. */
ks_status ks_run_evaluate(struct ks_run *run, size_t number);
/* A checkpoint of the run as it is now. */
ks_status ks_run_save(struct ks_run *run);
/* *all: the checkpoints of all scheduled steps are there. */
ks_status ks_run_find_checkpoints(const struct ks_run *run, bool *all);
/* Removes those to come, which an earlier start of the same run has left, and fails with KS_FORMAT
 * if one that has been written is missing; with KS_IO. */
ks_status ks_run_check_checkpoints(const struct ks_run *run);

/* All that the further course of the run depends on, but for its replay and its options, as bytes
 * (state.c): a run with the same options that takes them, and has the same replay, goes on bit for
 * bit. */
struct ks_run_saved {
    const unsigned char *bytes;
    size_t size;
    bool unnamed; /* of a point of version 2, whose values have no names */
};
size_t ks_run_state_size(struct ks_run *run);
void ks_run_state_get(struct ks_run *run, unsigned char *bytes);
/* Whether the run can take that state: KS_USAGE, naming `path` and what is in the way, where it
 * cannot. Nothing is changed. */
ks_status ks_run_state_check(struct ks_run *run, const char *path,
                             const struct ks_run_saved *state);
/* Takes a state that was checked. KS_FORMAT where its environment is in no possible state. */
ks_status ks_run_state_set(struct ks_run *run, const struct ks_run_saved *state);

/* player->s from player->observation: the nets see float32. */
void ks_player_observe(struct ks_player *player);
/* player->action from player->a: the environment does what replay keeps. */
void ks_player_decide(struct ks_player *player);

/* Says on standard error where the player's simulation has diverged since the last call. */
void ks_run_report(const struct ks_run *run, struct ks_player *player);

/* The start of the next training episode. */
ks_status ks_run_start_episode(struct ks_run *run);
/* One agent step: acts, stores, and after the random steps makes the updates; starts the next
 * episode where one is over. Fails with KS_NUMBER, KS_RUN, KS_MEMORY; the run is then between two
 * states and only good to be described and freed. */
ks_status ks_run_step(struct ks_run *run);

/* Draws a minibatch into run->rows and shows it; its rewards are raw. */
struct ks_batch ks_run_batch(struct ks_run *run, struct ks_rng *rng);
/* Draws the minibatch of the last update once more; there has been one in the last agent step. */
struct ks_batch ks_run_last_batch(struct ks_run *run);
/* Divides the rewards in run->rows, and so in what ks_run_batch showed, by the running scale. To be
 * called once per minibatch, and only where the settings have reward_normalization. */
void ks_run_scale_rewards(struct ks_run *run);

/* Says on standard error where the run starts and how much memory and disk it will take. */
void ks_run_announce(struct ks_run *run, bool resumes);

/* All of it, from the claim of the folder to the last checkpoint. */
ks_status ks_run_train(struct ks_run *run);
/* From here on SIGINT, SIGTERM and SIGHUP end a run between two steps, unless they are ignored. */
void ks_run_listen_to_signals(void);
/* A signal asked for the end: notes it in run->interrupted and fails with KS_RUN, naming it. */
ks_status ks_run_check_signal(struct ks_run *run);

#endif
