/* Pendulum: swingup. dm_control 1.0.20, suite/pendulum.py. */
#include "env/domain.h"

#include <math.h>

struct pendulum {
    int pole; /* body */
};

static ks_status find(struct ks_env *env)
{
    struct pendulum *pendulum = env->ids;

    return ks_env_find(env, mjOBJ_BODY, "pole", &pendulum->pole);
}

static ks_status reset(struct ks_env *env, struct ks_rng *rng)
{
    env->data->qpos[0] = ks_rng_uniform(rng, -mjPI, mjPI);
    return KS_OK;
}

static double *observe(const struct ks_env *env, double *out)
{
    const struct pendulum *pendulum = env->ids;
    const double *R = env->data->xmat + 9 * pendulum->pole;

    *out++ = R[KS_ZZ]; /* orientation */
    *out++ = R[KS_XZ];
    *out++ = env->data->qvel[0]; /* velocity */
    return out;
}

/* A zz above 1 due to rounding gives reward 0, as in dm_control. */
static double reward(const struct ks_env *env)
{
    const struct pendulum *pendulum = env->ids;
    double vertical = env->data->xmat[9 * pendulum->pole + KS_ZZ];

    return ks_tolerance(vertical, (struct ks_bounds){cos(8 * (mjPI / 180)), 1}, 0, KS_GAUSSIAN,
                        0.1);
}

const struct ks_env_domain ks_env_pendulum = {
    .suite = &ks_env_dm_control,
    .model = "pendulum.xml",
    .nq = 1,
    .nv = 1,
    .nu = 1,
    .control_step = 0.02,
    .limit = 20,
    .ids = sizeof(struct pendulum),
    .find = find,
    .reset = reset,
    .observe = observe,
    .reward = reward,
};
