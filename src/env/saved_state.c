/* The complete state of an environment as numbers, so that a run can be resumed. */
#include "env/env.h"

#include <string.h>

#include "env/domain.h"
#include "env/physics.h"

/* A saved state consists of HEAD numbers, those of env->episode, the last observation, and then the
 * state of the engine. */
enum { SIZE, VERSION, GOAL, STEP, ENDED, DIVERGENCES, HEAD };

static size_t episode_size(const struct ks_env *env)
{
    size_t target = env->task->domain->target;

    return target > KS_ENV_EPISODE ? target : KS_ENV_EPISODE;
}

static const struct ks_env_engine *engine(const struct ks_env *env)
{
    return env->task->domain->suite->engine;
}

size_t ks_env_state_size(const struct ks_env *env)
{
    return HEAD + episode_size(env) + env->task->observations + engine(env)->state_size(env);
}

void ks_env_state_get(const struct ks_env *env, double *state)
{
    state[SIZE] = (double)ks_env_state_size(env);
    state[VERSION] = engine(env)->version();
    state[GOAL] = env->task->goal;
    state[STEP] = (double)env->step;
    state[ENDED] = env->ended;
    state[DIVERGENCES] = (double)env->divergences;
    state += HEAD;
    memcpy(state, env->episode, episode_size(env) * sizeof *state), state += episode_size(env);
    memcpy(state, env->last_finite, env->task->observations * sizeof *state);
    state += env->task->observations;
    engine(env)->state_get(env, state);
}

struct restoring {
    struct ks_env *env;
    const double *state;
};

static void restore(void *argument)
{
    struct restoring *r = argument;

    engine(r->env)->state_set(r->env, r->state);
}

ks_status ks_env_state_set(struct ks_env *env, size_t size, const double *state, bool any_version)
{
    const double *episode = state + HEAD, *last_finite = episode + episode_size(env);
    struct restoring r = {env, last_finite + env->task->observations};
    size_t want = ks_env_state_size(env);

    if (size != want || !ks_env_all_finite(want, state) || state[SIZE] != (double)want ||
        state[GOAL] != env->task->goal ||
        (!any_version && state[VERSION] != engine(env)->version()) || state[STEP] < 0 ||
        state[STEP] > (double)env->steps || state[DIVERGENCES] < 0)
        return ks_fail(
            KS_FORMAT,
            "saved state of an environment: not a state of %s in its version %g (expected %zu "
            "numbers, found %zu)",
            env->task->name, engine(env)->version(), want, size);
    memcpy(env->episode, episode, episode_size(env) * sizeof *episode);
    memcpy(env->last_finite, last_finite, env->task->observations * sizeof *last_finite);
    env->ended = true; /* in case this fails */
    KS_TRY(ks_physics_guard(restore, &r));
    env->step = (size_t)state[STEP];
    env->divergences = (size_t)state[DIVERGENCES];
    env->ended = state[ENDED] != 0;
    return KS_OK;
}
