#include "train/resume_point.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "core/memory.h"
#include "core/progress.h"
#include "io/file.h"
#include "io/replay_log.h"
#include "train/state.h"

enum {
    POINTS = 2,             /* written alternately                                             */
    DAMAGE = 512,           /* bytes of a message                                              */
    UNSAVED = 1024,         /* the most rows that are not in the log: with frames 22 MB          */
    SEGMENTS = 4,           /* a segment of the log holds a fourth of what replay can hold,    */
    SEGMENT_BYTES = 1 << 26 /* but about this many bytes at most                               */
};
static const double INTERVAL = 60; /* seconds between resume points, at least            */
static const double SHARE = 0.01;  /* of the time may be spent on writing resume points  */

struct ks_resume_points {
    char *folder, *description; /* owned, as all below */
    char *path[POINTS];         /* of the points      */
    struct ks_replay_log *log;
    unsigned char *bytes; /* a resume point, assembled in memory; NULL before the first */
    uint64_t next;        /* the number of the next point; its file is path[next % POINTS]        */
    size_t rows;          /* rows of replay that had been added when the last point was written   */
    double last, cost;    /* when the last point was written; how many seconds that took          */
};

/* The number of the oldest row that replay holds after `rows` rows. */
static size_t first_needed(const struct ks_run *r, size_t rows)
{
    size_t capacity = r->learner.replay->capacity;

    return rows > capacity ? rows - capacity : 0;
}

/* Fingerprint, conditions and changes as one JSON object. */
static ks_status describe(const struct ks_run *r, char **text)
{
    json_auto_t *object = ks_fingerprint(&r->plan);
    KS_OWNED char *dump = NULL;

    if (object && json_object_update(object, r->conditions.now) == 0 &&
        json_object_set(object, "changes", r->conditions.changes) == 0)
        dump = json_dumps(object, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
    return dump ? ks_copy_string(dump, text)
                : ks_fail(KS_USAGE, "%s: a name or a description of the run is not valid UTF-8",
                          r->plan.folder);
}

ks_status ks_resume_new(const struct ks_run *r, struct ks_resume_points **points)
{
    const struct ks_replay *replay = r->learner.replay;
    size_t row = replay->width * sizeof(float), most = SEGMENT_BYTES / row + 1;
    size_t rows = (replay->capacity + SEGMENTS - 1) / SEGMENTS;
    KS_OWNED_BY(ks_resume_free) struct ks_resume_points *p = NULL;

    *points = NULL;
    KS_TRY(ks_alloc(1, sizeof *p, &p));
    p->last = ks_seconds();
    KS_TRY(ks_plan_path(&r->plan, "resume", &p->folder));
    for (int i = 0; i < POINTS; i++)
        KS_TRY(ks_print_string(&p->path[i], "%s/point.%d", p->folder, i));
    KS_TRY(describe(r, &p->description));
    KS_TRY(ks_replay_log_new(p->folder, row, rows < most ? rows : most, &p->log));
    *points = p, p = NULL;
    return KS_OK;
}

void ks_resume_free(struct ks_resume_points *p)
{
    if (!p)
        return;
    ks_replay_log_free(p->log);
    for (int i = 0; i < POINTS; i++)
        free(p->path[i]);
    free(p->folder);
    free(p->description);
    free(p->bytes);
    free(p);
}

static size_t point_size(const struct ks_resume_points *p, struct ks_run *r)
{
    return ks_resume_file_size(strlen(p->description), ks_state_size(r));
}

double ks_resume_bytes(const struct ks_resume_points *p, struct ks_run *r)
{
    size_t rows = r->learner.replay->capacity, segment = p->log->segment_rows;
    size_t all = ks_learner_rows(&r->learner, r->plan.agent_steps);
    size_t most = rows + (rows < all ? 2 * segment : 0);

    return POINTS * (double)point_size(p, r) + (double)most * (double)p->log->row_bytes;
}

/* --- writing --- */

static ks_status append_transitions(struct ks_resume_points *p, const struct ks_learner *l)
{
    struct ks_replay_log *log = p->log;

    KS_TRY(ks_folder_make("%s", p->folder));
    while (log->mark.rows < l->replay->added) {
        size_t n = l->replay->added - log->mark.rows;
        const float *rows = ks_replay_rows(l->replay, log->mark.rows % l->replay->capacity, &n);

        KS_TRY(ks_replay_log_append(log, n, rows));
    }
    return KS_OK;
}

/* Flushes the replay log and progress.csv first: a resume point on disk never refers to data that
 * is not. */
ks_status ks_resume_write(struct ks_resume_points *p, struct ks_run *r)
{
    const double start = ks_seconds();
    const size_t size = point_size(p, r);
    struct ks_resume_header h = {.number = p->next,
                                 .description_size = strlen(p->description),
                                 .state_size = ks_state_size(r),
                                 .progress_size = r->metrics->size,
                                 .rows = r->learner.replay->added};

    if (!p->bytes)
        KS_TRY(ks_alloc(size, 1, &p->bytes));
    KS_TRY(append_transitions(p, &r->learner));
    KS_TRY(ks_replay_log_flush(p->log));
    KS_TRY(ks_file_flush(r->metrics->descriptor, r->metrics->path));
    KS_TRY(ks_metrics_digest(r->metrics->path, r->metrics->size, h.progress));
    memcpy(h.chain, p->log->mark.chain, sizeof h.chain);
    ks_state_get(r, p->bytes + ks_resume_file_state_offset(h.description_size));
    KS_TRY(ks_resume_file_fill(&h, p->description, p->bytes));
    KS_TRY(ks_file_write(p->path[p->next % POINTS], p->bytes, size));
    /* p->rows still belongs to the point before, which is the older of the two now */
    KS_TRY(ks_replay_log_drop(p->log, first_needed(r, p->rows)));
    p->next++;
    p->rows = r->learner.replay->added;
    p->last = ks_seconds();
    p->cost = p->last - start;
    return KS_OK;
}

static bool is_due(const struct ks_resume_points *p, double save_every)
{
    double wait = save_every < 0 ? fmax(INTERVAL, p->cost / SHARE) : save_every;

    return ks_seconds() - p->last >= wait;
}

ks_status ks_resume_keep(struct ks_resume_points *p, struct ks_run *r)
{
    size_t unsaved = r->learner.replay->added - p->log->mark.rows;

    if (is_due(p, r->plan.options->save_every))
        return ks_resume_write(p, r);
    return unsaved >= UNSAVED || unsaved >= r->learner.replay->capacity
               ? append_transitions(p, &r->learner)
               : KS_OK;
}

/* --- reading --- */

bool ks_resume_exists(const struct ks_resume_points *p)
{
    return ks_path_exists(p->path[0]) || ks_path_exists(p->path[1]);
}

static ks_status put_row(void *replay, const void *row)
{
    return ks_replay_put(replay, row);
}

static ks_status check_progress(const char *path, const struct ks_resume_header *h)
{
    unsigned char digest[KS_SHA256_BYTES];

    if (!ks_path_exists(path))
        return ks_fail(KS_FORMAT, "%s: missing", path);
    KS_TRY(ks_metrics_digest(path, h->progress_size, digest));
    if (memcmp(digest, h->progress, sizeof digest) != 0)
        return ks_fail(KS_FORMAT, "%s: changed since the resume point was written", path);
    return KS_OK;
}

/* Reads replay and progress.csv, and sets the state. After KS_FORMAT the other point may be tried.
 */
static ks_status take_point(struct ks_resume_points *p, struct ks_run *r,
                            const struct ks_resume_file *f)
{
    const struct ks_resume_header *h = &f->header;
    struct ks_replay_log_mark mark = {.rows = h->rows};
    size_t first = first_needed(r, mark.rows);
    KS_OWNED char *path = NULL;

    memcpy(mark.chain, h->chain, sizeof mark.chain);
    KS_TRY(ks_plan_path(&r->plan, "progress.csv", &path));
    KS_TRY(check_progress(path, h));
    ks_replay_clear(r->learner.replay, first);
    KS_TRY(ks_replay_log_read(p->log, &mark, first, put_row, r->learner.replay));
    ks_metrics_free(r->metrics); /* opened for a point that turned out to be unusable */
    KS_TRY(ks_metrics_new(path, h->progress_size, r->learner.agent, &r->metrics));
    KS_TRY(ks_state_set(r, f));
    p->next = h->number + 1;
    p->rows = h->rows;
    return KS_OK;
}

/* Brings the run to a point. The conditions from now on, with what has changed since the point, go
 * into later points. */
static ks_status restore(struct ks_resume_points *p, struct ks_run *r,
                         const struct ks_resume_file *f)
{
    const bool any = r->plan.options->resume == KS_RESUME_ANY;
    json_auto_t *found = json_loadb(f->bytes + sizeof f->header, f->header.description_size, 0,
                                    NULL);

    if (!found)
        return ks_fail(KS_FORMAT, "%s: its description is not valid JSON", f->path);
    KS_TRY(ks_fingerprint_compare(&r->plan, f->path, "--resume needs what the run was started with",
                                  found));
    KS_TRY(ks_state_check(r, f));
    KS_TRY(ks_conditions_compare(&r->conditions, f->path, found, any));
    KS_TRY(take_point(p, r, f));
    KS_TRY(ks_conditions_continue(&r->conditions, found, any, r->learner.env_step));
    free(p->description);
    p->description = NULL;
    return describe(r, &p->description);
}

/* Damage is not an error as long as there is another point; `damage` is the first one's message. */
static ks_status forgive(ks_status status, char damage[DAMAGE])
{
    if (status != KS_FORMAT)
        return status;
    if (!*damage)
        snprintf(damage, DAMAGE, "%s", ks_error_text());
    return KS_OK;
}

/* Tries the newer point, then the older. */
ks_status ks_resume_restore(struct ks_resume_points *p, struct ks_run *r, bool *found)
{
    struct ks_resume_file f[POINTS] = {{.path = p->path[0]}, {.path = p->path[1]}};
    ks_status status = KS_OK;
    char damage[DAMAGE] = "";
    int newer;

    *found = false;
    for (int i = 0; i < POINTS; i++)
        KS_GO(forgive(ks_resume_file_read(&f[i]), damage));
    if (!f[0].bytes && !f[1].bytes && !*damage)
        goto done;
    KS_GO(ks_folder_sweep(p->folder));
    newer = !f[0].bytes || (f[1].bytes && f[1].header.number > f[0].header.number);
    for (int i = 0; i < POINTS && !*found; i++) {
        const struct ks_resume_file *one = &f[i == 0 ? newer : !newer];

        if (!one->bytes)
            continue;
        status = restore(p, r, one);
        *found = status == KS_OK;
        KS_GO(forgive(status, damage));
    }
    if (!*found)
        status = ks_fail(KS_FORMAT, "%s; without --resume the run starts over", damage);
    else if (*damage)
        ks_say("%s: going on from the other resume point, environment step %zu", damage,
               r->learner.env_step);
done:
    for (int i = 0; i < POINTS; i++)
        free(f[i].bytes);
    p->last = ks_seconds();
    return status;
}

/* --- removing --- */

/* The files whose names begin with `start`. */
static ks_status remove_files(const char *folder, DIR *list, const char *start)
{
    struct dirent *entry;

    rewinddir(list);
    while ((entry = readdir(list)))
        if (strncmp(entry->d_name, start, strlen(start)) == 0 &&
            unlinkat(dirfd(list), entry->d_name, 0) != 0 && errno != ENOENT)
            return ks_fail(ks_file_status(errno), "%s/%s: cannot be removed: %s", folder,
                           entry->d_name, strerror(errno));
    return KS_OK;
}

/* Removes resume points before the replay log that they need. */
ks_status ks_resume_clear(const struct ks_resume_points *p)
{
    static const char *const ours[] = {"point.", "replay.", ".kappascope-"};
    DIR *list = opendir(p->folder);
    ks_status status = KS_OK;

    if (!list && errno == ENOENT)
        return KS_OK;
    if (!list)
        return ks_fail(KS_IO, "%s: cannot be opened: %s", p->folder, strerror(errno));
    for (size_t i = 0; i < sizeof ours / sizeof *ours && status == KS_OK; i++)
        status = remove_files(p->folder, list, ours[i]);
    closedir(list);
    if (status == KS_OK && rmdir(p->folder) != 0 && errno != ENOTEMPTY && errno != EEXIST)
        status = ks_file_fail(errno, p->folder, "removed");
    return status;
}
