/* Writes a study's graph as a makefile. */
#include "study/graph.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "core/memory.h"
#include "core/process.h"
#include "core/progress.h"
#include "io/file.h"

static const char TIME[] = "%Y-%m-%dT%H:%M:%SZ";
static const char START[] = "start "; /* before the label of a job that starts */

/* Prints text into a recipe: a dollar sign is doubled for make. */
static void print_recipe(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '$')
            putc('$', out);
        putc(*text, out);
    }
}

/* $(over) lists the run.json of the runs that are over: finished or, in a study with `stop`,
 * stopped there. run.json has one key per line. */
static void print_over(FILE *out, const struct ks_study *s)
{
    if (s->stop > 0)
        fprintf(out, "\n# Runs stop at step %zu of %zu; unfinished ones go on.", s->end, s->steps);
    fprintf(out, "\nover := $(shell awk 'FNR == 1 {state = \"\"} /^  \"state\":/ {state = $$2} "
                 "/^  \"env_step\":/ && (state ~ /finished/");
    if (s->stop > 0)
        fprintf(out, " || state ~ /stopped/ && $$2 + 0 >= %zu", s->end);
    fprintf(out,
            ") {print FILENAME}' runs/%s/*/seed*/run.json 2>/dev/null)\n"
            ".PHONY: again\n"
            "again:\n",
            s->env);
}

/* $(need-N) lists the checkpoints that the training of run N has to make: all, but of a run that is
 * over those that lack a spectrum and do not exist. */
static void print_need(FILE *out, const struct ks_graph *graph, size_t n)
{
    const struct ks_graph_job *training = &graph->job[n];

    fprintf(out, "\nneed-%zu := $(if $(filter %s/run.json,$(over)),$(sort", n, training->folder);
    for (size_t i = graph->n_runs; i < graph->n_jobs; i++)
        if (graph->job[i].run == n)
            fprintf(out, " $(if $(wildcard %s %s),,%s)", graph->job[i].target[0],
                    graph->job[i].needs, graph->job[i].needs);
    fprintf(out, "),");
    for (size_t k = 0; k < training->n_targets; k++)
        fprintf(out, " %s", training->target[k]);
    fprintf(out, ")\n");
}

/* A training's targets are only what it has to make: since GNU make 4.4 a missing file of a group
 * (&:) runs its recipe whatever the goal is. Make ignores a rule without targets. A spectrum
 * depends on its checkpoint only if that exists: of a run that is over, checkpoints with all their
 * spectra may have been removed. The program replaces the shell (exec), so that it receives make's
 * signals. The lines around its output in the log tell how long it took; those that make prints say
 * which jobs have started and which are done. */
static void print_rule(FILE *out, const struct ks_graph *graph, const struct ks_graph_job *job)
{
    if (job->elsewhere) {
        fprintf(out, "\nneed-%zu :=\n", job->run);
        return;
    }
    if (job->trains) {
        print_need(out, graph, job->run);
        fprintf(out, "$(need-%zu) &: $(if $(filter %s/run.json,$(over)),,again)\n\t@mkdir -p %s\n",
                job->run, job->folder, job->folder);
    } else
        fprintf(out, "\n%s: $(wildcard %s)\n", job->target[0], job->needs);
    fprintf(out, "\t@echo '%s%s'\n\t@date -u '+" KS_GRAPH_STARTED "%s' >%s\n\t@exec ", START,
            job->label, TIME, job->log);
    print_recipe(out, job->command);
    fprintf(out, " >>%s 2>&1\n\t@date -u '+" KS_GRAPH_ENDED "%s' >>%s\n\t@echo '%s'\n", job->log,
            TIME, job->log, job->label);
}

/* One make per run, so that its spectra follow its training: one for all would start every training
 * before the first spectrum. They share the job slots of `all`. */
static void print_runs(FILE *out, const struct ks_graph *graph)
{
    fprintf(out, "\nruns :=");
    for (size_t n = 0; n < graph->n_runs; n++)
        fprintf(out, " run-%zu", n);
    fprintf(out, "\n.PHONY: all $(runs) $(runs:run-%%=train-%%) $(runs:run-%%=analyze-%%)\n"
                 "all: $(runs)\n"
                 "$(runs): run-%%:\n"
                 "\t+@exec $(MAKE) -s --no-print-directory -f study.mk train-$*\n"
                 "\t+@exec $(MAKE) -s --no-print-directory -f study.mk analyze-$*\n");
    for (size_t n = 0; n < graph->n_runs; n++) {
        fprintf(out, "train-%zu: $(need-%zu)\nanalyze-%zu:", n, n, n);
        for (size_t i = graph->n_runs; i < graph->n_jobs; i++)
            if (graph->job[i].run == n)
                fprintf(out, " %s", graph->job[i].target[0]);
        putc('\n', out);
    }
}

ks_status ks_graph_write(const struct ks_graph *graph, const char *dir)
{
    struct ks_text text;

    KS_TRY(ks_text_open(&text, "%s/study.mk", dir));
    fprintf(text.stream,
            "# Written by kappascope-study. `make -f study.mk -j4` in this folder runs the "
            "remaining jobs.\n"
            "ifeq ($(filter grouped-target,$(.FEATURES)),)\n"
            "$(error GNU make 4.3 or later is needed)\n"
            "endif\n"
            "# One thread per job: make runs one job per core.\n"
            "export OMP_NUM_THREADS := 1\n"
            "export OPENBLAS_NUM_THREADS := 1\n"
            "\n"
            "# Files appear complete or not at all, so the checkpoints of a stopped run are kept.\n"
            ".DEFAULT_GOAL := all\n"
            ".DELETE_ON_ERROR:\n"
            ".PRECIOUS:");
    for (size_t n = 0; n < graph->n_runs; n++)
        for (size_t k = 0; k < graph->job[n].n_targets; k++)
            fprintf(text.stream, " \\\n    %s", graph->job[n].target[k]);
    putc('\n', text.stream);
    print_over(text.stream, graph->study);
    for (size_t i = 0; i < graph->n_jobs; i++)
        print_rule(text.stream, graph, &graph->job[i]);
    print_runs(text.stream, graph);
    return ks_text_close(&text, KS_OK);
}

/* Runs a study's graph with GNU make and reports its progress. */

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

/* The jobs of the study, and how many of them are done. */
struct work {
    size_t all, done;
};

/* Announces the work, since the first job may take minutes. */
static struct work announce(const struct ks_graph *graph, size_t jobs, bool quiet)
{
    struct work work = {0, 0};
    size_t trainings = 0, analyses = 0;
    char train[48] = "";

    for (size_t i = 0; i < graph->n_jobs; i++)
        if (!graph->job[i].done)
            ++*(graph->job[i].trains ? &trainings : &analyses);
    for (size_t i = 0; i < graph->n_jobs; i++)
        work.all += !graph->job[i].elsewhere;
    work.done = work.all - trainings - analyses;
    if (ks_study_trains(graph->study))
        snprintf(train, sizeof train, "%zu x train, ", trainings);
    if (!quiet && work.done < work.all)
        ks_say("to do: %s%zu x analyze (%zu of %zu jobs are done), %zu at a time", train, analyses,
               work.done, work.all, jobs);
    return work;
}

static struct ks_graph_job *find_job(struct ks_graph *graph, const char *label)
{
    for (size_t i = 0; i < graph->n_jobs; i++)
        if (strcmp(graph->job[i].label, label) == 0)
            return &graph->job[i];
    return NULL;
}

/* Reads what make prints: the labels of the jobs that start and that are done. */
static void follow(struct ks_graph *graph, struct work work, FILE *output, bool quiet)
{
    double started = ks_seconds();
    char line[LINE];

    for (size_t i = 0; i < graph->n_jobs; i++)
        graph->job[i].runs = false;
    while (fgets(line, sizeof line, output)) {
        const bool starts = strncmp(line, START, strlen(START)) == 0;
        unsigned long seconds = (unsigned long)(ks_seconds() - started);
        struct ks_graph_job *job;

        line[strcspn(line, "\n")] = '\0';
        job = find_job(graph, starts ? line + strlen(START) : line);
        if (!job)
            continue;
        job->runs = starts;
        if (starts)
            continue;
        work.done += work.done < work.all;
        if (!quiet)
            ks_say("[%*zu/%zu] %3lu:%02lu  %s", work.all > 99 ? 4 : 2, work.done, work.all,
                   seconds / 60, seconds % 60, line);
    }
}

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
    ks_status status = KS_OK;
    struct work work;
    int code = 0;

    snprintf(count, sizeof count, "-j%zu", jobs);
    argv[7] = keep_going ? "-k" : NULL;
    KS_TRY(ks_graph_find_make(&make));
    argv[0] = make;
    KS_TRY(ks_path_print(log, "%s/make.log", dir));
    KS_TRY(ks_graph_look(graph, dir));
    work = announce(graph, jobs, quiet);
    clean_environment();
    stopped = 0;
    for (size_t i = 0; i < SIGNALS; i++)
        ks_signal_catch(signals[i], stop, &old[i]);
    status = ks_process_start(dir, argv, log, true, &process);
    group = (sig_atomic_t)process.pid;
    if (stopped) /* a signal arrived before `group` was set */
        stop(0);
    if (status == KS_OK)
        follow(graph, work, process.output, quiet);
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
