/* MyoSuite's tasks: how episodes start and end, and saved states. Skipped without the models. */
#include "environments.h"

/* --- ends --- */

/* No distance is too far in the first control step. After the second the time is 0.04 s and a
 * rounding error, which MyoSuite compares with 0.04. */
TEST(test_terminal_step)
{
    enum ks_env_end end = KS_ENV_GOES_ON;
    double target[15], value;

    take("myo-reach-hard");
    assert_ok(ks_env_force(env, NULL, seen));
    memcpy(target, env->episode, sizeof target);
    target[0] += 1;
    assert_ok(ks_env_force(env, &(struct ks_env_start){.target = target}, seen));
    value = myo_step(0, &end);
    assert_true(value < -0.5 && value > -2);
    assert_int_equal(end, KS_ENV_GOES_ON);
    assert_true(myo_step(0, &end) < -50);
    assert_int_equal(end, KS_ENV_TERMINATED);
}

/* The time limit of 100 control steps is no terminal state. */
TEST(test_time_limit)
{
    enum ks_env_end end = KS_ENV_GOES_ON;
    size_t steps;

    take("myo-pose");
    assert_ok(ks_env_force(env, NULL, seen));
    for (steps = 0; end == KS_ENV_GOES_ON; steps++)
        myo_step(-1, &end);
    assert_int_equal(steps, 100);
    assert_int_equal(end, KS_ENV_TRUNCATED);
}

/* --- start states --- */

/* Starts 60 episodes: the smallest and the largest of n numbers. */
static void spread(const char *task, size_t n, const double *numbers(void), double *low,
                   double *high)
{
    take(task);
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

/* --- saved states --- */

/* Forty control steps of the same actions, or as many as there are; the sum of the rewards. */
static double go_on(struct ks_env *e, double *observation)
{
    struct ks_rng rng = ks_rng_start(8, 8);
    enum ks_env_end end = KS_ENV_GOES_ON;
    double action[MUSCLES], reward, sum = 0;

    for (int k = 0; k < 40 && end == KS_ENV_GOES_ON; k++) {
        for (size_t i = 0; i < MUSCLES; i++)
            action[i] = ks_rng_uniform(&rng, -1, 1);
        assert_ok(ks_env_step(e, action, observation, &reward, &end));
        sum += reward;
    }
    return sum;
}

/* A state in the middle of an episode, restored in an environment that plays another one, goes on
 * with the same bits: the target, the object's size and the key's position belong to it. */
TEST(test_saved_states)
{
    for (size_t i = 0; i < MYO_TASKS; i++) {
        struct ks_env *other = NULL;
        struct ks_rng rng = ks_rng_start(2, 5);
        double there[WIDEST], saved[1000];
        enum ks_env_end end;
        take(myo_tasks[i]);
        assert_ok(ks_env_new(myo_tasks[i], NULL, &other));
        assert_ok(ks_env_reset(other, &rng, there)); /* another target than the next one */
        assert_ok(ks_env_reset(env, &rng, seen));
        myo_step(0.3, &end);
        assert_int_equal(end, KS_ENV_GOES_ON);
        assert_true(ks_env_state_size(env) <= 1000);
        ks_env_state_get(env, saved);
        assert_ok(ks_env_state_set(other, ks_env_state_size(env), saved, false));
        assert_true(go_on(env, seen) == go_on(other, there));
        assert_memory_equal(seen, there, ks_env_observations(env) * sizeof *seen);
        ks_env_free(other);
    }
}

/* The next episode does not depend on what the one before changed in the model. */
TEST(test_episodes_are_independent)
{
    for (size_t i = 1; i < MYO_TASKS; i += 2) {
        double first[WIDEST], sum = 0;
        take(myo_tasks[i]);
        for (uint64_t k = 0; k < 3; k++) { /* the start state 1, 2, and 1 again */
            struct ks_rng rng = ks_rng_start(4, 1 + k % 2);
            assert_ok(ks_env_reset(env, &rng, seen));
            if (k == 0)
                sum = go_on(env, first);
        }
        assert_true(go_on(env, seen) == sum);
        assert_memory_equal(first, seen, ks_env_observations(env) * sizeof *seen);
    }
}

CMFixtureFunction tests_teardown = drop;

int main(void)
{
    return suite_is_there(myo_tasks[0]) ? run_all_tests() : 0;
}
