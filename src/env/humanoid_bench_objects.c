/* HumanoidBench, robot h1: the tasks with objects. hurdle, pole, maze; sit_simple, sit_hard;
 * balance_simple, balance_hard; reach. github.com/carlosferrazza/humanoid-bench at 791405f,
 * humanoid_bench/envs/basic_locomotion_envs.py, pole.py, maze.py, balance.py, reach.py. `goal` is
 * the target speed in m/s. */
#include <math.h>
#include <string.h>

#include "env/humanoid_bench.h"
#include "env/physics.h"

/* --- contacts --- */

/* A rule about a contact of two geometries. */
typedef bool contact_rule(const struct ks_env *env, const int geom[2]);

static bool any_contact(const struct ks_env *env, contact_rule *rule)
{
    const mjData *d = env->data;

    for (int i = 0; i < d->ncon; i++)
        if (rule(env, d->contact[i].geom))
            return true;
    return false;
}

static bool is_in(int id, const int geom[2])
{
    return geom[0] == id || geom[1] == id;
}

/* What a touched obstacle leaves of the reward. */
static double discount(const struct ks_env *env, contact_rule *obstacle)
{
    return any_contact(env, obstacle) ? 0.1 : 1;
}

/* --- hurdle: run along x between barriers, over hurdles --- */

enum { BARRIERS = 3 };
struct hurdle {
    struct ks_h1 robot;
    int barriers[BARRIERS];
};

static ks_status find_barriers(struct ks_env *env)
{
    static const char *const names[BARRIERS] = {"left_barrier_collision", "right_barrier_collision",
                                                "behind_barrier_collision"};
    struct hurdle *hurdle = env->ids;

    KS_TRY(ks_h1_find(env));
    for (size_t i = 0; i < BARRIERS; i++)
        KS_TRY(ks_env_find(env, mjOBJ_GEOM, names[i], &hurdle->barriers[i]));
    return KS_OK;
}

static bool is_barrier(const struct ks_env *env, const int geom[2])
{
    const struct hurdle *hurdle = env->ids;

    for (size_t i = 0; i < BARRIERS; i++)
        if (is_in(hurdle->barriers[i], geom))
            return true;
    return false;
}

static double reward_hurdle(const struct ks_env *env)
{
    const double stand = ks_h1_tall(env, 1.65) * ks_h1_upright(env, 0.8, 1.9);

    return ks_h1_relaxed(env) * stand * ks_h1_move(env, env->task->goal) *
           discount(env, is_barrier);
}

const struct ks_env_domain ks_env_h1_hurdle = KS_H1_DOMAIN(
    "hurdle", 0, struct hurdle, .find = find_barriers, .reset = ks_h1_reset,
    .reward = reward_hurdle, .terminal = ks_h1_falls, .observe = ks_h1_observe);

/* --- pole: walk along x between poles --- */

/* The poles are called "pole_rROW_cCOLUMN". (The original does not count a pole's contact with the
 * floor, but two bodies that stand still have none.) */
static bool is_pole(const struct ks_env *env, const int geom[2])
{
    for (size_t i = 0; i < 2; i++) {
        const char *name = mj_id2name(env->model, mjOBJ_GEOM, geom[i]);
        if (name && strstr(name, "pole_r"))
            return true;
    }
    return false;
}

static double reward_pole(const struct ks_env *env)
{
    return (0.5 * (ks_h1_relaxed(env) * ks_h1_stand(env)) +
            0.5 * ks_h1_move(env, env->task->goal)) *
           discount(env, is_pole);
}

static bool sinks(const struct ks_env *env)
{
    return env->data->qpos[2] < 0.5;
}

const struct ks_env_domain ks_env_h1_pole = KS_H1_DOMAIN(
    "pole", 0, struct ks_h1, .find = ks_h1_find, .reset = ks_h1_reset, .reward = reward_pole,
    .terminal = sinks, .observe = ks_h1_observe);

/* --- maze: from one checkpoint to the next --- */

/* episode[0] is the stage: the number of checkpoints that were reached, at most 4. At stage k the
 * robot is to walk along headings[k] to checkpoints[k]; at the last one it has arrived. */
enum { ARRIVED = 4 };
static const double checkpoints[ARRIVED + 1][2] = {{0, 0}, {3, 0}, {3, 6}, {6, 6}, {6, 6}};
static const double headings[ARRIVED + 1][2] = {{1, 0}, {1, 0}, {0, 1}, {1, 0}, {0, 1}};

struct maze {
    struct ks_h1 robot;
    int first_wall; /* the maze is the last body, so its geometries are the last ones */
};

static ks_status find_walls(struct ks_env *env)
{
    struct maze *maze = env->ids;

    KS_TRY(ks_h1_find(env));
    return ks_env_find(env, mjOBJ_GEOM, "block_collision_00", &maze->first_wall);
}

static bool is_wall(const struct ks_env *env, const int geom[2])
{
    const struct maze *maze = env->ids;

    return geom[0] >= maze->first_wall || geom[1] >= maze->first_wall;
}

/* A saved state may hold any number. */
static size_t stage_before(const struct ks_env *env)
{
    return (size_t)fmin(fmax(env->episode[0], 0), ARRIVED);
}

static double distance(const double a[3], const double b[2])
{
    double off[2];

    return ks_env_difference(2, b, a, off);
}

/* The stage after this control step, which passes at most one checkpoint. */
static size_t stage_after(const struct ks_env *env)
{
    const double near = 0.4;
    const struct maze *maze = env->ids;
    const double *pelvis = env->data->xpos + 3 * maze->robot.pelvis;
    const size_t stage = stage_before(env);

    return stage < ARRIVED && distance(pelvis, checkpoints[stage]) < near ? stage + 1 : stage;
}

/* An episode starts at stage 0, although the first checkpoint is at the start. */
static void remember_stage(struct ks_env *env)
{
    if (env->step > 0)
        env->episode[0] = (double)stage_after(env);
}

static ks_status reset_maze(struct ks_env *env, struct ks_rng *rng)
{
    env->episode[0] = 0;
    return ks_h1_reset(env, rng);
}

/* A velocity of goal along the heading, from 1/6. */
static double follow(const struct ks_env *env, size_t stage)
{
    const struct ks_h1 *h1 = env->ids;
    const double *v = env->data->sensordata + h1->velocity;
    double match = 1;

    for (size_t k = 0; k < 2 && stage < ARRIVED; k++)
        match *= ks_tolerance(v[k] - headings[stage][k] * env->task->goal, (struct ks_bounds){0, 0},
                              1, KS_LINEAR, 0);
    return (5 * match + 1) / 6;
}

static double reward_maze(const struct ks_env *env)
{
    const struct ks_h1 *h1 = env->ids;
    const size_t stage = stage_after(env);
    const double *imu = env->data->site_xpos + 3 * h1->imu;
    const double close = ks_tolerance(distance(imu, checkpoints[stage]), (struct ks_bounds){0, 0},
                                      1, KS_GAUSSIAN, 0.1);
    const double bonus = stage > stage_before(env) ? 100 * (double)stage : 0;

    return (0.2 * (ks_h1_stand(env) * ks_h1_relaxed(env)) + 0.4 * follow(env, stage) +
            0.4 * close) *
               discount(env, is_wall) +
           bonus;
}

const struct ks_env_domain ks_env_h1_maze = KS_H1_DOMAIN(
    "maze", 0, struct maze, .target = 1, .find = find_walls, .reset = reset_maze,
    .remember = remember_stage, .reward = reward_maze, .terminal = ks_h1_falls,
    .observe = ks_h1_observe);

/* --- sit_simple, sit_hard: on a chair that stands still, or may be pushed --- */

struct sit {
    struct ks_h1 robot;
    int chair;
};

static ks_status find_chair(struct ks_env *env)
{
    struct sit *sit = env->ids;

    KS_TRY(ks_h1_find(env));
    return ks_env_find(env, mjOBJ_BODY, "chair", &sit->chair);
}

/* The robot stands in front of the chair, turned by up to 1.8 rad. */
static ks_status reset_sit_hard(struct ks_env *env, struct ks_rng *rng)
{
    double *q = env->data->qpos, yaw;

    KS_TRY(ks_h1_reset(env, rng));
    ks_env_humanoid_bench.forward(env->model, env->data);
    q[0] = ks_rng_uniform(rng, 0.2, 0.4);
    q[1] = ks_rng_uniform(rng, -0.15, 0.15);
    yaw = ks_rng_uniform(rng, -1.8, 1.8);
    q[3] = cos(yaw / 2);
    q[4] = q[5] = 0;
    q[6] = sin(yaw / 2);
    return KS_OK;
}

static double on_chair(const struct ks_env *env)
{
    const struct sit *sit = env->ids;
    const double *q = env->data->qpos, *chair = env->data->xpos + 3 * sit->chair;

    return ks_tolerance(q[0] - chair[0], (struct ks_bounds){-0.19, 0.19}, 0.2, KS_GAUSSIAN, 0.1) *
           ks_tolerance(q[1] - chair[1], (struct ks_bounds){0, 0}, 0.1, KS_GAUSSIAN, 0.1);
}

static double reward_sit(const struct ks_env *env)
{
    const struct ks_h1 *h1 = env->ids;
    const double sitting = ks_tolerance(env->data->qpos[2], (struct ks_bounds){0.68, 0.72}, 0.2,
                                        KS_GAUSSIAN, 0.1);
    const double posture = ks_tolerance(ks_h1_site(env, h1->head, 2) - ks_h1_site(env, h1->imu, 2),
                                        (struct ks_bounds){0.35, 0.45}, 0.3, KS_GAUSSIAN, 0.1);
    const double sit = (0.5 * sitting + 0.5 * on_chair(env)) * ks_h1_upright(env, 0.95, 0.9) *
                       posture;

    return ks_h1_relaxed(env) * sit * ks_h1_still(env);
}

const struct ks_env_domain ks_env_h1_sit_simple = KS_H1_DOMAIN(
    "sit_simple", 0, struct sit, .find = find_chair, .reset = ks_h1_reset, .reward = reward_sit,
    .terminal = sinks, .observe = ks_h1_observe);

const struct ks_env_domain ks_env_h1_sit_hard = KS_H1_DOMAIN(
    "sit_hard", 1, struct sit, .find = find_chair, .reset = reset_sit_hard, .reward = reward_sit,
    .terminal = sinks, .observe = ks_h1_observe);

/* --- balance_simple, balance_hard: stand on a board on a sphere, which is fixed or rolls --- */

struct balance {
    struct ks_h1 robot;
    int floor, sphere, board;
};

static ks_status find_board(struct ks_env *env)
{
    struct balance *balance = env->ids;

    KS_TRY(ks_h1_find(env));
    KS_TRY(ks_env_find(env, mjOBJ_GEOM, "floor", &balance->floor));
    KS_TRY(ks_env_find(env, mjOBJ_GEOM, "pivot_sphere_collision", &balance->sphere));
    return ks_env_find(env, mjOBJ_GEOM, "stand_board_collision", &balance->board);
}

static double reward_balance(const struct ks_env *env)
{
    const double stand = ks_h1_tall(env, 1.65 + 0.37) * ks_h1_upright(env, 0.9, 1.9);

    return ks_h1_relaxed(env) * stand * ks_h1_still(env);
}

/* The sphere may touch only the floor and the board, and only the sphere the floor. */
static bool is_forbidden(const struct ks_env *env, const int geom[2])
{
    const struct balance *balance = env->ids;

    if (is_in(balance->sphere, geom))
        return !is_in(balance->floor, geom) && !is_in(balance->board, geom);
    return is_in(balance->floor, geom);
}

static bool loses_balance(const struct ks_env *env)
{
    return env->data->qpos[2] < 0.8 || any_contact(env, is_forbidden);
}

const struct ks_env_domain ks_env_h1_balance_simple = KS_H1_DOMAIN(
    "balance_simple", 1, struct balance, .find = find_board, .reset = ks_h1_reset,
    .reward = reward_balance, .terminal = loses_balance, .observe = ks_h1_observe);

const struct ks_env_domain ks_env_h1_balance_hard = KS_H1_DOMAIN(
    "balance_hard", 2, struct balance, .find = find_board, .reset = ks_h1_reset,
    .reward = reward_balance, .terminal = loses_balance, .observe = ks_h1_observe);

/* --- reach: a random point with the left hand; episode[0..2] is that point --- */

static ks_status reset_reach(struct ks_env *env, struct ks_rng *rng)
{
    KS_TRY(ks_h1_reset(env, rng));
    env->episode[0] = ks_rng_uniform(rng, -2, 2);
    env->episode[1] = ks_rng_uniform(rng, -2, 2);
    env->episode[2] = ks_rng_uniform(rng, 0.2, 2);
    return KS_OK;
}

static double *observe_reach(const struct ks_env *env, double *out)
{
    const struct ks_h1 *h1 = env->ids;

    out = ks_h1_observe(env, out);
    out = ks_env_append(out, 3, env->data->site_xpos + 3 * h1->left_hand);
    return ks_env_append(out, 3, env->episode);
}

static double reward_reach(const struct ks_env *env)
{
    const struct ks_h1 *h1 = env->ids;
    const mjData *d = env->data;
    double off[3];
    const double far = ks_env_difference(3, env->episode, d->site_xpos + 3 * h1->left_hand, off);
    const double speed = ks_env_norm((size_t)env->model->nv, d->qvel);

    return 5 * d->xmat[9 * h1->pelvis + KS_ZZ] - 1e-4 * (speed * speed) + (far < 1 ? 5 : 0) +
           (far < 0.05 ? 10 : 0);
}

const struct ks_env_domain ks_env_h1_reach = KS_H1_DOMAIN(
    "reach", 0, struct ks_h1, .target = 3, .find = ks_h1_find, .reset = reset_reach,
    .reward = reward_reach, .observe = observe_reach);
