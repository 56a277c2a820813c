/* Scores over tasks: one by one, of one system as an array over tasks, runs and steps, normalized,
 * and summed up per system and suite. */
#ifndef KS_RESULTS_SCORES_H
#define KS_RESULTS_SCORES_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "core/memory.h"
#include "results/aggregate.h"

/* --- random and target scores per task, and the normalization of scores with them --- */

enum ks_score_group {
    KS_SCORES_MUJOCO,
    KS_SCORES_DMC_EASY, /* easy and medium            */
    KS_SCORES_DMC_HARD, /* all dog and humanoid tasks */
    KS_SCORES_HUMANOIDBENCH,
    KS_SCORES_MYOSUITE
};

struct ks_score_range {
    const char *task; /* "dog-trot" */
    enum ks_score_group group;
    double random, target; /* NaN: not published */
};

/* The 55 tasks of the XQC paper in byte order of their names. */
enum { KS_SCORE_RANGES = 55 };
extern const struct ks_score_range ks_score_ranges[KS_SCORE_RANGES];

/* The task's row of the table; NULL if there is no row for it. */
const struct ks_score_range *ks_score_range_find(const char *task);

/* The row by which returns of runs are normalized: NULL also if no random and target score is
 * published, and for MyoSuite's tasks, whose scores are not returns. */
const struct ks_score_range *ks_score_range_of_returns(const char *task);

/* (score - random) / (target - random), without clipping; NaN if these are not published. */
double ks_score_normalize(const struct ks_score_range *range, double score);

/* --- scores one by one, from tables of returns and from the folders of studies --- */

/* The score of a run of a system at a step. The strings belong to the ks_score_rows; control
 * characters in them are escaped. */
struct ks_score_row {
    const char *path; /* the file, for messages */
    const char *system, *task;
    double seed, step, value; /* value: NaN if it is missing */
    const char *settings;     /* of the training, "KEY=VALUE KEY=VALUE ..."; NULL: not known */
};

/* Start with {0}. */
struct ks_score_rows {
    size_t n, room;
    struct ks_score_row *row; /* [n]; owned                     */
    struct ks_list names;     /* the strings of the rows, each once. Owned                */
};

/* Adds the rows of a CSV file. Its columns may have these names, of which the first that the file
 * has counts; other columns are ignored:
 *
 *   the system    method, system, architecture, exp_name (none: the file's name without ".csv")
 *   the task      env, env_name, task
 *   the run       seed
 *   the step      env_step, step
 *   the score     return, return_mean, value, score
 *
 * Fails with KS_IO or KS_FORMAT. */
ks_status ks_score_rows_add_csv(const char *path, struct ks_score_rows *rows);

/* Adds the runs of a study's folder: of each evaluation up to the study's end `return_mean`, or for
 * tasks of MyoSuite `success`, from progress.csv. An evaluation without a finite score gives no
 * row, except for the last one, which gives a row with NaN. Fails with KS_IO or KS_FORMAT. */
ks_status ks_score_rows_add_study(const char *dir, struct ks_score_rows *rows);

/* Keeps only the rows of the systems in `list`, names between commas. Fails with KS_USAGE if one of
 * them has no rows. */
ks_status ks_score_rows_keep(struct ks_score_rows *rows, const char *list);

void ks_score_rows_free(struct ks_score_rows *rows);

/* The names of all systems or, with `tasks`, of the tasks of a system (NULL: of all systems). Each
 * name once, in the order of the rows, into *names, which the caller frees; the strings belong to
 * `rows`. */
ks_status ks_score_rows_names(const struct ks_score_rows *rows, bool tasks, const char *system,
                              size_t *n, const char ***names);

/* --- the scores of one system --- */

/* Which scores to take, and how missing scores are treated. */
struct ks_score_query {
    const char *system;       /* NULL: rows of any */
    size_t n_tasks;           /* 0: all its tasks */
    const char *const *tasks; /* [n_tasks] in any order */
    double every;             /* only steps that are multiples of it; 0: all */
    bool normalize;           /* by ks_score_ranges; else the scores are raw */
    /* A run that lacks a step of another run, or has a score that is NaN or infinite, is an error.
     * With drop_missing such a run is left out completely. With common_grid only the steps that all
     * runs have are used; the largest step of any run must be one of them. Nothing is interpolated.
     */
    bool drop_missing, common_grid;
};

/* Empty when zeroed. KS_OWNS_POOL. */
struct ks_score_table {
    struct ks_pool pool; /* the arrays. Owned */
    size_t n_tasks, n_runs, n_steps;
    const char **task; /* [n_tasks] in byte order of the names           */
    size_t *runs;      /* [n_tasks] runs of each task                    */
    double *step;      /* [n_steps] ascending                            */
    double *value;     /* [n_runs, n_steps] task by task, by ascending seed */
    size_t dropped;    /* runs that were left out                        */
};

/* Fails with KS_FORMAT, naming file, task, system, seed and step, if a score is missing and the
 * query does not allow it, if one task, seed and step has two scores, if a task of the query has
 * none, or if no score remains; with `normalize`, whose tasks have random and target scores, also
 * if a score of MyoSuite is not a share. The tasks of the table are strings of `rows`. */
ks_status ks_score_table_new(const struct ks_score_rows *rows, const struct ks_score_query *query,
                             struct ks_score_table *table);

/* The table as the strata of a bootstrap: one per task. Points into the table. */
struct ks_scores ks_score_table_scores(const struct ks_score_table *table);

/* Cautions for readers of intervals over strata with these numbers of runs: a union of flags. */
enum {
    KS_SCORES_NO_INTERVAL = 1,  /* one run in every stratum: the interval is undefined     */
    KS_SCORES_FEW_RUNS = 2,     /* 2 to 4 runs in a stratum: the interval is too narrow    */
    KS_SCORES_UNEQUAL_RUNS = 4, /* strata with more runs have more weight when pooled      */
};
unsigned ks_scores_cautions(size_t strata, const size_t *runs);

/* --- scores over tasks: interquartile means and areas per system and suite --- */

/* What a system reaches on the tasks of a suite, pooled over all their runs. */
struct ks_score_line {
    const char *system;
    const char *suite;         /* KS_SCORE_TOTAL: all suites; of raw scores, the name of the task */
    size_t tasks, runs, steps; /* runs: of all these tasks                                        */
    double *step;              /* [steps] ascending                                               */
    struct ks_estimate *curve; /* [steps] the IQM at each                                         */
    struct ks_estimate area;   /* of the curve, divided by its length; NaN for one step   */
    unsigned cautions;         /* of ks_scores_cautions                                           */
};
#define KS_SCORE_TOTAL "total"

struct ks_score_summary {
    struct ks_pool pool; /* the arrays of lines. Owned */
    size_t n, room;
    struct ks_score_line *line; /* [n] system by system, in the order of the rows; owned */
    size_t tasks;               /* of all systems, with the tasks left out      */
    /* Tasks that no score can be normalized of, as no random or target score is published. */
    size_t n_left_out;
    const char *left_out[KS_SCORE_RANGES];
    size_t resamples; /* of each interval */
    size_t dropped;   /* runs that were left out because scores of them are missing */
};

/* Aggregates the rows of every system. The query's system and tasks are not used. With `normalize`
 * there is a line for each suite of which the system has a task, in the order of
 * ks_score_suite_name, then one for all. Without, there is one for each task, on the steps of its
 * own runs. Fails as ks_score_table_new, with KS_FORMAT if a task is unknown and scores are to be
 * normalized, or if no task of a system can be. The lines point to strings of `rows`. The caller
 * clears the summary, also after a failure. */
ks_status ks_score_summary_new(const struct ks_score_rows *rows, const struct ks_score_query *query,
                               size_t resamples, struct ks_score_summary *summary);
void ks_score_summary_clear(struct ks_score_summary *summary);

/* The names of the suites, one of which is also split in two, in their order; NULL after the last,
 * which is KS_SCORE_TOTAL. */
const char *ks_score_suite_name(size_t index);

/* The estimate at the last step. */
const struct ks_estimate *ks_score_line_last(const struct ks_score_line *line);

#endif
