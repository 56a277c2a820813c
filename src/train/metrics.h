/* What a run records: progress.csv, a row at each evaluation and at each checkpoint, and the same
 * as the attributes of /metrics. Losses, q_mean, entropy and clipped_fraction are means over the
 * updates since the row before; nan: undefined (no update, no evaluation, no atoms).
 * steps_per_second is of acting, stepping and updating; evaluations and the writing of checkpoints
 * are not in it. updates_per_second is of the updates alone, with what those that begin beside the
 * environment's step have to wait for it. divergences and evaluation_divergences count the
 * simulations that diverged since the start of the run. */
#ifndef KS_TRAIN_METRICS_H
#define KS_TRAIN_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include "agent/agent.h"
#include "agent/measure.h"
#include "core/error.h"
#include "io/attribute.h"
#include "io/sha256.h"

struct ks_metrics {
    char *path; /* of progress.csv; owned */
    int descriptor;
    size_t size;            /* bytes in the file */
    char *columns;          /* its header line; NULL: it has none yet; owned */
    struct ks_measure *row; /* the last row, without env_step and update; owned */
    size_t n;
    /* Since the last row: */
    struct ks_update sum;
    size_t updates, actor_steps, env_step; /* env_step: of that row       */
    double step_seconds, update_seconds;   /* spent in agent steps; of these, in updates */
    /* Since the start of the run, set before a row is written: */
    size_t divergences, evaluation_divergences;
};

/* Opens the file behind its first `size` bytes, the rest is gone; 0: creates it. A file that
 * another version of the program began keeps its columns: they are found by their names, nan stands
 * in those that are not measured any more, and what the file has no column for is left out, so that
 * the part that is there stays byte for byte what it was. Fails with KS_IO, KS_FORMAT. The caller
 * frees. */
ks_status ks_metrics_new(const char *path, size_t size, const struct ks_agent *agent,
                         struct ks_metrics **metrics);
void ks_metrics_free(struct ks_metrics *metrics); /* closes the file; NULL is fine */

void ks_metrics_add(struct ks_metrics *metrics, const struct ks_update *update, double seconds);
/* Writes a row, whole or, on a full disk, not at all. `batch`: the last update's minibatch, NULL
 * before the first (measure.h); return_mean is NaN where there was no evaluation. */
ks_status ks_metrics_row(struct ks_metrics *metrics, struct ks_agent *agent,
                         const struct ks_batch *batch, size_t env_step, double return_mean);
/* What was written is on the disk. */
ks_status ks_metrics_flush(const struct ks_metrics *metrics);
/* The digest of the file's first bytes. KS_FORMAT where it has fewer. */
ks_status ks_metrics_digest(const char *path, size_t size, unsigned char digest[KS_SHA256_BYTES]);
/* Adds the last row's finite values. */
ks_status ks_metrics_attributes(const struct ks_metrics *metrics, struct ks_attributes *attributes);

#endif
