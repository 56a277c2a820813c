/* Scores of several tasks, runs and steps, read from a table with one row per score. */
#ifndef KS_STUDY_SCORES_H
#define KS_STUDY_SCORES_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "study/aggregate.h"

/* What is read, and the rules for what is missing. */
struct ks_score_query {
    const char *path;
    const char *task, *seed, *step, *value; /* names of the columns */
    size_t n_tasks;                         /* 0: all tasks of the file */
    const char *const *tasks;               /* [n_tasks] in any order */
    double every;                           /* only steps that are multiples of it; 0: all */
    bool normalize;                         /* by ks_score_ranges; else the scores are raw */
    /* A run with a score that is NaN or infinite, or without a step that other runs have, is an
     * error. With drop_missing that run is left out at every step. With common_grid only the steps
     * that all runs have are used; the last step of all must be one of them. Nothing is ever
     * interpolated. */
    bool drop_missing, common_grid;
};

struct ks_score_table {
    size_t n_tasks, n_runs, n_steps;
    char **task;    /* [n_tasks] in byte order of the names; owned           */
    size_t *runs;   /* [n_tasks] runs of each task; owned                    */
    double *seed;   /* [n_runs] of each task's runs in turn, ascending; owned */
    double *step;   /* [n_steps] ascending; owned                            */
    double *value;  /* [n_runs, n_steps]; owned                              */
    size_t dropped; /* runs that were left out                               */
};

/* Fails with KS_FORMAT, naming file, task, seed and step, on what the rules above do not allow, on
 * two scores of one task, seed and step, on a task that the file does not have, and where no score
 * is left. The caller frees. */
ks_status ks_score_table_read(const struct ks_score_query *query, struct ks_score_table **table);
void ks_score_table_free(struct ks_score_table *table); /* NULL is fine */

/* The table as the strata of a bootstrap: one per task. Points into the table. */
struct ks_scores ks_score_table_scores(const struct ks_score_table *table);

/* What a reader of intervals over these strata has to be told; a sum of them. */
enum {
    KS_SCORES_NO_INTERVAL = 1,  /* one run in every stratum: the interval is undefined     */
    KS_SCORES_FEW_RUNS = 2,     /* 2 to 4 runs in a stratum: the interval is too narrow    */
    KS_SCORES_UNEQUAL_RUNS = 4, /* strata with more runs weigh more in what is pooled      */
};
unsigned ks_scores_cautions(size_t strata, const size_t *runs);

#endif
