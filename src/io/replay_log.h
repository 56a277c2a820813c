/* A journal: rows of one size, appended to files and never overwritten, of which the oldest are
 * dropped. A crash can only tear its end, so what an earlier moment of it held stays readable.
 *
 * A folder holds "replay.000000", "replay.000001", ...: segments of `segment_rows` rows behind a
 * header. Checksums are chained: the chain after row k is SHA-256(chain after row k - 1, row k), 0
 * at the start, and each header names the chain before its first row. So rows and chain of a
 * moment, kept elsewhere, vouch for every byte that is read back. Bytes are the machine's. */
#ifndef KS_IO_REPLAY_LOG_H
#define KS_IO_REPLAY_LOG_H

#include <stddef.h>

#include "core/error.h"
#include "io/sha256.h"

/* A moment of a journal. */
struct ks_replay_log_mark {
    size_t rows; /* appended so far */
    unsigned char chain[KS_SHA256_BYTES];
};

struct ks_replay_log {
    char *folder; /* owned */
    size_t row_bytes, segment_rows;
    size_t first; /* the oldest segment that is there */
    struct ks_replay_log_mark mark;
    int descriptor; /* of the last row's segment; -1: none is open */
};

/* An empty journal; the folder has to be there when the first row comes, and no segment in it. The
 * caller frees. */
ks_status ks_replay_log_new(const char *folder, size_t row_bytes, size_t segment_rows,
                            struct ks_replay_log **journal);
void ks_replay_log_free(struct ks_replay_log *journal); /* NULL is fine */

/* Appends n rows. Fails with KS_FULL or KS_IO, naming the file; the journal is then only good to be
 * freed. */
ks_status ks_replay_log_append(struct ks_replay_log *journal, size_t n, const void *rows);
/* What was appended is on the disk. */
ks_status ks_replay_log_flush(struct ks_replay_log *journal);
/* Removes the segments that hold no row from number `row` on. */
ks_status ks_replay_log_drop(struct ks_replay_log *journal, size_t row);

/* Makes a new journal that of an earlier moment: hands the rows from number `first` on, one by one
 * and in order, to `take`, and cuts off what was appended after it. KS_FORMAT where a file is
 * missing, too short or damaged, which may be found after rows were handed over: then nothing is
 * cut, and another mark may be tried. */
struct ks_replay_log_reader {
    ks_status (*take)(void *context, const void *row);
    void *context;
};
ks_status ks_replay_log_read(struct ks_replay_log *journal, const struct ks_replay_log_mark *mark,
                             size_t first, const struct ks_replay_log_reader *reader);

#endif
