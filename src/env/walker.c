/* Walker: stand, walk, run. dm_control 1.0.20, suite/walker.py; `goal` is the target speed in m/s,
 * 0 for stand. */
#include "env/domain.h"

enum { TORSO, TORSO_LINVEL = 7 }; /* the first seven elements are the bodies */
static const struct ks_env_element elements[] = {
    [TORSO] = KS_BODY("torso"),
    KS_BODY("right_thigh"),
    KS_BODY("right_leg"),
    KS_BODY("right_foot"),
    KS_BODY("left_thigh"),
    KS_BODY("left_leg"),
    KS_BODY("left_foot"),
    [TORSO_LINVEL] = KS_SENSOR("torso_subtreelinvel", 3),
    {.name = NULL},
};

static double *observe(const struct ks_env *env, double *out)
{
    *out++ = ks_env_position(env, TORSO)[2];        /* height */
    for (size_t i = TORSO; i < TORSO_LINVEL; i++) { /* orientations */
        *out++ = ks_env_frame(env, i)[KS_XX];
        *out++ = ks_env_frame(env, i)[KS_XZ];
    }
    return ks_env_append(out, 9, env->data->qvel); /* velocity */
}

static double reward(const struct ks_env *env)
{
    const double stand_height = 1.2;
    double speed = env->task->goal, height = ks_env_position(env, TORSO)[2];
    double standing = ks_at_least(height, stand_height, stand_height / 2, KS_GAUSSIAN, 0.1);
    double upright = (1 + ks_env_frame(env, TORSO)[KS_ZZ]) / 2;
    double stand = (3 * standing + upright) / 4;
    double forward = ks_env_sensor(env, TORSO_LINVEL)[0];

    if (speed == 0)
        return stand;
    return stand * (5 * ks_at_least(forward, speed, speed / 2, KS_LINEAR, 0.5) + 1) / 6;
}

const struct ks_env_domain ks_env_walker = {
    KS_DM_CONTROL("walker.xml", 9, 9, 6, 0.025),
    .elements = elements,
    .reset = ks_env_random_joints,
    .observe = observe,
    .reward = reward,
};
