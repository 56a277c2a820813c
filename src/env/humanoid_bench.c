/* HumanoidBench, robot h1 with position control. github.com/carlosferrazza/humanoid-bench at
 * 791405f, humanoid_bench/robots.py, envs/basic_locomotion_envs.py, envs/pole.py, envs/maze.py,
 * envs/balance.py, envs/reach.py. `goal` is the target speed in m/s.
 *
 * As in Gymnasium, the robot's bodies, sites, sensors, contacts and forces are those before the
 * last physics step, while qpos and qvel are those after it. */
#include <math.h>
#include <string.h>

#include "env/domain.h"

enum { HAND_TARGET = 3 };                               /* coordinates of reach's target */
static const double UPRIGHT = 0.9, STAND_HEIGHT = 1.65; /* m, of the head */

/* --- the robot --- */

/* The elements of the robot, with which the list of every domain starts. */
enum { PELVIS, TORSO, HEAD, IMU, LEFT_FOOT, RIGHT_FOOT, LEFT_HAND, VELOCITY, OBJECTS };
#define ROBOT                                                                                      \
    [PELVIS] = KS_BODY("pelvis"), [TORSO] = KS_BODY("torso_link"), [HEAD] = KS_SITE("head"),       \
    [IMU] = KS_SITE("imu"), [LEFT_FOOT] = KS_SITE("left_foot"),                                    \
    [RIGHT_FOOT] = KS_SITE("right_foot"), [LEFT_HAND] = KS_SITE("left_hand"),                      \
    [VELOCITY] = KS_SENSOR("pelvis_subtreelinvel", 3) /* of the centre of mass */

static const struct ks_env_element robot[] = {ROBOT, {.name = NULL}};

/* A domain of the robot: its model in the file "h1_pos_TASK.xml", with `free` free objects, and
 * what else differs between the 14 domains. */
#define DOMAIN(task, free, its_elements, its_reset, its_reward, ...)                               \
    {                                                                                              \
        .suite = &ks_env_humanoid_bench,                                                           \
        .model = {"h1_pos_" task ".xml", .nq = 26 + 7 * (free), .nv = 25 + 6 * (free), .nu = 19},  \
        .control_step = 0.02, .elements = its_elements, .change = need_keyframe,                   \
        .reset = its_reset, .observe = observe, .reward = its_reward, __VA_ARGS__                  \
    }

/* Episodes start from the keyframe. */
static ks_status need_keyframe(struct ks_env *env)
{
    if (env->model->nkey < 1)
        return ks_fail(KS_FORMAT, "%s: no keyframe, from which episodes start",
                       env->task->domain->model.file);
    return KS_OK;
}

/* Adds uniform noise to every coordinate, also of quaternions and objects. */
static ks_status reset(struct ks_env *env, struct ks_rng *rng)
{
    const double noise = 0.01;

    for (int i = 0; i < env->model->nq; i++)
        env->data->qpos[i] += ks_rng_uniform(rng, -noise, noise);
    return KS_OK;
}

/* With a target, for the left hand, the positions of both follow. */
static double *observe(const struct ks_env *env, double *out)
{
    out = ks_env_append(out, (size_t)env->model->nq, env->data->qpos);
    out = ks_env_append(out, (size_t)env->model->nv, env->data->qvel);
    if (env->task->domain->target != HAND_TARGET)
        return out;
    out = ks_env_append(out, 3, ks_env_position(env, LEFT_HAND));
    return ks_env_append(out, 3, env->episode);
}

static bool falls(const struct ks_env *env)
{
    return env->data->qpos[2] < 0.2; /* m, of the pelvis */
}

static bool sinks(const struct ks_env *env)
{
    return env->data->qpos[2] < 0.5;
}

static double height(const struct ks_env *env, size_t site)
{
    return ks_env_position(env, site)[2];
}

/* --- factors of rewards, all in [0, 1] --- */

/* A head at `least` or above. */
static double tall(const struct ks_env *env, double least)
{
    return ks_at_least(height(env, HEAD), least, STAND_HEIGHT / 4, KS_GAUSSIAN, 0.1);
}

/* A torso with a cosine of the angle to the z axis of `zz` or more. */
static double upright(const struct ks_env *env, double zz, double margin)
{
    return ks_at_least(ks_env_frame(env, TORSO)[KS_ZZ], zz, margin, KS_LINEAR, 0);
}

static double stand(const struct ks_env *env)
{
    return tall(env, STAND_HEIGHT) * upright(env, UPRIGHT, 1.9);
}

/* Small forces of the actuators, from 0.8. */
static double relaxed(const struct ks_env *env)
{
    return ks_small_control(ks_env_actions(env), env->data->actuator_force, 10);
}

/* No horizontal speed. */
static double still(const struct ks_env *env)
{
    const double *v = ks_env_sensor(env, VELOCITY);
    const struct ks_bounds zero = {0, 0};

    return (ks_tolerance(v[0], zero, 2, KS_GAUSSIAN, 0.1) +
            ks_tolerance(v[1], zero, 2, KS_GAUSSIAN, 0.1)) /
           2;
}

/* A speed of `goal` or more along x, from 1/6. */
static double move(const struct ks_env *env)
{
    const double speed = env->task->goal;

    return (5 * ks_at_least(ks_env_sensor(env, VELOCITY)[0], speed, speed, KS_LINEAR, 0) + 1) / 6;
}

/* --- stand, walk, run --- */

static double reward_stand(const struct ks_env *env)
{
    return relaxed(env) * stand(env) * still(env);
}

static double reward_walk(const struct ks_env *env)
{
    return relaxed(env) * stand(env) * move(env);
}

const struct ks_env_domain ks_env_h1_stand = DOMAIN("stand", 0, robot, reset, reward_stand,
                                                    .terminal = falls);

const struct ks_env_domain ks_env_h1_walk = DOMAIN("walk", 0, robot, reset, reward_walk,
                                                   .terminal = falls);

const struct ks_env_domain ks_env_h1_run = DOMAIN("run", 0, robot, reset, reward_walk,
                                                  .terminal = falls);

/* --- crawl: through a tunnel along x, on hands and feet --- */

/* 1 if the pelvis points forwards and down. */
static double bent_forward(const struct ks_env *env)
{
    static const double bent[4] = {0.75, 0, 0.65, 0};
    const double *pelvis = env->data->xquat + 4 * env->ids[PELVIS];
    double off[4], distance = ks_env_difference(4, bent, pelvis, off);

    return ks_tolerance(distance, (struct ks_bounds){0, 0}, 1, KS_GAUSSIAN, 0.1);
}

/* 1 if the site is 0.6 to 1 m above the floor. */
static double low(const struct ks_env *env, size_t site)
{
    return ks_tolerance(height(env, site), (struct ks_bounds){0.8 - 0.2, 0.8 + 0.2}, 1, KS_GAUSSIAN,
                        0.1);
}

static double reward_crawl(const struct ks_env *env)
{
    const double y = ks_env_position(env, IMU)[1];

    if (!(y >= -1 && y <= 1)) /* outside the tunnel */
        return 0;
    return 0.1 * relaxed(env) + 0.25 * fmin(low(env, IMU), low(env, HEAD)) + 0.4 * move(env) +
           0.25 * bent_forward(env);
}

const struct ks_env_domain ks_env_h1_crawl = DOMAIN("crawl", 0, robot, reset, reward_crawl,
                                                    .terminal = NULL);

/* --- stair, slide: along x, upwards and downwards --- */

static double above(const struct ks_env *env, size_t foot)
{
    return ks_at_least(height(env, HEAD) - height(env, foot), 1.2, 0.45, KS_GAUSSIAN, 0.1);
}

static double reward_climb(const struct ks_env *env)
{
    return above(env, LEFT_FOOT) * above(env, RIGHT_FOOT) * upright(env, 0.5, 1.9) * relaxed(env) *
           move(env);
}

static bool topples(const struct ks_env *env)
{
    return ks_env_frame(env, TORSO)[KS_ZZ] < 0.1;
}

const struct ks_env_domain ks_env_h1_stair = DOMAIN("stair", 0, robot, reset, reward_climb,
                                                    .terminal = topples);

const struct ks_env_domain ks_env_h1_slide = DOMAIN("slide", 0, robot, reset, reward_climb,
                                                    .terminal = topples);

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

static const struct ks_env_element hurdle[] = {ROBOT,
                                               [OBJECTS] = KS_GEOM("left_barrier_collision"),
                                               KS_GEOM("right_barrier_collision"),
                                               KS_GEOM("behind_barrier_collision"),
                                               {.name = NULL}};

static bool is_barrier(const struct ks_env *env, const int geom[2])
{
    for (size_t i = OBJECTS; hurdle[i].name; i++)
        if (is_in(env->ids[i], geom))
            return true;
    return false;
}

static double reward_hurdle(const struct ks_env *env)
{
    const double standing = tall(env, STAND_HEIGHT) * upright(env, 0.8, 1.9);

    return relaxed(env) * standing * move(env) * discount(env, is_barrier);
}

const struct ks_env_domain ks_env_h1_hurdle = DOMAIN("hurdle", 0, hurdle, reset, reward_hurdle,
                                                     .terminal = falls);

/* --- pole: walk along x between poles --- */

/* The poles are called "pole_rROW_cCOLUMN". (The original does not count a pole's contact with the
 * floor, but two bodies that stand still have none.) */
static bool is_pole(const struct ks_env *env, const int geom[2])
{
    for (size_t i = 0; i < 2; i++) {
        const char *name = ks_mj.id2name(env->model, mjOBJ_GEOM, geom[i]);
        if (name && strstr(name, "pole_r"))
            return true;
    }
    return false;
}

static double reward_pole(const struct ks_env *env)
{
    return (0.5 * (relaxed(env) * stand(env)) + 0.5 * move(env)) * discount(env, is_pole);
}

const struct ks_env_domain ks_env_h1_pole = DOMAIN("pole", 0, robot, reset, reward_pole,
                                                   .terminal = sinks);

/* --- maze: from one checkpoint to the next --- */

/* episode[0] is the stage: the number of checkpoints that were reached, at most 4. At stage k the
 * robot is to walk along headings[k] to checkpoints[k]; at the last one it has arrived. */
enum { ARRIVED = 4 };
static const double checkpoints[ARRIVED + 1][2] = {{0, 0}, {3, 0}, {3, 6}, {6, 6}, {6, 6}};
static const double headings[ARRIVED + 1][2] = {{1, 0}, {1, 0}, {0, 1}, {1, 0}, {0, 1}};

/* The maze is the last body, so its geometries are the last ones. */
enum { FIRST_WALL = OBJECTS };
static const struct ks_env_element maze[] = {
    ROBOT, [FIRST_WALL] = KS_GEOM("block_collision_00"), {.name = NULL}};

static bool is_wall(const struct ks_env *env, const int geom[2])
{
    return geom[0] >= env->ids[FIRST_WALL] || geom[1] >= env->ids[FIRST_WALL];
}

/* A saved state may hold any number. */
static size_t stage_before(const struct ks_env *env)
{
    return (size_t)fmin(fmax(env->episode[0], 0), ARRIVED);
}

static double distance(const struct ks_env *env, size_t element, const double to[2])
{
    double off[2];

    return ks_env_difference(2, to, ks_env_position(env, element), off);
}

/* The stage after this control step, which passes at most one checkpoint. */
static size_t stage_after(const struct ks_env *env)
{
    const double near = 0.4;
    const size_t stage = stage_before(env);

    return stage < ARRIVED && distance(env, PELVIS, checkpoints[stage]) < near ? stage + 1 : stage;
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
    return reset(env, rng);
}

/* A velocity of goal along the heading, from 1/6. */
static double follow(const struct ks_env *env, size_t stage)
{
    const double *v = ks_env_sensor(env, VELOCITY);
    double match = 1;

    for (size_t k = 0; k < 2 && stage < ARRIVED; k++)
        match *= ks_tolerance(v[k] - headings[stage][k] * env->task->goal, (struct ks_bounds){0, 0},
                              1, KS_LINEAR, 0);
    return (5 * match + 1) / 6;
}

static double reward_maze(const struct ks_env *env)
{
    const size_t stage = stage_after(env);
    const double close = ks_tolerance(distance(env, IMU, checkpoints[stage]),
                                      (struct ks_bounds){0, 0}, 1, KS_GAUSSIAN, 0.1);
    const double bonus = stage > stage_before(env) ? 100 * (double)stage : 0;

    return (0.2 * (stand(env) * relaxed(env)) + 0.4 * follow(env, stage) + 0.4 * close) *
               discount(env, is_wall) +
           bonus;
}

const struct ks_env_domain ks_env_h1_maze = DOMAIN("maze", 0, maze, reset_maze, reward_maze,
                                                   .target = 1, .remember = remember_stage,
                                                   .terminal = falls);

/* --- sit_simple, sit_hard: on a chair that stands still, or may be pushed --- */

enum { CHAIR = OBJECTS };
static const struct ks_env_element sit[] = {ROBOT, [CHAIR] = KS_BODY("chair"), {.name = NULL}};

/* The robot stands in front of the chair, turned by up to 1.8 rad. */
static ks_status reset_sit_hard(struct ks_env *env, struct ks_rng *rng)
{
    double *q = env->data->qpos, yaw;

    KS_TRY(reset(env, rng));
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
    const double *q = env->data->qpos, *chair = ks_env_position(env, CHAIR);

    return ks_tolerance(q[0] - chair[0], (struct ks_bounds){-0.19, 0.19}, 0.2, KS_GAUSSIAN, 0.1) *
           ks_tolerance(q[1] - chair[1], (struct ks_bounds){0, 0}, 0.1, KS_GAUSSIAN, 0.1);
}

static double reward_sit(const struct ks_env *env)
{
    const double sitting = ks_tolerance(env->data->qpos[2], (struct ks_bounds){0.68, 0.72}, 0.2,
                                        KS_GAUSSIAN, 0.1);
    const double posture = ks_tolerance(height(env, HEAD) - height(env, IMU),
                                        (struct ks_bounds){0.35, 0.45}, 0.3, KS_GAUSSIAN, 0.1);

    return relaxed(env) *
           ((0.5 * sitting + 0.5 * on_chair(env)) * upright(env, 0.95, 0.9) * posture) * still(env);
}

const struct ks_env_domain ks_env_h1_sit_simple = DOMAIN("sit_simple", 0, sit, reset, reward_sit,
                                                         .terminal = sinks);

const struct ks_env_domain ks_env_h1_sit_hard = DOMAIN("sit_hard", 1, sit, reset_sit_hard,
                                                       reward_sit, .terminal = sinks);

/* --- balance_simple, balance_hard: stand on a board on a sphere, which is fixed or rolls --- */

enum { FLOOR = OBJECTS, SPHERE, BOARD };
static const struct ks_env_element balance[] = {ROBOT,
                                                [FLOOR] = KS_GEOM("floor"),
                                                [SPHERE] = KS_GEOM("pivot_sphere_collision"),
                                                [BOARD] = KS_GEOM("stand_board_collision"),
                                                {.name = NULL}};

static double reward_balance(const struct ks_env *env)
{
    const double standing = tall(env, STAND_HEIGHT + 0.37) * upright(env, 0.9, 1.9);

    return relaxed(env) * standing * still(env);
}

/* The sphere may touch only the floor and the board, and only the sphere the floor. */
static bool is_forbidden(const struct ks_env *env, const int geom[2])
{
    const bool floor = is_in(env->ids[FLOOR], geom);

    if (is_in(env->ids[SPHERE], geom))
        return !floor && !is_in(env->ids[BOARD], geom);
    return floor;
}

static bool loses_balance(const struct ks_env *env)
{
    return env->data->qpos[2] < 0.8 || any_contact(env, is_forbidden);
}

const struct ks_env_domain ks_env_h1_balance_simple = DOMAIN(
    "balance_simple", 1, balance, reset, reward_balance, .terminal = loses_balance);

const struct ks_env_domain ks_env_h1_balance_hard = DOMAIN(
    "balance_hard", 2, balance, reset, reward_balance, .terminal = loses_balance);

/* --- reach: a random point with the left hand; episode[0..2] is that point --- */

static ks_status reset_reach(struct ks_env *env, struct ks_rng *rng)
{
    KS_TRY(reset(env, rng));
    env->episode[0] = ks_rng_uniform(rng, -2, 2);
    env->episode[1] = ks_rng_uniform(rng, -2, 2);
    env->episode[2] = ks_rng_uniform(rng, 0.2, 2);
    return KS_OK;
}

static double reward_reach(const struct ks_env *env)
{
    double off[3];
    const double far = ks_env_difference(3, env->episode, ks_env_position(env, LEFT_HAND), off);
    const double speed = ks_env_norm((size_t)env->model->nv, env->data->qvel);

    return 5 * ks_env_frame(env, PELVIS)[KS_ZZ] - 1e-4 * (speed * speed) + (far < 1 ? 5 : 0) +
           (far < 0.05 ? 10 : 0);
}

const struct ks_env_domain ks_env_h1_reach = DOMAIN("reach", 0, robot, reset_reach, reward_reach,
                                                    .target = HAND_TARGET);
