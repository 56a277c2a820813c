/* Dog: stand, walk, trot, run. dm_control 1.0.20, suite/dog.py; `goal` is the target speed in m/s,
 * 0 for stand. */
#include "env/domain.h"

#include <math.h>
#include <stdio.h>

#include "env/physics.h"

/* Indices into env->episode. */
enum { TORSO_HEIGHT, PELVIS_HEIGHT, WEIGHT };

enum { FEET = 4, INERTIAL = 3, TOUCH = 4 };
static const char *const foot_names[FEET] = {"foot_L", "foot_R", "hand_L", "hand_R"};
static const char *const inertial_names[INERTIAL] = {"accelerometer", "velocimeter", "gyro"};
static const char *const touch_names[TOUCH] = {"palm_L", "palm_R", "sole_L", "sole_R"};

struct dog {
    int torso, pelvis, skull;                         /* bodies */
    int feet[FEET], inertial[INERTIAL], touch[TOUCH]; /* indices in sensordata */
    int torso_linvel;
};

/* Removes ball, target and walls. The floor is as long as the dog can run in an episode; this only
 * affects rendering, as planes are infinite for collisions. */
static ks_status edit(const struct ks_env_task *task, const struct ks_env_xml *xml)
{
    static const char *const removed[][2] = {
        {"body", "ball"},    {"geom", "target"},  {"camera", "ball"},  {"camera", "head"},
        {"geom", "wall_px"}, {"geom", "wall_nx"}, {"geom", "wall_py"}, {"geom", "wall_ny"},
    };
    double length = task->domain->limit * fmax(task->goal, 1);
    char size[64];

    snprintf(size, sizeof size, "%g %g .1", length, length);
    KS_TRY(ks_env_xml_set(xml, "geom", "floor", "size", size));
    for (size_t i = 0; i < sizeof removed / sizeof *removed; i++)
        KS_TRY(ks_env_xml_remove(xml, removed[i][0], removed[i][1]));
    return KS_OK;
}

static ks_status find(struct ks_env *env)
{
    struct dog *dog = env->ids;

    KS_TRY(ks_env_find(env, mjOBJ_BODY, "torso", &dog->torso));
    KS_TRY(ks_env_find(env, mjOBJ_BODY, "pelvis", &dog->pelvis));
    KS_TRY(ks_env_find(env, mjOBJ_BODY, "skull", &dog->skull));
    for (size_t i = 0; i < FEET; i++)
        KS_TRY(ks_env_find_sensor(env, foot_names[i], 3, &dog->feet[i]));
    for (size_t i = 0; i < INERTIAL; i++)
        KS_TRY(ks_env_find_sensor(env, inertial_names[i], 3, &dog->inertial[i]));
    for (size_t i = 0; i < TOUCH; i++)
        KS_TRY(ks_env_find_sensor(env, touch_names[i], 1, &dog->touch[i]));
    return ks_env_find_sensor(env, "torso_linvel", 3, &dog->torso_linvel);
}

static ks_status reset(struct ks_env *env, struct ks_rng *rng)
{
    const double stand_fraction = 0.9;
    const struct dog *dog = env->ids;
    const mjModel *m = env->model;
    mjData *d = env->data;
    double azimuth;

    /* Like dog.py, resets once more to measure heights in the default pose. */
    ks_physics_reset(env->model, d);
    env->episode[TORSO_HEIGHT] = d->xpos[3 * dog->torso + 2] * stand_fraction;
    env->episode[PELVIS_HEIGHT] = d->xpos[3 * dog->pelvis + 2] * stand_fraction;
    env->episode[WEIGHT] = -m->opt.gravity[2] * m->body_subtreemass[dog->torso];

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
    const struct dog *dog = env->ids;
    const mjData *d = env->data;

    ks_env_to_frame(d->xmat + 9 * dog->torso, d->sensordata + dog->torso_linvel, out);
}

static double *observe(const struct ks_env *env, double *out)
{
    const struct dog *dog = env->ids;
    const mjModel *m = env->model;
    const mjData *d = env->data;

    out = ks_env_append(out, (size_t)m->na, d->act); /* actuator_state */
    for (size_t i = 0; i < FEET; i++)                /* foot_forces */
        out = ks_env_append(out, 3, d->sensordata + dog->feet[i]);
    for (size_t i = 0; i < INERTIAL; i++) /* inertial_sensors */
        out = ks_env_append(out, 3, d->sensordata + dog->inertial[i]);
    out = ks_env_append_hinges(out, m, m->jnt_qposadr, d->qpos); /* joint_angles */
    out = ks_env_append_hinges(out, m, m->jnt_dofadr, d->qvel);  /* joint_velocites (sic) */
    torso_com_velocity(env, out), out += 3;
    *out++ = d->xpos[3 * dog->torso + 2]; /* torso_pelvis_height */
    *out++ = d->xpos[3 * dog->pelvis + 2];
    for (size_t i = 0; i < TOUCH; i++) /* touch_sensors */
        *out++ = d->sensordata[dog->touch[i]];
    out = ks_env_append(out, 3, d->xmat + 9 * dog->skull + KS_ZX); /* z_projection */
    out = ks_env_append(out, 3, d->xmat + 9 * dog->torso + KS_ZX);
    return ks_env_append(out, 3, d->xmat + 9 * dog->pelvis + KS_ZX);
}

static double upright(const struct ks_env *env, int body)
{
    const double c = cos(30 * (mjPI / 180));

    return ks_at_least(env->data->xmat[9 * body + KS_ZZ], c, c + 1, KS_LINEAR, 0);
}

static double high(double z, double bound)
{
    return ks_at_least(z, bound, bound, KS_GAUSSIAN, 0.1);
}

static double reward(const struct ks_env *env)
{
    const struct dog *dog = env->ids;
    const mjData *d = env->data;
    double speed = env->task->goal, weight = env->episode[WEIGHT], velocity[3], touch = 0, r;

    for (size_t i = 0; i < TOUCH; i++)
        touch += d->sensordata[dog->touch[i]];
    r = high(d->xpos[3 * dog->torso + 2], env->episode[TORSO_HEIGHT]);
    r *= high(d->xpos[3 * dog->pelvis + 2], env->episode[PELVIS_HEIGHT]);
    r *= upright(env, dog->skull);
    r *= upright(env, dog->torso);
    r *= upright(env, dog->pelvis);
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
    .model = "dog.xml",
    .nq = 80,
    .nv = 79,
    .nu = 38,
    .na = 38,
    .control_step = 0.015,
    .limit = 15,
    .ids = sizeof(struct dog),
    .edit = edit,
    .find = find,
    .reset = reset,
    .observe = observe,
    .reward = reward,
};
