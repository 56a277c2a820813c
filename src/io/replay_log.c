#include "io/replay_log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/memory.h"
#include "io/file.h"

enum { MODE = 0666, PIECE = 1 << 20 }; /* file mode before umask; bytes read at once */

struct header {
    char magic[24];
    uint64_t segment, row_bytes, segment_rows;
    unsigned char chain[KS_SHA256_BYTES]; /* before the first row */
};
static const char MAGIC[24] = "kappascope-replay 1";

ks_status ks_replay_log_new(const char *folder, size_t row_bytes, size_t segment_rows,
                            struct ks_replay_log **out)
{
    struct ks_replay_log *log;

    *out = NULL;
    KS_TRY(ks_alloc(1, sizeof *log, &log));
    log->row_bytes = row_bytes;
    log->segment_rows = segment_rows;
    log->descriptor = -1;
    if (ks_copy_string(folder, &log->folder) != KS_OK) {
        free(log);
        return KS_MEMORY;
    }
    *out = log;
    return KS_OK;
}

static void close_segment(struct ks_replay_log *log)
{
    if (log->descriptor >= 0)
        close(log->descriptor); /* it has been flushed, or its end is not needed */
    log->descriptor = -1;
}

void ks_replay_log_free(struct ks_replay_log *log)
{
    if (!log)
        return;
    close_segment(log);
    free(log->folder);
    free(log);
}

static ks_status segment_path(const struct ks_replay_log *log, size_t segment, char **path)
{
    return ks_print_string(path, "%s/replay.%06zu", log->folder, segment);
}

/* The segment of the last row; without rows, the first segment. */
static size_t last_segment(const struct ks_replay_log *log)
{
    return log->mark.rows > 0 ? (log->mark.rows - 1) / log->segment_rows : 0;
}

static void chain_row(unsigned char chain[KS_SHA256_BYTES], const void *row, size_t size,
                      ks_status *status)
{
    struct ks_piece pieces[] = {{chain, KS_SHA256_BYTES}, {row, size}};

    if (*status == KS_OK)
        *status = ks_sha256(2, pieces, chain);
}

/* --- appending --- */

static struct header describe(const struct ks_replay_log *log, size_t segment,
                              const unsigned char chain[KS_SHA256_BYTES])
{
    struct header h = {
        .segment = segment, .row_bytes = log->row_bytes, .segment_rows = log->segment_rows};

    memcpy(h.magic, MAGIC, sizeof h.magic);
    memcpy(h.chain, chain, sizeof h.chain);
    return h;
}

static ks_status start_segment(struct ks_replay_log *log, size_t segment, const char *path)
{
    struct header h = describe(log, segment, log->mark.chain);

    close_segment(log);
    log->descriptor = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, MODE);
    if (log->descriptor < 0)
        return ks_file_fail(errno, path, "created");
    return ks_file_put(log->descriptor, path, &h, sizeof h);
}

/* Appends rows that fit into the current segment. */
static ks_status append(struct ks_replay_log *log, size_t n, const unsigned char *rows)
{
    size_t segment = log->mark.rows / log->segment_rows;
    ks_status status = KS_OK;
    char *path;

    if (log->mark.rows % log->segment_rows == 0)
        KS_TRY(ks_replay_log_flush(log)); /* the previous segment */
    KS_TRY(segment_path(log, segment, &path));
    if (log->mark.rows % log->segment_rows == 0)
        KS_GO(start_segment(log, segment, path));
    KS_GO(ks_file_put(log->descriptor, path, rows, n * log->row_bytes));
    for (size_t i = 0; i < n; i++)
        chain_row(log->mark.chain, rows + i * log->row_bytes, log->row_bytes, &status);
    log->mark.rows += n;
done:
    free(path);
    return status;
}

ks_status ks_replay_log_append(struct ks_replay_log *log, size_t n, const void *rows)
{
    const unsigned char *next = rows;

    while (n > 0) {
        size_t room = log->segment_rows - log->mark.rows % log->segment_rows,
               now = n < room ? n : room;

        KS_TRY(append(log, now, next));
        next += now * log->row_bytes;
        n -= now;
    }
    return KS_OK;
}

ks_status ks_replay_log_flush(struct ks_replay_log *log)
{
    ks_status status;
    char *path;

    if (log->descriptor < 0)
        return KS_OK;
    KS_TRY(segment_path(log, last_segment(log), &path));
    status = ks_file_flush(log->descriptor, path);
    free(path);
    return status == KS_OK ? ks_folder_flush(log->folder) : status;
}

ks_status ks_replay_log_drop(struct ks_replay_log *log, size_t row)
{
    for (; (log->oldest + 1) * log->segment_rows <= row; log->oldest++) {
        ks_status status = KS_OK;
        char *path;

        KS_TRY(segment_path(log, log->oldest, &path));
        if (unlink(path) != 0 && errno != ENOENT)
            status = ks_file_fail(errno, path, "removed");
        free(path);
        KS_TRY(status);
    }
    return KS_OK;
}

/* --- reading --- */

struct reading {
    struct ks_replay_log *log;
    const struct ks_replay_log_reader *reader;
    size_t first, end;                    /* rows to pass on: first .. end - 1               */
    size_t row;                           /* the next row to read                            */
    unsigned char chain[KS_SHA256_BYTES]; /* before `row`                                    */
    unsigned char *rows;                  /* [piece_rows, row_bytes]                         */
    size_t piece_rows;
};

/* Reads exactly n bytes; KS_FORMAT if the file is shorter. */
static ks_status get(int descriptor, const char *path, void *bytes, size_t n)
{
    unsigned char *next = bytes;

    while (n > 0) {
        ssize_t found = read(descriptor, next, n);

        if (found < 0 && errno == EINTR)
            continue;
        if (found < 0)
            return ks_fail(KS_IO, "%s: cannot be read: %s", path, strerror(errno));
        if (found == 0)
            return ks_fail(KS_FORMAT, "%s: damaged: the file is %zu bytes too short", path, n);
        next += found;
        n -= (size_t)found;
    }
    return KS_OK;
}

/* Nothing verifies the chain in the first segment's header here. It is verified at the end, when
 * the chain that continues it must agree with the mark. */
static ks_status read_header(struct reading *g, int descriptor, const char *path, size_t segment)
{
    bool start = segment * g->log->segment_rows <= g->first;
    struct header h, want;

    KS_TRY(get(descriptor, path, &h, sizeof h));
    if (start)
        memcpy(g->chain, h.chain, sizeof g->chain);
    want = describe(g->log, segment, g->chain);
    if (memcmp(&h, &want, sizeof h) != 0)
        return ks_fail(KS_FORMAT, "%s: damaged, or not part of this replay log%s", path,
                       start ? "" : "; or the segment before it is damaged");
    return KS_OK;
}

static ks_status read_rows(struct reading *g, int descriptor, const char *path, size_t n)
{
    size_t size = g->log->row_bytes;

    while (n > 0) {
        size_t now = n < g->piece_rows ? n : g->piece_rows;
        ks_status status = get(descriptor, path, g->rows, now * size);

        for (size_t i = 0; i < now; i++, g->row++) {
            chain_row(g->chain, g->rows + i * size, size, &status);
            if (status == KS_OK && g->row >= g->first)
                status = g->reader->take(g->reader->context, g->rows + i * size);
        }
        KS_TRY(status);
        n -= now;
    }
    return KS_OK;
}

/* Opens and reads a segment. The caller closes *descriptor, also after a failure. */
static ks_status read_segment(struct reading *g, size_t segment, const char *path, int *descriptor)
{
    size_t start = segment * g->log->segment_rows, end = start + g->log->segment_rows;

    *descriptor = open(path, O_RDWR | O_CLOEXEC);
    if (*descriptor < 0 && errno == ENOENT)
        return ks_fail(KS_FORMAT, "%s: missing", path);
    if (*descriptor < 0)
        return ks_fail(KS_IO, "%s: cannot be opened: %s", path, strerror(errno));
    KS_TRY(read_header(g, *descriptor, path, segment));
    g->row = start;
    return read_rows(g, *descriptor, path, (g->end < end ? g->end : end) - start);
}

/* Reads all segments; *last is the descriptor of the last one, which stays open. */
static ks_status read_segments(struct reading *g, const struct ks_replay_log_mark *mark, int *last)
{
    struct ks_replay_log *log = g->log;
    ks_status status = KS_OK;

    for (size_t i = g->first / log->segment_rows; i * log->segment_rows < mark->rows; i++) {
        char *path;

        KS_TRY(segment_path(log, i, &path));
        if (*last >= 0)
            close(*last);
        status = read_segment(g, i, path, last);
        if (status == KS_OK && g->row == mark->rows &&
            memcmp(g->chain, mark->chain, sizeof g->chain) != 0)
            status = ks_fail(KS_FORMAT, "%s: damaged: checksum mismatch", path);
        free(path);
        KS_TRY(status);
    }
    return KS_OK;
}

static bool segment_exists(const struct ks_replay_log *log, size_t segment)
{
    bool exists = false;
    char *path;

    if (segment_path(log, segment, &path) == KS_OK) {
        exists = access(path, F_OK) == 0;
        free(path);
    }
    return exists;
}

/* Segments older than the ones that were read may exist, because an earlier mark needs them. */
static size_t oldest_segment(const struct ks_replay_log *log, size_t segment)
{
    while (segment > 0 && segment_exists(log, segment - 1))
        segment--;
    return segment;
}

/* Removes what was appended after the mark: the end of its segment, and later segments. */
static ks_status cut(struct ks_replay_log *log)
{
    size_t segment = last_segment(log), rows = log->mark.rows - segment * log->segment_rows;
    off_t end = (off_t)(sizeof(struct header) + rows * log->row_bytes);
    ks_status status = KS_OK;
    char *path;

    KS_TRY(segment_path(log, segment, &path));
    if (log->descriptor >= 0 &&
        (ftruncate(log->descriptor, end) != 0 || lseek(log->descriptor, end, SEEK_SET) != end))
        status = ks_file_fail(errno, path, "cut off");
    free(path);
    for (segment += log->mark.rows > 0; status == KS_OK && segment_exists(log, segment);
         segment++) {
        KS_TRY(segment_path(log, segment, &path));
        if (unlink(path) != 0)
            status = ks_file_fail(errno, path, "removed");
        free(path);
    }
    return status;
}

ks_status ks_replay_log_read(struct ks_replay_log *log, const struct ks_replay_log_mark *mark,
                             size_t first, const struct ks_replay_log_reader *reader)
{
    struct reading g = {.log = log, .reader = reader, .first = first, .end = mark->rows};
    ks_status status;
    int last = -1;

    g.piece_rows = PIECE / log->row_bytes > 0 ? PIECE / log->row_bytes : 1;
    KS_TRY(ks_alloc(g.piece_rows, log->row_bytes, &g.rows));
    status = read_segments(&g, mark, &last);
    free(g.rows);
    if (status != KS_OK) {
        if (last >= 0)
            close(last);
        return status;
    }
    close_segment(log);
    log->mark = *mark;
    log->descriptor = last;
    log->oldest = oldest_segment(log, first / log->segment_rows);
    return cut(log);
}
