/* Runs a study's graph with GNU make and reports its progress. */
#include "study/graph.h"

#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "core/memory.h"
#include "core/process.h"
#include "core/progress.h"
#include "io/file.h"
#include "io/spectrum.h"
#include "statistics/statistics.h"
#include "study/status.h"

enum { NAMED = 4 };                    /* running jobs that a line of progress names */
enum { LINE = 4096, TICK = 1000 };     /* bytes; milliseconds between looks at the progress */
static const double FORECAST_AGE = 10; /* seconds after which records are read again */

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

/* Removes the options and the job server that an outer make left in the environment. */
static void clean_environment(void)
{
    static const char *const names[] = {"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEFILES",
                                        "MAKEOVERRIDES"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unsetenv(names[i]);
}

ks_status ks_graph_find_make(char **path)
{
    const char *name = getenv("MAKE");

    if (name && *name == '/')
        return ks_copy_string(name, path);
    return ks_locate_program(name && *name ? name : "make", path);
}

/* --- what make does --- */

/* The work of a study while make runs. */
struct work {
    struct ks_graph *graph;
    const char *dir;
    size_t jobs;                 /* at a time                                      */
    size_t all, done;            /* jobs of the study                              */
    bool has_number, is_quiet;   /* has_number: a spectrum's numbers were printed  */
    bool is_tried;               /* no further trial is needed                     */
    double started, read;        /* when make started, when `forecast` was updated */
    struct ks_forecast forecast; /* owned                                          */
    struct ks_progress_line line;
};

static void work_clear(struct work *work)
{
    ks_forecast_clear(&work->forecast);
}

/* Announces the work, since the first job may take minutes. */
static void announce(struct work *work)
{
    const struct ks_graph *graph = work->graph;
    size_t trainings = 0, analyses = 0;
    char train[48] = "";

    for (size_t i = 0; i < graph->n_jobs; i++)
        if (!graph->job[i].done)
            ++*(graph->job[i].trains ? &trainings : &analyses);
    for (size_t i = 0; i < graph->n_jobs; i++)
        work->all += !graph->job[i].elsewhere;
    work->done = work->all - trainings - analyses;
    if (ks_study_trains(graph->study))
        snprintf(train, sizeof train, "%zu x train, ", trainings);
    if (!work->is_quiet && work->done < work->all)
        ks_say("to do: %s%zu x analyze (%zu of %zu jobs are done), %zu at a time", train, analyses,
               work->done, work->all, work->jobs);
}

static void print_clock(double seconds, char text[32])
{
    const unsigned long whole = (unsigned long)seconds;

    snprintf(text, 32, "%lu:%02lu", whole / 60, whole % 60);
}

/* Makes the next trial of this machine, until there is one for each architecture that needs one. A
 * failure leaves the time unknown: the jobs themselves report it. */
static void try_next(struct work *work)
{
    bool made = false;

    work->is_tried = work->is_tried || ks_forecast_try(&work->forecast, &made) != KS_OK || !made;
}

/* ", about 12 min left" */
static void print_left(struct work *work, FILE *out)
{
    char duration[32];
    double left;

    if (ks_seconds() - work->read > FORECAST_AGE) {
        ks_forecast_update(&work->forecast, work->dir);
        work->read = ks_seconds();
    }
    left = ks_forecast_all(&work->forecast, work->jobs).all;
    if (!isnan(left)) {
        ks_print_duration(left, duration);
        fprintf(out, ", about %s left", duration);
    } else if (!work->is_tried)
        fputs(", time left is being measured", out);
}

/* `runs` stays true for a job that failed, until make ends; its process is gone. */
static bool is_alive(const struct ks_graph_job *job)
{
    return job->runs && kill((pid_t)job->process, 0) == 0;
}

/* "34 of 132 jobs, 5:12 so far, about 12 min left; train toy/bn+ce/seed0 (1:10), ..." */
static ks_status print_progress(struct work *work)
{
    KS_OWNED char *text = NULL;
    char clock[32];
    size_t size, running = 0;
    FILE *out = open_memstream(&text, &size);

    if (!out)
        return ks_fail(KS_MEMORY, "out of memory");
    print_clock(ks_seconds() - work->started, clock);
    fprintf(out, "%zu of %zu jobs, %s so far", work->done, work->all, clock);
    print_left(work, out);
    for (size_t i = 0; i < work->graph->n_jobs; i++)
        if (is_alive(&work->graph->job[i]) && running++ < NAMED) {
            print_clock(ks_seconds() - work->graph->job[i].since, clock);
            fprintf(out, "%s %s (%s)", running > 1 ? "," : ";", work->graph->job[i].label, clock);
        }
    if (running > NAMED)
        fprintf(out, " and %zu more", running - NAMED);
    KS_TRY(ks_stream_close(out));
    ks_progress_line_print(&work->line, text);
    return KS_OK;
}

/* Whether this is the last checkpoint of its run with a spectrum of the first analysis. */
static bool is_last(const struct ks_graph *graph, const struct ks_graph_job *job)
{
    for (const struct ks_graph_job *i = job + 1; i < graph->job + graph->n_jobs; i++)
        if (i->run == job->run && i->analysis == 0)
            return false;
    return true;
}

/* Numbers of the first spectrum, and of each run's last one. */
static void print_numbers(struct work *work, const struct ks_graph_job *job)
{
    static const enum ks_statistic_id shown[] = {KS_STAT_KAPPA_EFFECTIVE_BOUND,
                                                 KS_STAT_DIRECTIONS_1E2, KS_STAT_LAMBDA_MAX};
    KS_OWNED_BY(ks_spectrum_free) struct ks_spectrum *s = NULL;
    char path[KS_PATH], text[3][KS_STATISTIC_TEXT];

    if (job->trains || job->analysis > 0 || work->is_quiet ||
        (work->has_number && !is_last(work->graph, job)) ||
        ks_path_print(path, "%s/%s", work->dir, job->target[0]) != KS_OK ||
        ks_spectrum_read(path, &s) != KS_OK)
        return;
    for (size_t k = 0; k < 3; k++)
        ks_statistic_text(s, shown[k], text[k]);
    ks_progress_line_clear(&work->line);
    ks_say("%s, step %zu: kappa_effective_bound %s, directions_1e2 %s, lambda_max %s",
           job->folder + strlen("runs/"), job->step, text[0], text[1], text[2]);
    work->has_number = true;
}

static struct ks_graph_job *find_job(struct ks_graph *graph, const char *label)
{
    for (size_t i = 0; i < graph->n_jobs; i++)
        if (strcmp(graph->job[i].label, label) == 0)
            return &graph->job[i];
    return NULL;
}

/* A line of make: the label of a job that starts or is done. */
static void follow_line(struct work *work, char *line)
{
    const bool starts = strncmp(line, KS_GRAPH_START, strlen(KS_GRAPH_START)) == 0;
    char *process = starts ? strstr(line, KS_GRAPH_PROCESS) : NULL;
    struct ks_graph_job *job;

    line[strcspn(line, "\n")] = '\0';
    if (process)
        *process = '\0';
    job = find_job(work->graph, starts ? line + strlen(KS_GRAPH_START) : line);
    if (!job)
        return;
    job->runs = starts;
    job->since = ks_seconds();
    job->process = process ? atol(process + strlen(KS_GRAPH_PROCESS)) : 0;
    if (starts)
        return;
    job->done = true;
    work->done += work->done < work->all;
    print_numbers(work, job);
}

/* Reads what make prints until it ends, and prints progress meanwhile. */
static void follow(struct work *work, FILE *output)
{
    struct pollfd waited = {.fd = fileno(output), .events = POLLIN};
    const size_t before = work->done;
    char line[LINE], clock[32];

    setvbuf(output, NULL, _IONBF, 0); /* so that poll sees all that has not been read */
    for (size_t i = 0; i < work->graph->n_jobs; i++)
        work->graph->job[i].runs = false;
    work->started = ks_seconds();
    ks_progress_line_start(&work->line, work->is_quiet);
    for (;;) {
        if (poll(&waited, 1, TICK) > 0) {
            if (!fgets(line, sizeof line, output))
                break;
            follow_line(work, line);
        } else if (!stopped && !work->is_quiet)
            try_next(work);
        if (!stopped && ks_progress_line_due(&work->line))
            print_progress(work);
    }
    ks_progress_line_clear(&work->line);
    print_clock(ks_seconds() - work->started, clock);
    if (!work->is_quiet && work->done > before)
        ks_say("%zu of %zu jobs, %s", work->done, work->all, clock);
}

/* --- failures --- */

/* Copies the last nonblank line of a log into line[LINE]. */
static void last_line(const char *path, char *line)
{
    KS_OWNED char *text = NULL;
    char *end;
    size_t size;

    snprintf(line, LINE, "no message");
    if (ks_text_read(path, &text, &size) != KS_OK)
        return;
    end = text + strlen(text);
    while (end > text && strchr(" \t\r\n", end[-1]))
        *--end = '\0';
    while (end > text && end[-1] != '\n')
        end--;
    if (*end && strncmp(end, KS_GRAPH_STARTED, strlen(KS_GRAPH_STARTED)) != 0)
        snprintf(line, LINE, "%.*s", 1000, end);
}

static ks_status report_job(const struct ks_graph_job *job, const char *dir)
{
    char line[LINE], path[KS_PATH];

    KS_TRY(ks_path_print(path, "%s/%s", dir, job->log));
    last_line(path, line);
    return ks_fail(KS_RUN, "%s failed: %s (%s)", job->label, line, path);
}

enum { SAID = 4 };

/* The jobs that have not come to their end failed: the last one becomes the message, a few others
 * are printed. */
static ks_status report_failures(const struct ks_graph *graph, const char *dir, const char *log,
                                 int code)
{
    size_t failures = 0;
    char line[LINE];

    for (size_t i = 0; i < graph->n_jobs; i++) {
        if (!graph->job[i].runs)
            continue;
        if (failures++ > 0 && failures <= SAID + 1)
            ks_say("%s", ks_error_text());
        report_job(&graph->job[i], dir);
    }
    if (failures > SAID + 1)
        ks_say("further jobs that failed: %zu (%s)", failures - 1 - SAID, log);
    if (failures > 0)
        return KS_RUN;
    last_line(log, line);
    return ks_fail(KS_RUN, "make failed (exit status %d): %s (%s)", code, line, log);
}

ks_status ks_graph_run(struct ks_graph *graph, const char *dir, size_t jobs, bool keep_going,
                       bool quiet)
{
    KS_OWNED char *make = NULL;
    char count[32], log[KS_PATH];
    const char *argv[] = {NULL,  "-f", "study.mk", "-r", "-R", "--no-print-directory",
                          count, NULL, NULL};
    struct ks_process process = {0};
    struct sigaction old[SIGNALS];
    KS_CLEARED_BY(work_clear) struct work work = {graph, dir, jobs, .is_quiet = quiet};
    ks_status status = KS_OK;
    int code = 0;

    snprintf(count, sizeof count, "-j%zu", jobs);
    argv[7] = keep_going ? "-k" : NULL;
    KS_TRY(ks_graph_find_make(&make));
    argv[0] = make;
    KS_TRY(ks_path_print(log, "%s/make.log", dir));
    KS_TRY(ks_forecast_read(graph, dir, &work.forecast));
    announce(&work);
    clean_environment();
    stopped = 0;
    for (size_t i = 0; i < SIGNALS; i++)
        ks_signal_catch(signals[i], stop, &old[i]);
    status = ks_process_start(dir, argv, log, true, &process);
    group = (sig_atomic_t)process.pid;
    if (stopped) /* a signal arrived before `group` was set */
        stop(0);
    if (status == KS_OK)
        follow(&work, process.output);
    if (ks_process_end(&process, &code) != KS_OK)
        status = KS_RUN;
    group = 0;
    for (size_t i = 0; i < SIGNALS; i++)
        sigaction(signals[i], &old[i], NULL);
    if (status == KS_OK && stopped)
        status = ks_fail(KS_RUN, "stopped; the same command continues from here");
    else if (status == KS_OK && code != 0)
        status = report_failures(graph, dir, log, code);
    return status;
}
