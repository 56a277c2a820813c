/* Quadruped: walk, run. dm_control 1.0.20, suite/quadruped.py; `goal` is the target speed in m/s.
 */
#include "env/domain.h"

#include <math.h>
#include <stdio.h>

#include "env/physics.h"

enum { TOES = 4, ACTUATORS = 12 };
static const char *const toe_names[2 * TOES] = {
    "force_toe_front_left",  "force_toe_front_right", "force_toe_back_right",
    "force_toe_back_left",   "torque_toe_front_left", "torque_toe_front_right",
    "torque_toe_back_right", "torque_toe_back_left",
};

struct quadruped {
    int torso;                                    /* body */
    int toes[2 * TOES], accel, gyro, velocimeter; /* indices in sensordata */
};

/* Removes terrain, walls, ball, target and rangefinders, which belong to other tasks. The floor's
 * size only affects rendering, as planes are infinite for collisions. */
static ks_status edit(const struct ks_env_task *task, const struct ks_env_xml *xml)
{
    static const char *const removed[][2] = {
        {"geom", "wall_px"}, {"geom", "wall_py"}, {"geom", "wall_nx"}, {"geom", "wall_ny"},
        {"body", "ball"},    {"site", "target"},  {"geom", "terrain"},
    };
    double length = task->domain->limit * task->goal;
    char size[64];

    snprintf(size, sizeof size, "%g %g .5", length, length);
    KS_TRY(ks_env_xml_set(xml, "geom", "floor", "size", size));
    for (size_t i = 0; i < sizeof removed / sizeof *removed; i++)
        KS_TRY(ks_env_xml_remove(xml, removed[i][0], removed[i][1]));
    ks_env_xml_remove_all(xml, "rangefinder");
    return KS_OK;
}

static ks_status find(struct ks_env *env)
{
    struct quadruped *quadruped = env->ids;

    KS_TRY(ks_env_find(env, mjOBJ_BODY, "torso", &quadruped->torso));
    for (size_t i = 0; i < 2 * TOES; i++)
        KS_TRY(ks_env_find_sensor(env, toe_names[i], 3, &quadruped->toes[i]));
    KS_TRY(ks_env_find_sensor(env, "imu_accel", 3, &quadruped->accel));
    KS_TRY(ks_env_find_sensor(env, "imu_gyro", 3, &quadruped->gyro));
    return ks_env_find_sensor(env, "velocimeter", 3, &quadruped->velocimeter);
}

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
    const struct quadruped *quadruped = env->ids;
    const mjModel *m = env->model;
    const mjData *d = env->data;

    out = ks_env_append_hinges(out, m, m->jnt_qposadr, d->qpos); /* egocentric_state */
    out = ks_env_append_hinges(out, m, m->jnt_dofadr, d->qvel);
    out = ks_env_append(out, ACTUATORS, d->act);
    for (size_t i = 0; i < 2 * TOES; i++) /* force_torque */
        for (size_t k = 0; k < 3; k++)
            *out++ = asinh(d->sensordata[quadruped->toes[i] + (int)k]);
    out = ks_env_append(out, 3, d->sensordata + quadruped->accel); /* imu */
    out = ks_env_append(out, 3, d->sensordata + quadruped->gyro);
    *out++ = d->xmat[9 * quadruped->torso + KS_ZZ];                       /* torso_upright */
    return ks_env_append(out, 3, d->sensordata + quadruped->velocimeter); /* torso_velocity */
}

static double reward(const struct ks_env *env)
{
    const struct quadruped *quadruped = env->ids;
    const mjData *d = env->data;
    double speed = env->task->goal;
    double upright = ks_at_least(d->xmat[9 * quadruped->torso + KS_ZZ], 1, 2, KS_LINEAR, 0);

    return upright *
           ks_at_least(d->sensordata[quadruped->velocimeter], speed, speed, KS_LINEAR, 0.5);
}

const struct ks_env_domain ks_env_quadruped = {
    .suite = &ks_env_dm_control,
    .model = "quadruped.xml",
    .nq = 23,
    .nv = 22,
    .nu = ACTUATORS,
    .na = ACTUATORS,
    .control_step = 0.02,
    .limit = 20,
    .ids = sizeof(struct quadruped),
    .edit = edit,
    .find = find,
    .reset = reset,
    .observe = observe,
    .reward = reward,
};
