/* Random and target scores per task, and the normalization of scores with them. */
#ifndef KS_RESULTS_SCORE_RANGES_H
#define KS_RESULTS_SCORE_RANGES_H

#include <stddef.h>

#include "core/error.h"

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

/* The same for returns of runs: KS_FORMAT also for MyoSuite's tasks, whose scores are no returns.
 */
ks_status ks_score_range_of_returns(const char *task, const struct ks_score_range **range);

/* (score - random) / (target - random) into *normalized, without clipping. Fails with KS_FORMAT
 * if random or target is not a finite number, or if they are equal. */
ks_status ks_score_normalize(const struct ks_score_range *range, double score, double *normalized);

#endif
