/* Scores of one system, an array over tasks, runs and steps; and their normalization. */
#ifndef KS_RESULTS_SCORES_H
#define KS_RESULTS_SCORES_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "results/aggregate.h"
#include "results/score_rows.h"

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

/* The task's row of the table; KS_FORMAT if there is no row for it. */
ks_status ks_score_range_find(const char *task, const struct ks_score_range **range);

/* The row for returns of runs: KS_FORMAT also for MyoSuite's tasks, whose scores are not returns.
 */
ks_status ks_score_range_of_returns(const char *task, const struct ks_score_range **range);

/* (score - random) / (target - random) into *normalized, without clipping. Fails with KS_FORMAT
 * if random or target is not a finite number, or if they are equal. */
ks_status ks_score_normalize(const struct ks_score_range *range, double score, double *normalized);

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

struct ks_score_table {
    size_t n_tasks, n_runs, n_steps;
    char **task;    /* [n_tasks] in byte order of the names; owned           */
    size_t *runs;   /* [n_tasks] runs of each task; owned                    */
    double *seed;   /* [n_runs] task by task, ascending within a task; owned */
    double *step;   /* [n_steps] ascending; owned                            */
    double *value;  /* [n_runs, n_steps]; owned                              */
    size_t dropped; /* runs that were left out                               */
};

/* Fails with KS_FORMAT, naming file, task, system, seed and step, if a score is missing and the
 * query does not allow it, if one task, seed and step has two scores, if a task of the query has
 * none, or if no score remains. With `normalize` it also fails if a task has no random and target
 * score, or if a score of MyoSuite is not a share. The caller frees *table with
 * ks_score_table_free. */
ks_status ks_score_table_new(const struct ks_score_rows *rows, const struct ks_score_query *query,
                             struct ks_score_table **table);
void ks_score_table_free(struct ks_score_table *table); /* NULL is fine */

/* The table as the strata of a bootstrap: one per task. Points into the table. */
struct ks_scores ks_score_table_scores(const struct ks_score_table *table);

/* Cautions for readers of intervals over strata with these numbers of runs: a union of flags. */
enum {
    KS_SCORES_NO_INTERVAL = 1,  /* one run in every stratum: the interval is undefined     */
    KS_SCORES_FEW_RUNS = 2,     /* 2 to 4 runs in a stratum: the interval is too narrow    */
    KS_SCORES_UNEQUAL_RUNS = 4, /* strata with more runs have more weight when pooled      */
};
unsigned ks_scores_cautions(size_t strata, const size_t *runs);

#endif
