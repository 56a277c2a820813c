/* Environments: tasks of dm_control's suite on MuJoCo's C API.
 *
 * A table row a task, one file a domain. Semantics: dm_control 1.0.20 with its default ("legacy")
 * stepping, observations flattened in the alphabetical order of their names. */
#ifndef KS_ENV_ENV_H
#define KS_ENV_ENV_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "core/rng.h"

struct ks_env;

struct ks_env_options {
    int nativeccd, multiccd; /* 0, 1: disable or enable the flag; -1: the library's default */
};

/* A task, without its model: name ("dog-stand"), widths, seconds of a control step. */
struct ks_env_about {
    const char *name;
    size_t observations, actions;
    double control_step;
};
/* The i-th of all tasks; false: there are no more. */
bool ks_env_about(size_t i, struct ks_env_about *about);
/* Fails with KS_USAGE on an unknown task or a flag that this library does not have, KS_MISSING when
 * models or library are not there (models: in DM_CONTROL_DIR of the environment, else that of the
 * build), KS_FORMAT when a model is not the task's. `options` may be NULL. The caller frees with
 * ks_env_free. Every environment has a model of its own, so each may run in its thread. */
ks_status ks_env_new(const char *task, const struct ks_env_options *options, struct ks_env **env);
void ks_env_free(struct ks_env *env);

size_t ks_env_observations(const struct ks_env *env); /* width of an observation */
size_t ks_env_actions(const struct ks_env *env);      /* width of an action, each in [-1, 1] */
size_t ks_env_steps(const struct ks_env *env);        /* control steps of an episode: 1000 */

/* Starts an episode; draws its start state from `rng`, in dm_control's order. observation
 * [ks_env_observations]. Where that state is not finite or MuJoCo warns of it, that is counted as a
 * divergence and the next one is drawn: KS_NUMBER if 100 of them are no good, or if none can be
 * drawn in which bodies do not touch; KS_RUN if MuJoCo reports an error. */
ks_status ks_env_reset(struct ks_env *env, struct ks_rng *rng, double *observation);

/* Starts an episode as ks_env_reset does, but at the given state instead of a drawn one: qpos [nq],
 * qvel [nv], act [na] of the model; NULL: the default pose, rest, zero. target: the coordinates of
 * the target that the task draws (finger-turn: x, z; fish: x, y, z; reacher: x, y; else none);
 * NULL: some place, always the same. For comparison with other programs. KS_NUMBER if the state is
 * no good. */
ks_status ks_env_force(struct ks_env *env, const double *qpos, const double *qvel,
                       const double *act, const double *target, double *observation);

/* One control step, never called on an episode that is over. `observation` and `reward` are set,
 * and *ended: the episode is over (time limit, never a terminal state). A diverged simulation (a
 * MuJoCo warning counter rose, or a number is not finite) ends the episode with the last good
 * observation and reward 0, is counted, and is reported through ks_env_divergence. KS_RUN if MuJoCo
 * reports an error. */
ks_status ks_env_step(struct ks_env *env, const double *action, double *observation, double *reward,
                      bool *ended);

/* Divergences since ks_env_new, and the last one in words ("" if none). */
size_t ks_env_divergences(const struct ks_env *env);
const char *ks_env_divergence(const struct ks_env *env);
/* Makes the count go on from n, for an environment that takes an earlier one's place. */
void ks_env_divergences_set(struct ks_env *env, size_t n);

/* All that the following steps depend on, and the counters, as ks_env_state_size numbers: a
 * restored environment continues bit for bit. Only for the same task and, unless `any_version`, the
 * same version of MuJoCo, else ks_env_state_set fails with KS_FORMAT, having changed nothing. A
 * state of another version has to have the same size, which it has unless that version added to
 * mjSTATE_INTEGRATION. */
size_t ks_env_state_size(const struct ks_env *env);
void ks_env_state_get(const struct ks_env *env, double *state);
ks_status ks_env_state_set(struct ks_env *env, size_t size, const double *state, bool any_version);

/* "3.1.6", of the library at run time; and the flags in use, "nativeccd=0 multiccd=0". */
const char *ks_env_mujoco_version(void);
const char *ks_env_flags(const struct ks_env *env);

#endif
