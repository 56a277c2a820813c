/* Fish: swim. dm_control 1.0.20, suite/fish.py. The first three numbers of `episode` are the
 * target's position. */
#include "env/domain.h"

enum { TORSO, MOUTH, TARGET, JOINTS, END = JOINTS + 7 };
static const struct ks_env_element elements[] = {
    [TORSO] = KS_BODY("torso"),   [MOUTH] = KS_GEOM("mouth"), [TARGET] = KS_GEOM("target"),
    [JOINTS] = KS_JOINT("tail1"), KS_JOINT("tail_twist"),     KS_JOINT("tail2"),
    KS_JOINT("finright_roll"),    KS_JOINT("finright_pitch"), KS_JOINT("finleft_roll"),
    KS_JOINT("finleft_pitch"),    [END] = {.name = NULL},
};

static void apply(struct ks_env *env)
{
    ks_env_append(env->model->geom_pos + 3 * env->ids[TARGET], 3, env->episode);
}

static ks_status reset(struct ks_env *env, struct ks_rng *rng)
{
    double *qpos = env->data->qpos;

    ks_env_random_rotation(rng, qpos + 3); /* the root is the first joint */
    for (size_t i = JOINTS; i < END; i++)
        qpos[env->model->jnt_qposadr[env->ids[i]]] = ks_rng_uniform(rng, -0.2, 0.2);
    env->episode[0] = ks_rng_uniform(rng, -0.4, 0.4);
    env->episode[1] = ks_rng_uniform(rng, -0.4, 0.4);
    env->episode[2] = ks_rng_uniform(rng, 0.1, 0.3);
    apply(env);
    return KS_OK;
}

/* The vector from the mouth to the target, in the mouth's frame. */
static void mouth_to_target(const struct ks_env *env, double out[3])
{
    double way[3];

    ks_env_between(env, MOUTH, TARGET, way);
    ks_env_to_frame(ks_env_frame(env, MOUTH), way, out);
}

static double *observe(const struct ks_env *env, double *out)
{
    for (size_t i = JOINTS; i < END; i++) /* joint_angles */
        *out++ = env->data->qpos[env->model->jnt_qposadr[env->ids[i]]];
    mouth_to_target(env, out), out += 3;            /* target */
    *out++ = ks_env_frame(env, TORSO)[KS_ZZ];       /* upright */
    return ks_env_append(out, 13, env->data->qvel); /* velocity */
}

static double reward(const struct ks_env *env)
{
    const double *size = env->model->geom_size;
    double radii = size[3 * env->ids[MOUTH]] + size[3 * env->ids[TARGET]], way[3];
    double in_target, upright = (ks_env_frame(env, TORSO)[KS_ZZ] + 1) / 2;

    mouth_to_target(env, way);
    in_target = ks_tolerance(ks_env_norm(3, way), (struct ks_bounds){0, radii}, 2 * radii,
                             KS_GAUSSIAN, 0.1);
    return (7 * in_target + upright) / 8;
}

const struct ks_env_domain ks_env_fish = {
    KS_DM_CONTROL("fish.xml", 14, 13, 5, 0.04),
    .target = 3,
    .apply = apply,
    KS_ENV_FUNCTIONS,
};
