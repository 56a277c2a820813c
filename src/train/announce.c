#include "train/train.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <jansson.h>

#include "train/resume_point.h"
#include "train/state.h"

static const double MEGABYTE = 1e6;

/* The memory that this process uses; 0 if the system does not tell. */
static double resident_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    double pages = 0;

    if (file && fscanf(file, "%*f %lf", &pages) != 1)
        pages = 0;
    if (file)
        fclose(file);
    return pages * (double)sysconf(_SC_PAGESIZE);
}

/* Only a warning: space may be freed before it is needed. */
static void warn_of_disk(const struct ks_plan *p, double needed)
{
    struct statvfs disk;
    double left;

    if (statvfs(p->folder, &disk) != 0)
        return;
    left = (double)disk.f_bavail * (double)disk.f_frsize;
    if (left < needed)
        ks_say("%s: the disk of %s has %.0f MB left: it may be full before the end", p->name,
               p->folder, left / MEGABYTE);
}

/* Milestones are distinct agent steps, so there may be fewer than the settings ask for. */
static void announce_milestones(const struct ks_plan *p, const char *what, size_t asked)
{
    if (asked > p->agent_steps)
        ks_say("%s: %s: %zu, not %zu: that is how many agent steps there are", p->name, what,
               p->agent_steps, asked);
}

/* The conditions that have changed since the start of the run. */
static void announce_changes(const struct ks_run *r)
{
    json_t *change;
    size_t i;

    json_array_foreach(r->conditions.changes, i, change)
    {
        KS_OWNED char *from = json_dumps(json_object_get(change, "from"), JSON_ENCODE_ANY);
        KS_OWNED char *to = json_dumps(json_object_get(change, "to"), JSON_ENCODE_ANY);

        if (from && to)
            ks_say("%s: from environment step %lld on: %s was %s, is %s", r->plan.name,
                   (long long)json_integer_value(json_object_get(change, "env_step")),
                   json_string_value(json_object_get(change, "what")), from, to);
    }
    if (json_array_size(r->conditions.changes) > 0)
        ks_say("%s: so its results will not be bit for bit those of an uninterrupted run",
               r->plan.name);
}

/* The bytes that replay will still take, until this run stops. */
static double replay_to_come(const struct ks_run *r)
{
    const struct ks_replay *replay = r->learner.replay;
    const size_t steps = r->plan.end / r->plan.options->settings.action_repeat;
    const size_t rows = ks_learner_rows(&r->learner, steps);
    const size_t most = rows < replay->capacity ? rows : replay->capacity;

    return most > replay->count
               ? (double)(most - replay->count) * (double)replay->width * sizeof(float)
               : 0;
}

ks_status ks_check_memory(const struct ks_run *r)
{
    const double needed = replay_to_come(r), left = (double)ks_memory_available("", 1);

    return needed <= left
               ? KS_OK
               : ks_fail(KS_MEMORY,
                         "%s: replay will take %.0f MB more, but only %.0f MB of memory are "
                         "available: set a smaller capacity (replay), or stop earlier (--stop-at)",
                         r->plan.name, needed / MEGABYTE, left / MEGABYTE);
}

/* Memory that will be allocated: the rest of replay, and a resume point. Disk: a resumed run
 * already has replay's transitions and two resume points there. */
static void announce_room(struct ks_run *r, const struct ks_resume_points *points, bool resumed)
{
    const struct ks_replay *replay = r->learner.replay;
    double row = (double)replay->width * sizeof(float), state = (double)ks_state_size(r);
    double now = resident_bytes(), resume = ks_resume_bytes(points, r);
    double existing = resumed ? (double)replay->count * row + 2 * state : 0;

    ks_say("%s: memory: %.0f MB now, %.0f MB at the end; disk: up to %.0f MB for resume points",
           r->plan.name, now / MEGABYTE, (now + replay_to_come(r) + state) / MEGABYTE,
           resume / MEGABYTE);
    warn_of_disk(&r->plan, resume - existing);
}

void ks_announce(struct ks_run *r, const struct ks_resume_points *points, bool resumed)
{
    const struct ks_plan *p = &r->plan;
    const struct ks_settings *s = &p->options->settings;

    if (resumed)
        ks_say("%s: going on at environment step %zu", p->name, r->learner.env_step);
    else if (p->options->resume)
        ks_say("%s: no resume point found: starting at 0", p->name);
    announce_changes(r);
    announce_milestones(p, "checkpoints", s->checkpoints);
    announce_milestones(p, "evaluations", s->evaluations);
    announce_room(r, points, resumed);
}
