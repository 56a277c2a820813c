/* What a run says before its first step. */
#include "train/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <jansson.h>

#include "core/say.h"
#include "train/resume_point.h"

static const double MEGABYTE = 1e6;

/* What the process holds in memory; 0 where the system does not say. */
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

/* Numbers of a checkpoint: minibatches, and networks with targets and moments. */
static double checkpoint_numbers(const struct ks_run *r)
{
    const struct ks_arch *critic = r->agent->critic_arch;
    const struct ks_settings *s = &r->options->settings;
    double rows = (double)KS(agent_rows)(r->agent) * (double)critic->in +
                  2 * (double)s->batch * (double)critic->loss.targets; /* target, target_raw */
    double networks = 4 * (double)s->critics * (double)critic->parameters +
                      (double)r->agent->actor_arch->parameters;

    return (double)s->analysis_minibatches * rows + networks;
}

/* Files to come, in float32; compression makes them smaller. */
static double checkpoint_files(const struct ks_run *r)
{
    double files = 0;

    for (size_t i = 0; i < r->checkpoints.n; i++)
        files += r->checkpoints.step[i] > r->env_step && r->checkpoints.step[i] <= r->end;
    return files * sizeof(float) * checkpoint_numbers(r);
}

/* A full disk ends a run late; it may still get room in time, so this is no refusal. */
static void warn_of_disk(const struct ks_run *r, double needed)
{
    struct statvfs disk;
    double left;

    if (statvfs(r->folder, &disk) != 0)
        return;
    left = (double)disk.f_bavail * (double)disk.f_frsize;
    if (left < needed)
        ks_say("%s: the disk of %s has %.0f MB left: it may be full before the end", r->name,
               r->folder, left / MEGABYTE);
}

/* Where the run has fewer agent steps than what is due in it. */
static void announce_due(const struct ks_run *r, const char *what, size_t asked)
{
    if (asked > r->steps)
        ks_say("%s: %s: %zu, not %zu: that is how many agent steps there are", r->name, what,
               r->steps, asked);
}

/* What has changed since the run was computed up to here. */
static void announce_changes(const struct ks_run *r)
{
    json_t *changes = ks_run_changes(r), *one;
    size_t i;

    json_array_foreach(changes, i, one)
    {
        char *from = json_dumps(json_object_get(one, "from"), JSON_ENCODE_ANY);
        char *to = json_dumps(json_object_get(one, "to"), JSON_ENCODE_ANY);

        if (from && to)
            ks_say("%s: from environment step %lld on: %s was %s, is %s", r->name,
                   (long long)json_integer_value(json_object_get(one, "env_step")),
                   json_string_value(json_object_get(one, "what")), from, to);
        free(from);
        free(to);
    }
    if (ks_run_count_changes(r) > 0)
        ks_say("%s: so the run will not be bit for bit one that was left alone", r->name);
    json_decref(changes);
}

void ks_run_announce(struct ks_run *r, bool resumes)
{
    const struct ks_replay *replay = r->replay;
    const struct ks_settings *s = &r->options->settings;
    double now = resident_bytes();
    double whole = (double)(replay->capacity - replay->count) * (double)replay->width *
                       sizeof(float) +
                   (double)ks_run_state_size(r); /* a point is put together in memory */
    double written = 1.5 * sizeof(double) * checkpoint_numbers(r); /* in double, and the file */
    double points = ks_resume_bytes(r), files = checkpoint_files(r);
    double there = resumes ? (double)replay->count * (double)replay->width * sizeof(float) +
                                 2 * (double)ks_run_state_size(r)
                           : 0; /* replay's segments and two points */

    if (resumes)
        ks_say("%s: going on at environment step %zu", r->name, r->env_step);
    else if (r->options->resume)
        ks_say("%s: nothing to go on with: starting at 0", r->name);
    announce_changes(r);
    announce_due(r, "checkpoints", s->checkpoints);
    announce_due(r, "evaluations", s->evaluations);
    if (r->steps <= s->random_steps)
        ks_say("%s: there will be no update: all %zu agent steps are among the %zu random_steps",
               r->name, r->steps, s->random_steps);
    ks_say("%s: memory: %.0f MB now, %.0f MB when replay is full, %.0f MB more while a checkpoint "
           "is written; disk: up to %.0f MB for resume points, %.0f MB for checkpoints to come",
           r->name, now / MEGABYTE, (now + whole) / MEGABYTE, written / MEGABYTE, points / MEGABYTE,
           files / MEGABYTE);
    warn_of_disk(r, points - there + files);
}
