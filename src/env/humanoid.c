/* Humanoid: stand, walk, run. dm_control 1.0.20, suite/humanoid.py; `goal` is the target speed in
 * m/s, 0 for stand. */
#include "env/domain.h"

enum { HINGES = 21, ROOT = 7 };

enum { TORSO, HEAD, LIMBS, TORSO_LINVEL = LIMBS + 4 };
static const struct ks_env_element elements[] = {
    [TORSO] = KS_BODY("torso"),
    [HEAD] = KS_BODY("head"),
    [LIMBS] = KS_BODY("left_hand"),
    KS_BODY("left_foot"),
    KS_BODY("right_hand"),
    KS_BODY("right_foot"),
    [TORSO_LINVEL] = KS_SENSOR("torso_subtreelinvel", 3),
    {.name = NULL},
};

static double *observe(const struct ks_env *env, double *out)
{
    const double *R = ks_env_frame(env, TORSO);

    out = ks_env_append(out, 3, ks_env_sensor(env, TORSO_LINVEL)); /* com_velocity */
    for (size_t i = LIMBS; i < TORSO_LINVEL; i++, out += 3) {      /* extremities */
        double way[3];
        ks_env_between(env, TORSO, i, way);
        ks_env_to_frame(R, way, out);
    }
    *out++ = ks_env_position(env, HEAD)[2];                   /* head_height */
    out = ks_env_append(out, HINGES, env->data->qpos + ROOT); /* joint_angles */
    out = ks_env_append(out, 3, R + KS_ZX);                   /* torso_vertical */
    return ks_env_append(out, 6 + HINGES, env->data->qvel);   /* velocity */
}

static double still(double velocity)
{
    return ks_tolerance(velocity, (struct ks_bounds){0, 0}, 2, KS_GAUSSIAN, 0.1);
}

static double reward(const struct ks_env *env)
{
    const double head = 1.4, vertical = 0.9;
    const double *v = ks_env_sensor(env, TORSO_LINVEL);
    double speed = env->task->goal, standing, upright, move;

    standing = ks_at_least(ks_env_position(env, HEAD)[2], head, head / 4, KS_GAUSSIAN, 0.1);
    upright = ks_at_least(ks_env_frame(env, TORSO)[KS_ZZ], vertical, 1.9, KS_LINEAR, 0);
    if (speed > 0)
        move = (5 * ks_at_least(ks_env_norm(2, v), speed, speed, KS_LINEAR, 0) + 1) / 6;
    else
        move = (still(v[0]) + still(v[1])) / 2;
    return ks_small_control(HINGES, env->data->ctrl, 1) * (standing * upright) * move;
}

const struct ks_env_domain ks_env_humanoid = {
    KS_DM_CONTROL("humanoid.xml", ROOT + HINGES, 6 + HINGES, HINGES, 0.025),
    .elements = elements,
    .reset = ks_env_random_joints_apart,
    .observe = observe,
    .reward = reward,
};
