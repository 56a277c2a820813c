/* Gymnasium's v4 tasks: rewards and terminal states that are known by hand, and recorded episodes.
 * The comparison of all of them is tests/peer/gymnasium.sh. */
#include "environments.h"

/* Makes one control step with this action for all controls; returns the reward. */
static double step(double action, enum ks_env_end *end)
{
    double actions[17], value;

    for (size_t i = 0; i < ks_env_actions(env); i++)
        actions[i] = action;
    assert_ok(ks_env_step(env, actions, seen, &value, end));
    return value;
}

/* Forces the default pose, with one coordinate and one velocity changed. */
static void place(size_t q, double position, size_t v, double velocity)
{
    double qpos[24], qvel[24] = {0};

    memcpy(qpos, env->model->qpos0, (size_t)env->model->nq * sizeof *qpos);
    qpos[q] = position;
    qvel[v] = velocity;
    assert_ok(ks_env_force(env, &(struct ks_env_start){.qpos = qpos, .qvel = qvel}, seen));
}

/* Speed along x between control steps, minus a cost of the controls, plus a bonus. */
TEST(test_rewards_of_planar_robots)
{
    static const struct {
        const char *task;
        double bonus, cost, dt;
    } tasks[] = {{"HalfCheetah-v4", 0, 0.1, 0.05},
                 {"Hopper-v4", 1, 1e-3, 0.008},
                 {"Walker2d-v4", 1, 1e-3, 0.008}};

    for (size_t i = 0; i < 3; i++) {
        enum ks_env_end end;
        take(tasks[i].task);
        place(0, 3, 0, 0.5);
        for (int k = 0; k < 3; k++) {
            double before = env->data->qpos[0], value = step(0.5, &end), speed;
            speed = (env->data->qpos[0] - before) / tasks[i].dt;
            assert_close(
                value, tasks[i].bonus + speed - tasks[i].cost * 0.25 * (double)ks_env_actions(env),
                1e-12);
            assert_int_equal(end, KS_ENV_GOES_ON);
        }
    }
}

/* In free flight the centre of mass keeps its horizontal speed, whatever the limbs do. */
TEST(test_reward_of_a_flying_humanoid)
{
    enum ks_env_end end;

    take("Humanoid-v4");
    place(2, 1.9, 0, 2);
    for (int k = 0; k < 3; k++) /* controls in [-0.4, 0.4] */
        assert_close(step(0.5, &end), 5 + 1.25 * 2 - 0.1 * 17 * 0.04, 1e-3);
    assert_int_equal(env->data->ncon, 0);
}

/* The ant's speed is that of its torso. */
TEST(test_reward_of_a_flying_ant)
{
    enum ks_env_end end;

    take("Ant-v4");
    place(2, 0.9, 0, 2);
    for (int k = 0; k < 3; k++) {
        double before = env->data->xpos[3], value = step(0.5, &end); /* of body 1, the torso */
        assert_close(value, 1 + (env->data->xpos[3] - before) / 0.05 - 0.5 * 8 * 0.25, 1e-12);
        assert_true(k > 0 || value > 1.9); /* 1 + 2 - 1, but for the damping of its legs */
    }
}

/* The height over the physics step of 3 ms; forces of contacts cost at most 10. */
TEST(test_rewards_of_standing_up)
{
    enum ks_env_end end;

    take("HumanoidStandup-v4");
    place(2, 1.9, 0, 0);
    step(0.5, &end);
    memset(env->data->cfrc_ext, 0, 6 * (size_t)env->model->nbody * sizeof(double));
    assert_close(env->task->domain->reward(env), env->data->qpos[2] / 0.003 - 0.068 + 1, 1e-9);
    env->data->cfrc_ext[6] = 2000;
    assert_close(env->task->domain->reward(env), env->data->qpos[2] / 0.003 - 0.068 - 2 + 1, 1e-9);
    env->data->cfrc_ext[7] = 1e5;
    assert_close(env->task->domain->reward(env), env->data->qpos[2] / 0.003 - 0.068 - 10 + 1, 1e-9);
    assert_int_equal(end, KS_ENV_GOES_ON);
}

/* --- terminal states --- */

static void check_terminal(size_t q, double position, size_t v, double velocity, bool expected)
{
    place(q, position, v, velocity);
    if (env->task->domain->terminal(env) != expected)
        fail_msg("%s: qpos[%zu] = %g, qvel[%zu] = %g: expected %d", env->task->name, q, position, v,
                 velocity, expected);
}

/* On both sides of every limit. */
TEST(test_limits)
{
    static const struct {
        const char *task;
        size_t q;
        double inside, outside;
    } limits[] = {{"Hopper-v4", 1, 0.71, 0.69},     {"Hopper-v4", 2, 0.19, 0.21},
                  {"Hopper-v4", 2, -0.19, -0.21},   {"Hopper-v4", 1, 5, -1},
                  {"Hopper-v4", 3, 99, 101},        {"Walker2d-v4", 1, 0.81, 0.79},
                  {"Walker2d-v4", 1, 1.99, 2.01},   {"Walker2d-v4", 2, 0.99, 1.01},
                  {"Walker2d-v4", 2, -0.99, -1.01}, {"Ant-v4", 2, 0.21, 0.19},
                  {"Ant-v4", 2, 0.99, 1.01},        {"Humanoid-v4", 2, 1.01, 0.99},
                  {"Humanoid-v4", 2, 1.99, 2.01}};

    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        take(limits[i].task);
        check_terminal(limits[i].q, limits[i].inside, 0, 0, false);
        check_terminal(limits[i].q, limits[i].outside, 0, 0, true);
    }
    take("Hopper-v4");
    check_terminal(1, 1.25, 0, 99, false);
    check_terminal(1, 1.25, 0, -101, true);
}

/* A velocity that is not a number is observed as that, although velocities are clipped. */
TEST(test_clipping)
{
    take("Walker2d-v4");
    place(1, 1.25, 8, 30);
    assert_close(seen[16], 10, 0);
    env->data->qvel[7] = NAN;
    env->task->domain->observe(env, seen);
    assert_true(isnan(seen[15]));
    assert_close(seen[16], 10, 0);
}

/* A step into such a state ends the episode for good. */
TEST(test_terminal_step)
{
    enum ks_env_end end;

    take("Walker2d-v4");
    place(1, 1.995, 1, 1); /* rising at 1 m/s: above 2 m after a step of 8 ms */
    step(0, &end);
    assert_int_equal(end, KS_ENV_TERMINATED);
    take("HalfCheetah-v4");
    assert_null(env->task->domain->terminal);
    take("HumanoidStandup-v4");
    assert_null(env->task->domain->terminal);
}

/* --- start states --- */

/* A free joint's quaternion is not compared: the library normalizes it. */
TEST(test_starts)
{
    static const struct {
        const char *task;
        double noise;
        bool normal; /* velocities */
    } tasks[] = {{"Ant-v4", 0.1, true},        {"HalfCheetah-v4", 0.1, true},
                 {"Hopper-v4", 5e-3, false},   {"Walker2d-v4", 5e-3, false},
                 {"Humanoid-v4", 1e-2, false}, {"HumanoidStandup-v4", 1e-2, false}};

    for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++) {
        double largest[24] = {0}, fastest = 0, squares = 0;
        size_t n = 0;
        take(tasks[i].task);
        for (uint64_t k = 0; k < 50; k++) {
            struct ks_rng rng = ks_rng_start(11, k);
            assert_ok(ks_env_reset(env, &rng, seen));
            for (int q = 0; q < (int)env->model->nq; q++)
                largest[q] = fmax(largest[q], fabs(env->data->qpos[q] - env->model->qpos0[q]));
            for (int v = 0; v < (int)env->model->nv; v++, n++) {
                fastest = fmax(fastest, fabs(env->data->qvel[v]));
                squares += pow(env->data->qvel[v], 2);
            }
        }
        for (int q = 0; q < (int)env->model->nq; q++)
            if (env->model->nq == env->model->nv || q < 3 || q > 6)
                assert_true(largest[q] <= 1.0000001 * tasks[i].noise &&
                            largest[q] > 0.7 * tasks[i].noise);
        if (tasks[i].normal) /* of 450 draws and more: one sigma is at most 4% */
            assert_close(sqrt(squares / (double)n), tasks[i].noise, 0.15 * tasks[i].noise);
        else
            assert_true(fastest <= tasks[i].noise && fastest > 0.95 * tasks[i].noise);
    }
}

/* --- against Gymnasium --- */

/* Other versions of MuJoCo solve contacts and joints at their limits differently, and leave the
 * quaternions of free joints as they were drawn.
 *
 * tests/peer/gymnasium_record.py tests/data 1 3 40 Hopper-v4:3
 * tests/peer/gymnasium_record.py tests/data 1 2 5 Humanoid-v4 */
TEST(test_recorded_trajectories)
{
    static const char *const files[] = {"tests/data/Hopper-v4.trajectory",
                                        "tests/data/Humanoid-v4.trajectory"};

    for (size_t i = 0; i < 2; i++) {
        const struct trajectory t = read_record(files[i]);
        bool same_version = strcmp(t.mujoco, ks_env_mujoco_version()) == 0;
        take(t.task);
        if (same_version)
            assert_replays(replay_episodes, env, &t);
        if (same_version || t.nq == t.nv)
            assert_replays(replay_starts, env, &t);
    }
}

CMFixtureFunction tests_teardown = drop;
