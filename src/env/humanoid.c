/* Humanoid: stand, walk, run. dm_control 1.0.20, suite/humanoid.py; `goal` is the target speed in
 * m/s, 0 for stand. */
#include "env/domain.h"

enum { LIMBS = 4, HINGES = 21, ROOT = 7 };
static const char *const limb_names[LIMBS] = {"left_hand", "left_foot", "right_hand", "right_foot"};

struct humanoid {
    int torso, head, limbs[LIMBS]; /* bodies */
    int torso_linvel;              /* index in sensordata */
};

static ks_status find(struct ks_env *env)
{
    struct humanoid *humanoid = env->ids;

    KS_TRY(ks_env_find(env, mjOBJ_BODY, "torso", &humanoid->torso));
    KS_TRY(ks_env_find(env, mjOBJ_BODY, "head", &humanoid->head));
    for (size_t i = 0; i < LIMBS; i++)
        KS_TRY(ks_env_find(env, mjOBJ_BODY, limb_names[i], &humanoid->limbs[i]));
    return ks_env_find_sensor(env, "torso_subtreelinvel", 3, &humanoid->torso_linvel);
}

static double *observe(const struct ks_env *env, double *out)
{
    const struct humanoid *humanoid = env->ids;
    const mjData *d = env->data;
    const double *torso = d->xpos + 3 * humanoid->torso, *R = d->xmat + 9 * humanoid->torso;

    out = ks_env_append(out, 3, d->sensordata + humanoid->torso_linvel); /* com_velocity */
    for (size_t i = 0; i < LIMBS; i++, out += 3) {                       /* extremities */
        double way[3];
        ks_env_difference(3, torso, d->xpos + 3 * humanoid->limbs[i], way);
        ks_env_to_frame(R, way, out);
    }
    *out++ = d->xpos[3 * humanoid->head + 2];         /* head_height */
    out = ks_env_append(out, HINGES, d->qpos + ROOT); /* joint_angles */
    out = ks_env_append(out, 3, R + KS_ZX);           /* torso_vertical */
    return ks_env_append(out, 6 + HINGES, d->qvel);   /* velocity */
}

static double still(double velocity)
{
    return ks_tolerance(velocity, (struct ks_bounds){0, 0}, 2, KS_GAUSSIAN, 0.1);
}

static double reward(const struct ks_env *env)
{
    const double head = 1.4, vertical = 0.9;
    const struct humanoid *humanoid = env->ids;
    const mjData *d = env->data;
    const double *v = d->sensordata + humanoid->torso_linvel;
    double speed = env->task->goal, standing, upright, move;

    standing = ks_at_least(d->xpos[3 * humanoid->head + 2], head, head / 4, KS_GAUSSIAN, 0.1);
    upright = ks_at_least(d->xmat[9 * humanoid->torso + KS_ZZ], vertical, 1.9, KS_LINEAR, 0);
    if (speed > 0)
        move = (5 * ks_at_least(ks_env_norm(2, v), speed, speed, KS_LINEAR, 0) + 1) / 6;
    else
        move = (still(v[0]) + still(v[1])) / 2;
    return ks_small_control(HINGES, d->ctrl) * (standing * upright) * move;
}

const struct ks_env_domain ks_env_humanoid = {
    .suite = &ks_env_dm_control,
    .model = "humanoid.xml",
    .nq = ROOT + HINGES,
    .nv = 6 + HINGES,
    .nu = HINGES,
    .control_step = 0.025,
    .limit = 25,
    .ids = sizeof(struct humanoid),
    .find = find,
    .reset = ks_env_random_joints_apart,
    .observe = observe,
    .reward = reward,
};
