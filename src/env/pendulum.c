/* Pendulum: swingup. dm_control 1.0.20, suite/pendulum.py. */
#include "env/domain.h"

#include <math.h>

enum { POLE };
static const struct ks_env_element elements[] = {[POLE] = KS_BODY("pole"), {.name = NULL}};

static ks_status reset(struct ks_env *env, struct ks_rng *rng)
{
    env->data->qpos[0] = ks_rng_uniform(rng, -mjPI, mjPI);
    return KS_OK;
}

static double *observe(const struct ks_env *env, double *out)
{
    *out++ = ks_env_frame(env, POLE)[KS_ZZ]; /* orientation */
    *out++ = ks_env_frame(env, POLE)[KS_XZ];
    *out++ = env->data->qvel[0]; /* velocity */
    return out;
}

/* A zz above 1 due to rounding gives reward 0, as in dm_control. */
static double reward(const struct ks_env *env)
{
    const struct ks_bounds up = {cos(8 * (mjPI / 180)), 1};

    return ks_tolerance(ks_env_frame(env, POLE)[KS_ZZ], up, 0, KS_GAUSSIAN, 0.1);
}

const struct ks_env_domain ks_env_pendulum = {
    KS_DM_CONTROL("pendulum.xml", 1, 1, 1, 0.02),
    KS_ENV_FUNCTIONS,
};
