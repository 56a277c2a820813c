/* Hopper: stand, hop. dm_control 1.0.20, suite/hopper.py; `goal` is the target speed in m/s, 0 for
 * stand. */
#include "env/domain.h"

#include <math.h>

enum { TORSO, FOOT, TORSO_LINVEL, TOE, HEEL };
static const struct ks_env_element elements[] = {
    [TORSO] = KS_BODY("torso"),
    [FOOT] = KS_BODY("foot"),
    [TORSO_LINVEL] = KS_SENSOR("torso_subtreelinvel", 3),
    [TOE] = KS_SENSOR("touch_toe", 1),
    [HEEL] = KS_SENSOR("touch_heel", 1),
    {.name = NULL},
};

static double *observe(const struct ks_env *env, double *out)
{
    out = ks_env_append(out, 6, env->data->qpos + 1); /* position, without the root's x */
    *out++ = log1p(*ks_env_sensor(env, TOE));         /* touch */
    *out++ = log1p(*ks_env_sensor(env, HEEL));
    return ks_env_append(out, 7, env->data->qvel); /* velocity */
}

static double reward(const struct ks_env *env)
{
    const mjData *d = env->data;
    double speed = env->task->goal; /* the heights below are of the bodies' centres of mass */
    double height = d->xipos[3 * env->ids[TORSO] + 2] - d->xipos[3 * env->ids[FOOT] + 2];
    double standing = ks_tolerance(height, (struct ks_bounds){0.6, 2}, 0, KS_GAUSSIAN, 0.1);

    if (speed > 0)
        return standing *
               ks_at_least(ks_env_sensor(env, TORSO_LINVEL)[0], speed, speed / 2, KS_LINEAR, 0.5);
    return standing * ks_small_control(4, d->ctrl, 1);
}

const struct ks_env_domain ks_env_hopper = {
    KS_DM_CONTROL("hopper.xml", 7, 7, 4, 0.02),
    .elements = elements,
    .reset = ks_env_random_joints,
    .observe = observe,
    .reward = reward,
};
