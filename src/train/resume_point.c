#include "train/resume_point.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/memory.h"
#include "core/progress.h"
#include "core/say.h"
#include "io/file.h"
#include "io/replay_log.h"
#include "io/text.h"

enum {
    POINTS = 2,             /* kept, in turn                                              */
    UNSAVED = 1024,         /* transitions that wait for the journal, a few megabytes     */
    SEGMENTS = 4,           /* of the journal hold what replay holds,                     */
    SEGMENT_BYTES = 1 << 26 /* but none is larger                                         */
};
static const double INTERVAL = 60, SHARE = 0.01; /* seconds; of the time, for points */
static const char MAGIC[24] = "kappascope-point";

/* In points of version 2 the state's values have no names (state.c). They are read, not written. */
static const uint64_t VERSION = 3, UNNAMED = 2;

struct ks_resume_points {
    char *folder, *key; /* owned */
    struct ks_replay_log *journal;
    unsigned char *bytes; /* [size] a point in memory */
    size_t size;
    uint64_t next;     /* the number of the next point, which goes to file next % POINTS */
    size_t rows;       /* transitions at the last point: what the older file will need */
    double last, cost; /* when it was done, and what it took: seconds */
};

struct header {
    char magic[24];
    uint64_t version, number, key_size, state_size, progress_size, rows;
    unsigned char chain[KS_SHA256_BYTES], progress[KS_SHA256_BYTES];
};

/* Transitions before this one are gone from replay after `rows` of them. */
static size_t first_needed(const struct ks_run *r, size_t rows)
{
    return rows > r->replay->capacity ? rows - r->replay->capacity : 0;
}

ks_status ks_resume_new(struct ks_run *r)
{
    size_t row = r->replay->width * sizeof(float), most = SEGMENT_BYTES / row + 1;
    size_t rows = (r->replay->capacity + SEGMENTS - 1) / SEGMENTS;

    KS_TRY(ks_alloc(1, sizeof *r->points, &r->points));
    r->points->last = ks_seconds();
    KS_TRY(ks_run_path(r, "resume", &r->points->folder));
    KS_TRY(ks_run_fingerprint(r, &r->points->key));
    return ks_replay_log_new(r->points->folder, row, rows < most ? rows : most,
                             &r->points->journal);
}

void ks_resume_free(struct ks_resume_points *p)
{
    if (!p)
        return;
    ks_replay_log_free(p->journal);
    free(p->folder);
    free(p->key);
    free(p->bytes);
    free(p);
}

static size_t whole_size(struct ks_run *r)
{
    return sizeof(struct header) + strlen(r->points->key) + ks_run_state_size(r) + KS_SHA256_BYTES;
}

double ks_resume_bytes(struct ks_run *r)
{
    size_t rows = r->replay->capacity, segment = r->points->journal->segment_rows;

    return POINTS * (double)whole_size(r) + (double)(rows + (rows < r->steps ? 2 * segment : 0)) *
                                                (double)r->points->journal->row_bytes;
}

static ks_status point_path(const struct ks_resume_points *p, uint64_t number, char **path)
{
    return ks_print_string(path, "%s/point.%d", p->folder, (int)(number % POINTS));
}

/* --- writing --- */

static ks_status append_transitions(struct ks_run *r)
{
    struct ks_replay_log *j = r->points->journal;

    KS_TRY(ks_folder_make(r->points->folder));
    while (j->mark.rows < r->agent_steps) {
        size_t n = r->agent_steps - j->mark.rows;
        const float *rows = ks_replay_rows(r->replay, j->mark.rows % r->replay->capacity, &n);

        KS_TRY(ks_replay_log_append(j, n, rows));
    }
    return KS_OK;
}

static ks_status fill(struct ks_run *r, const struct header *h)
{
    struct ks_resume_points *p = r->points;
    size_t content = p->size - KS_SHA256_BYTES;

    memcpy(p->bytes, h, sizeof *h);
    memcpy(p->bytes + sizeof *h, p->key, h->key_size);
    ks_run_state_get(r, p->bytes + sizeof *h + h->key_size);
    return ks_sha256(1, &(struct ks_piece){p->bytes, content}, p->bytes + content);
}

/* Everything that the point names is on the disk before the point is. */
static ks_status write_point(struct ks_run *r, const char *path)
{
    struct ks_resume_points *p = r->points;
    struct header h = {.version = VERSION,
                       .number = p->next,
                       .key_size = strlen(p->key),
                       .state_size = ks_run_state_size(r),
                       .progress_size = r->metrics->size,
                       .rows = r->agent_steps};

    if (!p->bytes) {
        p->size = whole_size(r);
        KS_TRY(ks_alloc(p->size, 1, &p->bytes));
    }
    KS_TRY(append_transitions(r));
    KS_TRY(ks_replay_log_flush(p->journal));
    KS_TRY(ks_metrics_flush(r->metrics));
    KS_TRY(ks_metrics_digest(r->metrics->path, r->metrics->size, h.progress));
    memcpy(h.magic, MAGIC, sizeof h.magic);
    memcpy(h.chain, p->journal->mark.chain, sizeof h.chain);
    KS_TRY(fill(r, &h));
    return ks_file_write(path, p->bytes, p->size);
}

ks_status ks_resume_write(struct ks_run *r)
{
    struct ks_resume_points *p = r->points;
    double start = ks_seconds();
    ks_status status;
    char *path;

    KS_TRY(point_path(p, p->next, &path));
    status = write_point(r, path);
    free(path);
    KS_TRY(status);
    KS_TRY(ks_replay_log_drop(p->journal, first_needed(r, p->rows)));
    p->next++;
    p->rows = r->agent_steps;
    p->last = ks_seconds();
    p->cost = p->last - start;
    return KS_OK;
}

static bool is_due(const struct ks_run *r)
{
    double wait = r->options->save_every;

    if (wait < 0)
        wait = fmax(INTERVAL, r->points->cost / SHARE);
    return ks_seconds() - r->points->last >= wait;
}

ks_status ks_resume_keep(struct ks_run *r)
{
    size_t waiting = r->agent_steps - r->points->journal->mark.rows;

    if (is_due(r))
        return ks_resume_write(r);
    return waiting >= UNSAVED || waiting == r->replay->capacity ? append_transitions(r) : KS_OK;
}

/* --- reading --- */

/* A file that was read and whose checksum is right; bytes NULL: there is none. */
struct candidate {
    char *path, *bytes; /* owned */
    struct header header;
};

static ks_status check_point(struct candidate *c, size_t size)
{
    unsigned char digest[KS_SHA256_BYTES];
    struct header *h = &c->header;
    size_t content = size - KS_SHA256_BYTES;

    if (size < sizeof *h + KS_SHA256_BYTES)
        return ks_fail(KS_FORMAT, "%s: damaged: only %zu bytes", c->path, size);
    memcpy(h, c->bytes, sizeof *h);
    if (memcmp(h->magic, MAGIC, sizeof h->magic) != 0)
        return ks_fail(KS_FORMAT, "%s: not a resume point", c->path);
    if (h->version != VERSION && h->version != UNNAMED)
        return ks_fail(KS_FORMAT, "%s: expected version %d or %d, found %llu", c->path,
                       (int)UNNAMED, (int)VERSION, (unsigned long long)h->version);
    KS_TRY(ks_sha256(1, &(struct ks_piece){c->bytes, content}, digest));
    if (memcmp(digest, c->bytes + content, sizeof digest) != 0 || h->key_size > content ||
        h->state_size > content || sizeof *h + h->key_size + h->state_size != content)
        return ks_fail(KS_FORMAT, "%s: damaged: its checksum is another", c->path);
    return KS_OK;
}

/* Whether the point can be read at all; a damaged one is no failure yet, its message is kept. */
static ks_status read_point(const struct ks_resume_points *p, int slot, struct candidate *c,
                            char *damage, size_t room)
{
    ks_status status;
    size_t size;

    KS_TRY(point_path(p, (uint64_t)slot, &c->path));
    if (!ks_path_exists(c->path))
        return KS_OK;
    KS_TRY(ks_text_read(c->path, &c->bytes, &size));
    status = check_point(c, size);
    if (status != KS_FORMAT)
        return status;
    snprintf(damage, room, "%s", ks_error_text());
    free(c->bytes);
    c->bytes = NULL;
    return KS_OK;
}

bool ks_resume_there(const struct ks_run *r)
{
    bool there = false;
    char *path;

    for (uint64_t i = 0; i < POINTS && !there; i++) {
        there = point_path(r->points, i, &path) == KS_OK && ks_path_exists(path);
        free(path);
    }
    return there;
}

static ks_status take(void *replay, const void *row)
{
    return ks_replay_put(replay, row);
}

static ks_status check_progress(const char *path, const struct header *h)
{
    unsigned char digest[KS_SHA256_BYTES];

    if (!ks_path_exists(path))
        return ks_fail(KS_FORMAT, "%s: missing", path);
    KS_TRY(ks_metrics_digest(path, h->progress_size, digest));
    if (memcmp(digest, h->progress, sizeof digest) != 0)
        return ks_fail(KS_FORMAT, "%s: changed since the resume point was written", path);
    return KS_OK;
}

static struct ks_run_saved state_of(const struct candidate *c)
{
    const struct header *h = &c->header;

    return (struct ks_run_saved){(unsigned char *)c->bytes + sizeof *h + h->key_size, h->state_size,
                                 h->version == UNNAMED};
}

/* Replay, progress.csv and the state. KS_FORMAT: another point may do. */
static ks_status take_point(struct ks_run *r, const struct candidate *c)
{
    struct ks_replay_log_reader reader = {take, r->replay};
    const struct header *h = &c->header;
    struct ks_run_saved state = state_of(c);
    struct ks_replay_log_mark mark = {.rows = h->rows};
    size_t first = first_needed(r, mark.rows);
    ks_status status = KS_OK;
    char *path;

    memcpy(mark.chain, h->chain, sizeof mark.chain);
    KS_TRY(ks_run_path(r, "progress.csv", &path));
    KS_GO(check_progress(path, h));
    ks_replay_clear(r->replay, first);
    KS_GO(ks_replay_log_read(r->points->journal, &mark, first, &reader));
    ks_metrics_free(r->metrics); /* of a point that could not be used */
    KS_GO(ks_metrics_new(path, h->progress_size, r->agent, &r->metrics));
    KS_GO(ks_run_state_set(r, &state));
    r->points->next = h->number + 1;
    r->points->rows = h->rows;
done:
    free(path);
    return status;
}

/* The run's key from now on, with what has changed since the point. */
static ks_status renew_key(struct ks_run *r, const char *key)
{
    KS_TRY(ks_run_note_changes(r, key));
    free(r->points->key);
    r->points->key = NULL;
    return ks_run_fingerprint(r, &r->points->key);
}

static ks_status restore(struct ks_run *r, const struct candidate *c)
{
    struct ks_run_saved state = state_of(c);
    ks_status status;
    char *key;

    KS_TRY(
        ks_print_string(&key, "%.*s", (int)c->header.key_size, c->bytes + sizeof(struct header)));
    status = ks_run_compare_fingerprint(r, c->path, key);
    if (status == KS_OK)
        status = ks_run_state_check(r, c->path, &state);
    if (status == KS_OK)
        status = ks_run_compare_conditions(r, c->path, key);
    if (status == KS_OK)
        status = take_point(r, c);
    if (status == KS_OK)
        status = renew_key(r, key);
    free(key);
    return status;
}

/* From the newest to the oldest; `damage` is what was found wrong so far. */
static ks_status choose(struct ks_run *r, struct candidate c[POINTS], char *damage, size_t room)
{
    bool swap = !c[0].bytes || (c[1].bytes && c[1].header.number > c[0].header.number);

    for (int i = 0; i < POINTS; i++) {
        const struct candidate *one = &c[swap ? 1 - i : i];
        ks_status status;

        if (!one->bytes)
            continue;
        status = restore(r, one);
        if (status == KS_OK && *damage)
            ks_say("%s: going on from the other resume point, environment step %zu", damage,
                   r->env_step);
        if (status != KS_FORMAT)
            return status;
        if (!*damage)
            snprintf(damage, room, "%s", ks_error_text());
    }
    return ks_fail(KS_FORMAT, "%s; without --resume the run starts over", damage);
}

ks_status ks_resume_restore(struct ks_run *r, bool *found)
{
    struct candidate c[POINTS] = {{NULL}};
    ks_status status = KS_OK;
    char damage[512] = "";

    *found = false;
    for (int i = 0; i < POINTS; i++)
        KS_GO(read_point(r->points, i, &c[i], damage, sizeof damage));
    if (!c[0].bytes && !c[1].bytes && !*damage)
        goto done;
    KS_GO(ks_folder_sweep(r->points->folder));
    KS_GO(choose(r, c, damage, sizeof damage));
    *found = true;
done:
    for (int i = 0; i < POINTS; i++) {
        free(c[i].path);
        free(c[i].bytes);
    }
    r->points->last = ks_seconds();
    return status;
}

/* --- removing --- */

static bool is_ours(const char *name)
{
    return strncmp(name, "point.", 6) == 0 || strncmp(name, "replay.", 7) == 0 ||
           strncmp(name, ".kappascope-", 12) == 0;
}

/* Points go before what they need. */
static ks_status remove_files(const char *folder, DIR *list, const char *start)
{
    struct dirent *entry;

    rewinddir(list);
    while ((entry = readdir(list)))
        if (is_ours(entry->d_name) && strncmp(entry->d_name, start, strlen(start)) == 0 &&
            unlinkat(dirfd(list), entry->d_name, 0) != 0 && errno != ENOENT)
            return ks_fail(ks_file_status(errno), "%s/%s: cannot be removed: %s", folder,
                           entry->d_name, strerror(errno));
    return KS_OK;
}

ks_status ks_resume_clear(const struct ks_run *r)
{
    const char *folder = r->points->folder;
    DIR *list = opendir(folder);
    ks_status status;

    if (!list && errno == ENOENT)
        return KS_OK;
    if (!list)
        return ks_fail(KS_IO, "%s: cannot be opened: %s", folder, strerror(errno));
    status = remove_files(folder, list, "point.");
    if (status == KS_OK)
        status = remove_files(folder, list, "");
    closedir(list);
    if (status == KS_OK && rmdir(folder) != 0 && errno != ENOTEMPTY && errno != EEXIST)
        status = ks_file_fail(errno, folder, "removed");
    return status;
}
