/* Submits a study's graph as job arrays of Slurm, or prints the commands that do; writes the script
 * that their tasks run; lists the tasks in the queue. */
#define _XOPEN_SOURCE 700 /* realpath */
#include "study/slurm.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <popt.h>

#include "core/memory.h"
#include "core/process.h"
#include "io/file.h"

/* --- the script --- */

ks_status ks_slurm_write(const struct ks_graph *graph, const char *dir, const struct ks_slurm *s)
{
    KS_OWNED char *make = NULL, *path = NULL, *script = NULL;
    struct ks_text text;

    KS_TRY(ks_graph_find_make(&make));
    KS_TRY(ks_installed_shared("configs/slurm/task.sh", &path));
    KS_TRY(ks_text_read(path, &script, NULL));
    KS_TRY(ks_folder_make("%s/" KS_SLURM_FOLDER, dir));
    KS_TRY(ks_text_open(&text, "%s/" KS_SLURM_FOLDER "/task.sh", dir));
    fprintf(text.stream, "#!/bin/sh\n"
                         "# Written by kappascope-study: task N of a job array of Slurm trains or "
                         "analyzes run N.\n"
                         "kind=$1\nplot=");
    ks_shell_word(text.stream, s->plot);
    fprintf(text.stream, "\nmake=");
    ks_shell_word(text.stream, make);
    fprintf(text.stream, "\noptions=%s\nset --", s->keep_going ? "-k" : "");
    for (size_t i = 0; i < graph->n_runs; i++)
        fprintf(text.stream, " \\\n    %s", graph->job[i].folder);
    fprintf(text.stream, "\n%s", script);
    return ks_text_close(&text, KS_OK);
}

/* --- the commands --- */

/* Seconds before the time limit at which a task is told to stop: an evaluation of ten episodes and
 * a checkpoint are completed first. */
enum { WARNING = 120 };
enum { LINE = 8192, ID = 32 };

/* The jobs, in the order in which they are submitted. */
enum stage { TRAIN, AFTER, READY, PLOT, STAGES };
static const char *const kinds[] = {"train", "analyze", "analyze", "plot"};
static const char *const variables[] = {"train", "after", "ready", "plot"};

struct plan {
    const struct ks_graph *graph; /* ks_graph_look has looked */
    const struct ks_slurm *s;
    char id[STAGES][ID]; /* of submitted jobs; empty: not submitted, or no work */
};

/* Whether an array works on a run. */
static bool is_wanted(const struct plan *plan, enum stage stage, size_t run)
{
    const struct ks_graph *graph = plan->graph;
    const bool trains = !graph->job[run].done;
    bool analyzes = false;

    for (size_t i = graph->n_runs; i < graph->n_jobs && !analyzes; i++)
        analyzes = graph->job[i].run == run && !graph->job[i].done;
    return stage == TRAIN ? trains : stage != PLOT && analyzes && trains == (stage == AFTER);
}

static size_t count(const struct plan *plan, enum stage stage)
{
    size_t n = 0;

    for (size_t run = 0; run < plan->graph->n_runs; run++)
        n += is_wanted(plan, stage, run);
    return n;
}

/* Prints a space and a word, quoted for the shell. */
__attribute__((format(printf, 2, 3))) static void print_word(FILE *out, const char *format, ...)
{
    char word[LINE];
    va_list values;

    va_start(values, format);
    vsnprintf(word, sizeof word, format, values);
    va_end(values);
    putc(' ', out);
    ks_shell_word(out, word);
}

/* " --array=0-3,7%2", with quotes if it has a percent sign. */
static void print_array(FILE *out, const struct plan *plan, enum stage stage)
{
    const char *comma = "", *quote = plan->s->jobs > 0 ? "'" : "";
    size_t n = plan->graph->n_runs;

    fprintf(out, " %s--array=", quote);
    for (size_t first = 0, last; first < n; first = last + 1) {
        for (last = first; last < n && is_wanted(plan, stage, last); last++)
            ;
        if (last > first)
            fprintf(out, "%s%zu", comma, first);
        if (last > first + 1)
            fprintf(out, "-%zu", last - 1);
        comma = last > first ? "," : comma;
    }
    if (plan->s->jobs > 0)
        fprintf(out, "%%%zu", plan->s->jobs);
    fputs(quote, out);
}

/* The identifiers are numbers, or variables of the shell that has run the commands before. A task
 * that would wait forever is cancelled. */
static void print_dependency(FILE *out, const struct plan *plan, enum stage stage)
{
    const char *condition = plan->s->keep_going ? "afterany" : "afterok";
    bool any = false;

    for (size_t i = TRAIN; i < PLOT; i++)
        if (*plan->id[i] && (stage == PLOT || (stage == AFTER && i == TRAIN))) {
            if (!any)
                fprintf(out, " --dependency=%s", stage == AFTER ? "aftercorr" : condition);
            fprintf(out, ":%s", plan->id[i]);
            any = true;
        }
    if (any)
        fprintf(out, " --kill-on-invalid-dep=yes");
}

static void print_command(FILE *out, const struct plan *plan, enum stage stage, const char *sbatch)
{
    const struct ks_study *study = plan->graph->study;
    size_t threads = 1;

    for (size_t a = 0; a < study->n_architectures; a++)
        if (study->architecture[a].settings.threads > threads)
            threads = study->architecture[a].settings.threads;
    ks_shell_word(out, sbatch);
    fprintf(out, " --parsable");
    print_word(out, "--job-name=%s:%s", study->name, kinds[stage]);
    if (stage != PLOT) {
        print_array(out, plan, stage);
        fprintf(out, " --cpus-per-task=%zu", threads);
        print_word(out, "--signal=B:USR1@%d", WARNING);
    }
    print_dependency(out, plan, stage);
    fprintf(out, " --requeue --open-mode=append");
    print_word(out, "--output=" KS_SLURM_FOLDER "/%s-%s.log", kinds[stage],
               stage == PLOT ? "%j" : "%A_%a");
    fprintf(out, "%s " KS_SLURM_FOLDER "/task.sh %s", plan->s->options ? plan->s->options : "",
            kinds[stage]);
}

ks_status ks_slurm_add_options(struct ks_slurm *s, const char *text)
{
    const char **word = NULL;
    char *longer = NULL;
    ks_status status;
    size_t size;
    int n = 0;
    FILE *out;

    KS_TRY(ks_shell_check("--sbatch", text));
    if (poptParseArgvString(text, &n, &word) != 0)
        return ks_fail(KS_USAGE, "--sbatch: expected options for sbatch, found '%s'", text);
    out = open_memstream(&longer, &size);
    if (out)
        fputs(s->options ? s->options : "", out);
    for (int i = 0; out && i < n; i++) {
        putc(' ', out);
        ks_shell_word(out, word[i]);
    }
    free(word);
    free(s->options);
    status = ks_stream_close(out);
    s->options = longer;
    return status;
}

ks_status ks_slurm_print(struct ks_graph *graph, const char *dir, const struct ks_slurm *s,
                         FILE *out)
{
    struct plan plan = {.graph = graph, .s = s};

    KS_TRY(ks_graph_look(graph, dir));
    fprintf(out, "cd -- ");
    ks_shell_word(out, dir);
    fprintf(out, " || exit\n");
    for (enum stage stage = TRAIN; stage < STAGES; stage++)
        if (stage == PLOT || count(&plan, stage) > 0) {
            fprintf(out, "%s=$(", variables[stage]);
            print_command(out, &plan, stage, "sbatch");
            fprintf(out, ") || exit\n");
            snprintf(plan.id[stage], ID, "$%s", variables[stage]);
        }
    return KS_OK;
}

/* --- submitting --- */

/* "123" or "123;CLUSTER", which --parsable prints. */
static bool read_id(const char *line, char id[ID])
{
    size_t length = strspn(line, "0123456789");

    if (length == 0 || length >= ID || !strchr(";\n", line[length]))
        return false;
    snprintf(id, ID, "%.*s", (int)length, line);
    return true;
}

/* Runs a command of the shell in the study's folder. What it prints beside the job's number goes to
 * standard error; the last of these lines becomes the message of a failure, which names `program`.
 */
static ks_status run_command(const char *dir, const char *program, const char *command, bool quiet,
                             char id[ID])
{
    const char *argv[] = {"/bin/sh", "-c", command, NULL};
    struct ks_process process = {0};
    char line[LINE], last[LINE] = "no message";
    int code;

    KS_TRY(ks_process_start(dir, argv, NULL, false, &process));
    while (fgets(line, sizeof line, process.output)) {
        if (read_id(line, id))
            continue;
        line[strcspn(line, "\n")] = '\0';
        if (!quiet)
            ks_say("%s", line);
        snprintf(last, LINE, "%s", line);
    }
    KS_TRY(ks_process_end(&process, &code));
    if (code != 0)
        return ks_fail(KS_RUN, "%s failed (exit status %d): %s", program, code, last);
    return *id ? KS_OK : ks_fail(KS_RUN, "%s: expected the number of a job, found none", program);
}

static ks_status submit_stage(struct plan *plan, enum stage stage, const char *sbatch,
                              const char *dir)
{
    KS_OWNED char *command = NULL;
    size_t size;
    FILE *out = open_memstream(&command, &size);

    if (out)
        print_command(out, plan, stage, sbatch);
    KS_TRY(ks_stream_close(out));
    KS_TRY(run_command(dir, sbatch, command, plan->s->quiet, plan->id[stage]));
    if (!plan->s->quiet && stage == PLOT)
        ks_say("submitted: plot, job %s", plan->id[stage]);
    else if (!plan->s->quiet)
        ks_say("submitted: %zu x %s, job %s", count(plan, stage), kinds[stage], plan->id[stage]);
    return KS_OK;
}

/* Cancels what was submitted before a failure, whose message stays. */
static void cancel(const struct plan *plan, const char *dir)
{
    char message[LINE], command[LINE] = "scancel", none[ID] = "0";

    snprintf(message, sizeof message, "%s", ks_error_text());
    for (size_t i = TRAIN; i < STAGES; i++)
        if (*plan->id[i])
            snprintf(command + strlen(command), ID + 1, " %s", plan->id[i]);
    if (strchr(command, ' '))
        run_command(dir, "scancel", command, true, none);
    ks_fail(KS_RUN, "%s", message);
}

ks_status ks_slurm_submit(struct ks_graph *graph, const char *dir, const struct ks_slurm *s)
{
    struct plan plan = {.graph = graph, .s = s};
    KS_OWNED char *sbatch = NULL;
    ks_status status = KS_OK;

    KS_TRY(ks_locate_program("sbatch", &sbatch));
    KS_TRY(ks_graph_look(graph, dir));
    KS_TRY(ks_graph_write(graph, dir));
    KS_TRY(ks_slurm_write(graph, dir, s));
    for (enum stage stage = TRAIN; status == KS_OK && stage < STAGES; stage++)
        if (stage == PLOT || count(&plan, stage) > 0)
            status = submit_stage(&plan, stage, sbatch, dir);
    if (status != KS_OK)
        cancel(&plan, dir);
    else if (!s->quiet)
        ks_say("logs: %s/" KS_SLURM_FOLDER "; progress: --status", dir);
    return status;
}

/* --- the queue, as squeue lists it --- */

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
    KS_OWNED char *squeue = NULL, *folder = NULL;
    KS_OWNED struct ks_slurm_task *found = NULL;
    char scripts[KS_PATH];
    size_t n_found = 0;

    *n = 0;
    *task = NULL;
    KS_TRY(ks_path_print(scripts, "%s/" KS_SLURM_FOLDER, dir));
    if (ks_path_exists(scripts) && ks_locate_program("squeue", &squeue) == KS_OK)
        folder = realpath(dir, NULL);
    if (folder)
        KS_TRY(ask(squeue, folder, &n_found, &found));
    *n = n_found;
    *task = found, found = NULL;
    return KS_OK;
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

    if (ks_slurm_queue(dir, &n, &task) != KS_OK)
        return ks_fail(KS_RUN,
                       "%s: tasks of this study may be in Slurm's queue: %s; if there are none, "
                       "remove %s/" KS_SLURM_FOLDER,
                       dir, ks_error_text(), dir);
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
