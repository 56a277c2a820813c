/* A replay log: rows of equal size are appended to files and never overwritten; the oldest ones can
 * be dropped. A crash damages at most the end of the last file; the rows before it remain readable.
 *
 * The log's folder holds segments "replay.000000", "replay.000001", ..., each a header and
 * `segment_rows` rows. Checksums are chained: chain_k = SHA-256(chain_{k-1}, row k), with 0 before
 * the first row, and each header contains the chain before its first row. So if the caller stores a
 * mark, which is the number of rows and the chain after them, every byte that is read back up to
 * there can be verified. Numbers are in the machine's byte order. */
#ifndef KS_IO_REPLAY_LOG_H
#define KS_IO_REPLAY_LOG_H

#include <stddef.h>

#include "core/error.h"
#include "core/memory.h"
#include "io/file.h"

/* A position in a log. */
struct ks_replay_log_mark {
    size_t rows; /* before it */
    unsigned char chain[KS_SHA256_BYTES];
};

struct ks_replay_log {
    char *folder, *path; /* owned; of the segment that is being worked on */
    size_t row_bytes, segment_rows;
    size_t oldest; /* the oldest existing segment */
    struct ks_replay_log_mark mark;
    int descriptor; /* of the last segment; -1: not open */
};

/* An empty log. When the first row is appended, the folder must exist and have no segments. The
 * caller frees. */
ks_status ks_replay_log_new(const char *folder, size_t row_bytes, size_t segment_rows,
                            struct ks_replay_log **log);
void ks_replay_log_free(struct ks_replay_log *log); /* NULL is fine */
KS_OWNER(ks_replay_log_free, struct ks_replay_log *)

/* Appends n rows. Fails with KS_FULL or KS_IO, naming the file; afterwards the log may only be
 * freed.
 */
ks_status ks_replay_log_append(struct ks_replay_log *log, size_t n, const void *rows);
/* Flushes all appended rows to disk. */
ks_status ks_replay_log_flush(struct ks_replay_log *log);
/* Removes the segments whose rows all have numbers below `row`. */
ks_status ks_replay_log_drop(struct ks_replay_log *log, size_t row);

/* Continues an existing log from `mark`: passes the rows from number `first` up to the mark, one by
 * one and in order, to `take`, and cuts off everything after the mark. `log` is a new one for the
 * same folder. Fails with KS_FORMAT if a file is missing, too short or damaged; rows may have been
 * passed on by then, but nothing is cut off, and another mark may be tried. */
ks_status ks_replay_log_read(struct ks_replay_log *log, const struct ks_replay_log_mark *mark,
                             size_t first, ks_status (*take)(void *context, const void *row),
                             void *context);

#endif
