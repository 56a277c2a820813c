/* Acrobot: swingup. dm_control 1.0.20, suite/acrobot.py. */
#include "env/domain.h"

enum { UPPER_ARM, LOWER_ARM, TARGET, TIP };
static const struct ks_env_element elements[] = {
    [UPPER_ARM] = KS_BODY("upper_arm"),
    [LOWER_ARM] = KS_BODY("lower_arm"),
    [TARGET] = KS_SITE("target"),
    [TIP] = KS_SITE("tip"),
    {.name = NULL},
};

static ks_status reset(struct ks_env *env, struct ks_rng *rng)
{
    env->data->qpos[0] = ks_rng_uniform(rng, -mjPI, mjPI); /* shoulder */
    env->data->qpos[1] = ks_rng_uniform(rng, -mjPI, mjPI); /* elbow */
    return KS_OK;
}

static double *observe(const struct ks_env *env, double *out)
{
    const double *upper = ks_env_frame(env, UPPER_ARM), *lower = ks_env_frame(env, LOWER_ARM);

    *out++ = upper[KS_XZ]; /* orientations */
    *out++ = lower[KS_XZ];
    *out++ = upper[KS_ZZ];
    *out++ = lower[KS_ZZ];
    return ks_env_append(out, 2, env->data->qvel); /* velocity */
}

static double reward(const struct ks_env *env)
{
    double radius = env->model->site_size[3 * env->ids[TARGET]], to_target[3];

    return ks_tolerance(ks_env_between(env, TIP, TARGET, to_target), (struct ks_bounds){0, radius},
                        1, KS_GAUSSIAN, 0.1);
}

const struct ks_env_domain ks_env_acrobot = {
    KS_DM_CONTROL("acrobot.xml", 2, 2, 1, 0.01),
    KS_ENV_FUNCTIONS,
};
