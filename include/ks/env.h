/* Environments: tasks of dm_control's suite on MuJoCo's C API.
 *
 * A table row a task, one file a domain. Semantics: dm_control 1.0.20 with its default ("legacy")
 * stepping, observations flattened in the alphabetical order of their names. */
#ifndef KS_ENV_H
#define KS_ENV_H

#include <stdbool.h>
#include <stddef.h>

#include "ks/error.h"
#include "ks/rng.h"

struct ks_env;

struct ks_env_options {
    int nativeccd, multiccd; /* 0, 1: disable or enable the flag; -1: the library's default */
};

/* The names of all tasks ("dog-stand", ...), ends in NULL. */
const char *const *ks_env_tasks(void);
/* Fails with KS_USAGE on an unknown task, KS_MISSING when models or library are not there. The caller
 * frees with ks_env_free. Every environment has a model of its own, so each may run in its thread. */
ks_status ks_env_new(const char *task, const struct ks_env_options *options, struct ks_env **env);
void ks_env_free(struct ks_env *env);

size_t ks_env_observations(const struct ks_env *env); /* width of an observation */
size_t ks_env_actions(const struct ks_env *env);      /* width of an action, each in [-1, 1] */
size_t ks_env_steps(const struct ks_env *env);        /* control steps of an episode: 1000 */

/* Starts an episode; draws its start state from `rng`, in dm_control's order. observation
 * [ks_env_observations]. */
ks_status ks_env_reset(struct ks_env *env, struct ks_rng *rng, double *observation);

/* One control step. `observation` and `reward` are set, and *ended: the episode is over (time limit,
 * never a terminal state). A diverged simulation (a MuJoCo warning counter rose, or a number is not
 * finite) ends the episode with the last good observation and reward 0, is counted, and is reported
 * through ks_env_divergence. */
ks_status ks_env_step(struct ks_env *env, const double *action, double *observation,
                      double *reward, bool *ended);

/* Divergences since ks_env_new, and the last one in words ("" if none). */
size_t ks_env_divergences(const struct ks_env *env);
const char *ks_env_divergence(const struct ks_env *env);

/* "3.1.6", of the library at run time; and the flags in use, "nativeccd=0 multiccd=0". */
const char *ks_env_mujoco_version(void);
const char *ks_env_flags(const struct ks_env *env);

#endif
