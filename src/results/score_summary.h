/* Scores over tasks: interquartile means and areas per system and suite. */
#ifndef KS_RESULTS_SCORE_SUMMARY_H
#define KS_RESULTS_SCORE_SUMMARY_H

#include <stddef.h>

#include "core/error.h"
#include "results/aggregate.h"
#include "results/score_rows.h"
#include "results/scores.h"

/* What a system reaches on the tasks of a suite, pooled over all their runs. */
struct ks_score_line {
    const char *system;
    const char *suite;         /* KS_SCORE_TOTAL: all suites; of raw scores, the name of the task */
    size_t tasks, runs, steps; /* runs: of all these tasks                                        */
    double *step;              /* [steps] ascending; owned                                        */
    struct ks_estimate *curve; /* [steps] the IQM at each; owned */
    struct ks_estimate area;   /* of the curve, divided by its length; NaN for one step   */
    unsigned cautions;         /* of ks_scores_cautions                                           */
};
#define KS_SCORE_TOTAL "total"

struct ks_score_summary {
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
 * frees. */
ks_status ks_score_summary_new(const struct ks_score_rows *rows, const struct ks_score_query *query,
                               size_t resamples, struct ks_score_summary **summary);
void ks_score_summary_free(struct ks_score_summary *summary); /* NULL is fine */

/* The names of the suites, one of which is also split in two, in their order; NULL after the last,
 * which is KS_SCORE_TOTAL. */
const char *ks_score_suite_name(size_t index);

/* The estimate at the last step. */
const struct ks_estimate *ks_score_line_last(const struct ks_score_line *line);

#endif
