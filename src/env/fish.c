/* Fish: swim. dm_control 1.0.20, suite/fish.py. The first three numbers of `episode` are the
 * target's position. */
#include "env/domain.h"

enum { JOINTS = 7 };
static const char *const joint_names[JOINTS] = {
    "tail1",          "tail_twist",   "tail2",         "finright_roll",
    "finright_pitch", "finleft_roll", "finleft_pitch",
};

struct fish {
    int torso;         /* body */
    int mouth, target; /* geoms */
    int joints[JOINTS];
};

static ks_status find(struct ks_env *env)
{
    struct fish *fish = env->ids;

    KS_TRY(ks_env_find(env, mjOBJ_BODY, "torso", &fish->torso));
    KS_TRY(ks_env_find(env, mjOBJ_GEOM, "mouth", &fish->mouth));
    KS_TRY(ks_env_find(env, mjOBJ_GEOM, "target", &fish->target));
    for (size_t i = 0; i < JOINTS; i++)
        KS_TRY(ks_env_find(env, mjOBJ_JOINT, joint_names[i], &fish->joints[i]));
    return KS_OK;
}

static void apply(struct ks_env *env)
{
    const struct fish *fish = env->ids;

    ks_env_append(env->model->geom_pos + 3 * fish->target, 3, env->episode);
}

static ks_status reset(struct ks_env *env, struct ks_rng *rng)
{
    const struct fish *fish = env->ids;
    double *qpos = env->data->qpos;

    ks_env_random_rotation(rng, qpos + 3); /* the root is the first joint */
    for (size_t i = 0; i < JOINTS; i++)
        qpos[env->model->jnt_qposadr[fish->joints[i]]] = ks_rng_uniform(rng, -0.2, 0.2);
    env->episode[0] = ks_rng_uniform(rng, -0.4, 0.4);
    env->episode[1] = ks_rng_uniform(rng, -0.4, 0.4);
    env->episode[2] = ks_rng_uniform(rng, 0.1, 0.3);
    apply(env);
    return KS_OK;
}

/* The vector from the mouth to the target, in the mouth's frame. */
static void mouth_to_target(const struct ks_env *env, double out[3])
{
    const struct fish *fish = env->ids;
    const mjData *d = env->data;
    double way[3];

    ks_env_difference(3, d->geom_xpos + 3 * fish->mouth, d->geom_xpos + 3 * fish->target, way);
    ks_env_to_frame(d->geom_xmat + 9 * fish->mouth, way, out);
}

static double *observe(const struct ks_env *env, double *out)
{
    const struct fish *fish = env->ids;
    const mjData *d = env->data;

    for (size_t i = 0; i < JOINTS; i++) /* joint_angles */
        *out++ = d->qpos[env->model->jnt_qposadr[fish->joints[i]]];
    mouth_to_target(env, out), out += 3;       /* target */
    *out++ = d->xmat[9 * fish->torso + KS_ZZ]; /* upright */
    return ks_env_append(out, 13, d->qvel);    /* velocity */
}

static double reward(const struct ks_env *env)
{
    const struct fish *fish = env->ids;
    const double *size = env->model->geom_size;
    double radii = size[3 * fish->mouth] + size[3 * fish->target], way[3], in_target, upright;

    mouth_to_target(env, way);
    in_target = ks_tolerance(ks_env_norm(3, way), (struct ks_bounds){0, radii}, 2 * radii,
                             KS_GAUSSIAN, 0.1);
    upright = (env->data->xmat[9 * fish->torso + KS_ZZ] + 1) / 2;
    return (7 * in_target + upright) / 8;
}

const struct ks_env_domain ks_env_fish = {
    .suite = &ks_env_dm_control,
    .model = "fish.xml",
    .nq = 14,
    .nv = 13,
    .nu = 5,
    .control_step = 0.04,
    .limit = 40,
    .ids = sizeof(struct fish),
    .target = 3,
    .find = find,
    .reset = reset,
    .apply = apply,
    .observe = observe,
    .reward = reward,
};
