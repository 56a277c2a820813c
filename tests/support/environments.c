#include "environments.h"

struct ks_env *env;

double seen[WIDEST];

void take(const char *task)
{
    ks_env_free(env);
    env = NULL;
    assert_ok(ks_env_new(task, NULL, &env));
    assert_true(ks_env_observations(env) <= WIDEST);
}

int drop(void **state)
{
    ks_env_free(env);
    env = NULL;
    return 0;
}

double reward(const double *qpos, const double *qvel, const double *target)
{
    assert_ok(ks_env_force(
        env, &(struct ks_env_start){.qpos = qpos, .qvel = qvel, .target = target}, seen));
    return env->task->domain->reward(env);
}
