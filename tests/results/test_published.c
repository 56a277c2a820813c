/* The published returns of XQC (55 tasks, ten seeds) in tables of aggregates. They are read from
 * ../shared/data; if that folder does not exist, these tests are skipped. */
#include "test.h"

#include <unistd.h>

#include "results/comparison.h"
#include "results/scores.h"

#define STATES "../shared/data/xqc_returns.csv"
enum { STEPS = 11, LAST = STEPS - 1 }; /* 0, 100,000, ..., 1,000,000 */

/* Scores of the given tasks at their common steps, without their names, until the next call. */
static struct ks_score_table *read_scores(size_t n, const char *const *tasks, bool normalize)
{
    const struct ks_score_query query = {
        .n_tasks = n, .tasks = tasks, .every = 1e5, .normalize = normalize, .common_grid = true};
    struct ks_score_rows rows = {0};
    static struct ks_score_table table;

    if (access(STATES, R_OK) != 0)
        skip();
    assert_ok(ks_score_rows_add_csv(STATES, &rows));
    ks_pool_free(&table.pool);
    assert_ok(ks_score_table_new(&rows, &query, &table));
    ks_score_rows_free(&rows);
    return &table;
}

/* The tasks of these groups (one bit for each group) that can be normalized, into tasks
 * [KS_SCORE_RANGES]. */
static size_t find_tasks(unsigned groups, const char **tasks)
{
    size_t n = 0;

    for (size_t i = 0; i < KS_SCORE_RANGES; i++)
        if (groups >> ks_score_ranges[i].group & 1 && isfinite(ks_score_ranges[i].target))
            tasks[n++] = ks_score_ranges[i].task;
    return n;
}

enum {
    MUJOCO = 1 << KS_SCORES_MUJOCO,
    EASY = 1 << KS_SCORES_DMC_EASY,
    HARD = 1 << KS_SCORES_DMC_HARD,
    HUMANOIDBENCH = 1 << KS_SCORES_HUMANOIDBENCH,
    MYOSUITE = 1 << KS_SCORES_MYOSUITE,
    ALL = MUJOCO | EASY | HARD | HUMANOIDBENCH | MYOSUITE
};

static struct ks_score_table *read_group(unsigned groups)
{
    const char *tasks[KS_SCORE_RANGES];

    return read_scores(find_tasks(groups, tasks), tasks, true);
}

/* Every printed digit is reproduced. */
static void assert_digits(const char *what, double value, double expected, int digits)
{
    if (!(fabs(value - expected) <= 0.500001 * pow(10, -digits)))
        fail_msg("%s: %.10g, expected %.*f", what, value, digits, expected);
}

static void assert_estimate(const char *what, struct ks_estimate value, struct ks_estimate expected,
                            int digits)
{
    assert_digits(what, value.value, expected.value, digits);
    assert_digits(what, value.in.lower, expected.in.lower, digits);
    assert_digits(what, value.in.upper, expected.in.upper, digits);
}

/* The scores of one step: [runs]. */
static double *column(const struct ks_score_table *table, size_t step)
{
    double *value = malloc(table->n_runs * sizeof *value);

    assert_non_null(value);
    for (size_t i = 0; i < table->n_runs; i++)
        value[i] = table->value[i * table->n_steps + step];
    return value;
}

/* --- each task --- */

static const struct {
    const char *task;
    struct ks_estimate raw;
    double normalized; /* NaN: no random and target score */
} table[KS_SCORE_RANGES] = {
    {"Ant-v4", {7546.2622, {7430.7935, 7740.8229}}, 1.898306},
    {"HalfCheetah-v4", {12767.6344, {11479.8052, 13740.2457}}, 1.201929},
    {"Hopper-v4", {3738.1468, {3712.9973, 3771.8179}}, 1.159686},
    {"Humanoid-v4", {11454.6169, {11344.7863, 11575.0487}}, 2.246808},
    {"HumanoidStandup-v4", {339811.2292, {257000.1553, 399442.6836}}, NAN},
    {"Walker2d-v4", {6150.4534, {5882.9509, 6551.4325}}, 1.559051},
    {"acrobot-swingup", {241.1250, {214.0461, 271.8429}}, 0.241125},
    {"cartpole-balance", {999.3006, {998.9641, 999.5780}}, 0.999301},
    {"cartpole-swingup", {869.8842, {866.2144, 874.9789}}, 0.869884},
    {"cheetah-run", {906.9941, {902.1387, 911.5126}}, 0.906994},
    {"dog-run", {647.7348, {611.2923, 684.6726}}, 0.647735},
    {"dog-stand", {982.8354, {977.4768, 986.5995}}, 0.982835},
    {"dog-trot", {909.1307, {899.5124, 921.7869}}, 0.909131},
    {"dog-walk", {940.0475, {928.8233, 950.0373}}, 0.940047},
    {"finger-spin", {928.5167, {798.6833, 948.2167}}, 0.928517},
    {"finger-turn_easy", {972.9500, {957.0825, 977.1333}}, 0.972950},
    {"finger-turn_hard", {945.3500, {902.0833, 970.5833}}, 0.945350},
    {"fish-swim", {816.4625, {802.0863, 828.3156}}, 0.816462},
    {"h1-balance_hard-v0", {138.9381, {129.1292, 153.7145}}, 0.164224},
    {"h1-balance_simple-v0", {728.8358, {658.9946, 786.4369}}, 0.909988},
    {"h1-crawl-v0", {966.1330, {953.5669, 971.8284}}, 1.622763},
    {"h1-hurdle-v0", {263.1299, {250.8319, 271.8136}}, 0.373920},
    {"h1-maze-v0", {337.2607, {325.1941, 344.0623}}, 0.211072},
    {"h1-pole-v0", {803.2920, {799.3675, 806.7467}}, 1.151920},
    {"h1-reach-v0", {5065.4685, {4557.1882, 5795.5393}}, 0.409309},
    {"h1-run-v0", {320.0081, {220.4959, 505.8233}}, 0.455583},
    {"h1-sit_hard-v0", {838.4892, {823.8562, 844.2275}}, 1.118372},
    {"h1-sit_simple-v0", {876.5867, {871.6192, 880.4912}}, 1.170923},
    {"h1-slide-v0", {568.2106, {547.0148, 582.4545}}, 0.810867},
    {"h1-stair-v0", {530.5087, {502.2401, 569.9385}}, 0.756788},
    {"h1-stand-v0", {839.0295, {837.3115, 840.9411}}, 1.049439},
    {"h1-walk-v0", {843.5498, {839.3814, 849.4410}}, 1.205770},
    {"hopper-hop", {263.7805, {217.2898, 305.6496}}, 0.263780},
    {"hopper-stand", {737.3748, {525.6755, 878.7083}}, 0.737375},
    {"humanoid-run", {206.3438, {195.4342, 227.8123}}, 0.206344},
    {"humanoid-stand", {925.8930, {891.4294, 934.2458}}, 0.925893},
    {"humanoid-walk", {692.2549, {635.8872, 789.3787}}, 0.692255},
    {"myo-key-turn", {1.0000, {1.0000, 1.0000}}, 1.000000},
    {"myo-key-turn-hard", {0.9833, {0.8167, 1.0000}}, 0.983333},
    {"myo-obj-hold", {1.0000, {1.0000, 1.0000}}, 1.000000},
    {"myo-obj-hold-hard", {1.0000, {0.9500, 1.0000}}, 1.000000},
    {"myo-pen-twirl", {1.0000, {1.0000, 1.0000}}, 1.000000},
    {"myo-pen-twirl-hard", {0.8167, {0.7500, 0.8833}}, 0.816667},
    {"myo-pose", {0.8333, {0.5000, 1.0000}}, 0.833333},
    {"myo-pose-hard", {0.0000, {0.0000, 0.0000}}, 0.000000},
    {"myo-reach", {1.0000, {1.0000, 1.0000}}, 1.000000},
    {"myo-reach-hard", {0.9333, {0.9000, 0.9833}}, 0.933333},
    {"pendulum-swingup", {720.0833, {405.8000, 848.5667}}, 0.720083},
    {"quadruped-run", {944.1133, {937.5532, 948.7564}}, 0.944113},
    {"quadruped-walk", {965.1075, {957.5002, 969.8478}}, 0.965107},
    {"reacher-easy", {980.6000, {977.7833, 983.4000}}, 0.980600},
    {"reacher-hard", {975.6833, {971.8667, 979.2500}}, 0.975683},
    {"walker-run", {813.9874, {809.4930, 817.9409}}, 0.813987},
    {"walker-stand", {987.1504, {984.9745, 990.1589}}, 0.987150},
    {"walker-walk", {975.2847, {970.6732, 978.4881}}, 0.975285},
};

TEST(test_each_task)
{
    for (size_t i = 0; i < KS_SCORE_RANGES; i++) {
        const char *task = table[i].task;
        struct ks_score_table *raw = read_scores(1, &task, false);
        double *last = hold(column(raw, raw->n_steps - 1)), normalized;
        const struct ks_scores scores = {1, raw->runs, 1, &raw->step[raw->n_steps - 1], last};
        struct ks_estimate iqm;

        assert_close(raw->step[raw->n_steps - 1], 1e6, 0);
        assert_int_equal(raw->n_runs, 10);
        assert_ok(ks_iqm_curve(&scores, KS_BOOTSTRAP_RESAMPLES, 0, &iqm, NULL));
        assert_estimate(task, iqm, table[i].raw, 4);
        normalized = ks_score_normalize(ks_score_range_find(task), iqm.value);
        if (isnan(table[i].normalized))
            assert_true(isnan(normalized));
        else
            assert_digits(task, normalized, table[i].normalized, 6);
    }
}

/* --- groups --- */

/* The program's line for a suite is the same as that of its tasks alone. */
static void check_suite(const char *suite, size_t tasks, const double *expected)
{
    const struct ks_score_query query = {.every = 1e5, .normalize = true, .common_grid = true};
    struct ks_score_rows rows = {0};
    struct ks_score_summary summary;
    size_t found = 0;

    assert_ok(ks_score_rows_add_csv(STATES, &rows));
    assert_ok(ks_score_summary_new(&rows, &query, 0, &summary));
    assert_int_equal(summary.tasks, 55);
    assert_int_equal(summary.n_left_out, 1);
    assert_string_equal(summary.left_out[0], "HumanoidStandup-v4");
    for (size_t i = 0; i < summary.n; i++) {
        const struct ks_score_line *line = &summary.line[i];

        if (strcmp(line->suite, suite) != 0)
            continue;
        found++;
        assert_string_equal(line->system, "xqc");
        assert_int_equal(line->tasks, tasks);
        assert_digits(suite, ks_score_line_last(line)->value, expected[0], 6);
        assert_digits(suite, line->area.value, expected[4], 6);
    }
    assert_int_equal(found, 1);
    ks_score_summary_clear(&summary);
    ks_score_rows_free(&rows);
}

static void check_group(unsigned groups, const char *name, size_t tasks, const double *expected)
{
    struct ks_score_table *t = read_group(groups);
    const struct ks_scores scores = ks_score_table_scores(t);
    struct ks_estimate curve[STEPS], area;
    double *last = hold(column(t, LAST)), mean = 0;

    assert_int_equal(t->n_steps, STEPS);
    assert_int_equal(t->n_tasks, tasks);
    assert_int_equal(t->dropped, 0);
    assert_ok(ks_iqm_curve(&scores, KS_BOOTSTRAP_RESAMPLES, 0, curve, &area));
    for (size_t i = 0; i < t->n_runs; i++)
        mean += last[i] / (double)t->n_runs;
    assert_estimate(name, curve[LAST],
                    (struct ks_estimate){expected[0], {expected[1], expected[2]}}, 6);
    assert_digits(name, mean, expected[3], 6);
    assert_estimate(name, area, (struct ks_estimate){expected[4], {expected[5], expected[6]}}, 6);
    check_suite(name, tasks, expected);
}

/* IQM and its interval, mean, area and its interval. */
TEST(test_groups)
{
    check_group(MUJOCO, "Gymnasium", 5,
                (double[]){1.582114, 1.550248, 1.616298, 1.618063, 1.294957, 1.248601, 1.336910});
    check_group(EASY, "dm_control-easy", 18,
                (double[]){0.919402, 0.913370, 0.925093, 0.821304, 0.806885, 0.797988, 0.815166});
    check_group(HARD, "dm_control-hard", 7,
                (double[]){0.842247, 0.822779, 0.860909, 0.758912, 0.576068, 0.561033, 0.589969});
    check_group(EASY | HARD, "dm_control", 25,
                (double[]){0.907198, 0.900958, 0.912393, 0.803834, 0.745600, 0.735497, 0.754998});
    check_group(HUMANOIDBENCH, "HumanoidBench", 14,
                (double[]){0.861806, 0.837897, 0.887015, 0.819677, 0.545447, 0.533921, 0.557518});
    check_group(MYOSUITE, "MyoSuite", 10,
                (double[]){0.984000, 0.972000, 0.994000, 0.828000, 0.869400, 0.850400, 0.884300});
    check_group(ALL, KS_SCORE_TOTAL, 54,
                (double[]){0.933302, 0.927545, 0.938382, 0.887808, 0.750268, 0.742001, 0.758155});
}

/* The IQM over 55 tasks, and its area, with all scores of HumanoidStandup infinitely low or
 * infinitely high. Infinite scores are cut off, so any finite scores give a value in between. */
TEST(test_bounds_of_the_task_without_range)
{
    static const double iqm[] = {0.927623, 0.936370}, expected_area[] = {0.739689, 0.757888};
    struct ks_score_table *t = read_group(ALL);

    for (int high = 0; high < 2; high++) {
        double curve[STEPS];

        for (size_t k = 0; k < STEPS; k++) {
            double *value = column(t, k);

            value = realloc(value, (t->n_runs + 10) * sizeof *value);
            assert_non_null(value);
            for (size_t i = 0; i < 10; i++)
                value[t->n_runs + i] = high ? INFINITY : -INFINITY;
            curve[k] = ks_iqm(t->n_runs + 10, value);
            free(value);
        }
        assert_digits("IQM", curve[LAST], iqm[high], 6);
        assert_digits("area", ks_curve_area(STEPS, t->step, curve), expected_area[high], 6);
    }
}

/* --- dog-trot alone: its area, and one system against itself at other steps --- */

static const char *const DOG = "dog-trot";

TEST(test_area_of_one_task)
{
    struct ks_score_table *t = read_scores(1, &DOG, true);
    const struct ks_scores scores = ks_score_table_scores(t);
    struct ks_estimate curve[STEPS], area;

    assert_ok(ks_iqm_curve(&scores, KS_BOOTSTRAP_RESAMPLES, 0, curve, &area));
    assert_estimate("area", area, (struct ks_estimate){0.661800, {0.636594, 0.680700}}, 6);
    assert_estimate("300k", curve[3], (struct ks_estimate){0.515131, {0.452045, 0.577357}}, 6);
    assert_ok(ks_iqm_curve(&scores, KS_BOOTSTRAP_RESAMPLES, 1, curve, &area));
    assert_estimate("other seed", area, (struct ks_estimate){0.661800, {0.636998, 0.680760}}, 6);
}

TEST(test_improvement)
{
    struct ks_score_table *t = read_scores(1, &DOG, false);
    double *at_1000k = hold(column(t, 10)), *at_700k = hold(column(t, 7)),
           *at_500k = hold(column(t, 5));
    const struct ks_sample x = {10, at_1000k}, y = {10, at_700k}, z = {10, at_500k};
    struct ks_estimate p;

    assert_ok(ks_improvement(&x, &z, 0, 0, &p));
    assert_close(p.value, 0.97, 1e-12);
    assert_ok(ks_improvement(&x, &y, 2000, 0, &p));
    assert_close(p.value, 0.66, 1e-12);
    assert_close(p.in.lower, 0.4495, 1e-9);
    assert_close(p.in.upper, 0.85, 1e-9);
}
