/* Metrics of one run of a study, from its progress.csv. */
#ifndef KS_RESULTS_PROGRESS_H
#define KS_RESULTS_PROGRESS_H

#include <stddef.h>

#include "core/error.h"
#include "results/results.h"

struct ks_run_log {
    size_t steps, columns;
    double *step;  /* [steps] environment steps, ascending; owned                            */
    double *value; /* [columns, steps]; NaN: not measured, or the file has no such column. Owned */
};

/* Reads columns name [columns] up to the study's last step. If a step has several rows (a
 * checkpoint and an evaluation), the first finite number counts. A file that is missing or is not a
 * table gives no steps: ks_results_read has warned about it. Fails with KS_MEMORY. The caller frees
 * *progress with ks_run_log_free; after a failure it is empty. */
ks_status ks_run_log_read(const struct ks_results *results, const struct ks_result *run,
                          size_t columns, const char *const *name, struct ks_run_log *progress);
void ks_run_log_free(struct ks_run_log *progress);

/* The value of a column at an environment step; NaN if there is none. */
double ks_run_log_at(const struct ks_run_log *progress, size_t column, double step);

#endif
