#include "results/scores.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"

static const struct suite {
    const char *name;
    unsigned groups; /* a bit for each */
} suites[] = {
    {"Gymnasium", 1 << KS_SCORES_MUJOCO},
    {"dm_control", 1 << KS_SCORES_DMC_EASY | 1 << KS_SCORES_DMC_HARD},
    {"dm_control-easy", 1 << KS_SCORES_DMC_EASY},
    {"dm_control-hard", 1 << KS_SCORES_DMC_HARD},
    {"HumanoidBench", 1 << KS_SCORES_HUMANOIDBENCH},
    {"MyoSuite", 1 << KS_SCORES_MYOSUITE},
    {KS_SCORE_TOTAL, ~0u},
};
enum { SUITES = sizeof suites / sizeof *suites };

struct job {
    const struct ks_score_rows *rows;
    const struct ks_score_query *query;
    struct ks_score_summary *summary;
};

const char *ks_score_suite_name(size_t index)
{
    return index < SUITES ? suites[index].name : NULL;
}

const struct ks_estimate *ks_score_line_last(const struct ks_score_line *line)
{
    return &line->curve[line->steps - 1];
}

static ks_status add_line(const struct job *job, const char *system, const char *suite,
                          const struct ks_scores *scores)
{
    struct ks_score_summary *s = job->summary;
    struct ks_score_line *line;

    KS_TRY(ks_grow(s->n, sizeof *s->line, &s->room, &s->line));
    line = &s->line[s->n++];
    *line = (struct ks_score_line){.system = system,
                                   .suite = suite,
                                   .tasks = scores->strata,
                                   .steps = scores->steps,
                                   .cautions = ks_scores_cautions(scores->strata, scores->runs)};
    for (size_t m = 0; m < scores->strata; m++)
        line->runs += scores->runs[m];
    KS_TRY(ks_pool_alloc(&s->pool, scores->steps, sizeof *line->step, &line->step));
    KS_TRY(ks_pool_alloc(&s->pool, scores->steps, sizeof *line->curve, &line->curve));
    memcpy(line->step, scores->step, scores->steps * sizeof *line->step);
    return ks_iqm_curve(scores, s->resamples, 0, line->curve, &line->area);
}

/* --- suites --- */

/* Adds a line for the tasks of the suite, unless there are none. */
static ks_status add_suite(const struct job *job, const char *system, const struct suite *suite,
                           const struct ks_score_table *table)
{
    struct ks_scores scores = {0, NULL, table->n_steps, table->step, NULL};
    KS_OWNED size_t *runs = NULL;
    KS_OWNED double *value = NULL;
    size_t kept = 0, first = 0;

    KS_TRY(ks_alloc(table->n_tasks, sizeof *runs, &runs));
    KS_TRY(ks_alloc(table->n_runs * table->n_steps, sizeof *value, &value));
    for (size_t m = 0; m < table->n_tasks; first += table->runs[m++]) {
        if (!(suite->groups >> ks_score_range_find(table->task[m])->group & 1))
            continue;
        runs[scores.strata++] = table->runs[m];
        memcpy(value + kept * table->n_steps, table->value + first * table->n_steps,
               table->runs[m] * table->n_steps * sizeof *value);
        kept += table->runs[m];
    }
    scores.runs = runs;
    scores.value = value;
    return scores.strata > 0 ? add_line(job, system, suite->name, &scores) : KS_OK;
}

static void leave_out(struct ks_score_summary *s, const struct ks_score_range *range)
{
    for (size_t i = 0; i < s->n_left_out; i++)
        if (s->left_out[i] == range->task)
            return;
    s->left_out[s->n_left_out++] = range->task;
}

/* Removes the tasks that cannot be normalized from the list; refuses unknown ones. */
static ks_status keep_normalizable(struct ks_score_summary *s, const char *system, size_t *n,
                                   const char **task)
{
    size_t kept = 0;

    for (size_t i = 0; i < *n; i++) {
        const struct ks_score_range *range = ks_score_range_find(task[i]);

        if (!range)
            return ks_fail(KS_FORMAT,
                           "%s: unknown task: it has no random and no target score (--raw takes "
                           "scores as they are)",
                           task[i]);
        if (isfinite(range->target))
            task[kept++] = task[i];
        else
            leave_out(s, range);
    }
    *n = kept;
    return kept > 0 ? KS_OK
                    : ks_fail(KS_FORMAT,
                              "%s: %s: no random or no target score is published (--raw takes "
                              "scores as they are)",
                              system, s->left_out[0]);
}

/* Lines for these tasks: for their suites or, raw, one for all of them. */
static ks_status add_tasks(const struct job *job, const char *system, size_t n, const char **task)
{
    struct ks_score_query query = *job->query;
    KS_OWNS_POOL struct ks_score_table table = {.n_tasks = 0};
    struct ks_scores scores;

    query.system = system;
    query.n_tasks = n;
    query.tasks = task;
    KS_TRY(ks_score_table_new(job->rows, &query, &table));
    job->summary->dropped += table.dropped;
    scores = ks_score_table_scores(&table);
    if (!query.normalize)
        return add_line(job, system, *task, &scores);
    for (size_t i = 0; i < SUITES; i++)
        KS_TRY(add_suite(job, system, &suites[i], &table));
    return KS_OK;
}

static ks_status add_system(const struct job *job, const char *system)
{
    KS_OWNED const char **task = NULL;
    size_t n;

    KS_TRY(ks_score_rows_names(job->rows, true, system, &n, &task));
    if (job->query->normalize) {
        KS_TRY(keep_normalizable(job->summary, system, &n, task));
        return add_tasks(job, system, n, task);
    }
    for (size_t i = 0; i < n; i++)
        KS_TRY(add_tasks(job, system, 1, &task[i]));
    return KS_OK;
}

ks_status ks_score_summary_new(const struct ks_score_rows *rows, const struct ks_score_query *query,
                               size_t resamples, struct ks_score_summary *summary)
{
    KS_OWNED const char **system = NULL, **task = NULL;
    const struct job job = {rows, query, summary};
    size_t n;

    *summary = (struct ks_score_summary){.resamples = resamples};
    KS_TRY(ks_score_rows_names(rows, true, NULL, &summary->tasks, &task));
    KS_TRY(ks_score_rows_names(rows, false, NULL, &n, &system));
    for (size_t i = 0; i < n; i++)
        KS_TRY(add_system(&job, system[i]));
    return KS_OK;
}

void ks_score_summary_clear(struct ks_score_summary *summary)
{
    ks_pool_free(&summary->pool);
    free(summary->line);
}
