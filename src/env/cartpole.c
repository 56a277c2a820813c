/* Cartpole: balance, swingup, swingup_sparse. dm_control 1.0.20, suite/cartpole.py; `goal` is the
 * angle near which the pole starts: 0 for balance, pi for the others. */
#include "env/domain.h"

#include <math.h>

enum { POLE };
static const struct ks_env_element elements[] = {[POLE] = KS_BODY("pole_1"), {.name = NULL}};

static ks_status reset(struct ks_env *env, struct ks_rng *rng)
{
    mjData *d = env->data;

    if (env->task->goal > 0) {
        d->qpos[0] = 0.01 * ks_rng_normal(rng);
        d->qpos[1] = env->task->goal + 0.01 * ks_rng_normal(rng);
    } else {
        d->qpos[0] = ks_rng_uniform(rng, -0.1, 0.1);
        d->qpos[1] = ks_rng_uniform(rng, -0.034, 0.034);
    }
    d->qvel[0] = 0.01 * ks_rng_normal(rng);
    d->qvel[1] = 0.01 * ks_rng_normal(rng);
    return KS_OK;
}

static double *observe(const struct ks_env *env, double *out)
{
    *out++ = env->data->qpos[0]; /* position */
    *out++ = ks_env_frame(env, POLE)[KS_ZZ];
    *out++ = ks_env_frame(env, POLE)[KS_XZ];
    return ks_env_append(out, 2, env->data->qvel); /* velocity */
}

/* (1 + T(x)) / 2 with T = 1 at 0 and 0.1 at +-margin. */
static double near_zero(double x, double margin)
{
    return (1 + ks_tolerance(x, (struct ks_bounds){0, 0}, margin, KS_GAUSSIAN, 0.1)) / 2;
}

static double reward(const struct ks_env *env)
{
    const mjData *d = env->data;
    double upright = (ks_env_frame(env, POLE)[KS_ZZ] + 1) / 2;

    return upright * ks_small_control(1, d->ctrl, 1) * near_zero(d->qvel[1], 5) *
           near_zero(d->qpos[0], 2);
}

static double sparse_reward(const struct ks_env *env)
{
    return fabs(env->data->qpos[0]) <= 0.25 && ks_env_frame(env, POLE)[KS_ZZ] >= 0.995;
}

const struct ks_env_domain ks_env_cartpole = {
    KS_DM_CONTROL("cartpole.xml", 2, 2, 1, 0.01),
    KS_ENV_FUNCTIONS,
};

const struct ks_env_domain ks_env_cartpole_sparse = {
    KS_DM_CONTROL("cartpole.xml", 2, 2, 1, 0.01),
    .elements = elements,
    .reset = reset,
    .observe = observe,
    .reward = sparse_reward,
};
