/* HumanoidBench's tasks: start states, steps; the table of tasks, missing folders and models.
 * Rewards are in test_humanoid_bench.c, whole episodes and saved states in test_env.c. */
#include "environments.h"
#include "h1.h"

#include "results/scores.h"

/* --- start states --- */

static void draw(uint64_t stream)
{
    struct ks_rng rng = ks_rng_start(11, stream);

    assert_ok(ks_env_reset(env, &rng, seen));
}

/* Noise on every coordinate, of objects too; quaternions, which the library normalizes, apart. */
TEST(test_noise)
{
    struct ks_env_about about;

    for (size_t i = 0; ks_env_about(i, &about); i++) {
        double largest[40] = {0};
        if (!about.source)
            continue;
        take(about.name);
        for (uint64_t k = 0; k < 200; k++) {
            draw(k);
            for (int q = 0; q < (int)env->model->nq; q++)
                largest[q] = fmax(largest[q], fabs(env->data->qpos[q] - env->model->key_qpos[q]));
            for (int v = 0; v < (int)env->model->nv; v++)
                assert_close(env->data->qvel[v], 0, 0);
        }
        for (int q = 0; q < (int)env->model->nq; q++) {
            bool placed = strcmp(about.name, "h1-sit_hard-v0") == 0 && (q < 2 || q == 6);
            bool quaternion = (q >= 3 && q < 7) || (q >= 29 && (q - 26) % 7 >= 3);
            if (!placed && !quaternion)
                assert_true(largest[q] <= 0.01 && largest[q] > 0.0093);
        }
    }
}

TEST(test_start_beside_a_chair)
{
    double low[3] = {9, 9, 9}, high[3] = {-9, -9, -9};
    static const double from[3] = {0.2, -0.15, -1.8}, to[3] = {0.4, 0.15, 1.8};

    take("h1-sit_hard-v0");
    for (uint64_t k = 0; k < 300; k++) {
        const double *q = env->data->qpos;
        double drawn[3];
        draw(k);
        drawn[0] = q[0], drawn[1] = q[1], drawn[2] = 2 * atan2(q[6], q[3]);
        assert_close(hypot(q[4], q[5]), 0, 0);
        for (size_t i = 0; i < 3; i++) {
            low[i] = fmin(low[i], drawn[i]);
            high[i] = fmax(high[i], drawn[i]);
        }
    }
    for (size_t i = 0; i < 3; i++) {
        const double width = to[i] - from[i];
        assert_true(low[i] >= from[i] && low[i] < from[i] + 0.02 * width);
        assert_true(high[i] <= to[i] + 1e-12 && high[i] > to[i] - 0.02 * width);
    }
}

TEST(test_goals)
{
    double low[3] = {9, 9, 9}, high[3] = {-9, -9, -9};

    take("h1-reach-v0");
    for (uint64_t k = 0; k < 100; k++) {
        draw(k);
        for (size_t i = 0; i < 3; i++) {
            low[i] = fmin(low[i], seen[54 + i]);
            high[i] = fmax(high[i], seen[54 + i]);
        }
    }
    for (size_t i = 0; i < 3; i++) {
        assert_true(low[i] >= (i < 2 ? -2 : 0.2) && low[i] < (i < 2 ? -1.8 : 0.3));
        assert_true(high[i] <= 2 && high[i] > 1.8);
    }
}

/* --- steps --- */

/* A control is computed from the range in single precision. */
TEST(test_controls)
{
    const double low = (double)-0.43F, width = (double)(0.43F - -0.43F);
    const double actions[19] = {-1, 1, 0, 0.3};
    double reward;
    enum ks_env_end end;

    take("h1-walk-v0");
    assert_close(env->model->actuator_ctrlrange[0], -0.43, 0);
    assert_ok(ks_env_force(env, NULL, seen));
    assert_ok(ks_env_step(env, actions, seen, &reward, &end));
    assert_close(env->data->ctrl[0], low, 0);
    assert_close(env->data->ctrl[1], low + width, 1e-16);
    assert_close(ks_env_humanoid_bench.control(env->model->actuator_ctrlrange, 0.3),
                 low + 0.65 * width, 1e-15);
    assert_close(env->data->time, 0.02, 1e-15);
    assert_memory_equal(seen, env->data->qpos, 26 * sizeof *seen);
    assert_memory_equal(seen + 26, env->data->qvel, 25 * sizeof *seen);
}

/* An episode starts with a forward pass in the keyframe, which leaves a warm start for the solver:
 * gravity, at least. */
TEST(test_warm_start)
{
    const mjModel *m;

    take("h1-walk-v0");
    m = env->model;
    env->task->domain->suite->reset(env->model, env->data);
    assert_memory_equal(env->data->qpos, m->key_qpos, (size_t)m->nq * sizeof(double));
    assert_true(env->data->xpos[3 + 2] == m->key_qpos[2]);
    assert_true(env->data->qacc[2] != 0);
}

/* A saved state may hold any number; it counts as the nearest stage. */
static void check_stage(double stage, double saved)
{
    double expected;

    env->episode[0] = stage;
    expected = env->task->domain->reward(env);
    env->episode[0] = saved;
    assert_close(env->task->domain->reward(env), expected, 0);
}

TEST_WITH(test_stages_of_a_damaged_file, NULL, drop)
{
    take("h1-maze-v0");
    place(0, 0, 0.98);
    check_stage(4, 1e6);
    check_stage(0, -1e6);
}

/* --- the table, folders and models --- */

TEST(test_table)
{
    static const char *const wide[] = {"h1-balance_hard-v0", "h1-balance_simple-v0", "h1-reach-v0",
                                       "h1-sit_hard-v0"};
    static const size_t widths[] = {77, 64, 57, 64};
    struct ks_env_about about;
    size_t tasks = 0;

    for (size_t i = 0; ks_env_about(i, &about); i++) {
        const struct ks_score_range *range = ks_score_range_find(about.name);
        size_t width = 51;
        if (strcmp(about.suite, "humanoid-bench") != 0) {
            assert_null(about.source);
            continue;
        }
        tasks++;
        for (size_t k = 0; k < 4; k++)
            if (strcmp(about.name, wide[k]) == 0)
                width = widths[k];
        assert_int_equal(about.observations, width);
        assert_int_equal(about.actions, 19);
        assert_int_equal(about.action_repeat, 2);
        assert_close(about.control_step, 0.02, 0);
        assert_non_null(range); /* for normalized scores */
        assert_true(range->group == KS_SCORES_HUMANOIDBENCH);
    }
    assert_int_equal(tasks, 14);
}

static void assert_refused(ks_status status, const char *words)
{
    struct ks_env *refused = NULL;

    assert_fails(ks_env_new("h1-walk-v0", NULL, &refused), status, words);
    assert_null(strchr(ks_error_text(), '\n'));
    assert_null(refused);
}

TEST(test_folders)
{
    need_small();
    set_variable("HUMANOID_BENCH_DIR", NULL);
    assert_refused(KS_MISSING, "h1-walk-v0: its model is not installed with this program: set "
                               "HUMANOID_BENCH_DIR to the folder of "
                               "github.com/carlosferrazza/humanoid-bench");
    setenv("HUMANOID_BENCH_DIR", "", 1);
    assert_refused(KS_MISSING, "not installed");
    setenv("HUMANOID_BENCH_DIR", "/tmp/no/such/folder", 1);
    assert_refused(KS_MISSING, "/tmp/no/such/folder/humanoid_bench/assets/envs/h1_pos_walk.xml: "
                               "the model of h1-walk-v0 does not exist: set HUMANOID_BENCH_DIR");
}

TEST(test_models)
{
    const char *const walk = "humanoid_bench/assets/envs/h1_pos_walk.xml";

    need_small();
    write_text(walk, "<mujoco><worldbody>");
    assert_refused(KS_MISSING, "set HUMANOID_BENCH_DIR to the folder of github.com");
    write_text(walk, "<mujoco/>");
    assert_refused(KS_FORMAT, "h1_pos_walk.xml: expected nq 26, nv 25, nu 19, na 0");
    small_h1_write("walk", "", NULL);
    assert_refused(KS_FORMAT, "h1_pos_walk.xml: no keyframe");
    small_h1_write("hurdle", "", SMALL_H1_POSE);
    assert_fails(ks_env_new("h1-hurdle-v0", NULL, &env), KS_FORMAT,
                 "h1_pos_hurdle.xml: no geom named 'left_barrier_collision'");
    assert_int_equal(small_h1_install(), 0);
}

int main(void)
{
    return run_h1_tests();
}
