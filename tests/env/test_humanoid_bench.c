/* HumanoidBench's tasks: rewards and terminal states that are known by hand. Start states, steps
 * and folders are in test_humanoid_bench_episodes.c; the comparison with HumanoidBench's classes is
 * tests/peer/humanoid_bench.sh. */
#include "environments.h"
#include "h1.h"

static int id(mjtObj type, const char *name)
{
    int found = ks_mj.name2id(env->model, type, name);

    assert_true(found >= 0);
    return found;
}

/* Rewards read the following from the simulation's data, so the tests write it there. */
static double *site(const char *name)
{
    return env->data->site_xpos + 3 * id(mjOBJ_SITE, name);
}

static double *zz(const char *body)
{
    return env->data->xmat + 9 * id(mjOBJ_BODY, body) + KS_ZZ;
}

static double *velocity(void)
{
    return env->data->sensordata + env->model->sensor_adr[id(mjOBJ_SENSOR, "pelvis_subtreelinvel")];
}

static void set_forces(double force)
{
    for (int i = 0; i < (int)env->model->nu; i++)
        env->data->actuator_force[i] = force;
}

static double value(void)
{
    return env->task->domain->reward(env);
}

/* The robot stands, with its head at `head`, moves along x, and its actuators exert nothing. */
static void stand(double head, double speed)
{
    site("head")[2] = head;
    *zz("torso_link") = 1;
    velocity()[0] = speed;
    velocity()[1] = 0;
    set_forces(0);
}

/* The reward becomes `expected` when *x is `changed`; *x is restored. */
static void check_factor(double *x, double changed, double expected)
{
    const double was = *x;

    *x = changed;
    assert_close(value(), expected, 1e-12);
    *x = was;
}

/* --- rewards --- */

/* Half the force of 10 N costs a quarter of 1/5; that force and more cost 1/5. */
static void check_forces(double reward)
{
    set_forces(5);
    assert_close(value(), reward * 0.95, 1e-12);
    set_forces(-10);
    assert_close(value(), reward * 0.8, 1e-12);
    set_forces(0);
}

TEST(test_stand_walk_run)
{
    static const struct {
        const char *task;
        double speed;
    } tasks[] = {{"h1-stand-v0", 0}, {"h1-walk-v0", 1}, {"h1-run-v0", 5}};

    for (size_t i = 0; i < 3; i++) {
        take(tasks[i].task);
        place(0, 0, 0.98);
        stand(1.65, tasks[i].speed);
        assert_close(value(), 1, 0);
        check_forces(1);
        check_factor(&site("head")[2], 3, 1);
        check_factor(&site("head")[2], 1.65 * 0.75, 0.1);
        check_factor(zz("torso_link"), 0.9, 1);
        check_factor(zz("torso_link"), 0.9 - 1.9 / 4, 0.75);
        check_factor(zz("torso_link"), -1, 0);
        if (tasks[i].speed == 0) {
            check_factor(&velocity()[0], 2, (1 + 0.1) / 2);
            check_factor(&velocity()[1], -2, (1 + 0.1) / 2);
        } else {
            check_factor(&velocity()[0], 2 * tasks[i].speed, 1);
            check_factor(&velocity()[0], tasks[i].speed / 2, 3.5 / 6);
            check_factor(&velocity()[0], -1, 1.0 / 6);
        }
    }
}

TEST(test_crawl)
{
    double *quaternion;

    take("h1-crawl-v0");
    place(0, 0, 0.98);
    stand(0.8, 1);
    site("imu")[1] = 0;
    site("imu")[2] = 0.8;
    quaternion = env->data->xquat + 4 * id(mjOBJ_BODY, "pelvis");
    memcpy(quaternion, (double[]){0.75, 0, 0.65, 0}, 4 * sizeof *quaternion);
    assert_close(value(), 1, 1e-15);
    check_factor(&site("imu")[1], -1.01, 0);
    check_factor(&site("imu")[1], 0.99, 1);
    check_factor(&site("imu")[2], 1, 1);
    check_factor(&site("imu")[2], 2, 0.75 + 0.025); /* the worse one of imu and head counts */
    check_factor(&site("head")[2], 2, 0.75 + 0.025);
    check_factor(&velocity()[0], 0.5, 0.6 + 0.4 * 3.5 / 6);
    check_factor(&quaternion[3], 1, 0.75 + 0.025);
    set_forces(10);
    assert_close(value(), 0.98, 1e-12);
    assert_null(env->task->domain->terminal);
}

TEST(test_stair_and_slide)
{
    static const char *const tasks[] = {"h1-stair-v0", "h1-slide-v0"};

    for (size_t i = 0; i < 2; i++) {
        take(tasks[i]);
        place(0, 0, 0.98);
        stand(2, 1);
        site("left_foot")[2] = site("right_foot")[2] = 0.8;
        assert_close(value(), 1, 0);
        check_forces(1);
        check_factor(&site("left_foot")[2], 0.8 + 0.45, 0.1);
        check_factor(&site("right_foot")[2], 0.8 + 0.45, 0.1);
        check_factor(zz("torso_link"), 0.5, 1);
        check_factor(zz("torso_link"), 0.5 - 0.95, 0.5);
        check_factor(&velocity()[0], 0, 1.0 / 6);
    }
}

/* A touched barrier leaves a tenth. A foot that touches the floor costs nothing. */
TEST(test_hurdle)
{
    static const double barriers[][2] = {{3, -4.4}, {3, 4.4}, {-0.45, 0}};

    take("h1-hurdle-v0");
    place(3, 0, is_small() ? 0.975 : 0.98);
    assert_true(!is_small() || env->data->ncon == 1);
    stand(1.65, 5);
    assert_close(value(), 1, 0);
    check_forces(1);
    check_factor(zz("torso_link"), 0.8, 1);
    check_factor(&velocity()[0], 2.5, 3.5 / 6);
    for (size_t i = 0; i < 3; i++) {
        place(barriers[i][0], barriers[i][1], 1.1);
        stand(1.65, 5);
        assert_close(value(), 0.1, 1e-15);
    }
}

TEST(test_pole)
{
    take("h1-pole-v0");
    place(0, 0, is_small() ? 0.975 : 0.98);
    assert_true(!is_small() || env->data->ncon == 1);
    stand(1.65, 0.5);
    assert_close(value(), 1, 0);
    check_factor(&velocity()[0], 0.25, 0.5 + 0.5 * 3.5 / 6);
    check_factor(zz("torso_link"), -1, 0.5);
    place(1, 0.75, 1.1);
    stand(1.65, 0.5);
    assert_close(value(), 0.1, 1e-15);
}

/* At each stage: the bonus for a checkpoint, the heading to the next one and the distance from it.
 */
TEST(test_maze)
{
    static const double checkpoints[][2] = {{0, 0}, {3, 0}, {3, 6}, {6, 6}, {6, 6}},
                        headings[][2] = {{1, 0}, {1, 0}, {0, 1}, {1, 0}};
    double qpos[40];

    take("h1-maze-v0");
    for (size_t stage = 0; stage < 5; stage++) {
        const double number = (double)stage;
        const size_t next = stage < 4 ? stage + 1 : 4;
        pose(0, checkpoints[stage][0] + 0.39, qpos);
        qpos[1] = checkpoints[stage][1];
        assert_ok(ks_env_force(env, &(struct ks_env_start){.qpos = qpos, .target = &number}, seen));
        stand(1.65, 0);
        memcpy(site("imu"), checkpoints[next], 2 * sizeof(double));
        if (next < 4) {
            velocity()[0] = 2 * headings[next][0];
            velocity()[1] = 2 * headings[next][1];
        }
        assert_close(value(), 1 + (stage < 4 ? 100 * (double)next : 0), 1e-12);
        check_factor(&site("imu")[0], site("imu")[0] + 1, 0.6 + 0.04 + floor(value() - 0.5));
        if (next < 4) /* half a metre per second off, along each axis */
            check_factor(&velocity()[1], velocity()[1] + 0.5, 0.6 + 1.4 / 6 + floor(value() - 0.5));
        pose(0, checkpoints[stage][0] + 0.41, qpos); /* not yet there */
        qpos[1] = checkpoints[stage][1];
        assert_ok(ks_env_force(env, &(struct ks_env_start){.qpos = qpos, .target = &number}, seen));
        assert_true(value() < 1.0001);
    }
    place(-1.5, 7.5, 0.98); /* within a wall: the bonus, which there is none, would be whole */
    stand(1.65, 0);
    assert_close(value(), 0.1 * (0.2 + 0.4 / 6), 1e-12);
}

/* The stage rises with the step, and starts at 0 although the robot starts at a checkpoint. */
TEST(test_maze_stage)
{
    const double action[19] = {0}, two = 2;
    double qpos[40], first, second;
    enum ks_env_end end;

    take("h1-maze-v0");
    place(0, 0, 0.98);
    assert_close(env->episode[0], 0, 0);
    assert_ok(ks_env_step(env, action, seen, &first, &end));
    assert_ok(ks_env_step(env, action, seen, &second, &end));
    assert_true(first > 100 && first < 101 && second < 1);
    assert_close(env->episode[0], 1, 0);
    pose(0, 3, qpos);
    qpos[1] = 6;
    assert_ok(ks_env_force(env, &(struct ks_env_start){.qpos = qpos, .target = &two}, seen));
    assert_ok(ks_env_step(env, action, seen, &first, &end));
    assert_true(first > 300 && first < 301);
    assert_close(env->episode[0], 3, 0);
}

TEST(test_sit)
{
    static const char *const tasks[] = {"h1-sit_simple-v0", "h1-sit_hard-v0"};

    for (size_t i = 0; i < 2; i++) {
        double *qpos;
        take(tasks[i]);
        place(-0.25, 0, 0.7);
        qpos = env->data->qpos;
        stand(1.4, 0);
        site("imu")[2] = 1;
        assert_close(value(), 1, 0);
        check_forces(1);
        check_factor(&qpos[2], 0.68 - 0.2, 0.55);
        check_factor(&qpos[2], 0.72 + 0.2, 0.55);
        check_factor(&qpos[0], -0.25 + 0.39, 0.55);
        check_factor(&qpos[0], -0.25 - 0.18, 1);
        check_factor(&qpos[1], 0.1, 0.55);
        check_factor(&site("head")[2], 1.3, pow(0.1, 1.0 / 36));
        check_factor(&site("head")[2], 1.75, 0.1);
        check_factor(zz("torso_link"), 0.95, 1);
        check_factor(zz("torso_link"), 0.5, 0.5);
        check_factor(&velocity()[0], 2, 0.55);
    }
}

TEST(test_balance)
{
    static const char *const tasks[] = {"h1-balance_simple-v0", "h1-balance_hard-v0"};

    for (size_t i = 0; i < 2; i++) {
        take(tasks[i]);
        place(0, 0, 1.38);
        stand(2.02, 0);
        assert_close(value(), 1, 0);
        check_forces(1);
        check_factor(&site("head")[2], 2.02 - 1.65 / 4, 0.1);
        check_factor(zz("torso_link"), 0.9, 1);
        check_factor(&velocity()[1], 2, 0.55);
    }
}

TEST(test_reach)
{
    double *qvel;

    take("h1-reach-v0");
    place(0, 0, 0.98);
    *zz("pelvis") = 1;
    memcpy(env->episode, site("left_hand"), 3 * sizeof(double));
    assert_close(value(), 20, 0);
    check_factor(zz("pelvis"), -0.5, 12.5);
    check_factor(&site("left_hand")[2], site("left_hand")[2] + 0.049, 20);
    check_factor(&site("left_hand")[2], site("left_hand")[2] + 0.051, 10);
    check_factor(&site("left_hand")[0], site("left_hand")[0] + 1.01, 5);
    qvel = env->data->qvel;
    check_factor(&qvel[24], 10, 19.99);
    env->task->domain->observe(env, seen);
    for (size_t k = 0; k < 3; k++) {
        assert_close(seen[51 + k], site("left_hand")[k], 0);
        assert_close(seen[54 + k], env->episode[k], 0);
    }
    assert_null(env->task->domain->terminal);
}

/* --- terminal states --- */

TEST(test_limits_of_height)
{
    static const struct {
        const char *task;
        double height;
    } limits[] = {{"h1-stand-v0", 0.2},      {"h1-walk-v0", 0.2},    {"h1-run-v0", 0.2},
                  {"h1-hurdle-v0", 0.2},     {"h1-maze-v0", 0.2},    {"h1-pole-v0", 0.5},
                  {"h1-sit_simple-v0", 0.5}, {"h1-sit_hard-v0", 0.5}};

    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        take(limits[i].task);
        place(3, 0, limits[i].height + 0.001);
        assert_false(env->task->domain->terminal(env));
        place(3, 0, limits[i].height - 0.001);
        assert_true(env->task->domain->terminal(env));
    }
    take("h1-stair-v0");
    *zz("torso_link") = 0.11;
    assert_false(env->task->domain->terminal(env));
    *zz("torso_link") = 0.09;
    assert_true(env->task->domain->terminal(env));
}

static bool on_floor(void)
{
    const int floor = id(mjOBJ_GEOM, "floor");

    for (int i = 0; i < (int)env->data->ncon; i++)
        if (env->data->contact[i].geom[0] == floor || env->data->contact[i].geom[1] == floor)
            return true;
    return false;
}

/* With the left foot within the sphere, and the board up in the air. */
static void step_on_sphere(bool rolls)
{
    double qpos[40];

    pose(0, is_small() ? 0 : -0.04, qpos);
    qpos[1] = is_small() ? 0 : -0.2;
    qpos[2] = rolls ? 1.25 : 1.1;
    qpos[28] = 3;
    if (rolls)
        qpos[35] = 0.3; /* clear of the floor */
    assert_ok(ks_env_force(env, &(struct ks_env_start){.qpos = qpos}, seen));
}

static void lay_board_on_floor(void)
{
    double qpos[40];

    pose(26, 3, qpos);
    qpos[28] = 0.025;
    qpos[2] = 2;
    assert_ok(ks_env_force(env, &(struct ks_env_start){.qpos = qpos}, seen));
}

/* The board may touch the sphere and the robot, but not the floor, and nobody but the board the
 * sphere. */
TEST(test_loss_of_balance)
{
    static const char *const tasks[] = {"h1-balance_simple-v0", "h1-balance_hard-v0"};

    for (size_t i = 0; i < 2; i++) {
        take(tasks[i]);
        place(0, 0, is_small() ? 1.375 : 1.38); /* on the board, which lies on the sphere */
        assert_true(env->data->ncon > 0 && on_floor() == (i == 1));
        assert_false(env->task->domain->terminal(env));
        env->data->qpos[2] = 0.801;
        assert_false(env->task->domain->terminal(env));
        env->data->qpos[2] = 0.799;
        assert_true(env->task->domain->terminal(env));
        place(1, 0, is_small() ? 0.975 : 0.9); /* beside the board, on the floor */
        assert_true(on_floor() && env->task->domain->terminal(env));
        step_on_sphere(i == 1);
        assert_true(!on_floor() && env->task->domain->terminal(env));
        lay_board_on_floor();
        assert_true(on_floor() && env->task->domain->terminal(env));
    }
}

int main(void)
{
    return run_h1_tests();
}
