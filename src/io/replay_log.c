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

enum { MODE = 0666, PIECE = 1 << 20 }; /* the mode, which the umask narrows; bytes read at a time */

struct header {
    char magic[24];
    uint64_t segment, row_bytes, segment_rows;
    unsigned char chain[KS_SHA256_BYTES]; /* before the first row */
};
static const char MAGIC[24] = "kappascope-replay 1";

ks_status ks_replay_log_new(const char *folder, size_t row_bytes, size_t segment_rows,
                            struct ks_replay_log **journal)
{
    struct ks_replay_log *j;

    *journal = NULL;
    KS_TRY(ks_alloc(1, sizeof *j, &j));
    j->row_bytes = row_bytes;
    j->segment_rows = segment_rows;
    j->descriptor = -1;
    if (ks_copy_string(folder, &j->folder) != KS_OK) {
        free(j);
        return KS_MEMORY;
    }
    *journal = j;
    return KS_OK;
}

static void close_segment(struct ks_replay_log *j)
{
    if (j->descriptor >= 0)
        close(j->descriptor); /* it was flushed, or its end is not wanted */
    j->descriptor = -1;
}

void ks_replay_log_free(struct ks_replay_log *j)
{
    if (!j)
        return;
    close_segment(j);
    free(j->folder);
    free(j);
}

static ks_status segment_path(const struct ks_replay_log *j, size_t segment, char **path)
{
    return ks_print_string(path, "%s/replay.%06zu", j->folder, segment);
}

/* The segment in which the last row is, or the first one. */
static size_t last_segment(const struct ks_replay_log *j)
{
    return j->mark.rows > 0 ? (j->mark.rows - 1) / j->segment_rows : 0;
}

static void chain_row(unsigned char chain[KS_SHA256_BYTES], const void *row, size_t size,
                      ks_status *status)
{
    struct ks_piece pieces[] = {{chain, KS_SHA256_BYTES}, {row, size}};

    if (*status == KS_OK)
        *status = ks_sha256(2, pieces, chain);
}

/* --- appending --- */

static struct header describe(const struct ks_replay_log *j, size_t segment,
                              const unsigned char chain[KS_SHA256_BYTES])
{
    struct header h = {
        .segment = segment, .row_bytes = j->row_bytes, .segment_rows = j->segment_rows};

    memcpy(h.magic, MAGIC, sizeof h.magic);
    memcpy(h.chain, chain, sizeof h.chain);
    return h;
}

static ks_status start_segment(struct ks_replay_log *j, size_t segment, const char *path)
{
    struct header h = describe(j, segment, j->mark.chain);

    close_segment(j);
    j->descriptor = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, MODE);
    if (j->descriptor < 0)
        return ks_file_fail(errno, path, "created");
    return ks_file_put(j->descriptor, path, &h, sizeof h);
}

/* Rows that belong into one segment. */
static ks_status append(struct ks_replay_log *j, size_t n, const unsigned char *rows)
{
    size_t segment = j->mark.rows / j->segment_rows;
    ks_status status = KS_OK;
    char *path;

    if (j->mark.rows % j->segment_rows == 0)
        KS_TRY(ks_replay_log_flush(j)); /* of the segment before */
    KS_TRY(segment_path(j, segment, &path));
    if (j->mark.rows % j->segment_rows == 0)
        KS_GO(start_segment(j, segment, path));
    KS_GO(ks_file_put(j->descriptor, path, rows, n * j->row_bytes));
    for (size_t i = 0; i < n; i++)
        chain_row(j->mark.chain, rows + i * j->row_bytes, j->row_bytes, &status);
    j->mark.rows += n;
done:
    free(path);
    return status;
}

ks_status ks_replay_log_append(struct ks_replay_log *j, size_t n, const void *rows)
{
    const unsigned char *next = rows;

    while (n > 0) {
        size_t room = j->segment_rows - j->mark.rows % j->segment_rows, now = n < room ? n : room;

        KS_TRY(append(j, now, next));
        next += now * j->row_bytes;
        n -= now;
    }
    return KS_OK;
}

ks_status ks_replay_log_flush(struct ks_replay_log *j)
{
    ks_status status;
    char *path;

    if (j->descriptor < 0)
        return KS_OK;
    KS_TRY(segment_path(j, last_segment(j), &path));
    status = ks_file_flush(j->descriptor, path);
    free(path);
    return status == KS_OK ? ks_folder_flush(j->folder) : status;
}

ks_status ks_replay_log_drop(struct ks_replay_log *j, size_t row)
{
    for (; (j->first + 1) * j->segment_rows <= row; j->first++) {
        ks_status status = KS_OK;
        char *path;

        KS_TRY(segment_path(j, j->first, &path));
        if (unlink(path) != 0 && errno != ENOENT)
            status = ks_file_fail(errno, path, "removed");
        free(path);
        KS_TRY(status);
    }
    return KS_OK;
}

/* --- reading --- */

struct reading {
    struct ks_replay_log *journal;
    const struct ks_replay_log_reader *reader;
    size_t first, row, end;               /* handed over from here; the next one; where to stop */
    unsigned char chain[KS_SHA256_BYTES]; /* before `row` */
    unsigned char *rows;                  /* [piece_rows, row_bytes] */
    size_t piece_rows;
};

/* Exactly n bytes, or KS_FORMAT. */
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
            return ks_fail(KS_FORMAT, "%s: damaged: it ends %zu bytes too early", path, n);
        next += found;
        n -= (size_t)found;
    }
    return KS_OK;
}

/* The first segment's header is believed: the chain that starts there must end as the mark says. */
static ks_status read_header(struct reading *g, int descriptor, const char *path, size_t segment)
{
    bool start = segment * g->journal->segment_rows <= g->first;
    struct header h, want;

    KS_TRY(get(descriptor, path, &h, sizeof h));
    if (start)
        memcpy(g->chain, h.chain, sizeof g->chain);
    want = describe(g->journal, segment, g->chain);
    if (memcmp(&h, &want, sizeof h) != 0)
        return ks_fail(KS_FORMAT, "%s: damaged, or not what it should be%s", path,
                       start ? "" : ", or the one before it");
    return KS_OK;
}

static ks_status read_rows(struct reading *g, int descriptor, const char *path, size_t n)
{
    size_t size = g->journal->row_bytes;

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

/* Opens a segment and reads it; *descriptor stays open, the caller closes it. */
static ks_status read_segment(struct reading *g, size_t segment, const char *path, int *descriptor)
{
    size_t start = segment * g->journal->segment_rows, end = start + g->journal->segment_rows;

    *descriptor = open(path, O_RDWR | O_CLOEXEC);
    if (*descriptor < 0 && errno == ENOENT)
        return ks_fail(KS_FORMAT, "%s: missing", path);
    if (*descriptor < 0)
        return ks_fail(KS_IO, "%s: cannot be opened: %s", path, strerror(errno));
    KS_TRY(read_header(g, *descriptor, path, segment));
    g->row = start;
    return read_rows(g, *descriptor, path, (g->end < end ? g->end : end) - start);
}

/* Reads all segments; the last one stays open. */
static ks_status read_segments(struct reading *g, const struct ks_replay_log_mark *mark, int *last)
{
    struct ks_replay_log *j = g->journal;
    ks_status status = KS_OK;

    for (size_t i = g->first / j->segment_rows; i * j->segment_rows < mark->rows; i++) {
        char *path;

        KS_TRY(segment_path(j, i, &path));
        if (*last >= 0)
            close(*last);
        status = read_segment(g, i, path, last);
        if (status == KS_OK && g->row == mark->rows &&
            memcmp(g->chain, mark->chain, sizeof g->chain) != 0)
            status = ks_fail(KS_FORMAT, "%s: damaged: its checksum is another", path);
        free(path);
        KS_TRY(status);
    }
    return KS_OK;
}

static bool segment_exists(const struct ks_replay_log *j, size_t segment)
{
    bool there = false;
    char *path;

    if (segment_path(j, segment, &path) == KS_OK) {
        there = access(path, F_OK) == 0;
        free(path);
    }
    return there;
}

/* Older segments may be there, too: another mark may need them. */
static size_t oldest_segment(const struct ks_replay_log *j, size_t segment)
{
    while (segment > 0 && segment_exists(j, segment - 1))
        segment--;
    return segment;
}

/* What was appended after the mark goes: the end of the last segment, and later ones. */
static ks_status cut(struct ks_replay_log *j)
{
    size_t segment = last_segment(j), rows = j->mark.rows - segment * j->segment_rows;
    off_t end = (off_t)(sizeof(struct header) + rows * j->row_bytes);
    ks_status status = KS_OK;
    char *path;

    KS_TRY(segment_path(j, segment, &path));
    if (j->descriptor >= 0 &&
        (ftruncate(j->descriptor, end) != 0 || lseek(j->descriptor, end, SEEK_SET) != end))
        status = ks_file_fail(errno, path, "cut off");
    free(path);
    for (segment += j->mark.rows > 0; status == KS_OK && segment_exists(j, segment); segment++) {
        KS_TRY(segment_path(j, segment, &path));
        if (unlink(path) != 0)
            status = ks_file_fail(errno, path, "removed");
        free(path);
    }
    return status;
}

ks_status ks_replay_log_read(struct ks_replay_log *j, const struct ks_replay_log_mark *mark,
                             size_t first, const struct ks_replay_log_reader *reader)
{
    struct reading g = {.journal = j, .reader = reader, .first = first, .end = mark->rows};
    ks_status status;
    int last = -1;

    g.piece_rows = PIECE / j->row_bytes > 0 ? PIECE / j->row_bytes : 1;
    KS_TRY(ks_alloc(g.piece_rows, j->row_bytes, &g.rows));
    status = read_segments(&g, mark, &last);
    free(g.rows);
    if (status != KS_OK) {
        if (last >= 0)
            close(last);
        return status;
    }
    close_segment(j);
    j->mark = *mark;
    j->descriptor = last;
    j->first = oldest_segment(j, first / j->segment_rows);
    return cut(j);
}
