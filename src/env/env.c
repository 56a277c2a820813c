/* Environments: the episode as dm_control 1.0.20 (rl/control.py, mujoco/engine.py), Gymnasium 1.0.0
 * (envs/mujoco/mujoco_env.py), MyoSuite 2.5.0 (envs/env_base.py) and HumanoidBench 791405f
 * (humanoid_bench/env.py) run it. */
#include "env/env.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "env/domain.h"
#include "env/own.h"
#include "env/physics.h"

static ks_status find_task(const char *name, struct ks_env *env)
{
    if (!ks_env_is_file(name))
        return ks_env_task_find(name, &env->task);
    KS_TRY(ks_env_own_read(name, &env->own));
    env->task = &env->own->task;
    return KS_OK;
}

/* --- new, free --- */

static void make_data(void *argument)
{
    struct ks_env *env = argument;

    env->data = mj_makeData(env->model);
}

/* The length of an observation follows from these sizes: a model with others is not this task's. */
static ks_status check_sizes(const struct ks_env *env)
{
    const struct ks_env_domain *want = env->task->domain;
    int nq = (int)env->model->nq, nv = (int)env->model->nv, nu = (int)env->model->nu,
        na = (int)env->model->na;

    if (nq != want->nq || nv != want->nv || nu != want->nu || na != want->na)
        return ks_fail(KS_FORMAT, "%s: expected nq %d, nv %d, nu %d, na %d, found %d, %d, %d, %d",
                       want->model, want->nq, want->nv, want->nu, want->na, nq, nv, nu, na);
    return KS_OK;
}

static void set_times(struct ks_env *env)
{
    const struct ks_env_domain *domain = env->task->domain;
    double physics_step = env->model->opt.timestep;

    env->substeps = (int)lround(domain->control_step / physics_step);
    env->steps = (size_t)lround(domain->limit / (physics_step * env->substeps));
}

static ks_status set_up(struct ks_env *env, const struct ks_env_options *options)
{
    KS_TRY(ks_env_load(env->task, &env->model));
    if (!env->own)
        KS_TRY(check_sizes(env));
    KS_TRY(ks_physics_set_flags(env->model, options));
    ks_physics_print_flags(env->model, sizeof env->flags, env->flags);
    KS_TRY(ks_physics_guard(make_data, env));
    if (!env->data)
        return ks_fail(KS_MEMORY, "%s: out of memory for the simulation", env->task->name);
    KS_TRY(ks_alloc(env->task->domain->ids, 1, &env->ids));
    KS_TRY(env->task->domain->find(env));
    KS_TRY(ks_alloc(env->task->observations, sizeof *env->last_finite, &env->last_finite));
    set_times(env);
    env->ended = true; /* until the first reset */
    return KS_OK;
}

ks_status ks_env_new(const char *task, const struct ks_env_options *options, struct ks_env **out)
{
    struct ks_env *env = NULL;
    ks_status status = KS_OK;

    *out = NULL;
    KS_TRY(ks_physics_start());
    KS_TRY(ks_alloc(1, sizeof *env, &env));
    KS_GO(find_task(task, env));
    KS_GO(set_up(env, options));
    *out = env, env = NULL;
done:
    ks_env_free(env);
    return status;
}

ks_status ks_env_about_file(const char *path, struct ks_env_about *about)
{
    struct ks_env *env = NULL;

    KS_TRY(ks_env_new(path, NULL, &env));
    *about = (struct ks_env_about){.name = path,
                                   .suite = "",
                                   .observations = ks_env_observations(env),
                                   .actions = ks_env_actions(env),
                                   .action_repeat = env->task->domain->suite->action_repeat,
                                   .control_step = env->task->domain->control_step};
    ks_env_free(env);
    return KS_OK;
}

void ks_env_free(struct ks_env *env)
{
    if (!env)
        return;
    if (env->data)
        mj_deleteData(env->data);
    if (env->model)
        mj_deleteModel(env->model);
    free(env->ids);
    free(env->last_finite);
    ks_env_own_free(env->own);
    free(env);
}

const char *ks_env_name(const struct ks_env *env)
{
    return env->task->name;
}

const char *ks_env_identity(const struct ks_env *env)
{
    return env->own ? env->own->identity : NULL;
}

size_t ks_env_observations(const struct ks_env *env)
{
    return env->task->observations;
}

size_t ks_env_actions(const struct ks_env *env)
{
    return (size_t)env->model->nu;
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
    return ks_mujoco_load() == KS_OK ? mj_versionString() : "not found";
}

const char *ks_env_flags(const struct ks_env *env)
{
    return env->flags;
}

/* --- an episode --- */

struct call {
    struct ks_env *env;
    struct ks_rng *rng;               /* for reset; NULL for force */
    const struct ks_env_start *start; /* for force */
    const double *action;             /* for step */
    bool warned;                      /* out: a warning counter rose */
    ks_status status;                 /* out: the status of the domain's reset */
};

struct warnings {
    int counts[mjNWARNING];
};

static struct warnings count_warnings(const mjData *data)
{
    struct warnings w = {{0}};

    for (int i = 0; i < mjNWARNING; i++)
        w.counts[i] = data->warning[i].number;
    return w;
}

/* Whether a warning counter has risen. After a bad position, velocity or acceleration the library
 * resets the state and all counters, then sets the counter of this warning to 1. That is a rise,
 * too, as every episode starts with zeros. */
static bool warned_since(const mjData *data, struct warnings before)
{
    for (int i = 0; i < mjNWARNING; i++)
        if (data->warning[i].number > before.counts[i])
            return true;
    return false;
}

static void observe(const struct ks_env *env, double *observation)
{
    double *end = env->task->domain->observe(env, observation);

    assert(end == observation + env->task->observations);
    (void)end;
}

static void set_target(struct ks_env *env, const struct ks_env_start *start)
{
    if (start->target)
        memcpy(env->episode, start->target, env->task->domain->target * sizeof *env->episode);
    if (env->task->domain->apply)
        env->task->domain->apply(env);
}

static void overwrite(struct ks_env *env, const struct ks_env_start *start)
{
    const mjModel *m = env->model;
    mjData *d = env->data;

    memcpy(d->qpos, start->qpos ? start->qpos : m->qpos0, (size_t)m->nq * sizeof *d->qpos);
    memset(d->qvel, 0, (size_t)m->nv * sizeof *d->qvel);
    memset(d->act, 0, (size_t)m->na * sizeof *d->act);
    if (start->qvel)
        memcpy(d->qvel, start->qvel, (size_t)m->nv * sizeof *d->qvel);
    if (start->act)
        memcpy(d->act, start->act, (size_t)m->na * sizeof *d->act);
}

/* As dm_control's reset_context, this ignores warnings of the first reset. Before MuJoCo 3.3.6
 * every forward pass leaves a warm start for the solver, so the number of forward passes matters. A
 * forced start has as many in every domain of a suite: two in dm_control, one in Gymnasium, three
 * in MyoSuite. */
static void start_episode(void *argument)
{
    struct call *call = argument;
    struct ks_env *env = call->env;
    const struct ks_env_suite *suite = env->task->domain->suite;
    struct ks_rng any = ks_rng_start(0, 0);
    struct warnings before;

    suite->reset(env->model, env->data);
    before = count_warnings(env->data);
    call->status = env->task->domain->reset(env, call->rng ? call->rng : &any);
    if (!call->rng) {
        set_target(env, call->start);
        suite->reset(env->model, env->data);
        overwrite(env, call->start);
    }
    suite->forward(env->model, env->data);
    if (env->task->domain->remember)
        env->task->domain->remember(env);
    call->warned = warned_since(env->data, before);
}

static ks_status refuse_start(const struct ks_env *env, const char *what)
{
    return ks_fail(KS_NUMBER, "%s: reset: %s", env->task->name, what);
}

/* Sets *bad if the start state is the reason for the failure, so that another one may succeed. */
static ks_status try_start(struct call *call, double *observation, bool *bad)
{
    struct ks_env *env = call->env;

    *bad = false;
    env->step = 0;
    env->ended = true; /* in case this fails */
    KS_TRY(ks_physics_guard(start_episode, call));
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
    struct call call = {.env = env, .rng = rng};
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
    struct call call = {.env = env, .start = start ? start : &defaults};
    bool bad;

    return try_start(&call, observation, &bad);
}

/* Actions are in [-1, 1], controls in the range of each actuator. */
static void set_controls(struct ks_env *env, const double *action)
{
    const mjModel *m = env->model;

    for (size_t i = 0; i < ks_env_actions(env); i++)
        env->data->ctrl[i] = m->actuator_ctrllimited[i]
                                 ? env->task->domain->suite->control(m->actuator_ctrlrange + 2 * i,
                                                                     action[i])
                                 : action[i];
}

static void control_step(void *argument)
{
    struct call *call = argument;
    struct ks_env *env = call->env;
    struct warnings before = count_warnings(env->data);

    set_controls(env, call->action);
    env->task->domain->suite->step(env->model, env->data, env->substeps);
    call->warned = warned_since(env->data, before);
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
    return env->step >= env->steps ? KS_ENV_TRUNCATED : KS_ENV_GOES_ON;
}

ks_status ks_env_step(struct ks_env *env, const double *action, double *observation, double *reward,
                      enum ks_env_end *end)
{
    struct call call = {.env = env, .action = action};

    assert(!env->ended);
    env->ended = true; /* in case this fails */
    KS_TRY(ks_physics_guard(control_step, &call));
    env->step++;
    observe(env, observation);
    *reward = env->task->domain->reward(env);
    if (env->task->domain->remember)
        env->task->domain->remember(env);
    *end = find_end(env);
    if (call.warned)
        *end = diverge(env, ks_physics_warning(), observation, reward);
    else if (!ks_env_all_finite(env->task->observations, observation) || !isfinite(*reward))
        *end = diverge(env, "an observation or the reward is not finite", observation, reward);
    else
        memcpy(env->last_finite, observation, env->task->observations * sizeof *observation);
    env->ended = *end != KS_ENV_GOES_ON;
    return KS_OK;
}
