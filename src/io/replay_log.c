#include "io/replay_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/memory.h"
#include "io/file.h"

enum { MODE = 0666, NAME = 32 }; /* of a file: before umask; room for its name */

struct header {
    char magic[24];
    uint64_t segment, row_bytes, segment_rows;
    unsigned char chain[KS_SHA256_BYTES]; /* before the first row */
};
static const char MAGIC[24] = "kappascope-replay 1";

ks_status ks_replay_log_new(const char *folder, size_t row_bytes, size_t segment_rows,
                            struct ks_replay_log **out)
{
    KS_OWNED_BY(ks_replay_log_free) struct ks_replay_log *log = NULL;

    *out = NULL;
    KS_TRY(ks_alloc(1, sizeof *log, &log));
    log->row_bytes = row_bytes;
    log->segment_rows = segment_rows;
    log->descriptor = -1;
    KS_TRY(ks_copy_string(folder, &log->folder));
    KS_TRY(ks_alloc(strlen(folder) + NAME, 1, &log->path));
    *out = log, log = NULL;
    return KS_OK;
}

void ks_replay_log_free(struct ks_replay_log *log)
{
    if (!log)
        return;
    if (log->descriptor >= 0)
        close(log->descriptor); /* it has been flushed, or its end is not needed */
    free(log->folder);
    free(log->path);
    free(log);
}

/* Valid until the next call. */
static const char *segment_path(const struct ks_replay_log *log, size_t segment)
{
    snprintf(log->path, strlen(log->folder) + NAME, "%s/replay.%06zu", log->folder, segment);
    return log->path;
}

/* The segment of the last row; without rows, the first segment. */
static size_t last_segment(const struct ks_replay_log *log)
{
    return log->mark.rows > 0 ? (log->mark.rows - 1) / log->segment_rows : 0;
}

static ks_status chain_row(unsigned char chain[KS_SHA256_BYTES], const void *row, size_t size)
{
    struct ks_piece pieces[] = {{chain, KS_SHA256_BYTES}, {row, size}};

    return ks_sha256(2, pieces, chain);
}

static struct header describe(const struct ks_replay_log *log, size_t segment,
                              const unsigned char chain[KS_SHA256_BYTES])
{
    struct header h = {
        .segment = segment, .row_bytes = log->row_bytes, .segment_rows = log->segment_rows};

    memcpy(h.magic, MAGIC, sizeof h.magic);
    memcpy(h.chain, chain, sizeof h.chain);
    return h;
}

/* Opens a segment for appending, in place of the one that is open. */
static ks_status open_segment(struct ks_replay_log *log, size_t segment, int flags)
{
    const char *path = segment_path(log, segment);

    if (log->descriptor >= 0)
        close(log->descriptor);
    log->descriptor = open(path, O_WRONLY | O_CLOEXEC | flags, MODE);
    return log->descriptor < 0 ? ks_file_fail(errno, path, flags ? "created" : "opened") : KS_OK;
}

ks_status ks_replay_log_append(struct ks_replay_log *log, size_t n, const void *rows)
{
    const unsigned char *next = rows;

    while (n > 0) {
        const size_t segment = log->mark.rows / log->segment_rows;
        const size_t room = log->segment_rows - log->mark.rows % log->segment_rows;
        const size_t now = n < room ? n : room;

        if (room == log->segment_rows) {
            const struct header h = describe(log, segment, log->mark.chain);

            KS_TRY(ks_replay_log_flush(log)); /* the previous segment */
            KS_TRY(open_segment(log, segment, O_CREAT | O_TRUNC));
            KS_TRY(ks_file_put(log->descriptor, log->path, &h, sizeof h));
        }
        KS_TRY(
            ks_file_put(log->descriptor, segment_path(log, segment), next, now * log->row_bytes));
        for (size_t i = 0; i < now; i++, next += log->row_bytes)
            KS_TRY(chain_row(log->mark.chain, next, log->row_bytes));
        log->mark.rows += now;
        n -= now;
    }
    return KS_OK;
}

ks_status ks_replay_log_flush(struct ks_replay_log *log)
{
    if (log->descriptor < 0)
        return KS_OK;
    KS_TRY(ks_file_flush(log->descriptor, segment_path(log, last_segment(log))));
    return ks_folder_flush(log->folder);
}

static ks_status remove_segment(const struct ks_replay_log *log, size_t segment)
{
    const char *path = segment_path(log, segment);

    return unlink(path) != 0 && errno != ENOENT ? ks_file_fail(errno, path, "removed") : KS_OK;
}

ks_status ks_replay_log_drop(struct ks_replay_log *log, size_t row)
{
    for (; (log->oldest + 1) * log->segment_rows <= row; log->oldest++)
        KS_TRY(remove_segment(log, log->oldest));
    return KS_OK;
}

/* --- reading --- */

struct reading {
    struct ks_replay_log *log;
    size_t first, end; /* rows to pass on: first .. end - 1 */
    ks_status (*take)(void *context, const void *row);
    void *context;
    unsigned char chain[KS_SHA256_BYTES]; /* before the next row */
};

/* Nothing verifies the chain in the first segment's header here. It is verified at the end, when
 * the chain that continues it must agree with the mark. */
static ks_status check_header(struct reading *g, const char *path, size_t segment,
                              const char *bytes)
{
    const bool start = segment * g->log->segment_rows <= g->first;
    struct header want;

    if (start)
        memcpy(g->chain, bytes + offsetof(struct header, chain), sizeof g->chain);
    want = describe(g->log, segment, g->chain);
    return memcmp(bytes, &want, sizeof want) == 0
               ? KS_OK
               : ks_fail(KS_FORMAT, "%s: damaged, or not part of this replay log%s", path,
                         start ? "" : "; or the segment before it is damaged");
}

static ks_status read_segment(struct reading *g, size_t segment)
{
    const size_t start = segment * g->log->segment_rows, full = start + g->log->segment_rows;
    const size_t end = g->end < full ? g->end : full, row = g->log->row_bytes;
    const size_t expected = sizeof(struct header) + (end - start) * row;
    const char *path = segment_path(g->log, segment), *next;
    KS_OWNED char *bytes = NULL;
    size_t size;

    if (!ks_path_exists(path))
        return ks_fail(KS_FORMAT, "%s: missing", path);
    KS_TRY(ks_text_read(path, &bytes, &size));
    if (size >= sizeof(struct header))
        KS_TRY(check_header(g, path, segment, bytes));
    if (size < expected)
        return ks_fail(KS_FORMAT, "%s: damaged: the file is %zu bytes too short", path,
                       expected - size);
    next = bytes + sizeof(struct header);
    for (size_t i = start; i < end; i++, next += row) {
        KS_TRY(chain_row(g->chain, next, row));
        if (i >= g->first)
            KS_TRY(g->take(g->context, next));
    }
    return KS_OK;
}

static bool segment_exists(const struct ks_replay_log *log, size_t segment)
{
    return ks_path_exists(segment_path(log, segment));
}

/* Removes what was appended after the mark: the end of its segment, and later segments. */
static ks_status cut(struct ks_replay_log *log)
{
    size_t segment = last_segment(log), rows = log->mark.rows - segment * log->segment_rows;
    off_t end = (off_t)(sizeof(struct header) + rows * log->row_bytes);

    if (rows > 0) {
        KS_TRY(open_segment(log, segment, 0));
        if (ftruncate(log->descriptor, end) != 0 || lseek(log->descriptor, end, SEEK_SET) != end)
            return ks_file_fail(errno, log->path, "cut off");
        segment++;
    }
    for (; segment_exists(log, segment); segment++)
        KS_TRY(remove_segment(log, segment));
    return KS_OK;
}

ks_status ks_replay_log_read(struct ks_replay_log *log, const struct ks_replay_log_mark *mark,
                             size_t first, ks_status (*take)(void *context, const void *row),
                             void *context)
{
    struct reading g = {
        .log = log, .first = first, .end = mark->rows, .take = take, .context = context};
    size_t segment = first / log->segment_rows;

    for (size_t i = segment; i * log->segment_rows < mark->rows; i++)
        KS_TRY(read_segment(&g, i));
    if (first < mark->rows && memcmp(g.chain, mark->chain, sizeof g.chain) != 0)
        return ks_fail(KS_FORMAT, "%s: damaged: checksum mismatch", log->path);
    log->mark = *mark;
    /* Segments older than the ones that were read may exist, because an earlier mark needs them. */
    while (segment > 0 && segment_exists(log, segment - 1))
        segment--;
    log->oldest = segment;
    return cut(log);
}
