/* For tests that look at one environment after another. */
#ifndef KS_ONE_ENV_H
#define KS_ONE_ENV_H

#include <stdlib.h>
#include <string.h>

#include "test.h"

#include "../src/env/domain.h"

enum { WIDEST = 80 };

/* The environment that a test is about, and its last observation. */
static struct ks_env *env;
static double seen[WIDEST];

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

/* The reward in that state, with all controls 0. */
static inline double reward(const double *qpos, const double *qvel, const double *target)
{
    assert_ok(ks_env_force(env, qpos, qvel, NULL, target, seen));
    return env->task->domain->reward(env);
}

#endif
