/* kappascope-study: trains, analyzes and plots a whole study. Its files are its only state. */
#define _XOPEN_SOURCE 700 /* realpath */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <omp.h>

#include "core/memory.h"
#include "core/process.h"
#include "core/program.h"
#include "core/progress.h"
#include "env/env.h"
#include "io/file.h"
#include "io/h5.h"
#include "report/study_report.h"
#include "results/aggregate.h"
#include "study/graph.h"
#include "study/slurm.h"
#include "study/status.h"
#include "study/study_file.h"

enum {
    MOST_JOBS = 4096
}; /* make writes a byte per job into a pipe, and would block on a full one */

static struct command {
    const char *out;
    size_t jobs;     /* 0: not given */
    bool resume_any; /* also under changed conditions */
    bool retrain, dry_run, status, keep_going, slurm;
    struct ks_key_texts sbatch;
} command;

static const char *const resumes[] = {"exact", "any", NULL};

#define AT(member) KS_KEY_AT(struct command, member), 0

static const struct ks_key keys[] = {
    {"out", KS_ROW_TEXT(), NULL, AT(out), "DIR", "the study's folder (default: checkpoints/NAME)"},
    {"jobs", KS_ROW_COUNT(1, MOST_JOBS), NULL, AT(jobs), "N",
     "jobs at a time (default: the number of cores)", .letter = 'j'},
    {"resume", KS_ROW_CHOICE(resumes), "exact", AT(resume_any), NULL,
     "how stopped runs resume: exact, or any: also on another processor, with another number of "
     "threads or another version"},
    {"retrain", KS_ROW_FLAG(), NULL, AT(retrain), NULL,
     "train runs again from the beginning whose removed checkpoints or resume points are needed"},
    {"dry-run", KS_ROW_FLAG(), NULL, AT(dry_run), NULL,
     "print the commands that would run; write nothing", .letter = 'n'},
    {"status", KS_ROW_FLAG(), NULL, AT(status), NULL,
     "print the progress of each run; run nothing"},
    {"keep-going", KS_ROW_FLAG(), NULL, AT(keep_going), NULL,
     "after a failure run the jobs that do not depend on it (always with runs from elsewhere)",
     .letter = 'k'},
    {"slurm", KS_ROW_FLAG(), NULL, AT(slurm), NULL,
     "submit the jobs to Slurm instead of running them here; --jobs: tasks of an array at a time "
     "(default: no limit)"},
    {"sbatch", KS_ROW_TEXTS(), NULL, AT(sbatch), "OPTIONS",
     "options for sbatch, as for a shell: --sbatch='--time=8:00:00 --partition=long'; repeatable"},
    KS_KEYS_END};

static const struct ks_key_rule rules[] = {
    {"sbatch", "--sbatch: expected only together with --slurm", .needs = "slurm"},
    {.option = NULL}};

static const struct ks_program program = {
    .libraries = {{"HDF5", ks_h5_version}},
    .name = "kappascope-study",
    .synopsis = "[OPTION...] FILE.study|FOLDER|NAME",
    .description = "train, analyze and plot a whole study",
    .details = "FILE.study is an INI file with these sections:\n"
               "  [study]         env, architectures, seeds, steps, stop, missing, grid;\n"
               "                  trained, elsewhere, family, factors NAME\n"
               "  [train]         settings of kappascope train\n"
               "  [variant NAME]  a further network: architecture, and settings that differ\n"
               "  [analyze]       options of kappascope analyze, without dashes\n"
               "  [analyze NAME]  the options of a further analysis of every checkpoint\n"
               "On the command line, NAME is a study that the project ships: quick, small, dog,\n"
               "trot, trot-small, dogtrot, duel, exact, reference, ablations or\n"
               "ablations-small. Write ./NAME for a file of that name. FOLDER stands for\n"
               "FOLDER/study.study.\n"
               "\n"
               "With trained = elsewhere nothing is trained: the runs are in the folders\n"
               "runs/ENV/NAME/seedS beside the study's file, with checkpoints step_*.h5 and\n"
               "returns.csv. With elsewhere = NAME ... such runs stand beside those that are\n"
               "trained here.\n"
               "\n"
               "GNU make runs the jobs of the study, one per core. If the study was stopped or\n"
               "failed, the same command makes the files that are missing and resumes\n"
               "unfinished runs. A run that failed because of a NaN or an infinity fails again\n"
               "until its folder is removed. A run only resumes on the same processor, with\n"
               "the same number of threads and the same version, unless --resume=any is given.\n"
               "\n"
               "With `stop` in [study], runs stop at that environment step; checkpoints and\n"
               "evaluations stay at the steps of a complete run. If `stop` is later raised or\n"
               "removed, the runs continue. If it is lowered, no file is lost, and the tables\n"
               "leave out the later steps.\n"
               "\n"
               "A folder belongs to one study. Architectures and seeds may be added to the\n"
               "study's file, and `stop` may change. If options in [analyze] or [analyze NAME]\n"
               "change, the spectra of that analysis are computed again; if `missing` or\n"
               "`grid` change, the tables are.\n"
               "\n"
               "If a spectrum has to be made whose checkpoint was removed, its run would have to\n"
               "be trained again from the beginning, and so would a stopped run whose resume\n"
               "point was removed. Then the study fails, and removes and changes no file, unless\n"
               "--retrain is given.\n"
               "\n"
               "With --slurm, sbatch submits a job array for the trainings, with a task per\n"
               "run, one for their analyses, and a job for the plots. A task that comes near\n"
               "its time limit is stopped, goes back into the queue and continues from there.\n"
               "When all have ended, the same command submits what is missing.\n"
               "\n"
               "EXAMPLES\n"
               "  kappascope study quick\n"
               "  kappascope study dogtrot --out /data/dogtrot --jobs 32\n"
               "  kappascope study trot --status\n"
               "  kappascope study dogtrot --slurm --sbatch='--time=8:00:00 -p long'\n",
    .keys = keys,
    .rules = rules,
    .values = &command,
};

/* The state of the program; job_clear frees it. */
struct job {
    char *path, *dir, *train, *analyze, *plot; /* owned */
    char *record; /* the file in the folder that says which study its spectra match; owned */
    struct ks_study *study;          /* owned */
    struct ks_graph *graph;          /* owned */
    size_t jobs;                     /* at a time */
    bool held;                       /* the folder's study.study has the same text */
    bool differs[KS_STUDY_ANALYSES]; /* the folder's study has this analysis with other options */
    struct ks_env_about task;        /* that of the study */
    struct ks_slurm slurm;           /* how to submit; owned */
    int lock;                        /* descriptor that locks the folder; -1: none */
};

static void job_clear(struct job *job)
{
    ks_graph_free(job->graph);
    ks_study_free(job->study);
    free(job->path);
    free(job->dir);
    free(job->record);
    free(job->train);
    free(job->analyze);
    free(job->plot);
    free(job->slurm.options);
    if (job->lock >= 0)
        close(job->lock);
}

/* The task must be known, and the analyses must fit its critics. */
static ks_status check_study(struct job *job)
{
    const char *task = job->study->env_argument;

    if (!ks_study_trains(job->study))
        return KS_OK;
    if (ks_env_is_file(task))
        KS_TRY(ks_env_about_file(task, &job->task));
    if (ks_env_is_file(task) || ks_env_about_task(task, &job->task))
        return ks_study_check(job->study, job->task.observations, job->task.actions);
    return ks_fail(KS_FORMAT, "%s:%zu: env: unknown task '%s' (kappascope train --list names them)",
                   job->path, job->study->env_line, job->study->env);
}

/* If the folder holds a study already, its runs must be able to go on as runs of this one. */
static ks_status compare_folder(struct job *job)
{
    KS_OWNED_BY(ks_study_free) struct ks_study *held = NULL;
    const char *difference, *path = job->record;
    ks_status status = KS_OK;

    if (!ks_path_exists(path))
        return KS_OK;
    KS_TRY(ks_study_read(path, KS_STUDY_COMPARE, &held));
    KS_TRY(ks_study_find_systems(held, job->study));
    difference = ks_study_difference(job->study, held, command.resume_any);
    if (difference)
        status = ks_fail(KS_USAGE,
                         "%s: the folder holds another study, which differs from %s in '%s'%s; "
                         "choose another folder with --out, or remove this one",
                         path, job->path, difference,
                         strcmp(difference, "threads") == 0 ? " (--resume=any accepts that)" : "");
    job->held = strcmp(held->text, job->study->text) == 0;
    /* If the folder's study does not have an analysis, any spectra of it were left by an earlier
     * study whose options are unknown: they count as changed. */
    for (size_t i = 0; i < job->study->n_analyses; i++) {
        const struct ks_study_analysis *asked = &job->study->analysis[i];
        const struct ks_study_analysis *other = ks_study_find_analysis(held, asked->name);

        job->differs[i] = other && !ks_study_same_analysis(asked, other);
        if (!other || job->differs[i])
            ks_graph_set_changed(job->graph, i);
    }
    return status;
}

static void say_stale(const struct job *job, const char *are, bool quiet)
{
    for (size_t i = 0; i < job->study->n_analyses && !quiet; i++)
        if (job->differs[i])
            ks_say("the options of [analyze%s%s] have changed: all its spectra %s computed again",
                   i > 0 ? " " : "", i > 0 ? job->study->analysis[i].name : "", are);
}

/* Runs that have to start from the beginning are announced, and refused without --retrain. */
static ks_status check_restarts(const struct job *job, bool quiet)
{
    const char *first = NULL;
    size_t n = 0;

    KS_TRY(ks_graph_look(job->graph, job->dir));
    for (size_t i = 0; i < job->graph->n_runs; i++) {
        const char *why = job->graph->job[i].restart;

        if (why && job->graph->job[i].elsewhere)
            return ks_fail(KS_USAGE, "%s", why);
        if (why && command.retrain && !quiet)
            ks_say("%s", why);
        if (why && n++ == 0)
            first = why;
    }
    if (n == 0 || command.retrain)
        return KS_OK;
    if (n == 1)
        return ks_fail(KS_USAGE, "%s; --retrain allows that", first);
    return ks_fail(KS_USAGE, "%s (runs that have to: %zu); --retrain allows that", first, n);
}

/* Makes and locks the folder, and removes stale spectra. Writes the record last: its presence
 * asserts that the existing spectra match it. */
static ks_status claim_folder(struct job *job, bool quiet)
{
    KS_TRY(ks_folder_make("%s", job->dir));
    KS_TRY(ks_folder_lock(job->dir, program.name, &job->lock));
    KS_TRY(ks_slurm_refuse(job->dir));
    KS_TRY(compare_folder(job));
    KS_TRY(ks_folder_sweep(job->dir));
    KS_TRY(ks_graph_check_spectra(job->graph, job->dir, quiet));
    KS_TRY(check_restarts(job, quiet));
    say_stale(job, "are", quiet);
    KS_TRY(ks_graph_drop_stale(job->graph, job->dir, NULL));
    return job->held ? KS_OK
                     : ks_file_write(job->record, job->study->text, strlen(job->study->text));
}

/* With --keep-going, plots what is complete after a failure, and still fails. With --slurm it only
 * submits; from then on, the queue protects the folder. */
static ks_status make(struct job *job, bool quiet)
{
    char message[2048];
    ks_status status;

    KS_TRY(claim_folder(job, quiet));
    if (command.slurm)
        return ks_slurm_submit(job->graph, job->dir, &job->slurm);
    ks_progress_warn(quiet); /* the jobs run with --quiet */
    KS_TRY(ks_graph_write(job->graph, job->dir));
    status = ks_graph_run(job->graph, job->dir, job->jobs, command.keep_going, quiet);
    if (status == KS_OK)
        return ks_study_plot(job->dir, job->study, KS_BOOTSTRAP_RESAMPLES, quiet);
    if (!command.keep_going || ks_graph_stopped())
        return status;
    snprintf(message, sizeof message, "%s", ks_error_text());
    if (ks_study_plot(job->dir, job->study, KS_BOOTSTRAP_RESAMPLES, quiet) != KS_OK)
        ks_say("%s: %s", program.name, ks_error_text());
    return ks_fail(status, "%s", message);
}

/* "cp STUDY RECORD", in the study's folder. */
static ks_status print_claim(const struct job *job, char **claim)
{
    KS_OWNED char *path = realpath(job->path, NULL);
    size_t size;
    FILE *text;

    if (!path)
        return KS_OK;
    KS_TRY(ks_shell_check("the study's path", path));
    text = open_memstream(claim, &size);
    if (text) {
        fprintf(text, "cp ");
        ks_shell_word(text, path);
        fprintf(text, " %s", ks_path_base(job->record));
    }
    return ks_stream_close(text);
}

/* The forecast consists of comments for the shell. */
static ks_status print_commands(const struct job *job, const struct ks_study_view *view, bool quiet)
{
    KS_OWNED char *claim = NULL;

    if (!job->held)
        KS_TRY(print_claim(job, &claim));
    if (check_restarts(job, true) != KS_OK)
        printf("# %sthis is refused: %s\n",
               strstr(ks_error_text(), "--retrain") ? "without --retrain " : "", ks_error_text());
    if (!quiet)
        KS_TRY(ks_study_print_forecast(view, job->task.observations, job->task.actions, stdout));
    return command.slurm ? ks_slurm_print(job->graph, job->dir, &job->slurm, stdout)
                         : ks_graph_print(job->graph, job->dir, claim, job->plot, stdout);
}

/* No more than the graph has: the jobs at a time share the memory. For Slurm 0 means no limit. */
static size_t find_jobs(const struct ks_study *s)
{
    const size_t all = ks_graph_jobs(s);
    const size_t asked = command.jobs > 0 || command.slurm ? command.jobs
                                                           : (size_t)omp_get_num_procs();

    return asked < all ? asked : all;
}

static ks_status read_slurm(struct job *job, bool quiet)
{
    for (size_t i = 0; i < command.sbatch.n; i++)
        KS_TRY(ks_slurm_add_options(&job->slurm, command.sbatch.text[i]));
    job->slurm.plot = job->plot;
    job->slurm.jobs = job->jobs;
    job->slurm.keep_going = command.keep_going;
    job->slurm.quiet = quiet;
    return KS_OK;
}

/* Paths that become part of a command must not contain control characters. */
static ks_status find_program(const char *name, char **path)
{
    KS_TRY(ks_locate_program(name, path));
    return ks_shell_check("the program's path", *path);
}

static bool is_same_file(const char *a, const char *b)
{
    struct stat first, second;

    return stat(a, &first) == 0 && stat(b, &second) == 0 && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino;
}

/* Runs from elsewhere lie beside the study's file, so this is the study's folder; and so is a
 * folder that is given in place of its study.study. */
static ks_status find_folder(const char *argument, struct job *job)
{
    const struct ks_study *s = job->study;
    const char *out = command.out;
    const bool elsewhere = ks_study_has_elsewhere(s);
    const bool here = elsewhere || is_same_file(argument, s->folder);

    if (out && elsewhere && !is_same_file(out, s->folder))
        return ks_fail(KS_USAGE,
                       "--out: expected %s, the folder of the study's file, as its runs from "
                       "elsewhere are there, found %s",
                       s->folder, out);
    return out    ? ks_copy_string(out, &job->dir)
           : here ? ks_copy_string(s->folder, &job->dir)
                  : ks_print_string(&job->dir, "checkpoints/%s", s->name);
}

/* The folder's study.study, unless that is the file which is to be changed by hand. */
static ks_status find_record(struct job *job)
{
    KS_TRY(ks_print_string(&job->record, "%s/study.study", job->dir));
    if (!is_same_file(job->record, job->path))
        return KS_OK;
    free(job->record);
    return ks_print_string(&job->record, "%s/analyzed.study", job->dir);
}

static ks_status run(const struct ks_arguments *arguments, struct job *job)
{
    struct ks_graph_programs programs;
    struct ks_study_view view;

    if (arguments->n_rest != 1)
        return ks_fail(KS_USAGE, "expected one study, a file or a name, found %zu arguments",
                       arguments->n_rest);
    KS_TRY(ks_shell_check("the study's path", arguments->rest[0]));
    KS_TRY(ks_study_find(arguments->rest[0], &job->path));
    KS_TRY(ks_study_read(job->path, KS_STUDY_RUN, &job->study));
    command.keep_going |= ks_study_has_elsewhere(job->study);
    if (!ks_study_has_elsewhere(job->study)) /* jobs analyze checkpoints that other jobs wrote */
        setenv("KAPPASCOPE_SCOUT", "0", 0);
    job->jobs = find_jobs(job->study);
    KS_TRY(find_folder(arguments->rest[0], job));
    KS_TRY(ks_shell_check("--out", job->dir));
    KS_TRY(find_record(job));
    if (ks_study_trains(job->study))
        KS_TRY(find_program("kappascope-train", &job->train));
    KS_TRY(find_program("kappascope-analyze", &job->analyze));
    KS_TRY(find_program("kappascope-plot", &job->plot));
    KS_TRY(read_slurm(job, arguments->quiet));
    KS_TRY(check_study(job));
    /* The analyzer's default limit is half of the free memory; jobs at a time share that half. */
    programs = (struct ks_graph_programs){job->train, job->analyze, command.resume_any,
                                          command.slurm ? 0
                                                        : ks_memory_available("", job->jobs) / 2};
    KS_TRY(ks_graph_new(job->study, &programs, &job->graph));
    if (!command.status && !command.dry_run)
        return make(job, arguments->quiet);
    KS_TRY(compare_folder(job));
    KS_TRY(ks_graph_check_spectra(job->graph, job->dir, arguments->quiet));
    view = (struct ks_study_view){job->graph, job->dir, job->jobs, job->held};
    if (command.dry_run && !command.status)
        return print_commands(job, &view, arguments->quiet);
    say_stale(job, "would be", arguments->quiet);
    return ks_study_print_status(&view);
}

static ks_status study(const struct ks_arguments *arguments)
{
    KS_CLEARED_BY(job_clear) struct job job = {.lock = -1};

    return run(arguments, &job);
}

int main(int argc, char **argv)
{
    return ks_program_run(&program, argc, argv, study);
}
