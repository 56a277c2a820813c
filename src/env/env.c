/* Environments: their episodes, whatever simulates them. */
#include "env/env.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "env/domain.h"
#include "io/file.h"

bool ks_env_is_file(const char *task)
{
    return ks_path_ends(task, ".so");
}

static ks_status find_task(const char *name, struct ks_env *env)
{
    if (ks_path_ends(name, ".task"))
        return ks_fail(KS_USAGE,
                       "%s: expected the name of a task, or a shared object FILE.so with the "
                       "functions of kappascope_env.h (configs/tasks/point.c is an example): .task "
                       "files are no longer read",
                       name);
    if (ks_env_is_file(name))
        return ks_env_shared_read(name, env);
    KS_TRY(ks_env_task_find(name, &env->task));
    return ks_env_is_pixels(name) ? ks_copy_string(name, &env->pixels) : KS_OK;
}

/* --- new, free --- */

static const struct ks_env_engine *engine(const struct ks_env *env)
{
    return env->task->domain->suite->engine;
}

static ks_status set_up(struct ks_env *env, const struct ks_env_options *options)
{
    KS_TRY(engine(env)->open(env, options));
    env->ended = true; /* until the first reset */
    return ks_alloc(env->task->observations, sizeof *env->last_finite, &env->last_finite);
}

ks_status ks_env_new(const char *task, const struct ks_env_options *options, struct ks_env **out)
{
    KS_OWNED_BY(ks_env_free) struct ks_env *env = NULL;

    *out = NULL;
    KS_TRY(ks_alloc(1, sizeof *env, &env));
    KS_TRY(find_task(task, env));
    KS_TRY(set_up(env, options));
    *out = env, env = NULL;
    return KS_OK;
}

ks_status ks_env_about_file(const char *path, struct ks_env_about *about)
{
    KS_OWNED_BY(ks_env_free) struct ks_env *env = NULL;

    KS_TRY(ks_env_new(path, NULL, &env));
    *about = (struct ks_env_about){.name = path,
                                   .suite = "",
                                   .observations = ks_env_observations(env),
                                   .actions = ks_env_actions(env),
                                   .action_repeat = env->task->domain->suite->action_repeat,
                                   .control_step = env->task->domain->control_step};
    return KS_OK;
}

void ks_env_free(struct ks_env *env)
{
    if (!env)
        return;
    if (env->data)
        ks_mj.deleteData(env->data);
    if (env->model)
        ks_mj.deleteModel(env->model);
    free(env->last_finite);
    free(env->identity);
    free(env->pixels);
    ks_env_shared_free(env->shared);
    free(env);
}

const char *ks_env_name(const struct ks_env *env)
{
    return env->pixels ? env->pixels : env->task->name;
}

const char *ks_env_identity(const struct ks_env *env)
{
    return env->identity;
}

size_t ks_env_observations(const struct ks_env *env)
{
    return env->task->observations;
}

size_t ks_env_seen(const struct ks_env *env)
{
    return env->pixels ? KS_FRAMES * KS_FRAME : env->task->observations;
}

size_t ks_env_actions(const struct ks_env *env)
{
    return env->actions;
}

size_t ks_env_steps(const struct ks_env *env)
{
    return env->steps;
}

bool ks_env_has_goal(const struct ks_env *env)
{
    return env->task->domain->solved != NULL;
}

bool ks_env_solved(const struct ks_env *env)
{
    return ks_env_has_goal(env) && env->task->domain->solved(env);
}

size_t ks_env_divergences(const struct ks_env *env)
{
    return env->divergences;
}

void ks_env_divergences_set(struct ks_env *env, size_t n)
{
    env->divergences = n;
}

const char *ks_env_divergence(const struct ks_env *env)
{
    return env->divergence;
}

const char *ks_env_mujoco_version(void)
{
    return ks_mujoco_load() == KS_OK ? ks_mj.versionString() : "not found";
}

const char *ks_env_flags(const struct ks_env *env)
{
    return env->flags;
}

/* --- an episode --- */

static void observe(const struct ks_env *env, double *observation)
{
    double *end = env->task->domain->observe(env, observation);

    assert(end == observation + env->task->observations);
    (void)end;
}

static ks_status refuse_start(const struct ks_env *env, const char *what)
{
    return ks_fail(KS_NUMBER, "%s: reset: %s", env->task->name, what);
}

/* Sets *bad if the start state is the reason for the failure, so that another one may succeed. */
static ks_status try_start(struct ks_env_call *call, double *observation, bool *bad)
{
    struct ks_env *env = call->env;

    *bad = false;
    env->step = 0;
    env->ended = true; /* in case this fails */
    KS_TRY(ks_physics_guard(engine(env)->start, call));
    KS_TRY(call->status);
    *bad = true;
    if (call->warned)
        return refuse_start(env, ks_physics_warning());
    observe(env, observation);
    if (!ks_env_all_finite(env->task->observations, observation))
        return refuse_start(env, "the observation is not finite");
    *bad = false;
    memcpy(env->last_finite, observation, env->task->observations * sizeof *observation);
    env->ended = false;
    return KS_OK;
}

/* For a bad start state dm_control raises an error, which would end the training program of XQC's
 * authors. This draws another state instead. */
ks_status ks_env_reset(struct ks_env *env, struct ks_rng *rng, double *observation)
{
    const int attempts = 100;
    struct ks_env_call call = {.env = env, .rng = rng};
    ks_status status = KS_OK;
    bool bad = true;

    for (int i = 0; i < attempts && bad; i++) {
        status = try_start(&call, observation, &bad);
        if (bad) {
            env->divergences++;
            snprintf(env->divergence, sizeof env->divergence, "%s", ks_error_text());
        }
    }
    return status;
}

ks_status ks_env_force(struct ks_env *env, const struct ks_env_start *start, double *observation)
{
    static const struct ks_env_start defaults = {.qpos = NULL};
    struct ks_env_call call = {.env = env, .start = start ? start : &defaults};
    bool bad;

    return try_start(&call, observation, &bad);
}

/* Ends the episode. dm_control raises an error here, which would end the training program of XQC's
 * authors. */
static enum ks_env_end diverge(struct ks_env *env, const char *words, double *observation,
                               double *reward)
{
    env->divergences++;
    snprintf(env->divergence, sizeof env->divergence, "%s: step %zu: %s", env->task->name,
             env->step, words);
    memcpy(observation, env->last_finite, env->task->observations * sizeof *observation);
    *reward = 0;
    return KS_ENV_TRUNCATED;
}

/* A terminal state in the last step before the time limit is a terminal state. */
static enum ks_env_end find_end(const struct ks_env *env)
{
    const struct ks_env_domain *domain = env->task->domain;

    if (domain->terminal && domain->terminal(env))
        return KS_ENV_TERMINATED;
    if (domain->truncated && domain->truncated(env))
        return KS_ENV_TRUNCATED;
    return env->step >= env->steps ? KS_ENV_TRUNCATED : KS_ENV_GOES_ON;
}

ks_status ks_env_step(struct ks_env *env, const double *action, double *observation, double *reward,
                      enum ks_env_end *end)
{
    struct ks_env_call call = {.env = env, .action = action};

    assert(!env->ended);
    env->ended = true; /* in case this fails */
    KS_TRY(ks_physics_guard(engine(env)->step, &call));
    KS_TRY(call.status);
    env->step++;
    observe(env, observation);
    *reward = env->task->domain->reward(env);
    if (env->task->domain->remember)
        env->task->domain->remember(env);
    *end = find_end(env);
    if (call.warned)
        *end = diverge(env, ks_physics_warning(), observation, reward);
    else if (!ks_env_all_finite(env->task->observations, observation) || !isfinite((float)*reward))
        *end = diverge(env, "an observation or the reward is not finite", observation, reward);
    else
        memcpy(env->last_finite, observation, env->task->observations * sizeof *observation);
    env->ended = *end != KS_ENV_GOES_ON;
    return KS_OK;
}

/* The complete state of an environment as numbers, so that a run can be resumed. */

/* A saved state consists of HEAD numbers, the numbers in env->episode, the last observation, and
 * then the state of the engine. */
enum { SIZE, VERSION, GOAL, STEP, ENDED, DIVERGENCES, HEAD };

static size_t episode_size(const struct ks_env *env)
{
    size_t target = env->task->domain->target;

    return target > KS_ENV_EPISODE ? target : KS_ENV_EPISODE;
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

ks_status ks_env_state_set(struct ks_env *env, size_t size, const double *state, bool any_version)
{
    const double *episode = state + HEAD, *last_finite = episode + episode_size(env);
    struct ks_env_call call = {.env = env, .state = last_finite + env->task->observations};
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
    KS_TRY(ks_physics_guard(engine(env)->restore, &call));
    env->step = (size_t)state[STEP];
    env->divergences = (size_t)state[DIVERGENCES];
    env->ended = state[ENDED] != 0;
    return KS_OK;
}
