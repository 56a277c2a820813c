/* Cheetah: run. dm_control 1.0.20, suite/cheetah.py; `goal` is the target speed in m/s. */
#include "env/domain.h"

enum { TORSO_LINVEL };
static const struct ks_env_element elements[] = {
    [TORSO_LINVEL] = KS_SENSOR("torso_subtreelinvel", 3), {.name = NULL}};

/* Draws a pose, then simulates 2 s without control so that the cheetah falls. As in dm_control
 * there is no forward pass in between, so the first step moves the drawn pose by the accelerations
 * of the default pose. */
static ks_status reset(struct ks_env *env, struct ks_rng *rng)
{
    const int settling = 200;
    const mjModel *m = env->model;

    for (int j = 0; j < (int)m->njnt; j++) /* the three joints of the root have no limits */
        if (m->jnt_limited[j])
            env->data->qpos[m->jnt_qposadr[j]] = ks_rng_uniform(rng, m->jnt_range[2 * j],
                                                                m->jnt_range[2 * j + 1]);
    ks_physics_step(m, env->data, settling);
    env->data->time = 0;
    return KS_OK;
}

static double *observe(const struct ks_env *env, double *out)
{
    out = ks_env_append(out, 8, env->data->qpos + 1); /* position, without the root's x */
    return ks_env_append(out, 9, env->data->qvel);    /* velocity */
}

static double reward(const struct ks_env *env)
{
    double speed = env->task->goal;

    return ks_at_least(ks_env_sensor(env, TORSO_LINVEL)[0], speed, speed, KS_LINEAR, 0);
}

const struct ks_env_domain ks_env_cheetah = {
    KS_DM_CONTROL("cheetah.xml", 9, 9, 6, 0.01),
    KS_ENV_FUNCTIONS,
};
