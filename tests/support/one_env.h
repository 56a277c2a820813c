/* A test fixture: one environment at a time, and the reward in given states. */
#ifndef KS_ONE_ENV_H
#define KS_ONE_ENV_H

#include <stdlib.h>
#include <string.h>

#include "test.h"

#include "env/domain.h"

enum { WIDEST = 376 };

/* The current environment, and its last observation. */
static struct ks_env *env;
static double seen[WIDEST];

/* Replaces the current environment by one of this task. */
static inline void take(const char *task)
{
    ks_env_free(env);
    env = NULL;
    assert_ok(ks_env_new(task, NULL, &env));
    assert_true(ks_env_observations(env) <= WIDEST);
}

static inline int drop(void **state)
{
    (void)state;
    ks_env_free(env);
    env = NULL;
    return 0;
}

/* The reward in the given state, with all controls 0. */
static inline double reward(const double *qpos, const double *qvel, const double *target)
{
    assert_ok(ks_env_force(
        env, &(struct ks_env_start){.qpos = qpos, .qvel = qvel, .target = target}, seen));
    return env->task->domain->reward(env);
}

#endif
