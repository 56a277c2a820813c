#include "results/scores.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/line.h"
#include "core/memory.h"
#include "core/number.h"

/* Random and target scores, for scores normalized as by Agarwal et al., "Deep reinforcement
 * learning at the edge of the statistical precipice", NeurIPS 2021.
 *
 *   DMC             0 and 1000: the smallest and the largest possible return
 *   MyoSuite        0 and 1: the score is the fraction of successful episodes
 *   HumanoidBench   a uniform random policy, and the benchmark's threshold of success
 *   MuJoCo          a uniform random policy, and TD3
 *
 * No random or target score is published for HumanoidStandup-v4. */
const struct ks_score_range ks_score_ranges[KS_SCORE_RANGES] = {
    {"Ant-v4", KS_SCORES_MUJOCO, -70.288, 3942},
    {"HalfCheetah-v4", KS_SCORES_MUJOCO, -289.415, 10574},
    {"Hopper-v4", KS_SCORES_MUJOCO, 18.791, 3226},
    {"Humanoid-v4", KS_SCORES_MUJOCO, 120.423, 5165},
    {"HumanoidStandup-v4", KS_SCORES_MUJOCO, NAN, NAN},
    {"Walker2d-v4", KS_SCORES_MUJOCO, 2.791, 3946},
    {"acrobot-swingup", KS_SCORES_DMC_EASY, 0, 1000},
    {"cartpole-balance", KS_SCORES_DMC_EASY, 0, 1000},
    {"cartpole-swingup", KS_SCORES_DMC_EASY, 0, 1000},
    {"cheetah-run", KS_SCORES_DMC_EASY, 0, 1000},
    {"dog-run", KS_SCORES_DMC_HARD, 0, 1000},
    {"dog-stand", KS_SCORES_DMC_HARD, 0, 1000},
    {"dog-trot", KS_SCORES_DMC_HARD, 0, 1000},
    {"dog-walk", KS_SCORES_DMC_HARD, 0, 1000},
    {"finger-spin", KS_SCORES_DMC_EASY, 0, 1000},
    {"finger-turn_easy", KS_SCORES_DMC_EASY, 0, 1000},
    {"finger-turn_hard", KS_SCORES_DMC_EASY, 0, 1000},
    {"fish-swim", KS_SCORES_DMC_EASY, 0, 1000},
    {"h1-balance_hard-v0", KS_SCORES_HUMANOIDBENCH, 9.044, 800},
    {"h1-balance_simple-v0", KS_SCORES_HUMANOIDBENCH, 9.391, 800},
    {"h1-crawl-v0", KS_SCORES_HUMANOIDBENCH, 272.658, 700},
    {"h1-hurdle-v0", KS_SCORES_HUMANOIDBENCH, 2.214, 700},
    {"h1-maze-v0", KS_SCORES_HUMANOIDBENCH, 106.441, 1200},
    {"h1-pole-v0", KS_SCORES_HUMANOIDBENCH, 20.09, 700},
    {"h1-reach-v0", KS_SCORES_HUMANOIDBENCH, 260.302, 12000},
    {"h1-run-v0", KS_SCORES_HUMANOIDBENCH, 2.02, 700},
    {"h1-sit_hard-v0", KS_SCORES_HUMANOIDBENCH, 2.448, 750},
    {"h1-sit_simple-v0", KS_SCORES_HUMANOIDBENCH, 9.393, 750},
    {"h1-slide-v0", KS_SCORES_HUMANOIDBENCH, 3.191, 700},
    {"h1-stair-v0", KS_SCORES_HUMANOIDBENCH, 3.112, 700},
    {"h1-stand-v0", KS_SCORES_HUMANOIDBENCH, 10.545, 800},
    {"h1-walk-v0", KS_SCORES_HUMANOIDBENCH, 2.377, 700},
    {"hopper-hop", KS_SCORES_DMC_EASY, 0, 1000},
    {"hopper-stand", KS_SCORES_DMC_EASY, 0, 1000},
    {"humanoid-run", KS_SCORES_DMC_HARD, 0, 1000},
    {"humanoid-stand", KS_SCORES_DMC_HARD, 0, 1000},
    {"humanoid-walk", KS_SCORES_DMC_HARD, 0, 1000},
    {"myo-key-turn", KS_SCORES_MYOSUITE, 0, 1},
    {"myo-key-turn-hard", KS_SCORES_MYOSUITE, 0, 1},
    {"myo-obj-hold", KS_SCORES_MYOSUITE, 0, 1},
    {"myo-obj-hold-hard", KS_SCORES_MYOSUITE, 0, 1},
    {"myo-pen-twirl", KS_SCORES_MYOSUITE, 0, 1},
    {"myo-pen-twirl-hard", KS_SCORES_MYOSUITE, 0, 1},
    {"myo-pose", KS_SCORES_MYOSUITE, 0, 1},
    {"myo-pose-hard", KS_SCORES_MYOSUITE, 0, 1},
    {"myo-reach", KS_SCORES_MYOSUITE, 0, 1},
    {"myo-reach-hard", KS_SCORES_MYOSUITE, 0, 1},
    {"pendulum-swingup", KS_SCORES_DMC_EASY, 0, 1000},
    {"quadruped-run", KS_SCORES_DMC_EASY, 0, 1000},
    {"quadruped-walk", KS_SCORES_DMC_EASY, 0, 1000},
    {"reacher-easy", KS_SCORES_DMC_EASY, 0, 1000},
    {"reacher-hard", KS_SCORES_DMC_EASY, 0, 1000},
    {"walker-run", KS_SCORES_DMC_EASY, 0, 1000},
    {"walker-stand", KS_SCORES_DMC_EASY, 0, 1000},
    {"walker-walk", KS_SCORES_DMC_EASY, 0, 1000},
};

static int compare(const void *task, const void *range)
{
    return strcmp(task, ((const struct ks_score_range *)range)->task);
}

const struct ks_score_range *ks_score_range_find(const char *task)
{
    return bsearch(task, ks_score_ranges, KS_SCORE_RANGES, sizeof *ks_score_ranges, compare);
}

const struct ks_score_range *ks_score_range_of_returns(const char *task)
{
    const struct ks_score_range *range = ks_score_range_find(task);

    return range && range->group != KS_SCORES_MYOSUITE && isfinite(range->target) ? range : NULL;
}

double ks_score_normalize(const struct ks_score_range *range, double score)
{
    return (score - range->random) / (range->target - range->random);
}

/* --- rows with a score each become an array [runs of all tasks, steps] --- */

enum { ENOUGH_RUNS = 5 }; /* for a bootstrap interval that is not too narrow */

/* The rows of the query, sorted by task, seed and step. */
struct rows {
    size_t n;
    struct ks_score_row *row; /* [n] */
};

/* The rows [first, end) of one task and seed. */
struct run {
    size_t first, end;
};

struct grid {
    size_t n;
    double *step; /* [n] ascending */
};

static int compare_rows(const void *a, const void *b)
{
    const struct ks_score_row *x = a, *y = b;
    int order = strcmp(x->task, y->task);

    if (order == 0)
        order = (x->seed > y->seed) - (x->seed < y->seed);
    return order != 0 ? order : (x->step > y->step) - (x->step < y->step);
}

static ks_status refuse(const struct ks_score_row *row, double step, const char *what)
{
    return ks_fail(KS_FORMAT, "%s: %s, %s, seed %.10g, step %.10g: %s", row->path, row->task,
                   row->system, row->seed, step, what);
}

/* --- rows of the query --- */

static bool is_requested(const struct ks_score_query *q, const struct ks_score_row *row)
{
    return (q->n_tasks == 0 || ks_word_index(row->task, q->n_tasks, q->tasks) < q->n_tasks) &&
           (!q->system || strcmp(q->system, row->system) == 0) &&
           (q->every == 0 || fmod(row->step, q->every) == 0);
}

static ks_status take_rows(const struct ks_score_query *q, const struct ks_score_rows *all,
                           struct rows *rows)
{
    for (size_t i = 0; i < all->n; i++)
        if (is_requested(q, &all->row[i]))
            rows->row[rows->n++] = all->row[i];
    qsort(rows->row, rows->n, sizeof *rows->row, compare_rows);
    for (size_t i = 0; i < q->n_tasks; i++) {
        size_t k = 0;

        while (k < rows->n && strcmp(q->tasks[i], rows->row[k].task) != 0)
            k++;
        if (k == rows->n)
            return ks_fail(KS_FORMAT, "no scores of the task '%s'", q->tasks[i]);
    }
    for (size_t k = 1; k < rows->n; k++)
        if (compare_rows(&rows->row[k - 1], &rows->row[k]) == 0)
            return refuse(&rows->row[k], rows->row[k].step, "two scores");
    return rows->n == 0 ? ks_fail(KS_FORMAT, "no scores") : KS_OK;
}

/* --- the steps and runs that are used --- */

/* The steps of all these runs, ascending, each once, into grid->step [rows]. */
static void find_steps(const struct rows *rows, size_t n, const struct run *run, struct grid *grid)
{
    size_t all = 0;

    for (size_t i = 0; i < n; i++)
        for (size_t k = run[i].first; k < run[i].end; k++)
            grid->step[all++] = rows->row[k].step;
    qsort(grid->step, all, sizeof *grid->step, ks_ascending);
    for (size_t k = 0; k < all; k++)
        if (grid->n == 0 || grid->step[k] != grid->step[grid->n - 1])
            grid->step[grid->n++] = grid->step[k];
}

static const struct ks_score_row *find_step(const struct rows *rows, const struct run *run,
                                            double step)
{
    for (size_t k = run->first; k < run->end; k++)
        if (rows->row[k].step == step)
            return &rows->row[k];
    return NULL;
}

/* Removes the steps that a run lacks. */
static void keep_common_steps(const struct rows *rows, size_t n, const struct run *run,
                              struct grid *grid)
{
    size_t kept = 0;

    for (size_t t = 0; t < grid->n; t++) {
        bool common = true;

        for (size_t i = 0; i < n && common; i++)
            common = find_step(rows, &run[i], grid->step[t]) != NULL;
        if (common)
            grid->step[kept++] = grid->step[t];
    }
    grid->n = kept;
}

/* Leaves out the runs with a score that is not finite and, of a grid, those that lack a score at
 * one of its steps; or refuses them. */
static ks_status filter(const struct ks_score_query *q, const struct rows *rows,
                        const struct grid *grid, size_t *n, struct run *run)
{
    size_t kept = 0;

    for (size_t i = 0; i < *n; i++) {
        size_t k = run[i].first, t = 0;

        while (k < run[i].end && isfinite(rows->row[k].value))
            k++;
        while (t < grid->n && find_step(rows, &run[i], grid->step[t]))
            t++;
        if (k == run[i].end && t == grid->n)
            run[kept++] = run[i];
        else if (!q->drop_missing && k < run[i].end)
            return refuse(&rows->row[k], rows->row[k].step,
                          "the score is missing or not a finite number (--missing drop leaves such "
                          "runs out)");
        else if (!q->drop_missing)
            return refuse(
                &rows->row[run[i].first], grid->step[t],
                q->common_grid
                    ? "the score is missing at the last step of all runs (--missing drop leaves "
                      "such runs out; else remove the other runs' rows of this step)"
                    : "the score is missing (--missing drop leaves such runs out, --grid common "
                      "such steps)");
    }
    *n = kept;
    return KS_OK;
}

static ks_status select_runs(const struct ks_score_query *q, const struct rows *rows,
                             struct grid *grid, size_t *n, struct run *run)
{
    const struct grid none = {0};
    struct grid last;

    KS_TRY(filter(q, rows, &none, n, run));
    find_steps(rows, *n, run, grid);
    if (q->common_grid && *n > 0) {
        last = (struct grid){1, grid->step + grid->n - 1};
        KS_TRY(filter(q, rows, &last, n, run));
        keep_common_steps(rows, *n, run, grid);
    }
    return filter(q, rows, grid, n, run);
}

static size_t find_runs(const struct rows *rows, struct run *run)
{
    size_t n = 0;

    for (size_t k = 0; k < rows->n; k++) {
        const struct ks_score_row *row = &rows->row[k];

        if (k == 0 || strcmp(row[-1].task, row->task) != 0 || row[-1].seed != row->seed)
            run[n++].first = k;
        run[n - 1].end = k + 1;
    }
    return n;
}

/* --- the table --- */

static ks_status fill_run(const struct ks_score_query *q, const struct rows *rows,
                          const struct run *run, struct ks_score_table *table)
{
    const char *task = rows->row[run->first].task;
    const struct ks_score_range *range = q->normalize ? ks_score_range_find(task) : NULL;
    double *value = table->value + table->n_runs++ * table->n_steps;

    if (table->n_tasks == 0 || strcmp(table->task[table->n_tasks - 1], task) != 0)
        table->task[table->n_tasks++] = task;
    table->runs[table->n_tasks - 1]++;
    for (size_t t = 0; t < table->n_steps; t++) {
        const struct ks_score_row *row = find_step(rows, run, table->step[t]);

        if (range && range->group == KS_SCORES_MYOSUITE && !(row->value >= 0 && row->value <= 1))
            return refuse(row, row->step, "expected a share of successful episodes, from 0 to 1");
        value[t] = range ? ks_score_normalize(range, row->value) : row->value;
    }
    return KS_OK;
}

static ks_status build(const struct ks_score_query *q, const struct rows *rows, struct run *run,
                       struct ks_score_table *table)
{
    size_t found = find_runs(rows, run), n = found;
    struct grid grid = {0};

    KS_TRY(ks_pool_alloc(&table->pool, rows->n, sizeof *grid.step, &grid.step));
    KS_TRY(select_runs(q, rows, &grid, &n, run));
    table->step = grid.step;
    table->n_steps = grid.n;
    table->dropped = found - n;
    KS_TRY(ks_pool_alloc(&table->pool, n, sizeof(const char *), &table->task));
    KS_TRY(ks_pool_alloc(&table->pool, n, sizeof *table->runs, &table->runs));
    KS_TRY(ks_pool_alloc(&table->pool, n * grid.n, sizeof *table->value, &table->value));
    for (size_t i = 0; i < n; i++)
        KS_TRY(fill_run(q, rows, &run[i], table));
    for (size_t k = 0; k < rows->n; k++) /* a task without runs cannot be pooled with the others */
        if (ks_word_index(rows->row[k].task, table->n_tasks, table->task) == table->n_tasks)
            return ks_fail(KS_FORMAT, "%s: %s, %s: no run has all its scores", rows->row[k].path,
                           rows->row[k].task, rows->row[k].system);
    return KS_OK;
}

ks_status ks_score_table_new(const struct ks_score_rows *all, const struct ks_score_query *query,
                             struct ks_score_table *table)
{
    struct rows rows = {0};
    struct run *run;

    *table = (struct ks_score_table){.n_tasks = 0};
    KS_TRY(ks_pool_alloc(&table->pool, all->n, sizeof *rows.row, &rows.row));
    KS_TRY(take_rows(query, all, &rows));
    KS_TRY(ks_pool_alloc(&table->pool, rows.n, sizeof *run, &run));
    return build(query, &rows, run, table);
}

struct ks_scores ks_score_table_scores(const struct ks_score_table *table)
{
    return (struct ks_scores){table->n_tasks, table->runs, table->n_steps, table->step,
                              table->value};
}

unsigned ks_scores_cautions(size_t strata, const size_t *runs)
{
    unsigned cautions = KS_SCORES_NO_INTERVAL;

    for (size_t m = 0; m < strata; m++) {
        if (runs[m] > 1)
            cautions &= ~(unsigned)KS_SCORES_NO_INTERVAL;
        if (runs[m] > 1 && runs[m] < ENOUGH_RUNS)
            cautions |= KS_SCORES_FEW_RUNS;
        if (runs[m] != runs[0])
            cautions |= KS_SCORES_UNEQUAL_RUNS;
    }
    return cautions;
}
