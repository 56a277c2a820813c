/* Normalized scores, rows and tables of scores: what is refused, dropped or cut to a common grid.
 */
#include "scratch.h"

#include "core/memory.h"
#include "results/scores.h"

static const char HEAD[] = "system,task,seed,step,score\n";

/* The file: these rows below the header. */
static void write_scores(const char *text)
{
    write_text("scores.csv", text_of("%s%s", HEAD, text));
}

static struct ks_score_rows rows;
static struct ks_score_table table;

/* Reads the file into `rows` and makes the table of it. */
static ks_status make_table(const struct ks_score_query *query)
{
    ks_pool_free(&table.pool);
    ks_score_rows_free(&rows);
    KS_TRY(ks_score_rows_add_csv(scratch("scores.csv"), &rows));
    return ks_score_table_new(&rows, query, &table);
}

static void assert_refused(const struct ks_score_query *query, const char *words)
{
    assert_fails(make_table(query), KS_FORMAT, words);
}

static const struct ks_score_table *read_scores(const struct ks_score_query *query)
{
    assert_ok(make_table(query));
    return &table;
}

static void check_size(const struct ks_score_query *query, size_t runs, size_t steps,
                       size_t dropped)
{
    const struct ks_score_table *t = read_scores(query);

    assert_int_equal(t->n_runs, runs);
    assert_int_equal(t->n_steps, steps);
    assert_int_equal(t->dropped, dropped);
}

/* --- random and target scores --- */

TEST(test_table_of_tasks)
{
    size_t count[KS_SCORES_MYOSUITE + 1] = {0}, without = 0;
    const struct ks_score_range *range;

    for (size_t i = 0; i < KS_SCORE_RANGES; i++) {
        if (i > 0)
            assert_true(strcmp(ks_score_ranges[i - 1].task, ks_score_ranges[i].task) < 0);
        range = ks_score_range_find(ks_score_ranges[i].task);
        assert_ptr_equal(range, &ks_score_ranges[i]);
        count[range->group]++;
        without += !isfinite(range->target);
        assert_true(isnan(range->target) == isnan(range->random));
        assert_false(range->target <= range->random);
    }
    assert_int_equal(count[KS_SCORES_MUJOCO], 6);
    assert_int_equal(count[KS_SCORES_DMC_EASY], 18);
    assert_int_equal(count[KS_SCORES_DMC_HARD], 7);
    assert_int_equal(count[KS_SCORES_HUMANOIDBENCH], 14);
    assert_int_equal(count[KS_SCORES_MYOSUITE], 10);
    assert_int_equal(without, 1);
}

/* Normalizing is linear, 0 at random and 1 at target, and nothing is clipped. */
TEST(test_normalized_scores)
{
    static const struct {
        const char *task;
        double score, normalized;
    } cases[] = {{"h1-reach-v0", 260.302, 0},
                 {"h1-reach-v0", 12000, 1},
                 {"dog-trot", 1500, 1.5},
                 {"dog-trot", -10, -0.01}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_close(ks_score_normalize(ks_score_range_find(cases[i].task), cases[i].score),
                     cases[i].normalized, 1e-15);
    assert_true(isnan(ks_score_normalize(ks_score_range_find("HumanoidStandup-v4"), 8)));
    assert_null(ks_score_range_find("dog-fly"));
}

/* The scores of MyoSuite are shares of successful episodes: a run's returns cannot be normalized by
 * them. */
TEST(test_ranges_of_returns)
{
    assert_close(ks_score_range_of_returns("dog-trot")->target, 1000, 0);
    assert_null(ks_score_range_of_returns("myo-pose"));
    assert_null(ks_score_range_of_returns("dog-fly"));
    assert_null(ks_score_range_of_returns("HumanoidStandup-v4"));
}

/* --- tables --- */

/* Tasks come in byte order, seeds and steps in numeric order, whatever the order of the rows. */
TEST(test_order)
{
    const double expected[] = {1, 2, 3, 4, 5, 6};
    struct ks_score_query query = {0};
    const struct ks_score_table *t;
    struct ks_scores scores;

    write_scores("s,b,0,100,6\ns,a,10,9,3\ns,a,9,100,2\ns,a,9,9,1\ns,b,0,9,5\ns,a,10,1e2,4\n");
    t = read_scores(&query);
    assert_int_equal(t->n_tasks, 2);
    assert_string_equal(t->task[0], "a");
    assert_string_equal(t->task[1], "b");
    assert_int_equal(t->runs[0], 2);
    assert_int_equal(t->runs[1], 1);
    assert_int_equal(t->n_steps, 2);
    for (size_t i = 0; i < 6; i++)
        assert_close(t->value[i], expected[i], 0);
    assert_int_equal(t->dropped, 0);
    scores = ks_score_table_scores(t);
    assert_int_equal(scores.strata, 2);
    assert_ptr_equal(scores.value, t->value);
}

TEST(test_selected_tasks)
{
    const char *const some[] = {"walker-run", "dog-trot"}, *const unknown[] = {"dog-trot", "x"};
    struct ks_score_query query = {0};
    const struct ks_score_table *t;

    write_scores("s,walker-run,0,0,100\ns,dog-trot,0,0,500\ns,my-task,0,0,7\n");
    query.n_tasks = 2;
    query.tasks = some;
    query.normalize = true;
    t = read_scores(&query);
    assert_int_equal(t->n_tasks, 2);
    assert_close(t->value[0], 0.5, 0);
    assert_close(t->value[1], 0.1, 1e-15);
    query.tasks = unknown;
    assert_refused(&query, "no scores of the task 'x'");
    query.n_tasks = 0;
    query.normalize = false; /* raw scores need no random and target scores */
    t = read_scores(&query);
    assert_int_equal(t->n_tasks, 3);
}

TEST(test_scores_that_are_not_finite)
{
    struct ks_score_query query = {0};
    const struct ks_score_table *t;

    write_scores("s,a,0,0,1\ns,a,0,50,2\ns,a,1,0,3\ns,a,1,50,inf\ns,a,2,0,nan\ns,a,2,50,4\n");
    assert_refused(&query,
                   "scores.csv: a, s, seed 1, step 50: the score is missing or not a finite");
    query.drop_missing = true;
    t = read_scores(&query);
    assert_int_equal(t->n_runs, 1);
    assert_int_equal(t->dropped, 2);
    assert_close(t->value[1], 2, 0);
    /* a NaN score would remove its task from the pooled scores */
    write_scores("s,a,0,0,nan\ns,b,0,0,1\n");
    assert_refused(&query, "scores.csv: a, s: no run has all its scores");
    write_scores("s,a,0,0,nan\n");
    assert_refused(&query, "scores.csv: a, s: no run has all its scores");
}

/* A byte order mark and the columns of other loggers change nothing. Without a column that names
 * the system all rows are of one: a column of words under an unknown name is refused, as it may
 * name systems, and a column of numbers is not. */
TEST(test_headers)
{
    const struct ks_score_query query = {0};

    write_text("scores.csv", "\xef\xbb\xbfsystem,task,seed,step,reward\ns,a,0,0,1\nt,a,1,0,3\n");
    check_size(&(struct ks_score_query){.system = "t"}, 1, 1, 0);
    write_text("scores.csv", "Method,task,seed,step,score\ns,a,0,0,1\nt,a,1,0,3\n");
    assert_refused(&query, "scores.csv: the column 'Method' may name the system: expected the name "
                           "method");
    write_text("scores.csv", "task,seed,step,score,loss\na,0,0,1,0.5\na,1,0,3,0.25\n");
    check_size(&query, 2, 1, 0);
}

TEST(test_refused_tables)
{
    static const char *const cases[][2] = {
        {"", "scores.csv: no scores"},
        {"s,a,0,0,1\ns,a,1,0,1\ns,a,0,0,1\n", "a, s, seed 0, step 0: two scores"},
        {"s,a,nan,0,1\n", "scores.csv:2: seed and step must be finite numbers"},
        {"s,a,0,0,\n", "scores.csv:2: score: expected a number, found ''"},
    };
    struct ks_score_query query = {0};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_scores(cases[i][0]);
        assert_refused(&query, cases[i][1]);
    }
    write_text("scores.csv", "env,seed,env_step\na,0,0\n");
    assert_refused(&query,
                   "scores.csv: expected one column of the names return, return_mean, value, "
                   "score, reward, found the columns env, seed, env_step");
    write_scores("s,a,0,0,900\ns,a,1,0,90");
    assert_refused(&query, "scores.csv: the last line has no newline, so it may be incomplete");
    write_scores("s,a,0,0,9\r00\n");
    assert_refused(&query, "scores.csv:2: a carriage return within the line");
    write_scores("s,a,0,0,9\r\n");
    check_size(&query, 1, 1, 0);
}

TEST(test_cautions)
{
    assert_int_equal(ks_scores_cautions(2, (size_t[]){1, 1}), KS_SCORES_NO_INTERVAL);
    assert_int_equal(ks_scores_cautions(2, (size_t[]){5, 5}), 0);
    assert_int_equal(ks_scores_cautions(2, (size_t[]){4, 4}), KS_SCORES_FEW_RUNS);
    assert_int_equal(ks_scores_cautions(2, (size_t[]){1, 10}), KS_SCORES_UNEQUAL_RUNS);
    assert_int_equal(ks_scores_cautions(3, (size_t[]){9, 2, 9}),
                     KS_SCORES_FEW_RUNS | KS_SCORES_UNEQUAL_RUNS);
}

static int end_tests(void **state)
{
    ks_pool_free(&table.pool);
    ks_score_rows_free(&rows);
    return scratch_remove(state);
}

CMFixtureFunction tests_setup = scratch_make, tests_teardown = end_tests;
