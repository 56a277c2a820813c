/* Quadruped: walk, run. dm_control 1.0.20, suite/quadruped.py; `goal` is the target speed in m/s.
 */
#include "env/domain.h"

enum { ACTUATORS = 12 };

/* Eight sensors of toes, two of the inertial measurement unit. */
enum { TORSO, TOES, IMU = TOES + 8, VELOCIMETER = IMU + 2 };
static const struct ks_env_element elements[] = {
    [TORSO] = KS_BODY("torso"),
    [TOES] = KS_SENSOR("force_toe_front_left", 3),
    KS_SENSOR("force_toe_front_right", 3),
    KS_SENSOR("force_toe_back_right", 3),
    KS_SENSOR("force_toe_back_left", 3),
    KS_SENSOR("torque_toe_front_left", 3),
    KS_SENSOR("torque_toe_front_right", 3),
    KS_SENSOR("torque_toe_back_right", 3),
    KS_SENSOR("torque_toe_back_left", 3),
    [IMU] = KS_SENSOR("imu_accel", 3),
    KS_SENSOR("imu_gyro", 3),
    [VELOCIMETER] = KS_SENSOR("velocimeter", 3),
    {.name = NULL},
};

/* Terrain, walls, ball, target and all rangefinders, which belong to other tasks. */
static const struct ks_env_removal removed[] = {
    {"geom", "wall_px"}, {"geom", "wall_py"},   {"geom", "wall_nx"},
    {"geom", "wall_ny"}, {"body", "ball"},      {"site", "target"},
    {"geom", "terrain"}, {"rangefinder", NULL}, {NULL, NULL},
};

/* Draws a rotation, then raises the body in steps of 1 cm until nothing touches. Each height
 * starts from a reset, so that activations are 0 and warnings (such as a full contact buffer)
 * are cleared. */
static ks_status reset(struct ks_env *env, struct ks_rng *rng)
{
    const int attempts = 10000;
    mjData *d = env->data;
    double rotation[4], height = 0;

    ks_env_random_rotation(rng, rotation);
    for (int i = 0; i < attempts; i++, height += 0.01) {
        ks_physics_reset(env->model, d);
        d->qpos[0] = 0, d->qpos[1] = 0, d->qpos[2] = height; /* the root is the first joint */
        ks_env_append(d->qpos + 3, 4, rotation);
        ks_physics_forward(env->model, d);
        if (d->ncon == 0)
            return KS_OK;
    }
    return ks_fail(KS_NUMBER, "%s: reset: bodies touch at all %d heights that were tried",
                   env->task->name, attempts);
}

static double *observe(const struct ks_env *env, double *out)
{
    const mjModel *m = env->model;
    const mjData *d = env->data;

    out = ks_env_append_hinges(out, m, m->jnt_qposadr, d->qpos); /* egocentric_state */
    out = ks_env_append_hinges(out, m, m->jnt_dofadr, d->qvel);
    out = ks_env_append(out, ACTUATORS, d->act);
    for (size_t i = TOES; i < IMU; i++) /* force_torque */
        for (size_t k = 0; k < 3; k++)
            *out++ = asinh(ks_env_sensor(env, i)[k]);
    for (size_t i = IMU; i < VELOCIMETER; i++)
        out = ks_env_append(out, 3, ks_env_sensor(env, i));
    *out++ = ks_env_frame(env, TORSO)[KS_ZZ];                      /* torso_upright */
    return ks_env_append(out, 3, ks_env_sensor(env, VELOCIMETER)); /* torso_velocity */
}

static double reward(const struct ks_env *env)
{
    double speed = env->task->goal;
    double upright = ks_at_least(ks_env_frame(env, TORSO)[KS_ZZ], 1, 2, KS_LINEAR, 0);

    return upright * ks_at_least(ks_env_sensor(env, VELOCIMETER)[0], speed, speed, KS_LINEAR, 0.5);
}

const struct ks_env_domain ks_env_quadruped = {
    .suite = &ks_env_dm_control,
    .model = {"quadruped.xml", .nq = 23, .nv = 22, .nu = ACTUATORS, .na = ACTUATORS},
    .removed = removed,
    .floor = {20, 0.5},
    .camera = 2,
    .control_step = 0.02,
    KS_ENV_FUNCTIONS,
};
