/* kappascope-study: trains, analyzes and plots a whole study; its files are its only state. */
#define _XOPEN_SOURCE 700 /* realpath */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <omp.h>

#include "ks/env.h"
#include "ks/figures.h"
#include "ks/file.h"
#include "ks/graph.h"
#include "ks/h5.h"
#include "ks/memory.h"
#include "ks/number.h"
#include "ks/place.h"
#include "ks/program.h"
#include "ks/progress.h"
#include "ks/stats.h"
#include "ks/study.h"
#include "ks/text.h"

enum { MOST_JOBS = 4096 }; /* make puts a byte for each into a pipe, and would wait on a full one */

static char *out, *jobs;
static int dry_run, show_status, keep_going;

static const struct poptOption options[] = {
    {"out", '\0', POPT_ARG_STRING, &out, 0, "the study's folder (checkpoints/NAME)", "DIR"},
    {"jobs", 'j', POPT_ARG_STRING, &jobs, 0, "jobs at a time (the processor's cores)", "N"},
    {"dry-run", 'n', POPT_ARG_NONE, &dry_run, 0,
     "print what would be run, for a shell; write nothing", NULL},
    {"status", '\0', POPT_ARG_NONE, &show_status, 0, "print how far each run is, run nothing",
     NULL},
    {"keep-going", 'k', POPT_ARG_NONE, &keep_going, 0,
     "after a failure go on with what does not need it", NULL},
    POPT_TABLEEND};

static const struct ks_library libraries[] = {{"HDF5", ks_h5_version}, {NULL, NULL}};

static const struct ks_program program = {
    .libraries = libraries,
    .name = "kappascope-study",
    .synopsis = "[OPTION...] FILE.study|NAME",
    .summary = "train, analyze and plot a whole study",
    .details = "FILE.study is INI: [study] env, architectures, seeds, steps, stop, missing, grid; "
               "[train]\nsettings of kappascope train; [analyze] options of kappascope analyze, "
               "without dashes. NAME "
               "is a study\n"
               "that the project ships: quick, dogtrot; a file of that name is meant by ./NAME.\n"
               "\nThe work is a graph of files that GNU make runs, one job a core. Stopped or "
               "failed, the same\n"
               "command goes on with what is missing, and with runs that were not finished where "
               "they were; a run\n"
               "that failed with a number that is not finite fails again until its folder is "
               "removed.\n"
               "A folder is that of one study. Its file may change in what leaves the trainings "
               "that are there\nas they are. With further architectures or seeds their runs are "
               "added. With `stop` runs stop at\nthat many environment steps, on the schedules of "
               "all their steps; with a later `stop`, or none,\nthey go on from there; with an "
               "earlier one the tables leave out the steps behind it. With another\n[analyze] all "
               "spectra are made again, with another missing or grid the tables.\n"
               "\nEXAMPLES\n"
               "  kappascope study quick\n"
               "  kappascope study dogtrot --out /data/dogtrot --jobs 32\n"
               "  kappascope study quick --status\n",
    .options = options,
};

/* What the study works with; job_clear frees it. */
struct job {
    char *path, *dir, *train, *analyze, *plot; /* owned */
    struct ks_study *study;                    /* owned */
    struct ks_graph *graph;                    /* owned */
    size_t jobs;                               /* at a time */
    bool held;                                 /* the folder's study.study says the same */
    int lock; /* descriptor of the folder while it is ours; -1: none */
};

static void job_clear(struct job *job)
{
    ks_graph_free(job->graph);
    ks_study_free(job->study);
    free(job->path);
    free(job->dir);
    free(job->train);
    free(job->analyze);
    free(job->plot);
    if (job->lock >= 0)
        close(job->lock);
}

/* The task is known, and the analyzer's options fit its critics. */
static ks_status check_study(const struct job *job)
{
    struct ks_env_about about;

    for (size_t i = 0; ks_env_about(i, &about); i++)
        if (strcmp(about.name, job->study->env) == 0)
            return ks_study_check(job->study, about.observations, about.actions);
    return ks_fail(KS_FORMAT, "%s:%zu: env: '%s' is not known (kappascope train --list)", job->path,
                   job->study->env_line, job->study->env);
}

/* The folder holds a study with the same trainings, or none. */
static ks_status compare_folder(struct job *job, const char *path)
{
    struct ks_study *asked = NULL, *held = NULL;
    const char *difference;
    ks_status status = KS_OK;

    job->held = job->graph->stale = job->graph->stale_steps = false;
    if (!ks_text_exists(path))
        return KS_OK;
    KS_GO(ks_study_read(path, false, &held));
    KS_GO(ks_study_read(job->path, false, &asked));
    difference = ks_study_difference(asked, held);
    if (difference)
        status = ks_fail(KS_USAGE,
                         "%s: the folder holds another study, it differs from %s in '%s'; choose "
                         "another with --out, or remove it",
                         path, job->path, difference);
    job->held = strcmp(held->text, job->study->text) == 0;
    job->graph->stale = !ks_study_same_analysis(asked, held);
    job->graph->stale_steps = !ks_study_same_steps(asked, held);
done:
    ks_study_free(asked);
    ks_study_free(held);
    return status;
}

static ks_status check_folder(struct job *job)
{
    char *path = NULL;
    ks_status status;

    KS_TRY(ks_print_string(&path, "%s/study.study", job->dir));
    status = compare_folder(job, path);
    free(path);
    return status;
}

static void say_stale(const struct job *job, const char *are, bool quiet)
{
    if (job->graph->stale && !quiet)
        fprintf(stderr, "[analyze] is not what it was: all spectra %s made again\n", are);
}

/* Makes the folder, keeps others out of it while this process lives, and leaves there what was
 * asked: last, as the spectra that are there have to be those of that. */
static ks_status claim_folder(struct job *job, bool quiet)
{
    char *path = NULL;
    ks_status status;

    KS_TRY(ks_folder_make(job->dir));
    KS_TRY(ks_folder_lock(job->dir, program.name, &job->lock));
    KS_TRY(check_folder(job));
    say_stale(job, "are", quiet);
    KS_TRY(ks_graph_remove_stale(job->graph, job->dir));
    KS_TRY(ks_print_string(&path, "%s/study.study", job->dir));
    status = job->held ? KS_OK : ks_file_write(path, job->study->text, strlen(job->study->text));
    free(path);
    return status;
}

static ks_status print_status(const struct job *job, bool quiet)
{
    const struct ks_graph *graph = job->graph;
    size_t all = job->study->n_checkpoints, checkpoints = 0, spectra = 0;

    say_stale(job, "would be", quiet);
    for (size_t n = 0; n < graph->n_runs; n++) {
        size_t trained = ks_graph_targets(graph, n, job->dir), analyzed = 0;
        struct ks_run_state state;

        KS_TRY(ks_study_run_state(job->dir, graph->job[n].folder, &state));
        for (size_t i = graph->n_runs; i < graph->n_jobs; i++)
            if (graph->job[i].run == n)
                analyzed += ks_graph_targets(graph, i, job->dir);
        printf("%-40s  checkpoints %2zu/%zu  spectra %2zu/%zu  %s",
               graph->job[n].folder + strlen("runs/"), trained, all, analyzed, all, state.word);
        if (strcmp(state.word, "stopped") == 0)
            printf(" at step %zu%s", state.env_step,
                   ks_study_run_is_over(job->study, &state) ? "" : ", goes on");
        putchar('\n');
        checkpoints += trained;
        spectra += analyzed;
    }
    printf("%zu runs: %zu of %zu checkpoints, %zu of %zu spectra", graph->n_runs, checkpoints,
           all * graph->n_runs, spectra, all * graph->n_runs);
    if (job->study->stop > 0)
        printf(", up to step %zu of %zu (stop)", job->study->end, job->study->steps);
    putchar('\n');
    return KS_OK;
}

/* With --keep-going what there is is drawn, and the failure stands. */
static ks_status run(struct job *job, bool quiet)
{
    char message[2048];
    ks_status status;

    KS_TRY(claim_folder(job, quiet));
    ks_progress_warn(quiet); /* the jobs run with --quiet */
    KS_TRY(ks_graph_write(job->graph, job->dir));
    status = ks_graph_run(job->graph, job->dir, job->jobs, keep_going != 0, quiet);
    if (status == KS_OK)
        return ks_study_plot(job->dir, KS_BOOTSTRAP_RESAMPLES, quiet);
    if (!keep_going || ks_graph_stopped())
        return status;
    snprintf(message, sizeof message, "%s", ks_error_text());
    if (ks_study_plot(job->dir, KS_BOOTSTRAP_RESAMPLES, quiet) != KS_OK)
        fprintf(stderr, "%s: %s\n", program.name, ks_error_text());
    return ks_fail(status, "%s", message);
}

static ks_status print_commands(const struct job *job)
{
    char *study = job->held ? NULL : realpath(job->path, NULL);
    ks_status status = ks_graph_print(job->graph, job->dir, study, job->plot, stdout);

    free(study);
    return status;
}

/* At most as many as there are, as they share the memory. */
static ks_status read_jobs(const struct ks_study *s, size_t *n)
{
    size_t all = s->n_architectures * s->n_seeds * (1 + s->n_checkpoints);
    uint64_t number = (uint64_t)omp_get_num_procs();

    if (jobs && !ks_parse_integer(jobs, 1, MOST_JOBS, &number))
        return ks_fail(KS_USAGE, "--jobs: expected a whole number from 1 to %d, found '%s'",
                       MOST_JOBS, jobs);
    *n = number < all ? (size_t)number : all;
    return KS_OK;
}

static ks_status study(const struct ks_arguments *arguments, struct job *job)
{
    if (arguments->n_rest != 1)
        return ks_fail(KS_USAGE, "expected one study, a file or a name, found %zu arguments",
                       arguments->n_rest);
    KS_TRY(ks_study_find(arguments->rest[0], &job->path));
    KS_TRY(ks_study_read(job->path, true, &job->study));
    KS_TRY(read_jobs(job->study, &job->jobs));
    KS_TRY(out ? ks_copy_string(out, &job->dir)
               : ks_print_string(&job->dir, "checkpoints/%s", job->study->name));
    KS_TRY(ks_place_program("kappascope-train", &job->train));
    KS_TRY(ks_place_program("kappascope-analyze", &job->analyze));
    KS_TRY(ks_place_program("kappascope-plot", &job->plot));
    KS_TRY(check_study(job));
    /* The analyzer's own limit is half of what is free: of as many at a time each gets its part. */
    KS_TRY(ks_graph_new(job->study, job->train, job->analyze, ks_memory_free("") / (2 * job->jobs),
                        &job->graph));
    KS_TRY(check_folder(job));
    if (show_status)
        return print_status(job, arguments->quiet);
    return dry_run ? print_commands(job) : run(job, arguments->quiet);
}

int main(int argc, char **argv)
{
    struct ks_arguments arguments;
    struct job job = {.lock = -1};
    ks_status status;

    status = ks_program_start(&program, argc, argv, &arguments);
    if (status == KS_OK && !arguments.done)
        status = study(&arguments, &job);
    job_clear(&job);
    free(out);
    free(jobs);
    return ks_program_end(&program, &arguments, status);
}
