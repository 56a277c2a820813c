/* Reacher: easy, hard. dm_control 1.0.20, suite/reacher.py; `goal` is the target's radius. */
#include "env/domain.h"

#include <math.h>

/* Indices of the target's position in env->episode. */
enum { TARGET_X, TARGET_Y };

enum { FINGER, TARGET };
static const struct ks_env_element elements[] = {
    [FINGER] = KS_GEOM("finger"), [TARGET] = KS_GEOM("target"), {.name = NULL}};

static ks_status change(struct ks_env *env)
{
    env->model->geom_size[3 * env->ids[TARGET]] = env->task->goal;
    return KS_OK;
}

static void apply(struct ks_env *env)
{
    ks_env_append(env->model->geom_pos + 3 * env->ids[TARGET], 2, env->episode);
}

static ks_status reset(struct ks_env *env, struct ks_rng *rng)
{
    double angle, radius;

    ks_env_random_joints(env, rng);
    angle = ks_rng_uniform(rng, 0, 2 * mjPI);
    radius = ks_rng_uniform(rng, 0.05, 0.2);
    env->episode[TARGET_X] = radius * sin(angle);
    env->episode[TARGET_Y] = radius * cos(angle);
    apply(env);
    return KS_OK;
}

/* x and y of the vector from the finger to the target; returns its length. */
static double finger_to_target(const struct ks_env *env, double out[2])
{
    return ks_env_difference(2, ks_env_position(env, FINGER), ks_env_position(env, TARGET), out);
}

static double *observe(const struct ks_env *env, double *out)
{
    out = ks_env_append(out, 2, env->data->qpos);  /* position */
    finger_to_target(env, out), out += 2;          /* to_target */
    return ks_env_append(out, 2, env->data->qvel); /* velocity */
}

static double reward(const struct ks_env *env)
{
    const double *size = env->model->geom_size;
    double radii = size[3 * env->ids[TARGET]] + size[3 * env->ids[FINGER]], way[2];

    return ks_tolerance(finger_to_target(env, way), (struct ks_bounds){0, radii}, 0, KS_GAUSSIAN,
                        0.1);
}

const struct ks_env_domain ks_env_reacher = {
    KS_DM_CONTROL("reacher.xml", 2, 2, 2, 0.02),
    .target = 2,
    .change = change,
    .apply = apply,
    KS_ENV_FUNCTIONS,
};
