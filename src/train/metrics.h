/* What a run records: rows of progress.csv, one at each evaluation and each checkpoint, and the
 * same values as attributes of a checkpoint's /metrics. nan: undefined (no update, no evaluation,
 * no atoms). */
#ifndef KS_TRAIN_METRICS_H
#define KS_TRAIN_METRICS_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/agent.h"
#include "agent/agent_metrics.h"
#include "core/error.h"
#include "io/attribute.h"
#include "io/file.h"

struct ks_agent_f32;

/* The columns before the metrics of agent/agent_metrics.h, ended by a name of NULL. */
extern const struct ks_quantity ks_progress_columns[];

struct ks_metrics {
    char *path; /* of progress.csv; owned */
    int descriptor;
    size_t size;           /* of the file, in bytes                              */
    char *columns;         /* the header line of a file that is continued; or NULL; owned */
    struct ks_metric *row; /* [n]: the last row without env_step, update; owned  */
    size_t n;
    /* Since the last row: */
    struct ks_update sum;
    size_t updates, actor_steps;         /* gradient updates; updates in which the actor stepped,
                                          * too */
    size_t env_step;                     /* of the last row */
    double step_seconds, update_seconds; /* in agent steps; in their updates */
    /* The caller sets these before it writes a row. Since the start of the run: */
    size_t divergences, evaluation_divergences;
    /* The share of the evaluation's episodes that solved the task, NaN if there was none; a column
     * only if the task has a goal. */
    bool has_goal;
    double success;
};

/* Opens the file, cuts it off after its first `size` bytes and appends to it; 0: creates it. A file
 * that another version of the program began keeps its columns: values are matched to them by name,
 * a column that is no longer measured gets nan, and a value without a column is left out. Fails
 * with KS_IO, KS_FORMAT. The caller frees. */
ks_status ks_metrics_new(const char *path, size_t size, const struct ks_agent_f32 *agent,
                         struct ks_metrics **metrics);
void ks_metrics_free(struct ks_metrics *metrics); /* closes the file; NULL is fine */
KS_OWNER(ks_metrics_free, struct ks_metrics *)

/* Adds an update and the seconds that it took to the means of the next row. */
void ks_metrics_add(struct ks_metrics *metrics, const struct ks_update *update, double seconds);
/* Appends a row; on a full disk, no part of it is left. `batch`: the minibatch of the last update,
 * NULL before the first update (agent_metrics.h). return_mean: NaN if this row has no evaluation.
 */
ks_status ks_metrics_row(struct ks_metrics *metrics, struct ks_agent_f32 *agent,
                         const struct ks_batch *batch, size_t env_step, double return_mean);
/* SHA-256 of the file's first `size` bytes. KS_FORMAT if it is shorter. */
ks_status ks_metrics_digest(const char *path, size_t size, unsigned char digest[KS_SHA256_BYTES]);
/* Adds the finite values of the last row. */
void ks_metrics_attributes(const struct ks_metrics *metrics, struct ks_attributes *attributes);

#endif
