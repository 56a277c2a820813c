/* HumanoidBench, robot h1 with position control: stand, walk, run, crawl, stair, slide, and what
 * the tasks with objects need as well. github.com/carlosferrazza/humanoid-bench at 791405f,
 * humanoid_bench/robots.py and envs/basic_locomotion_envs.py. `goal` is the target speed in m/s.
 *
 * As in Gymnasium, the robot's bodies, sites, sensors, contacts and forces are those before the
 * last physics step, while qpos and qvel are those after it. */
#include "env/humanoid_bench.h"

#include <math.h>

static const double UPRIGHT = 0.9, STAND_HEIGHT = 1.65; /* m, of the head */

/* --- the robot --- */

ks_status ks_h1_find(struct ks_env *env)
{
    struct ks_h1 *h1 = env->ids;

    if (env->model->nkey < 1)
        return ks_fail(KS_FORMAT, "%s: no keyframe, from which episodes start",
                       env->task->domain->model);
    KS_TRY(ks_env_find(env, mjOBJ_BODY, "pelvis", &h1->pelvis));
    KS_TRY(ks_env_find(env, mjOBJ_BODY, "torso_link", &h1->torso));
    KS_TRY(ks_env_find(env, mjOBJ_SITE, "head", &h1->head));
    KS_TRY(ks_env_find(env, mjOBJ_SITE, "imu", &h1->imu));
    KS_TRY(ks_env_find(env, mjOBJ_SITE, "left_foot", &h1->left_foot));
    KS_TRY(ks_env_find(env, mjOBJ_SITE, "right_foot", &h1->right_foot));
    KS_TRY(ks_env_find(env, mjOBJ_SITE, "left_hand", &h1->left_hand));
    return ks_env_find_sensor(env, "pelvis_subtreelinvel", 3, &h1->velocity);
}

ks_status ks_h1_reset(struct ks_env *env, struct ks_rng *rng)
{
    const double noise = 0.01;

    for (int i = 0; i < env->model->nq; i++)
        env->data->qpos[i] += ks_rng_uniform(rng, -noise, noise);
    return KS_OK;
}

double *ks_h1_observe(const struct ks_env *env, double *out)
{
    out = ks_env_append(out, (size_t)env->model->nq, env->data->qpos);
    return ks_env_append(out, (size_t)env->model->nv, env->data->qvel);
}

bool ks_h1_falls(const struct ks_env *env)
{
    return env->data->qpos[2] < 0.2;
}

double ks_h1_site(const struct ks_env *env, int site, size_t axis)
{
    return env->data->site_xpos[3 * (size_t)site + axis];
}

/* cosine of the angle between the torso and the z axis */
static double torso_zz(const struct ks_env *env)
{
    const struct ks_h1 *h1 = env->ids;

    return env->data->xmat[9 * h1->torso + KS_ZZ];
}

/* --- factors of rewards --- */

double ks_h1_tall(const struct ks_env *env, double height)
{
    const struct ks_h1 *h1 = env->ids;

    return ks_at_least(ks_h1_site(env, h1->head, 2), height, STAND_HEIGHT / 4, KS_GAUSSIAN, 0.1);
}

double ks_h1_upright(const struct ks_env *env, double zz, double margin)
{
    return ks_at_least(torso_zz(env), zz, margin, KS_LINEAR, 0);
}

double ks_h1_stand(const struct ks_env *env)
{
    return ks_h1_tall(env, STAND_HEIGHT) * ks_h1_upright(env, UPRIGHT, 1.9);
}

double ks_h1_relaxed(const struct ks_env *env)
{
    const size_t n = ks_env_actions(env);
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += ks_tolerance(env->data->actuator_force[i], (struct ks_bounds){0, 0}, 10,
                            KS_QUADRATIC, 0);
    return (4 + sum / (double)n) / 5;
}

double ks_h1_still(const struct ks_env *env)
{
    const struct ks_h1 *h1 = env->ids;
    const double *v = env->data->sensordata + h1->velocity;
    const struct ks_bounds zero = {0, 0};

    return (ks_tolerance(v[0], zero, 2, KS_GAUSSIAN, 0.1) +
            ks_tolerance(v[1], zero, 2, KS_GAUSSIAN, 0.1)) /
           2;
}

double ks_h1_move(const struct ks_env *env, double speed)
{
    const struct ks_h1 *h1 = env->ids;

    return (5 * ks_at_least(env->data->sensordata[h1->velocity], speed, speed, KS_LINEAR, 0) + 1) /
           6;
}

/* --- stand, walk, run --- */

static double reward_stand(const struct ks_env *env)
{
    return ks_h1_relaxed(env) * ks_h1_stand(env) * ks_h1_still(env);
}

static double reward_walk(const struct ks_env *env)
{
    return ks_h1_relaxed(env) * ks_h1_stand(env) * ks_h1_move(env, env->task->goal);
}

const struct ks_env_domain ks_env_h1_stand = KS_H1_DOMAIN(
    "stand", 0, struct ks_h1, .find = ks_h1_find, .reset = ks_h1_reset, .reward = reward_stand,
    .terminal = ks_h1_falls, .observe = ks_h1_observe);

const struct ks_env_domain ks_env_h1_walk = KS_H1_DOMAIN(
    "walk", 0, struct ks_h1, .find = ks_h1_find, .reset = ks_h1_reset, .reward = reward_walk,
    .terminal = ks_h1_falls, .observe = ks_h1_observe);

const struct ks_env_domain ks_env_h1_run = KS_H1_DOMAIN(
    "run", 0, struct ks_h1, .find = ks_h1_find, .reset = ks_h1_reset, .reward = reward_walk,
    .terminal = ks_h1_falls, .observe = ks_h1_observe);

/* --- crawl: through a tunnel along x, on hands and feet --- */

/* 1 if the pelvis points forwards and down. */
static double bent_forward(const struct ks_env *env)
{
    static const double bent[4] = {0.75, 0, 0.65, 0};
    const struct ks_h1 *h1 = env->ids;
    double off[4], distance = ks_env_difference(4, bent, env->data->xquat + 4 * h1->pelvis, off);

    return ks_tolerance(distance, (struct ks_bounds){0, 0}, 1, KS_GAUSSIAN, 0.1);
}

/* 1 if the site is 0.6 to 1 m above the floor. */
static double low(const struct ks_env *env, int site)
{
    return ks_tolerance(ks_h1_site(env, site, 2), (struct ks_bounds){0.8 - 0.2, 0.8 + 0.2}, 1,
                        KS_GAUSSIAN, 0.1);
}

static double reward_crawl(const struct ks_env *env)
{
    const struct ks_h1 *h1 = env->ids;
    const double y = ks_h1_site(env, h1->imu, 1);

    if (!(y >= -1 && y <= 1)) /* outside the tunnel */
        return 0;
    return 0.1 * ks_h1_relaxed(env) + 0.25 * fmin(low(env, h1->imu), low(env, h1->head)) +
           0.4 * ks_h1_move(env, env->task->goal) + 0.25 * bent_forward(env);
}

const struct ks_env_domain ks_env_h1_crawl = KS_H1_DOMAIN(
    "crawl", 0, struct ks_h1, .find = ks_h1_find, .reset = ks_h1_reset, .reward = reward_crawl,
    .observe = ks_h1_observe);

/* --- stair, slide: along x, upwards and downwards --- */

static double above(const struct ks_env *env, int foot)
{
    const struct ks_h1 *h1 = env->ids;

    return ks_at_least(ks_h1_site(env, h1->head, 2) - ks_h1_site(env, foot, 2), 1.2, 0.45,
                       KS_GAUSSIAN, 0.1);
}

static double reward_climb(const struct ks_env *env)
{
    const struct ks_h1 *h1 = env->ids;
    const double stand = above(env, h1->left_foot) * above(env, h1->right_foot) *
                         ks_h1_upright(env, 0.5, 1.9);

    return stand * ks_h1_relaxed(env) * ks_h1_move(env, env->task->goal);
}

static bool topples(const struct ks_env *env)
{
    return torso_zz(env) < 0.1;
}

const struct ks_env_domain ks_env_h1_stair = KS_H1_DOMAIN(
    "stair", 0, struct ks_h1, .find = ks_h1_find, .reset = ks_h1_reset, .reward = reward_climb,
    .terminal = topples, .observe = ks_h1_observe);

const struct ks_env_domain ks_env_h1_slide = KS_H1_DOMAIN(
    "slide", 0, struct ks_h1, .find = ks_h1_find, .reset = ks_h1_reset, .reward = reward_climb,
    .terminal = topples, .observe = ks_h1_observe);
