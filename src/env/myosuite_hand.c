/* MyoHand alone: reach (finger tips to positions) and pose (joints to angles). MyoSuite 2.5.0,
 * envs/myo/myobase/reach_v0.py, pose_v0.py. */
#include "env/myosuite.h"

#include <string.h>

/* --- what all tasks share --- */

void ks_env_myo_begin(struct ks_env *env)
{
    if (env->task->domain->apply)
        env->task->domain->apply(env);
    ks_physics_reset(env->model, env->data);
}

static double seconds(const struct ks_env *env)
{
    return env->model->opt.timestep * env->substeps;
}

double *ks_env_myo_append_velocities(const struct ks_env *env, int first, int n, double *out)
{
    for (int i = first; i < first + n; i++)
        *out++ = env->data->qvel[i] * seconds(env);
    return out;
}

double *ks_env_myo_append_activations(const struct ks_env *env, double *out)
{
    return ks_env_append(out, KS_HAND_MUSCLES, env->data->act);
}

double ks_env_myo_effort(const struct ks_env *env)
{
    return ks_env_norm(KS_HAND_MUSCLES, env->data->act) / KS_HAND_MUSCLES;
}

double ks_env_myo_bonus(double distance, double near, double nearer)
{
    return (distance < near) + (distance < nearer);
}

/* --- reach: the target, in env->episode, is where the five tips are to be --- */

enum { TIPS = 5, TARGETS = TIPS }; /* the elements: the tips, then their targets */
static const struct ks_env_element reach[] = {
    KS_SITE("THtip"),        KS_SITE("IFtip"),        KS_SITE("MFtip"),
    KS_SITE("RFtip"),        KS_SITE("LFtip"),        [TARGETS] = KS_SITE("THtip_target"),
    KS_SITE("IFtip_target"), KS_SITE("MFtip_target"), KS_SITE("RFtip_target"),
    KS_SITE("LFtip_target"), {.name = NULL}};

/* The fixed targets, and how far a random one lies below or above in each coordinate. */
static const double targets[TIPS][3] = {{-0.165, -0.537, 1.495},
                                        {-0.151, -0.547, 1.455},
                                        {-0.146, -0.547, 1.447},
                                        {-0.148, -0.543, 1.445},
                                        {-0.148, -0.528, 1.434}};
static const double below[TIPS][3] = {{0.02, 0.04, 0.04},
                                      {0.04, 0.02, 0.01},
                                      {0.04, 0.02, 0.01},
                                      {0.04, 0.02, 0.01},
                                      {0.04, 0.02, 0.01}};
static const double above[TIPS][3] = {{0.04, 0.02, 0.04},
                                      {0.04, 0.02, 0.01},
                                      {0.04, 0.02, 0.01},
                                      {0.04, 0.02, 0.01},
                                      {0.04, 0.02, 0.01}};

static void apply_reach(struct ks_env *env)
{
    for (size_t i = 0; i < TIPS; i++)
        memcpy(env->model->site_pos + 3 * env->ids[TARGETS + i], env->episode + 3 * i,
               3 * sizeof *env->episode);
}

static ks_status reset_reach(struct ks_env *env, struct ks_rng *rng)
{
    const double random = env->task->goal;

    for (size_t i = 0; i < TIPS; i++)
        for (size_t k = 0; k < 3; k++)
            env->episode[3 * i + k] = ks_rng_uniform(rng, targets[i][k] - random * below[i][k],
                                                     targets[i][k] + random * above[i][k]);
    ks_env_myo_begin(env);
    return KS_OK;
}

/* The vectors from the tips to their targets, fifteen numbers; returns their norm. */
static double reach_errors(const struct ks_env *env, double errors[3 * TIPS])
{
    for (size_t i = 0; i < TIPS; i++)
        ks_env_between(env, i, TARGETS + i, errors + 3 * i);
    return ks_env_norm(3 * TIPS, errors);
}

static double *observe_reach(const struct ks_env *env, double *out)
{
    out = ks_env_append(out, KS_HAND_JOINTS, env->data->qpos);
    out = ks_env_myo_append_velocities(env, 0, KS_HAND_JOINTS, out);
    for (size_t i = 0; i < TIPS; i++)
        out = ks_env_append(out, 3, ks_env_position(env, i));
    reach_errors(env, out), out += 3 * TIPS;
    return ks_env_myo_append_activations(env, out);
}

static double reach_distance(const struct ks_env *env)
{
    double errors[3 * TIPS];

    return reach_errors(env, errors);
}

/* Any distance will do in the first control step: after the second one the time is 0.04 s and a
 * rounding error, which MyoSuite compares with 0.04. */
static bool is_too_far(const struct ks_env *env)
{
    const double far = TIPS * (env->task->goal > 0 ? 0.034 : 0.044);

    return env->data->time > 2 * seconds(env) && reach_distance(env) > far;
}

static const double NEAR = 0.0125 * TIPS;

static bool reach_solved(const struct ks_env *env)
{
    return reach_distance(env) < NEAR;
}

static double reward_reach(const struct ks_env *env)
{
    const double distance = reach_distance(env);

    return -distance + 4 * ks_env_myo_bonus(distance, 2 * NEAR, NEAR) - 50 * is_too_far(env);
}

const struct ks_env_domain ks_env_myo_reach = KS_MYO_DOMAIN(
    "myohand_pose.xml", 0, 0, 0.02, .elements = reach, .target = 3 * TIPS, .reset = reset_reach,
    .apply = apply_reach, .observe = observe_reach, .reward = reward_reach, .terminal = is_too_far,
    .solved = reach_solved);

/* --- pose: the target, in env->episode, is the angles of the joints --- */

/* The smallest and the largest angle of each joint in ten signs of the American Sign Language, the
 * numerals 0 to 9: a random target may lie anywhere between. */
static const double signs[KS_HAND_JOINTS][2] = {{0, 0},
                                                {0, 0},
                                                {0, 0},
                                                {0.0248, 0.6392},
                                                {-0.147495, 0.28272},
                                                {-0.7854, 0.01569},
                                                {-1.309, -0.0262045},
                                                {0.366605, 1.30045},
                                                {-0.006982, 0.010473},
                                                {0.128305, 1.45492},
                                                {0.111722, 0.998897},
                                                {0.39275, 1.48459},
                                                {0, 0},
                                                {0.18852, 1.45318},
                                                {0.117825, 1.44532},
                                                {0.306345, 1.571},
                                                {-0.204204, -0.010472},
                                                {0, 1.52387},
                                                {0.06284, 1.45318},
                                                {0.21994, 1.48459},
                                                {-0.2618, -0.068068},
                                                {0.18852, 1.571},
                                                {0.01571, 1.571}};

/* The fixed target is the model's keyframe. MyoSuite also moves sites to where the tips would be,
 * to show them; nothing depends on those. */
static ks_status need_keyframe(struct ks_env *env)
{
    if (env->model->nkey < 1)
        return ks_fail(KS_FORMAT, "%s: no keyframe", env->task->domain->model.file);
    return KS_OK;
}

/* The fixed task starts with the model's own pose, the other one with a random one. */
static ks_status reset_pose(struct ks_env *env, struct ks_rng *rng)
{
    const double *range = env->model->jnt_range;
    const bool random = env->task->goal > 0;

    for (size_t i = 0; i < KS_HAND_JOINTS; i++)
        env->episode[i] = random ? ks_rng_uniform(rng, signs[i][0], signs[i][1])
                                 : env->model->key_qpos[i];
    ks_env_myo_begin(env);
    for (size_t i = 0; random && i < KS_HAND_JOINTS; i++)
        env->data->qpos[i] = ks_rng_uniform(rng, range[2 * i], range[2 * i + 1]);
    return KS_OK;
}

static double pose_distance(const struct ks_env *env)
{
    double errors[KS_HAND_JOINTS];

    return ks_env_difference(KS_HAND_JOINTS, env->data->qpos, env->episode, errors);
}

static double *observe_pose(const struct ks_env *env, double *out)
{
    out = ks_env_append(out, KS_HAND_JOINTS, env->data->qpos);
    out = ks_env_myo_append_velocities(env, 0, KS_HAND_JOINTS, out);
    ks_env_difference(KS_HAND_JOINTS, env->data->qpos, env->episode, out), out += KS_HAND_JOINTS;
    return ks_env_myo_append_activations(env, out);
}

static bool is_far_off(const struct ks_env *env)
{
    return pose_distance(env) > 2 * mjPI;
}

static const double ALIKE = 0.7;

static bool pose_solved(const struct ks_env *env)
{
    return pose_distance(env) < ALIKE;
}

static double reward_pose(const struct ks_env *env)
{
    const double distance = pose_distance(env);

    return -distance + 4 * ks_env_myo_bonus(distance, 1.5 * ALIKE, ALIKE) - ks_env_myo_effort(env) -
           50 * is_far_off(env);
}

const struct ks_env_domain ks_env_myo_pose = KS_MYO_DOMAIN(
    "myohand_pose.xml", 0, 0, 0.02, .target = KS_HAND_JOINTS, .change = need_keyframe,
    .reset = reset_pose, .observe = observe_pose, .reward = reward_pose, .terminal = is_far_off,
    .solved = pose_solved);
