/* Resume points: what a run leaves in the folder DIR/resume while it is not finished, so that it
 * can go on bit for bit where it was.
 *
 *   point.0, point.1     the state of the run (state.c) at two moments, written whole and in turn:
 *                        should the newer one be damaged, there is the one before
 *   replay.000000, ...   a journal of its transitions (journal.h): a point adds those that are new;
 *                        segments that neither point needs are removed
 *
 * A point holds a header, a key, the state, and SHA-256 of these. The key, in JSON, is all that
 * must be the same for the same bits to come out: options, which have to be the same always, and
 * conditions, which are versions, BLAS kernel and threads, and may differ with KS_RESUME_ANY
 * (key.c). The header names how much of the journal and of progress.csv belongs to it, with their
 * checksums. What came after it - rows, transitions, checkpoints - is cut off and made again. */
#ifndef KS_TRAIN_RESUME_POINT_H
#define KS_TRAIN_RESUME_POINT_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "train/run.h"

/* Prepares for points; nothing is written yet. run->resume_points belongs to the run. */
ks_status ks_resume_new(struct ks_run *run);
void ks_resume_free(struct ks_resume_points *points); /* NULL is fine */

/* Between two agent steps: hands transitions to the journal before replay overwrites them, and
 * writes a point where one is due: after options->save_every seconds; if that is negative, after 60
 * and never so often that it takes more than 1% of the time. */
ks_status ks_resume_keep(struct ks_run *run);
/* Writes a point now. On failure (KS_FULL, KS_IO) those on the disk are as they were. */
ks_status ks_resume_write(struct ks_run *run);

/* Takes the run to its newest point that is whole, and opens progress.csv there; *found is false
 * where there is none. Says on standard error if it is not the newest. Fails with KS_USAGE, naming
 * what differs, where the point is that of another run or, unless options->resume is KS_RESUME_ANY,
 * of other conditions, and where the program cannot take its state; KS_FORMAT where what there is
 * cannot be used; KS_IO. The run is then only good to be freed. */
ks_status ks_resume_restore(struct ks_run *run, bool *found);
/* A point's file is there, whole or not. */
bool ks_resume_there(const struct ks_run *run);
/* Removes the folder and what is in it. Fails with KS_IO. */
ks_status ks_resume_clear(const struct ks_run *run);

/* Bytes that points and journal take at most, where fewer transitions than a segment holds are made
 * between two points. */
double ks_resume_bytes(struct ks_run *run);

#endif
