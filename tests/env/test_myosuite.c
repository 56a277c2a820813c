/* MyoSuite's tasks: sizes, observations, rewards, ends and solutions that are known by hand, start
 * states, and what happens without the models, which are installed only when asked for. Saved
 * states are tested by test_env.c; the comparison of all tasks is tests/peer/myosuite.sh. */
#include "environments.h"

enum { HAND = 23, MUSCLES = 39 };

static const char *const myo_tasks[] = {
    "myo-key-turn",  "myo-key-turn-hard",  "myo-obj-hold", "myo-obj-hold-hard",
    "myo-pen-twirl", "myo-pen-twirl-hard", "myo-pose",     "myo-pose-hard",
    "myo-reach",     "myo-reach-hard"};

enum { MYO_TASKS = sizeof myo_tasks / sizeof *myo_tasks };

/* Takes a task; skips the test if the models are not installed. */
static void take_installed(const char *task)
{
    static bool installed;

    if (!installed && !(installed = suite_is_there(task)))
        skip();
    take(task);
}

/* Makes one control step with this action for all muscles; returns the reward. */
static double myo_step(double action, enum ks_env_end *end)
{
    double actions[MUSCLES], value;

    for (size_t i = 0; i < MUSCLES; i++)
        actions[i] = action;
    assert_ok(ks_env_step(env, actions, seen, &value, end));
    return value;
}

static double position[HAND + 7], target[24];
static const double EFFORT = 0.080064076902543566; /* of half activations: sqrt(39 / 4) / 39 */

/* Sets `position` and `target` to those of the start state that the task has without random
 * numbers. */
static void start(const char *task)
{
    take_installed(task);
    assert_ok(ks_env_force(env, NULL, seen));
    memcpy(position, env->model->qpos0, (size_t)env->model->nq * sizeof *position);
    memcpy(target, env->episode, sizeof target);
}

/* Forces `position` and `target` at rest, with every muscle half activated. Checks the reward, and
 * whether the state is an end and a solution. */
static void check(double expected, bool ends, bool solved)
{
    double half[MUSCLES];

    for (size_t i = 0; i < MUSCLES; i++)
        half[i] = 0.5;
    assert_ok(ks_env_force(
        env, &(struct ks_env_start){.qpos = position, .act = half, .target = target}, seen));
    assert_close(env->task->domain->reward(env), expected, 1e-9);
    assert_int_equal(env->task->domain->terminal(env), ends);
    assert_int_equal(ks_env_solved(env), solved);
}

/* --- what all tasks share --- */

TEST(test_sizes)
{
    static const size_t observations[MYO_TASKS] = {93, 93, 91, 91, 83, 83, 108, 108, 115, 115};
    static const size_t targets[MYO_TASKS] = {3, 3, 6, 6, 4, 4, 23, 23, 15, 15};

    for (size_t i = 0; i < MYO_TASKS; i++) {
        bool pen = strstr(myo_tasks[i], "pen") != NULL;
        take_installed(myo_tasks[i]);
        assert_int_equal(ks_env_observations(env), observations[i]);
        assert_int_equal(ks_env_actions(env), MUSCLES);
        assert_int_equal(env->task->domain->target, targets[i]);
        assert_int_equal(ks_env_steps(env), 100);
        assert_int_equal(env->substeps, pen ? 5 : 10);
        assert_true(ks_env_has_goal(env));
    }
    take("pendulum-swingup");
    assert_false(ks_env_has_goal(env) || ks_env_solved(env));
}

/* Muscles are activated by a logistic function of the action. */
TEST(test_muscles)
{
    enum ks_env_end end;

    start("myo-pose");
    myo_step(0.5, &end);
    assert_close(env->data->ctrl[7], 0.5, 0);
    myo_step(1, &end);
    assert_close(env->data->ctrl[7], 0.92414181997875655, 1e-15); /* 1 / (1 + exp(-2.5)) */
    myo_step(-1, &end);
    assert_close(env->data->ctrl[38], 5.5277863692359955e-4, 1e-15); /* 1 / (1 + exp(7.5)) */
}

/* Velocities are observed times the length of a control step; activations come last. All is
 * current: another forward pass does not change what is observed, nor, but for the solver's error,
 * the accelerations from which the solver starts in the next step. */
TEST(test_observations)
{
    static const struct {
        const char *task;
        size_t at, dof; /* of the first velocity, in the observation and in qvel */
        double seconds;
    } velocities[] = {{"myo-key-turn", 23, 0, 0.02},
                      {"myo-obj-hold", 23, 0, 0.02},
                      {"myo-pen-twirl", 26, 23, 0.01},
                      {"myo-pose", 23, 0, 0.02},
                      {"myo-reach", 23, 0, 0.02}};

    for (size_t i = 0; i < sizeof velocities / sizeof *velocities; i++) {
        double again[WIDEST], acceleration[HAND];
        enum ks_env_end end;
        size_t n;
        start(velocities[i].task);
        myo_step(0.4, &end);
        memcpy(acceleration, env->data->qacc, HAND * sizeof *acceleration);
        for (size_t k = 0; k < 6; k++)
            assert_close(seen[velocities[i].at + k],
                         env->data->qvel[velocities[i].dof + k] * velocities[i].seconds, 1e-15);
        n = ks_env_observations(env);
        assert_memory_equal(seen + n - MUSCLES, env->data->act, MUSCLES * sizeof *seen);
        ks_mj.forward(env->model, env->data);
        assert_true(relative_error(HAND, acceleration, env->data->qacc) < 1e-3);
        env->task->domain->observe(env, again);
        assert_memory_equal(seen, again, n * sizeof *seen);
    }
}

/* --- rewards, ends and solutions in given states --- */

/* The norm of all errors, here of one tip: twice 4 below 0.0625, 4 below 0.125. No distance is too
 * far in the first 0.04 s; then 0.22 and, for random targets, 0.17 are. */
TEST(test_reach)
{
    static const struct {
        double x, y, reward;
        bool solved, ends, ends_hard; /* the latter two: later */
    } cases[] = {
        {0.03, 0.04, -0.05 + 8, true, false, false}, {0, 0.062, -0.062 + 8, true, false, false},
        {0, 0.063, -0.063 + 4, false, false, false}, {0, 0.124, -0.124 + 4, false, false, false},
        {0, 0.126, -0.126, false, false, false},     {0, 0.169, -0.169, false, false, false},
        {0, 0.171, -0.171, false, false, true},      {0, 0.219, -0.219, false, false, true},
        {0, 0.221, -0.221, false, true, true},       {0.06, 0.08, -0.1 + 4, false, false, false},
        {0.12, 0.16, -0.2, false, false, true},      {0.3, 0.4, -0.5, false, true, true}};

    for (int hard = 0; hard < 2; hard++) {
        start(hard ? "myo-reach-hard" : "myo-reach");
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            bool ends = hard ? cases[i].ends_hard : cases[i].ends;
            memcpy(target, seen + 46, 15 * sizeof *target); /* where the tips are */
            target[6] += cases[i].x;
            target[7] -= cases[i].y;
            check(cases[i].reward, false, cases[i].solved);
            assert_close(seen[46 + 15 + 6], cases[i].x, 1e-12);
            env->data->time = 0.05;
            assert_int_equal(env->task->domain->terminal(env), ends);
            assert_close(env->task->domain->reward(env), cases[i].reward - 50 * ends, 1e-9);
        }
    }
}

/* The norm of the errors of all joints. Activations have a cost. */
TEST(test_pose)
{
    start("myo-pose");
    assert_close(target[5], -0.681555, 0);
    assert_close(target[21], 0.95831, 0);
    memcpy(position, target, HAND * sizeof *position);
    position[4] += 0.3;
    position[9] -= 0.4;
    check(-0.5 + 8 - EFFORT, false, true);
    assert_close(seen[46 + 4], -0.3, 1e-15);
    position[4] += 0.3;
    position[9] -= 0.4;
    check(-1 + 4 - EFFORT, false, false);
    position[9] -= 0.2; /* sqrt(0.6^2 + 1^2) */
    check(-1.1661903789690601 - EFFORT, false, false);
    position[4] = target[4];
    position[9] = target[9] + 6.3;
    check(-6.3 - 50 - EFFORT, true, false);
    position[9] = target[9] + 6.2;
    check(-6.2 - EFFORT, false, false);
}

/* From the object to the goal. */
TEST(test_hold)
{
    static const struct {
        double distance, reward;
        bool ends, solved;
    } cases[] = {{0.005, -0.5 + 8, false, true},
                 {0.015, -1.5 + 4, false, false},
                 {0.1, -10, false, false},
                 {0.31, -31 - 10, true, false}};

    start("myo-obj-hold");
    assert_close(target[0], -0.24, 0);
    assert_close(target[4], 0.036, 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        position[HAND] = target[0];
        position[HAND + 1] = target[1] + 0.6 * cases[i].distance;
        position[HAND + 2] = target[2] - 0.8 * cases[i].distance;
        check(cases[i].reward, cases[i].ends, cases[i].solved);
        assert_close(seen[46 + 3 + 2], 0.8 * cases[i].distance, 1e-12);
    }
    target[3] = 0.021; /* another size of the object */
    check(-31 - 10, true, false);
    assert_close(env->model->geom_size[3 * (env->model->ngeom - 1)], 0.021, 0);
}

/* Moves the key's head 3 cm + `apart` from the tip of the index finger, towards the thumb's.
 * Returns what the distances cost: 10 of each, of what it differs from 3 cm, and 25 if that is
 * above 5 cm.
 */
static double place_key(double apart, bool *ends)
{
    const double *index = seen + 48, *thumb = seen + 51; /* vectors from the tips to the head */
    double between[3], distance, thumb_apart;

    assert_ok(ks_env_force(env, NULL, seen));
    distance = ks_env_difference(3, thumb, index, between);
    for (size_t i = 0; i < 3; i++)
        target[i] = env->model->body_pos[3 * (env->model->nbody - 1) + i] - index[i] +
                    between[i] / distance * (0.03 + apart);
    thumb_apart = fabs(fabs(distance - 0.03 - apart) - 0.03);
    *ends = apart > 0.1 || thumb_apart > 0.1;
    return 10 * apart + 10 * thumb_apart + 25 * ((apart > 0.05) + (thumb_apart > 0.05));
}

/* The angle, 4 above pi / 2 and 4 above pi, minus the costs. */
TEST(test_key)
{
    static const struct {
        double angle, bonus, apart;
        bool solved, solved_hard;
    } cases[] = {{1, 0, 0.001, false, false},
                 {2, 4, 0.06, false, false},
                 {3.15, 8, 0.02, true, false},
                 {6.3, 8, 0.11, true, true}};

    for (int hard = 0; hard < 2; hard++) {
        start(hard ? "myo-key-turn-hard" : "myo-key-turn");
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            bool ends;
            double cost = place_key(cases[i].apart, &ends);
            position[HAND] = cases[i].angle;
            check(cases[i].angle + cases[i].bonus - cost - EFFORT, ends,
                  hard ? cases[i].solved_hard : cases[i].solved);
            assert_int_equal(ends, i == 3);
            assert_close(ks_env_norm(3, seen + 48), 0.03 + cases[i].apart, 1e-12);
            assert_close(seen[46], cases[i].angle, 0);
        }
    }
}

/* The pen is tilted about the y axis by 1.27; the target points up. Its centre is to stay within
 * 7.5 cm. */
TEST(test_pen)
{
    static const struct {
        double tilt, distance, bonus;
        bool ends, solved;
    } cases[] = {{0, 0, 60, false, true},       {0.25, 0.05, 60, false, true},
                 {0.4, 0.05, 10, false, false}, {0.5, 0.05, 0, false, false},
                 {0, 0.08, 0, true, false},     {3, 0.074, 0, false, false}};

    start("myo-pen-twirl");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double drop = cases[i].ends ? 5 : 0;
        position[HAND] = 0.6 * cases[i].distance;
        position[HAND + 2] = -0.8 * cases[i].distance;
        position[HAND + 4] = cases[i].tilt - 1.27;
        check(-cases[i].distance + cos(cases[i].tilt) - 5 * EFFORT - drop + cases[i].bonus,
              cases[i].ends, cases[i].solved);
    }
    target[0] = target[2] = sqrt(0.5); /* the target points along x */
    position[HAND + 4] = mjPI / 2 - 1.27;
    check(-0.074 + 1 - 5 * EFFORT + 60, false, true);
    assert_close(seen[23 + 9 + 3], 1, 1e-12);
}

/* No distance is too far in the first control step. After the second the time is 0.04 s and a
 * rounding error, which MyoSuite compares with 0.04. */
TEST(test_terminal_step)
{
    enum ks_env_end end = KS_ENV_GOES_ON;
    double value;

    start("myo-reach-hard");
    target[0] += 1;
    assert_ok(ks_env_force(env, &(struct ks_env_start){.target = target}, seen));
    value = myo_step(0, &end);
    assert_true(value < -0.5 && value > -2);
    assert_int_equal(end, KS_ENV_GOES_ON);
    assert_true(myo_step(0, &end) < -50);
    assert_int_equal(end, KS_ENV_TERMINATED);
}

/* --- start states --- */

/* Starts 60 episodes: the smallest and the largest of n numbers. */
static void spread(const char *task, size_t n, const double *numbers(void), double *low,
                   double *high)
{
    take_installed(task);
    for (size_t i = 0; i < n; i++)
        low[i] = INFINITY, high[i] = -INFINITY;
    for (uint64_t k = 0; k < 60; k++) {
        struct ks_rng rng = ks_rng_start(3, k);
        assert_ok(ks_env_reset(env, &rng, seen));
        for (size_t i = 0; i < n; i++) {
            low[i] = fmin(low[i], numbers()[i]);
            high[i] = fmax(high[i], numbers()[i]);
        }
    }
}

static const double *targets(void)
{
    return env->episode;
}

static const double *positions(void)
{
    return env->data->qpos;
}

/* Numbers in [from, to] that fill most of it. */
static void check_range(double low, double high, double from, double to)
{
    assert_true(low >= from - 1e-12 && high <= to + 1e-12);
    assert_true(high - low >= 0.8 * (to - from));
}

/* The fixed tasks always start with the same state. */
TEST(test_fixed_starts)
{
    for (size_t i = 0; i < MYO_TASKS; i += 2) {
        double low[KS_ENV_TARGET], high[KS_ENV_TARGET];
        spread(myo_tasks[i], KS_ENV_TARGET, targets, low, high);
        assert_memory_equal(low, high, sizeof low);
        spread(myo_tasks[i], HAND, positions, low, high);
        assert_memory_equal(low, high, HAND * sizeof *low);
        assert_close(low[0], i == 2 || i == 4 ? -1.5 : 0, 0); /* palm up */
    }
}

TEST(test_random_starts)
{
    double low[24], high[24];

    spread("myo-reach-hard", 15, targets, low, high);
    check_range(low[0], high[0], -0.185, -0.125); /* the thumb's tip: x */
    check_range(low[1], high[1], -0.577, -0.517);
    check_range(low[14], high[14], 1.424, 1.444); /* the little finger's: z */
    spread("myo-pose-hard", HAND, targets, low, high);
    check_range(low[3], high[3], 0.0248, 0.6392);
    check_range(low[12], high[12], 0, 0);
    check_range(low[22], high[22], 0.01571, 1.571);
    spread("myo-pose-hard", HAND, positions, low, high);
    check_range(low[0], high[0], -1.5708, 1.5708);
    check_range(low[3], high[3], -0.5, 0.78);
    spread("myo-obj-hold-hard", 6, targets, low, high);
    check_range(low[0], high[0], -0.265, -0.205); /* around the object, not the fixed goal */
    check_range(low[2], high[2], 1.42, 1.48);
    check_range(low[5], high[5], 0.02, 0.03);
    spread("myo-key-turn-hard", 3, targets, low, high);
    check_range(low[1], high[1], -0.56, -0.54);
    spread("myo-key-turn-hard", HAND + 1, positions, low, high);
    check_range(low[HAND], high[HAND], -mjPI / 2, mjPI / 2);
    check_range(low[0], high[0], 0, 0);
    spread("myo-pen-twirl-hard", 4, targets, low, high);
    check_range(low[1], high[1], -sin(0.5), sin(0.5)); /* angles up to 1, halved */
    check_range(low[2], high[2], -sin(0.5), sin(0.5));
}

/* --- without the models --- */

TEST(test_missing_models)
{
    struct ks_env *none = NULL;

    set_variable("MYOSUITE_DIR", "/nowhere/myosuite");
    for (size_t i = 0; i < MYO_TASKS; i++) {
        assert_fails(ks_env_new(myo_tasks[i], NULL, &none), KS_MISSING,
                     "/nowhere/myosuite/envs/myo/assets/hand/myohand_");
        assert_contains(ks_error_text(), myo_tasks[i]);
        assert_contains(ks_error_text(), "run 'make deps-myosuite', or set MYOSUITE_DIR");
        assert_null(strchr(ks_error_text(), '\n'));
        assert_null(none);
    }
}

/* What --list says is known without the models. */
TEST(test_table)
{
    size_t found = 0;
    struct ks_env_about about;

    for (size_t i = 0; ks_env_about(i, &about); i++) {
        if (strcmp(about.suite, "myosuite") != 0)
            continue;
        assert_string_equal(about.name, myo_tasks[found++]);
        assert_int_equal(about.actions, MUSCLES);
        assert_int_equal(about.action_repeat, 2);
        assert_close(about.control_step, strstr(about.name, "pen") ? 0.01 : 0.02, 0);
    }
    assert_int_equal(found, MYO_TASKS);
}

CMFixtureFunction tests_teardown = drop;
