/* Tasks that MuJoCo simulates: a model with its data, and the episode as dm_control 1.0.20
 * (rl/control.py, mujoco/engine.py), Gymnasium 1.0.0 (envs/mujoco/mujoco_env.py), MyoSuite 2.5.0
 * (envs/env_base.py) and HumanoidBench 791405f (humanoid_bench/env.py) run it. */
#include <math.h>
#include <string.h>

#include "env/domain.h"

/* --- the model --- */

static void make_data(void *argument)
{
    struct ks_env *env = argument;

    env->data = ks_mj.makeData(env->model);
}

/* The length of an observation follows from these sizes: a model with others is not this task's. */
static ks_status check_sizes(const struct ks_env *env)
{
    const struct ks_env_domain *domain = env->task->domain;
    int nq = (int)env->model->nq, nv = (int)env->model->nv, nu = (int)env->model->nu,
        na = (int)env->model->na;

    if (nq != domain->model.nq || nv != domain->model.nv || nu != domain->model.nu ||
        na != domain->model.na)
        return ks_fail(KS_FORMAT, "%s: expected nq %d, nv %d, nu %d, na %d, found %d, %d, %d, %d",
                       domain->model.file, domain->model.nq, domain->model.nv, domain->model.nu,
                       domain->model.na, nq, nv, nu, na);
    return KS_OK;
}

static ks_status open_model(struct ks_env *env, const struct ks_env_options *options)
{
    const struct ks_env_domain *domain = env->task->domain;

    KS_TRY(ks_physics_start());
    KS_TRY(ks_env_load(env->task, env->pixels != NULL, &env->model));
    KS_TRY(check_sizes(env));
    if (options)
        KS_TRY(ks_physics_set_flags(env->model, options->nativeccd, options->multiccd));
    ks_physics_print_flags(env->model, sizeof env->flags, env->flags);
    KS_TRY(ks_physics_guard(make_data, env));
    if (!env->data)
        return ks_fail(KS_MEMORY, "%s: out of memory for the simulation", env->task->name);
    env->actions = (size_t)env->model->nu;
    env->substeps = (int)lround(domain->control_step / env->model->opt.timestep);
    env->steps = domain->suite->steps;
    KS_TRY(ks_env_find_elements(env));
    return domain->change ? domain->change(env) : KS_OK;
}

/* --- an episode --- */

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
    struct ks_env_call *call = argument;
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
    struct ks_env_call *call = argument;
    struct ks_env *env = call->env;
    struct warnings before = count_warnings(env->data);

    set_controls(env, call->action);
    env->task->domain->suite->step(env->model, env->data, env->substeps);
    call->warned = warned_since(env->data, before);
}

/* --- the saved state: time, qpos, qvel, act, the warm start and the inputs --- */

static double version(void)
{
    return ks_mj.version();
}

static size_t state_size(const struct ks_env *env)
{
    return (size_t)ks_mj.stateSize(env->model, mjSTATE_INTEGRATION);
}

static void state_get(const struct ks_env *env, double *state)
{
    ks_mj.getState(env->model, env->data, state, mjSTATE_INTEGRATION);
}

static void restore(void *argument)
{
    struct ks_env_call *call = argument;
    struct ks_env *env = call->env;

    ks_mj.resetData(env->model, env->data);
    if (env->task->domain->apply)
        env->task->domain->apply(env);
    ks_mj.setState(env->model, env->data, call->state, mjSTATE_INTEGRATION);
    if (env->task->domain->suite->restore)
        env->task->domain->suite->restore(env->model, env->data);
}

const struct ks_env_engine ks_env_mujoco = {
    .open = open_model,
    .start = start_episode,
    .step = control_step,
    .restore = restore,
    .version = version,
    .state_size = state_size,
    .state_get = state_get,
};
