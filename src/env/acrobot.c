/* Acrobot: swingup. dm_control 1.0.20, suite/acrobot.py. */
#include "env/domain.h"

struct acrobot {
    int upper_arm, lower_arm; /* bodies */
    int target, tip;          /* sites */
};

static ks_status find(struct ks_env *env)
{
    struct acrobot *acrobot = env->ids;

    KS_TRY(ks_env_find(env, mjOBJ_BODY, "upper_arm", &acrobot->upper_arm));
    KS_TRY(ks_env_find(env, mjOBJ_BODY, "lower_arm", &acrobot->lower_arm));
    KS_TRY(ks_env_find(env, mjOBJ_SITE, "target", &acrobot->target));
    return ks_env_find(env, mjOBJ_SITE, "tip", &acrobot->tip);
}

static ks_status reset(struct ks_env *env, struct ks_rng *rng)
{
    env->data->qpos[0] = ks_rng_uniform(rng, -mjPI, mjPI); /* shoulder */
    env->data->qpos[1] = ks_rng_uniform(rng, -mjPI, mjPI); /* elbow */
    return KS_OK;
}

static double *observe(const struct ks_env *env, double *out)
{
    const struct acrobot *acrobot = env->ids;
    const double *upper = env->data->xmat + 9 * acrobot->upper_arm;
    const double *lower = env->data->xmat + 9 * acrobot->lower_arm;

    *out++ = upper[KS_XZ]; /* orientations */
    *out++ = lower[KS_XZ];
    *out++ = upper[KS_ZZ];
    *out++ = lower[KS_ZZ];
    return ks_env_append(out, 2, env->data->qvel); /* velocity */
}

static double reward(const struct ks_env *env)
{
    const struct acrobot *acrobot = env->ids;
    const double *position = env->data->site_xpos;
    double radius = env->model->site_size[3 * acrobot->target], to_target[3];
    double distance = ks_env_difference(3, position + 3 * acrobot->tip,
                                        position + 3 * acrobot->target, to_target);

    return ks_tolerance(distance, (struct ks_bounds){0, radius}, 1, KS_GAUSSIAN, 0.1);
}

const struct ks_env_domain ks_env_acrobot = {
    .suite = &ks_env_dm_control,
    .model = "acrobot.xml",
    .nq = 2,
    .nv = 2,
    .nu = 1,
    .control_step = 0.01,
    .limit = 10,
    .ids = sizeof(struct acrobot),
    .find = find,
    .reset = reset,
    .observe = observe,
    .reward = reward,
};
