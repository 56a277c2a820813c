/* Dog: stand, walk, trot, run. dm_control 1.0.20, suite/dog.py; `goal` is the target speed in m/s,
 * 0 for stand. */
#include "domain.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "physics.h"
#include "tolerance.h"

/* What `episode` holds. */
enum { TORSO_HEIGHT, PELVIS_HEIGHT, WEIGHT };

enum { FEET = 4, INERTIAL = 3, TOUCH = 4 };
static const char *const foot_names[FEET] = {"foot_L", "foot_R", "hand_L", "hand_R"};
static const char *const inertial_names[INERTIAL] = {"accelerometer", "velocimeter", "gyro"};
static const char *const touch_names[TOUCH] = {"palm_L", "palm_R", "sole_L", "sole_R"};

struct dog {
    int torso, pelvis, skull;                         /* bodies */
    int feet[FEET], inertial[INERTIAL], touch[TOUCH]; /* starts in sensordata */
    int torso_linvel;
};

/* No ball, target and walls; a floor as long as the dog can run in an episode, which is looks only,
 * a plane being infinite in collisions. */
static ks_status edit(const struct ks_env_task *task, xmlNode *root, const char *path)
{
    static const char *const removed[][2] = {
        {"body", "ball"},    {"geom", "target"},  {"camera", "ball"},  {"camera", "head"},
        {"geom", "wall_px"}, {"geom", "wall_nx"}, {"geom", "wall_py"}, {"geom", "wall_ny"},
    };
    double length = task->domain->limit * fmax(task->goal, 1);
    char size[64];

    snprintf(size, sizeof size, "%g %g .1", length, length);
    KS_TRY(ks_env_xml_set(root, path, "geom", "floor", "size", size));
    for (size_t i = 0; i < sizeof removed / sizeof *removed; i++)
        KS_TRY(ks_env_xml_remove(root, path, removed[i][0], removed[i][1]));
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

static void reset(struct ks_env *env, struct ks_rng *rng)
{
    const double stand_fraction = 0.9;
    const struct dog *dog = env->ids;
    const mjModel *m = env->model;
    mjData *d = env->data;
    double azimuth;

    /* dog.py resets once more, to measure heights in the default pose. */
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
}

/* R^T v: the velocity of the whole dog's centre of mass (the sensor is a subtreelinvel) in the
 * frame of the torso. */
static void torso_com_velocity(const struct ks_env *env, double out[3])
{
    const struct dog *dog = env->ids;
    const double *R = env->data->xmat + 9 * dog->torso;
    const double *v = env->data->sensordata + dog->torso_linvel;

    for (size_t k = 0; k < 3; k++)
        out[k] = R[k] * v[0] + R[3 + k] * v[1] + R[6 + k] * v[2];
}

static double *append(double *out, size_t n, const double *values)
{
    memcpy(out, values, n * sizeof *out);
    return out + n;
}

static double *append_hinges(double *out, const mjModel *m, const int *address,
                             const double *values)
{
    for (int j = 0; j < (int)m->njnt; j++)
        if (m->jnt_type[j] == mjJNT_HINGE)
            *out++ = values[address[j]];
    return out;
}

static double *observe(const struct ks_env *env, double *out)
{
    const struct dog *dog = env->ids;
    const mjModel *m = env->model;
    const mjData *d = env->data;

    out = append(out, (size_t)m->na, d->act); /* actuator_state */
    for (size_t i = 0; i < FEET; i++)         /* foot_forces */
        out = append(out, 3, d->sensordata + dog->feet[i]);
    for (size_t i = 0; i < INERTIAL; i++) /* inertial_sensors */
        out = append(out, 3, d->sensordata + dog->inertial[i]);
    out = append_hinges(out, m, m->jnt_qposadr, d->qpos); /* joint_angles */
    out = append_hinges(out, m, m->jnt_dofadr, d->qvel);  /* joint_velocites (sic) */
    torso_com_velocity(env, out), out += 3;
    *out++ = d->xpos[3 * dog->torso + 2]; /* torso_pelvis_height */
    *out++ = d->xpos[3 * dog->pelvis + 2];
    for (size_t i = 0; i < TOUCH; i++) /* touch_sensors */
        *out++ = d->sensordata[dog->touch[i]];
    out = append(out, 3, d->xmat + 9 * dog->skull + 6); /* z_projection */
    out = append(out, 3, d->xmat + 9 * dog->torso + 6);
    return append(out, 3, d->xmat + 9 * dog->pelvis + 6);
}

static double upright(const struct ks_env *env, int body)
{
    const double c = cos(30 * (mjPI / 180));

    return ks_tolerance(env->data->xmat[9 * body + 8], c, INFINITY, c + 1, KS_LINEAR, 0);
}

static double at_least(double x, double bound, enum ks_sigmoid kind, double v)
{
    return ks_tolerance(x, bound, INFINITY, bound, kind, v);
}

static double reward(const struct ks_env *env)
{
    const struct dog *dog = env->ids;
    const mjData *d = env->data;
    double speed = env->task->goal, velocity[3], touch = 0, r;

    for (size_t i = 0; i < TOUCH; i++)
        touch += d->sensordata[dog->touch[i]];
    r = at_least(d->xpos[3 * dog->torso + 2], env->episode[TORSO_HEIGHT], KS_GAUSSIAN, 0.1);
    r *= at_least(d->xpos[3 * dog->pelvis + 2], env->episode[PELVIS_HEIGHT], KS_GAUSSIAN, 0.1);
    r *= upright(env, dog->skull);
    r *= upright(env, dog->torso);
    r *= upright(env, dog->pelvis);
    r *= at_least(touch, env->episode[WEIGHT], KS_LINEAR, 0.9);
    if (speed > 0) {
        torso_com_velocity(env, velocity);
        r *= (4 * ks_tolerance(velocity[0], speed, 2 * speed, fmax(1, speed), KS_LINEAR, 0) + 1) /
             5;
    }
    return r;
}

const struct ks_env_domain ks_env_dog = {
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
