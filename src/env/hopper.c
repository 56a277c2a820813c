/* Hopper: stand, hop. dm_control 1.0.20, suite/hopper.py; `goal` is the target speed in m/s, 0 for
 * stand. */
#include "env/domain.h"

#include <math.h>

struct hopper {
    int torso, foot;             /* bodies */
    int torso_linvel, toe, heel; /* indices in sensordata */
};

static ks_status find(struct ks_env *env)
{
    struct hopper *hopper = env->ids;

    KS_TRY(ks_env_find(env, mjOBJ_BODY, "torso", &hopper->torso));
    KS_TRY(ks_env_find(env, mjOBJ_BODY, "foot", &hopper->foot));
    KS_TRY(ks_env_find_sensor(env, "torso_subtreelinvel", 3, &hopper->torso_linvel));
    KS_TRY(ks_env_find_sensor(env, "touch_toe", 1, &hopper->toe));
    return ks_env_find_sensor(env, "touch_heel", 1, &hopper->heel);
}

static ks_status reset(struct ks_env *env, struct ks_rng *rng)
{
    ks_env_random_joints(env, rng);
    return KS_OK;
}

static double *observe(const struct ks_env *env, double *out)
{
    const struct hopper *hopper = env->ids;
    const mjData *d = env->data;

    out = ks_env_append(out, 6, d->qpos + 1);   /* position, without the root's x */
    *out++ = log1p(d->sensordata[hopper->toe]); /* touch */
    *out++ = log1p(d->sensordata[hopper->heel]);
    return ks_env_append(out, 7, d->qvel); /* velocity */
}

static double reward(const struct ks_env *env)
{
    const struct hopper *hopper = env->ids;
    const mjData *d = env->data;
    double speed = env->task->goal; /* the heights below are of the bodies' centres of mass */
    double height = d->xipos[3 * hopper->torso + 2] - d->xipos[3 * hopper->foot + 2];
    double standing = ks_tolerance(height, (struct ks_bounds){0.6, 2}, 0, KS_GAUSSIAN, 0.1);

    if (speed > 0)
        return standing *
               ks_at_least(d->sensordata[hopper->torso_linvel], speed, speed / 2, KS_LINEAR, 0.5);
    return standing * ks_small_control(4, d->ctrl);
}

const struct ks_env_domain ks_env_hopper = {
    .suite = &ks_env_dm_control,
    .model = "hopper.xml",
    .nq = 7,
    .nv = 7,
    .nu = 4,
    .control_step = 0.02,
    .limit = 20,
    .ids = sizeof(struct hopper),
    .find = find,
    .reset = reset,
    .observe = observe,
    .reward = reward,
};
