/* Tasks other than the dog's: observations and rewards of states for which they are known by hand.
 * The comparison with dm_control is tests/peer/dm_control.sh. */
#include "environments.h"

static const double pi = mjPI;

/* The reward with all controls at 1 or -1. */
static double reward_of_full_control(const double *qpos)
{
    assert_ok(ks_env_force(env, &(struct ks_env_start){.qpos = qpos}, seen));
    for (int i = 0; i < (int)env->model->nu; i++)
        env->data->ctrl[i] = i % 2 ? 1 : -1;
    return env->task->domain->reward(env);
}

/* The reward in the default pose if the centre of mass moves along x with this speed. */
static double reward_of_speed(double speed)
{
    double qvel[32] = {speed}; /* the first joint of the root */

    return reward(NULL, qvel, NULL);
}

/* The reward of a walker, whose joint along x is the second one. */
static double reward_of_walking(double speed)
{
    const double qvel[9] = {0, speed};

    return reward(NULL, qvel, NULL);
}

static void check_observed(size_t first, size_t n, const double *expected)
{
    for (size_t i = 0; i < n; i++)
        assert_close(seen[first + i], expected[i], 1e-9);
}

/* --- swinging up --- */

TEST(test_acrobot)
{
    const double up[2] = {0}, sideways[] = {pi / 2, 0}, bent[] = {pi / 2, pi / 2};
    const double qvel[] = {0.25, -3};

    take("acrobot-swingup");
    assert_close(reward(up, qvel, NULL), 1, 0); /* the tip is in the target */
    check_observed(0, 6, (double[]){0, 0, 1, 1, 0.25, -3});
    assert_close(reward(sideways, NULL, NULL), pow(0.1, pow(sqrt(8) - 0.2, 2)), 1e-9);
    check_observed(0, 4, (double[]){1, 1, 0, 0});
    reward(bent, NULL, NULL);
    check_observed(0, 4, (double[]){1, 0, 0, -1});
}

TEST(test_cartpole)
{
    const double beside[] = {0.5, 0.3}, level[] = {0, pi / 2}, far[] = {2, 0}, spinning[] = {0, -5};

    take("cartpole-swingup");
    assert_close(reward(NULL, NULL, NULL), 1, 0);
    assert_close(reward(level, NULL, NULL), 0.5, 1e-9);
    assert_close(reward(far, NULL, NULL), 0.55, 1e-9);
    assert_close(reward(NULL, spinning, NULL), 0.55, 1e-9);
    assert_close(reward_of_full_control(NULL), 0.8, 1e-9);
    reward(beside, spinning, NULL);
    check_observed(0, 5, (double[]){0.5, cos(0.3), sin(0.3), 0, -5});
    take("cartpole-swingup_sparse"); /* 1 within 0.25 m, if the cosine is at least 0.995 */
    assert_close(reward((double[]){0.24, 0.099}, spinning, NULL), 1, 0);
    assert_close(reward((double[]){0.26, 0}, NULL, NULL), 0, 0);
    assert_close(reward((double[]){0, 0.101}, NULL, NULL), 0, 0);
}

TEST(test_pendulum)
{
    const double degree = pi / 180, near = 7.9 * degree, past = -8.1 * degree, qvel = 2;

    take("pendulum-swingup");
    assert_close(reward(&near, &qvel, NULL), 1, 0);
    check_observed(0, 3, (double[]){cos(near), sin(near), 2});
    assert_close(reward(&past, &qvel, NULL), 0, 0);
}

/* --- walking --- */

TEST(test_cheetah)
{
    double qpos[9], qvel[9];

    take("cheetah-run");
    assert_close(reward_of_speed(5), 0.5, 1e-9);
    assert_close(reward_of_speed(11), 1, 0);
    assert_close(reward_of_speed(-1), 0, 0);
    for (int i = 0; i < 9; i++)
        qpos[i] = 0.1 * i, qvel[i] = 1 + i;
    reward(qpos, qvel, NULL);
    check_observed(0, 8, qpos + 1);
    check_observed(8, 9, qvel);
}

TEST(test_hopper)
{
    const double lying[7] = {0, 0, pi / 2}, low[7] = {0, -0.97}, leaning[7] = {0, 0, acos(0.64)};
    double standing[7] = {0}, qvel[7];

    take("hopper-stand");
    assert_close(reward(NULL, NULL, NULL), 1, 0);
    assert_close(reward_of_full_control(NULL), 0.8, 1e-9);
    assert_close(reward(lying, NULL, NULL), 0, 0);
    check_observed(0, 8, (double[]){0, pi / 2, 0, 0, 0, 0, 0, 0});
    assert_close(reward(leaning, NULL, NULL), 1,
                 0);         /* height of the centres of mass; of the bodies: 0.9 * 0.64 m */
    reward(low, NULL, NULL); /* the feet penetrate the ground: touch is positive */
    assert_true(seen[6] > 0 && seen[7] > 0);
    assert_close(seen[6], log(1 + env->data->sensordata[3]), 1e-9);
    take("hopper-hop");
    assert_close(reward_of_speed(1), 0.5, 1e-9);
    assert_close(reward_of_speed(3), 1, 0);
    assert_close(reward_of_speed(0), 0, 1e-12);
    for (int i = 0; i < 7; i++)
        standing[i] = 0.01 * i, qvel[i] = -i;
    reward(standing, qvel, NULL);
    check_observed(0, 6, standing + 1);
    check_observed(8, 7, qvel);
}

TEST(test_walker)
{
    const double leaning[9] = {0, 0, pi / 2}, low[9] = {-0.7};

    take("walker-stand");
    assert_close(reward(NULL, NULL, NULL), 1, 1e-12);
    check_observed(0, 7, (double[]){1.3, 1, 0, 1, 0, 1, 0});
    assert_close(reward(leaning, NULL, NULL), (3 + 0.5) / 4, 1e-9); /* upright is 1/2 */
    check_observed(0, 3, (double[]){1.3, 0, 1});
    assert_close(reward(low, NULL, NULL), (3 * 0.1 + 1) / 4, 1e-9); /* 0.6 m below the bound */
    take("walker-walk");
    assert_close(reward_of_walking(0), 1.0 / 6, 1e-9);
    assert_close(reward_of_walking(0.5), 3.5 / 6, 1e-9);
    take("walker-run");
    assert_close(reward_of_walking(4), 3.5 / 6, 1e-9);
    assert_close(reward_of_walking(9), 1, 1e-9);
}

/* In the torso's frame, the hands are 0.36 m in front of its centre, 0.17 m to the sides and 0.06 m
 * above; the head is 0.19 m above. */
TEST(test_humanoid)
{
    const double lying[28] = {0, 0, 1.5, sqrt(0.5), sqrt(0.5)};
    double qpos[28] = {1, 2, 1.5, sqrt(0.5), 0, 0, sqrt(0.5)};
    const double qvel[27] = {3, 4, [26] = 5};

    take("humanoid-stand");
    assert_close(reward(NULL, NULL, NULL), 1, 1e-12);
    assert_close(reward_of_full_control(NULL), 0.8, 1e-9);
    assert_close(reward_of_speed(2), (0.1 + 1) / 2, 1e-9);
    assert_close(reward(lying, NULL, NULL), 1 / 1.9, 1e-9); /* high enough, but not upright */
    qpos[2] = 1.4 - 0.35 - 0.19;
    assert_close(reward(qpos, NULL, NULL), 0.1, 1e-9);
    qpos[2] = 1.5;
    for (int i = 7; i < 22; i++) /* all joints except the arms' */
        qpos[i] = 0.01 * i;
    reward(qpos, qvel, NULL);
    check_observed(3, 3, (double[]){0.36, 0.17, 0.06});
    check_observed(9, 3, (double[]){0.36, -0.17, 0.06});
    check_observed(15, 1, (double[]){1.69});
    check_observed(16, 21, qpos + 7);
    check_observed(37, 3, (double[]){0, 0, 1});
    check_observed(40, 27, qvel);
    take("humanoid-walk");
    assert_close(reward_of_speed(0), 1.0 / 6, 1e-9);
    assert_close(reward_of_speed(-0.5), 3.5 / 6, 1e-9); /* moving backwards counts, too */
    check_observed(0, 3, (double[]){-0.5, 0, 0});
    take("humanoid-run");
    assert_close(reward_of_speed(5), 3.5 / 6, 1e-9);
}

TEST(test_quadruped)
{
    const double upside_down[23] = {0, 0, 5, 0, 1}, low[23] = {0, 0, 0.3, 1};
    double action[12], r;
    const double *range;
    enum ks_env_end end;

    take("quadruped-walk");
    assert_close(reward_of_speed(0), 0.5, 1e-9);
    assert_close(reward_of_speed(0.25), 0.75, 1e-9);
    assert_close(reward_of_speed(-0.5), 0, 1e-9);
    check_observed(74, 4, (double[]){1, -0.5, 0, 0});
    assert_close(reward(upside_down, NULL, NULL), 0, 1e-9);
    reward(low, NULL, NULL); /* the toes penetrate the ground */
    for (size_t i = 0; i < 24; i++) {
        double sensor = env->data->sensordata[9 + i]; /* after accelerometer, gyro, velocimeter */
        assert_true(fabs(sensor) > 1 || i % 3 != 2 || i > 12); /* the forces along z */
        assert_close(seen[44 + i], copysign(log(fabs(sensor) + hypot(sensor, 1)), sensor), 1e-9);
    }
    for (int side = -1; side <= 1; side += 2) { /* -1 and 1 are the ends of every control's range */
        for (size_t i = 0; i < 12; i++)
            action[i] = side;
        assert_ok(ks_env_force(env, NULL, seen));
        assert_ok(ks_env_step(env, action, seen, &r, &end));
        range = env->model->actuator_ctrlrange;
        for (size_t i = 0; i < 12; i++)
            assert_close(env->data->ctrl[i], range[2 * i + (side > 0)], 1e-15);
    }
    assert_close(env->data->ctrl[1], 1.1, 1e-15); /* lift */
    take("quadruped-run");
    assert_close(reward_of_speed(2.5), 0.75, 1e-9);
    assert_int_equal(env->model->nsensordata, 36); /* no rangefinders */
}

/* --- reaching --- */

/* The tip of the spinner is 0.13 m above its hinge at (0.2, 0.4). */
TEST(test_finger_turn)
{
    const double inside[] = {0.2 + 0.0699, 0.53}, outside[] = {0.2, 0.53 - 0.0701};
    const double qvel[] = {1, 2, 3};

    take("finger-turn_easy");
    assert_close(reward(NULL, qvel, inside), 1, 0);
    check_observed(0, 12, (double[]){-1e-4, -pi / 2, 0, 0, 0.13, 0.0699, 0.13, 0, 0, 1, 2, 3});
    assert_close(reward(NULL, NULL, outside), 0, 0);
    assert_close(seen[0], 1e-4, 1e-9);
    take("finger-turn_hard");
    assert_close(reward(NULL, NULL, inside), 0, 0);
    assert_close(seen[0], 0.0399, 1e-9);
}

TEST(test_finger_spin)
{
    const double fast[] = {0, 0, -15}, slow[] = {0, 0, -14.99};

    take("finger-spin");
    assert_close(reward(NULL, fast, NULL), 1, 0);
    check_observed(0, 9, (double[]){-pi / 2, 0, 0, 0.13, 0, 0, 0, 0, -15});
    assert_close(reward(NULL, slow, NULL), 0, 0);
    assert_close(env->model->dof_damping[ks_mj.name2id(env->model, mjOBJ_JOINT, "hinge")], 0.03, 0);
}

/* The mouth is 0.0745 m in front (along y) of the torso at (0, 0, 0.1), and the z axis of its frame
 * is along y; the sum of the radii is 0.045 m. */
TEST(test_fish)
{
    const double reached[] = {0, 0.0745 + 0.0449, 0.1}, near[] = {0.135, 0.0745, 0.1};
    double qpos[14] = {0, 0, 0.1, 0, 0, 1, 0}, qvel[13]; /* upside down, about y */

    take("fish-swim");
    assert_close(reward(NULL, NULL, reached), 1, 1e-12);
    assert_close(fabs(seen[9]), 0.0449, 1e-9);
    for (int i = 7; i < 14; i++)
        qpos[i] = -0.05 * i;
    for (int i = 0; i < 13; i++)
        qvel[i] = 0.1 * i;
    assert_close(reward(qpos, qvel, near), 7 * 0.1 / 8, 1e-9); /* 0.09 m = 2 radii too far */
    check_observed(0, 7, qpos + 7);
    check_observed(10, 1, (double[]){-1});
    check_observed(11, 13, qvel);
}

TEST(test_reacher)
{
    const double inside[] = {0.24 + 0.0249, 0}, outside[] = {0.24, -0.0251};

    take("reacher-hard");
    assert_close(reward(NULL, NULL, inside), 1, 0);
    check_observed(0, 6, (double[]){0, 0, 0.0249, 0, 0, 0});
    assert_close(reward(NULL, NULL, outside), 0, 0);
    take("reacher-easy");
    assert_close(reward(NULL, NULL, outside), 1, 0);
    check_observed(2, 2, (double[]){0, -0.0251});
}

CMFixtureFunction tests_teardown = drop;
