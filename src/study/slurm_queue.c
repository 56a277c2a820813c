/* The tasks of a study in Slurm's queue, as squeue lists them. */
#define _XOPEN_SOURCE 700 /* realpath */
#include "study/slurm.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/process.h"
#include "io/file.h"

enum { LINE = 8192 };

/* The next field of a line of squeue, which ends at a '|' or at the line's end. */
static char *take_field(char **rest)
{
    char *field = *rest;

    *rest += strcspn(field, "|\n");
    if (**rest)
        *(*rest)++ = '\0';
    return field;
}

/* Whether a line of squeue is a task that works in this folder. A job's name is "STUDY:KIND". */
static bool read_task(char *line, const char *folder, struct ks_slurm_task *task)
{
    char *job = take_field(&line), *run = take_field(&line), *state = take_field(&line);
    char *node = take_field(&line), *name = take_field(&line), *end = NULL;
    const char *kind = strrchr(name, ':');

    line[strcspn(line, "\n")] = '\0';
    if (!kind || strcmp(line, folder) != 0)
        return false;
    *task = (struct ks_slurm_task){.job = strtoul(job, NULL, 10)};
    task->run = (size_t)strtoull(run, &end, 10);
    if (end == run)
        task->run = SIZE_MAX;
    snprintf(task->kind, sizeof task->kind, "%s", kind + 1);
    snprintf(task->state, sizeof task->state, "%s", state);
    snprintf(task->node, sizeof task->node, "%s", node);
    return true;
}

/* Reads all lines; the last one that is no task may be squeue's error message. */
static ks_status read_tasks(FILE *output, const char *folder, char message[LINE], size_t *n,
                            struct ks_slurm_task **task)
{
    char line[LINE];
    size_t room = 0;
    ks_status status = KS_OK;

    while (fgets(line, sizeof line, output)) {
        struct ks_slurm_task found;

        snprintf(message, LINE, "%.*s", (int)strcspn(line, "\n"), line);
        if (status != KS_OK || !read_task(line, folder, &found))
            continue;
        status = ks_grow(*n, sizeof **task, &room, task);
        if (status == KS_OK)
            (*task)[(*n)++] = found;
    }
    return status;
}

static ks_status ask(const char *squeue, const char *folder, size_t *n, struct ks_slurm_task **task)
{
    const char *argv[] = {squeue, "--me", "--noheader", "--array", "--format=%F|%K|%T|%N|%j|%Z",
                          NULL};
    struct ks_process process = {0};
    char message[LINE] = "no message";
    ks_status status;
    int code;

    KS_TRY(ks_process_start(folder, argv, NULL, false, &process));
    status = read_tasks(process.output, folder, message, n, task);
    KS_TRY(ks_process_end(&process, &code));
    return status == KS_OK && code != 0 ? ks_fail(KS_RUN, "squeue failed: %s", message) : status;
}

ks_status ks_slurm_queue(const char *dir, size_t *n, struct ks_slurm_task **task)
{
    char scripts[KS_PATH], *squeue = NULL, *folder = NULL;
    ks_status status;

    *n = 0;
    *task = NULL;
    KS_TRY(ks_path_print(scripts, "%s/" KS_SLURM_FOLDER, dir));
    if (ks_path_exists(scripts) && ks_locate_program("squeue", &squeue) == KS_OK)
        folder = realpath(dir, NULL);
    status = folder ? ask(squeue, folder, n, task) : KS_OK;
    if (status != KS_OK) {
        free(*task);
        *task = NULL;
        *n = 0;
    }
    free(squeue);
    free(folder);
    return status;
}

/* Whether an earlier task in the list belongs to the same job. */
static bool is_named(const struct ks_slurm_task *task, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (task[k].job == task[i].job)
            return true;
    return false;
}

ks_status ks_slurm_refuse(const char *dir)
{
    struct ks_slurm_task *task;
    size_t n, used = 0;
    char jobs[256] = "";

    if (ks_slurm_queue(dir, &n, &task) != KS_OK) {
        snprintf(jobs, sizeof jobs, "%s", ks_error_text());
        return ks_fail(KS_RUN,
                       "%s: tasks of this study may be in Slurm's queue: %s; if there are none, "
                       "remove %s/" KS_SLURM_FOLDER,
                       dir, jobs, dir);
    }
    for (size_t i = 0; i < n && used + 24 < sizeof jobs; i++)
        if (!is_named(task, i))
            used += (size_t)snprintf(jobs + used, sizeof jobs - used, " %lu", task[i].job);
    free(task);
    return n == 0 ? KS_OK
                  : ks_fail(KS_USAGE,
                            "%s: Slurm still has %zu tasks of this study in its queue: wait for "
                            "them, or cancel them with: scancel%s",
                            dir, n, jobs);
}
