/* Dog: stand, walk, trot, run. dm_control 1.0.20, suite/dog.py; `goal` is the target speed in m/s,
 * 0 for stand. */
#include "env/domain.h"

#include <math.h>

/* Indices into env->episode. */
enum { TORSO_HEIGHT, PELVIS_HEIGHT, WEIGHT };

/* Four feet, three inertial sensors, four touch sensors. */
enum { TORSO, PELVIS, SKULL, FEET, INERTIAL = FEET + 4, TOUCH = INERTIAL + 3, LINVEL = TOUCH + 4 };
static const struct ks_env_element elements[] = {
    [TORSO] = KS_BODY("torso"),
    [PELVIS] = KS_BODY("pelvis"),
    [SKULL] = KS_BODY("skull"),
    [FEET] = KS_SENSOR("foot_L", 3),
    KS_SENSOR("foot_R", 3),
    KS_SENSOR("hand_L", 3),
    KS_SENSOR("hand_R", 3),
    [INERTIAL] = KS_SENSOR("accelerometer", 3),
    KS_SENSOR("velocimeter", 3),
    KS_SENSOR("gyro", 3),
    [TOUCH] = KS_SENSOR("palm_L", 1),
    KS_SENSOR("palm_R", 1),
    KS_SENSOR("sole_L", 1),
    KS_SENSOR("sole_R", 1),
    [LINVEL] = KS_SENSOR("torso_linvel", 3),
    {.name = NULL},
};

/* Ball, target and walls. */
static const struct ks_env_removal removed[] = {
    {"body", "ball"},    {"geom", "target"},  {"camera", "ball"},
    {"camera", "head"},  {"geom", "wall_px"}, {"geom", "wall_nx"},
    {"geom", "wall_py"}, {"geom", "wall_ny"}, {NULL, NULL},
};

static ks_status reset(struct ks_env *env, struct ks_rng *rng)
{
    const double stand_fraction = 0.9;
    const mjModel *m = env->model;
    mjData *d = env->data;
    double azimuth;

    /* Like dog.py, resets once more to measure heights in the default pose. */
    ks_physics_reset(env->model, d);
    env->episode[TORSO_HEIGHT] = ks_env_position(env, TORSO)[2] * stand_fraction;
    env->episode[PELVIS_HEIGHT] = ks_env_position(env, PELVIS)[2] * stand_fraction;
    env->episode[WEIGHT] = -m->opt.gravity[2] * m->body_subtreemass[env->ids[TORSO]];

    azimuth = ks_rng_uniform(rng, 0, 2 * mjPI); /* the root is the first joint: qpos[3..6] */
    d->qpos[3] = cos(azimuth / 2), d->qpos[4] = 0, d->qpos[5] = 0, d->qpos[6] = sin(azimuth / 2);
    d->qvel[0] = 2 * ks_rng_normal(rng);
    d->qvel[1] = 2 * ks_rng_normal(rng);
    d->qvel[5] = 2 * ks_rng_normal(rng);
    for (int i = 0; i < (int)m->nu; i++)
        d->act[i] = ks_rng_uniform(rng, m->actuator_ctrlrange[2 * i],
                                   m->actuator_ctrlrange[2 * i + 1]);
    return KS_OK;
}

/* The velocity of the whole dog's centre of mass (the sensor is a subtreelinvel), in the torso's
 * frame. */
static void torso_com_velocity(const struct ks_env *env, double out[3])
{
    ks_env_to_frame(ks_env_frame(env, TORSO), ks_env_sensor(env, LINVEL), out);
}

static double *observe(const struct ks_env *env, double *out)
{
    const mjModel *m = env->model;
    const mjData *d = env->data;

    out = ks_env_append(out, (size_t)m->na, d->act); /* actuator_state */
    for (size_t i = FEET; i < TOUCH; i++)            /* foot_forces, inertial_sensors */
        out = ks_env_append(out, 3, ks_env_sensor(env, i));
    out = ks_env_append_hinges(out, m, m->jnt_qposadr, d->qpos); /* joint_angles */
    out = ks_env_append_hinges(out, m, m->jnt_dofadr, d->qvel);  /* joint_velocites (sic) */
    torso_com_velocity(env, out), out += 3;
    *out++ = ks_env_position(env, TORSO)[2]; /* torso_pelvis_height */
    *out++ = ks_env_position(env, PELVIS)[2];
    for (size_t i = TOUCH; i < LINVEL; i++) /* touch_sensors */
        *out++ = *ks_env_sensor(env, i);
    out = ks_env_append(out, 3, ks_env_frame(env, SKULL) + KS_ZX); /* z_projection */
    out = ks_env_append(out, 3, ks_env_frame(env, TORSO) + KS_ZX);
    return ks_env_append(out, 3, ks_env_frame(env, PELVIS) + KS_ZX);
}

static double upright(const struct ks_env *env, size_t body)
{
    const double c = cos(30 * (mjPI / 180));

    return ks_at_least(ks_env_frame(env, body)[KS_ZZ], c, c + 1, KS_LINEAR, 0);
}

static double high(const struct ks_env *env, size_t body, double bound)
{
    return ks_at_least(ks_env_position(env, body)[2], bound, bound, KS_GAUSSIAN, 0.1);
}

static double reward(const struct ks_env *env)
{
    double speed = env->task->goal, weight = env->episode[WEIGHT], velocity[3], touch = 0, r;

    for (size_t i = TOUCH; i < LINVEL; i++)
        touch += *ks_env_sensor(env, i);
    r = high(env, TORSO, env->episode[TORSO_HEIGHT]);
    r *= high(env, PELVIS, env->episode[PELVIS_HEIGHT]);
    r *= upright(env, SKULL);
    r *= upright(env, TORSO);
    r *= upright(env, PELVIS);
    r *= ks_at_least(touch, weight, weight, KS_LINEAR, 0.9);
    if (speed > 0) {
        torso_com_velocity(env, velocity);
        r *= (4 * ks_tolerance(velocity[0], (struct ks_bounds){speed, 2 * speed}, fmax(1, speed),
                               KS_LINEAR, 0) +
              1) /
             5;
    }
    return r;
}

const struct ks_env_domain ks_env_dog = {
    .suite = &ks_env_dm_control,
    .model = {"dog.xml", .nq = 80, .nv = 79, .nu = 38, .na = 38},
    .removed = removed,
    .floor = {15, 0.1},
    .control_step = 0.015,
    KS_ENV_FUNCTIONS,
};
