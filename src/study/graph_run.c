/* Runs a study's graph with GNU make and reports its progress. */
#include "study/graph.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "core/memory.h"
#include "core/progress.h"
#include "core/say.h"
#include "core/signals.h"
#include "io/text.h"
#include "study/locate.h"
#include "study/process.h"

enum { LINE = 4096 };

/* The process group of make and its jobs, for the signal handler; 0: none. */
static volatile sig_atomic_t group;
static volatile sig_atomic_t stopped;

static void stop(int signal)
{
    (void)signal;
    stopped = 1;
    if (group > 0)
        kill(-(pid_t)group, SIGTERM);
}

bool ks_graph_stopped(void)
{
    return stopped != 0;
}

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
enum { SIGNALS = sizeof signals / sizeof *signals };

static void catch_signals(struct sigaction old[SIGNALS])
{
    stopped = 0;
    for (size_t i = 0; i < SIGNALS; i++)
        ks_signal_catch(signals[i], stop, &old[i]);
}

static void release_signals(const struct sigaction old[SIGNALS])
{
    group = 0;
    for (size_t i = 0; i < SIGNALS; i++)
        sigaction(signals[i], &old[i], NULL);
}

/* Removes the options and the job server that an outer make left in the environment. Sets the C
 * locale, because the messages of make are parsed. */
static void clean_environment(void)
{
    static const char *const names[] = {"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEFILES",
                                        "MAKEOVERRIDES"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unsetenv(names[i]);
    setenv("LC_ALL", "C", 1);
}

ks_status ks_graph_find_make(char **path)
{
    const char *name = getenv("MAKE");

    if (name && *name == '/')
        return ks_copy_string(name, path);
    return ks_locate_program(name && *name ? name : "make", path);
}

/* Announces the work, since the first job may take minutes; *done: how many jobs are done already.
 */
static ks_status announce(const struct ks_graph *graph, const char *dir, size_t jobs, bool quiet,
                          size_t *done)
{
    size_t trainings = 0, analyses = 0;
    bool *is_done;

    KS_TRY(ks_graph_done(graph, dir, &is_done));
    for (size_t i = 0; i < graph->n_jobs; i++)
        if (!is_done[i])
            ++*(graph->job[i].trains ? &trainings : &analyses);
    free(is_done);
    *done = graph->n_jobs - trainings - analyses;
    if (!quiet && *done < graph->n_jobs)
        ks_say("to do: %zu x train, %zu x analyze (%zu of %zu jobs are done), %zu at a "
               "time",
               trainings, analyses, *done, graph->n_jobs, jobs);
    return KS_OK;
}

/* Reads what make prints: a recipe prints the label of its job when the job is done. */
static void follow(const struct ks_graph *graph, size_t done, FILE *output, bool quiet)
{
    double started = ks_seconds();
    char line[LINE];

    while (fgets(line, sizeof line, output)) {
        unsigned long seconds = (unsigned long)(ks_seconds() - started);

        if (strncmp(line, "train ", 6) != 0 && strncmp(line, "analyze ", 8) != 0)
            continue;
        done += done < graph->n_jobs;
        line[strcspn(line, "\n")] = '\0';
        if (!quiet)
            ks_say("[%*zu/%zu] %3lu:%02lu  %s", graph->n_jobs > 99 ? 4 : 2, done, graph->n_jobs,
                   seconds / 60, seconds % 60, line);
    }
}

/* Copies the last nonblank line of a log into line[LINE]. */
static void last_line(const char *path, char *line)
{
    char *text = NULL, *end;

    snprintf(line, LINE, "no message");
    if (ks_text_read(path, &text, NULL) != KS_OK)
        return;
    end = text + strlen(text);
    while (end > text && strchr(" \t\r\n", end[-1]))
        *--end = '\0';
    while (end > text && end[-1] != '\n')
        end--;
    if (*end && strncmp(end, KS_GRAPH_STARTED, strlen(KS_GRAPH_STARTED)) != 0)
        snprintf(line, LINE, "%.*s", 1000, end);
    free(text);
}

/* The job of TARGET in a line "make: *** [study.mk:12: TARGET] Error 1"; NULL for other lines. */
static const struct ks_graph_job *find_failed(const struct ks_graph *graph, const char *line)
{
    const char *target = strstr(line, "*** [");
    size_t length;

    target = target ? strstr(target, ": ") : NULL;
    if (!target)
        return NULL;
    target += 2;
    length = strcspn(target, "]\n");
    for (size_t i = 0; i < graph->n_jobs; i++)
        for (size_t k = 0; k < graph->job[i].n_targets; k++)
            if (strlen(graph->job[i].target[k]) == length &&
                strncmp(graph->job[i].target[k], target, length) == 0)
                return &graph->job[i];
    return NULL;
}

static ks_status report_job(const struct ks_graph_job *job, const char *dir)
{
    char line[LINE], *path = NULL;

    KS_TRY(ks_print_string(&path, "%s/%s", dir, job->log));
    last_line(path, line);
    ks_fail(KS_RUN, "%s failed: %s (%s)", job->label, line, path);
    free(path);
    return KS_RUN;
}

/* Finds the failed jobs in make's log: the last failure becomes the message, earlier ones are
 * printed. */
static ks_status report_failures(const struct ks_graph *graph, const char *dir, const char *log,
                                 int code)
{
    char *text = NULL, *save = NULL, line[LINE];
    size_t failures = 0;

    last_line(log, line);
    KS_TRY(ks_text_read(log, &text, NULL));
    for (char *next = strtok_r(text, "\n", &save); next; next = strtok_r(NULL, "\n", &save)) {
        const struct ks_graph_job *job = find_failed(graph, next);

        if (!job)
            continue;
        if (failures++ > 0)
            ks_say("%s", ks_error_text());
        report_job(job, dir);
    }
    free(text);
    if (failures > 0)
        return KS_RUN;
    return ks_fail(KS_RUN, "make failed (exit status %d): %s (%s)", code, line, log);
}

ks_status ks_graph_run(const struct ks_graph *graph, const char *dir, size_t jobs, bool keep_going,
                       bool quiet)
{
    char count[32], *make = NULL, *log = NULL;
    const char *argv[] = {NULL,  "-f", "study.mk", "-r", "-R", "--no-print-directory",
                          count, NULL, NULL};
    struct ks_process process = {0};
    struct sigaction old[SIGNALS];
    ks_status status = KS_OK;
    size_t done = 0;
    int code = 0;

    snprintf(count, sizeof count, "-j%zu", jobs);
    argv[7] = keep_going ? "-k" : NULL;
    KS_TRY(ks_graph_find_make(&make));
    argv[0] = make;
    KS_GO(ks_print_string(&log, "%s/make.log", dir));
    KS_GO(announce(graph, dir, jobs, quiet, &done));
    clean_environment();
    catch_signals(old);
    status = ks_process_start(dir, argv, log, true, &process);
    group = (sig_atomic_t)process.pid;
    if (stopped) /* a signal arrived before `group` was set */
        stop(0);
    if (status == KS_OK)
        follow(graph, done, process.output, quiet);
    if (ks_process_end(&process, &code) != KS_OK)
        status = KS_RUN;
    release_signals(old);
    if (status == KS_OK && stopped)
        status = ks_fail(KS_RUN, "stopped; the same command continues from here");
    else if (status == KS_OK && code != 0)
        status = report_failures(graph, dir, log, code);
done:
    free(make);
    free(log);
    return status;
}
