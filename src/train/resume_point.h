/* Resume points: what an unfinished run keeps in the folder DIR/resume, so that it can continue bit
 * for bit.
 *
 *   point.0, point.1     two resume points, written alternately, each atomically: if the newer one
 *                        is damaged, the older one is used
 *   replay.000000, ...   the replay log (replay_log.h): each resume point appends the transitions
 *                        since the last one; segments that neither point needs are removed
 *
 * The description of a resume point (state.h) has the run's fingerprint, the conditions and
 * their changes (run.h). Its header says how much of the replay log and of progress.csv belongs to
 * the point, with their checksums; everything later - rows, transitions, checkpoints - is discarded
 * on a resume and computed again. */
#ifndef KS_TRAIN_RESUME_POINT_H
#define KS_TRAIN_RESUME_POINT_H

#include <stdbool.h>

#include "core/error.h"
#include "train/run.h"

struct ks_resume_points;

/* For a run that is in its first state; writes nothing. Fails with KS_USAGE, KS_MEMORY. The caller
 * frees. */
ks_status ks_resume_new(const struct ks_run *run, struct ks_resume_points **points);
void ks_resume_free(struct ks_resume_points *points); /* NULL is fine */
KS_OWNER(ks_resume_free, struct ks_resume_points *)

/* To be called between any two agent steps: appends transitions to the replay log before replay
 * overwrites them, and writes a resume point if one is due: every options->save_every seconds; if
 * that is negative, every 60 seconds, or less often so that it takes at most 1% of the time. */
ks_status ks_resume_keep(struct ks_resume_points *points, struct ks_run *run);
/* Writes a resume point now. On failure (KS_FULL, KS_IO) the existing ones are unchanged. */
ks_status ks_resume_write(struct ks_resume_points *points, struct ks_run *run);

/* Brings the run to its newest undamaged resume point and opens progress.csv. *found: false if
 * there is no resume point. A line on standard error says if the newest one is damaged. Fails with
 * KS_USAGE, naming what differs, if the point belongs to another run, has other conditions (unless
 * options->resume is KS_RESUME_ANY) or a state that this program cannot take; KS_FORMAT if all
 * points are damaged; KS_IO. After a failure the run may only be freed. */
ks_status ks_resume_restore(struct ks_resume_points *points, struct ks_run *run, bool *found);
/* Whether the file of a resume point exists, damaged or not. */
bool ks_resume_exists(const struct ks_resume_points *points);
/* Removes all resume points, the replay log and their folder. Fails with KS_IO. */
ks_status ks_resume_clear(const struct ks_resume_points *points);

/* The most bytes that resume points and replay log take, if at most one segment of transitions is
 * made between two points. */
double ks_resume_bytes(const struct ks_resume_points *points, struct ks_run *run);

#endif
