/* A study as a graph of jobs and files: one job trains a run and writes all its checkpoints, one
 * job analyzes a checkpoint and writes its spectrum. The files are the only state: a job is done
 * when its files exist. */
#ifndef KS_STUDY_GRAPH_H
#define KS_STUDY_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "core/error.h"
#include "study/study_file.h"

/* The resume points in a run's folder until the run has finished: "resume/point.0", ... */
enum { KS_GRAPH_POINTS = 2 };

/* How the first and the last line of a job's log begin; then comes the time, UTC, ISO 8601. */
#define KS_GRAPH_STARTED "started "
#define KS_GRAPH_ENDED   "ended "
/* What make prints before the label of a job that starts, and between the label and the number of
 * its process. At the end it prints the label alone. */
#define KS_GRAPH_START   "start "
#define KS_GRAPH_PROCESS ", process "

/* All paths are relative to the study's folder; all strings are owned. */
struct ks_graph_job {
    bool trains;             /* it trains a run; false: it analyzes a checkpoint       */
    bool elsewhere;          /* the run was trained elsewhere: there is nothing to do  */
    bool stale;              /* the existing spectrum is outdated and counts as missing */
    size_t run;              /* index of the run: seed * n_architectures + architecture */
    size_t analysis;         /* index in the study; 0 for a training                   */
    size_t checkpoint, step; /* the analyzed checkpoint: its index in the study and its environment
                              * step; 0 for a training */
    char *label;             /* "train dog-trot/bn+wn+ce/seed0"                        */
    char *folder;            /* "runs/dog-trot/bn+wn+ce/seed0"                         */
    char *command;           /* for the shell, quoted; without redirections            */
    char *log;               /* the file for its output                                */
    char *needs;             /* the analyzed checkpoint; NULL for a training           */
    size_t n_targets;
    char **target; /* [n_targets] the files that it writes */
    bool runs;     /* ks_graph_run: it has started and is not done; in the end: it failed */
    double since;  /* ks_seconds when it started                                             */
    long process;  /* the number of its process, which has ended if the job failed           */
    /* What ks_graph_look found: */
    bool done;
    struct ks_study_run_state state; /* of a training's run */
    /* Why a training that was over, or had made steps, has to start from the beginning: a
     * checkpoint is gone that an analysis needs, or the resume point of a stopped run is. Of a run
     * from elsewhere, the first of these alone, and nothing can start. NULL: it has not. */
    char *restart;
};

struct ks_graph {
    const struct ks_study *study;
    size_t n_jobs, n_runs;
    /* [n_jobs] first the trainings: job i trains run i; then, by run and checkpoint, the analyses
     * that the study asks for; owned */
    struct ks_graph_job *job;
    /* [n_analyses] the existing spectra of this analysis were made with other options */
    bool changed[KS_STUDY_ANALYSES];
};

/* What goes into the commands of a graph. */
struct ks_graph_programs {
    const char *train, *analyze; /* the programs' paths */
    bool resume_any;             /* trainings get --resume=any instead of --resume */
    size_t memory;               /* --memory for analyses, in bytes, unless the study sets it;
                                  * 0: the analyzer's default */
};

/* The number of spectra of a run (numbered as above); the number of jobs of a study. */
size_t ks_study_spectra(const struct ks_study *study, size_t run);
size_t ks_graph_jobs(const struct ks_study *study);

/* The study must outlive the graph. The caller frees with ks_graph_free. */
ks_status ks_graph_new(const struct ks_study *study, const struct ks_graph_programs *programs,
                       struct ks_graph **graph);
void ks_graph_free(struct ks_graph *graph); /* NULL is fine */
KS_OWNER(ks_graph_free, struct ks_graph *)

/* Whether the study's folder `dir` has a file of this path. */
bool ks_graph_has(const char *dir, const char *path);
/* The number of existing targets of job i in the study's folder `dir`; 0 if they are stale. */
size_t ks_graph_targets(const struct ks_graph *graph, size_t i, const char *dir);
/* Looks into the study's folder: which jobs are done, and which trainings have to start again. A
 * training is done if its run is over, as its run.json says, and each checkpoint that an analysis
 * which is not done needs exists: the others may have been removed. An analysis is done if its
 * spectrum exists and its checkpoint will not be written again: the training is done, or will
 * resume from the checkpoint's step or a later one. The functions below look themselves. */
ks_status ks_graph_look(struct ks_graph *graph, const char *dir);

/* Prints the remaining work as shell commands, ending with the program `plot`. `claim`: the command
 * that records the study in the folder; NULL: it is there. */
ks_status ks_graph_print(struct ks_graph *graph, const char *dir, const char *claim,
                         const char *plot, FILE *out);

/* Marks the spectra of an analysis as made with other options than the study has now: they become
 * stale. */
void ks_graph_set_changed(struct ks_graph *graph, size_t analysis);

/* Checks all existing spectra. Spectra that cannot be read, that name another run or step, or whose
 * checkpoint_sha256 is not the checksum of their checkpoint become stale, and are named on standard
 * error unless `quiet`. Reads every checkpoint that has a spectrum: about 0.1 s each. */
ks_status ks_graph_check_spectra(struct ks_graph *graph, const char *dir, bool quiet);

/* Removes stale spectra, so that they are computed again; if options have changed, also spectra
 * that the study does not ask for. Removes the resume points of runs that will start from the
 * beginning, because training would resume from there. With `out`, prints these removals as shell
 * commands and removes nothing. */
ks_status ks_graph_drop_stale(struct ks_graph *graph, const char *dir, FILE *out);

/* Writes the makefile "study.mk" in the study's folder. Its targets train-N and analyze-N are the
 * files of run N; run-N makes first these, then those; `all` makes the runs in their order. */
ks_status ks_graph_write(const struct ks_graph *graph, const char *dir);

/* Runs the graph with GNU make, `jobs` jobs at a time, until all are complete. After a failure no
 * further run is started; the runs under way are completed, with their spectra. With `keep_going`
 * it goes on until no job can run any more. Unless `quiet`, it announces the work on standard
 * error, shows how far it is, what runs and how long the rest takes (ks_progress_line), and prints
 * numbers of the first spectrum and of each run's last one. A failure (KS_RUN) names the job and
 * the last line of its log. On SIGINT, SIGTERM or SIGHUP it stops the jobs and fails; completed
 * files stay.
 */
ks_status ks_graph_run(struct ks_graph *graph, const char *dir, size_t jobs, bool keep_going,
                       bool quiet);
/* The path of GNU make: $MAKE, or `make`. The caller frees. Fails with KS_MISSING. */
ks_status ks_graph_find_make(char **path);
/* Whether the last ks_graph_run was interrupted by a signal. */
bool ks_graph_stopped(void);

#endif
