/* A study as a graph of files: one job trains a run and writes all its checkpoints, one job
 * analyzes a checkpoint and writes its spectrum. The files are its only state: what is there is
 * done. */
#ifndef KS_STUDY_GRAPH_H
#define KS_STUDY_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "core/error.h"
#include "study/study_file.h"

/* The folder that a run keeps in its own until it is finished, to go on from. */
#define KS_GRAPH_RESUME "resume"

/* All paths are relative to the study's folder; all strings are owned. */
struct ks_graph_job {
    bool trains;      /* else it analyzes                                      */
    bool stale;       /* the spectrum that is there has to be made again: it counts as none */
    bool stale_steps; /* so have the Lanczos steps that its analysis has kept  */
    size_t run;       /* its number: seeds outside, architectures inside       */
    size_t analysis;  /* its number in the study; 0 of a training              */
    size_t step;      /* the environment step of the checkpoint that is analyzed; 0 */
    char *label;      /* "train dog-trot/bn+wn+ce/seed0"                       */
    char *folder;     /* "runs/dog-trot/bn+wn+ce/seed0"                        */
    char *command;    /* for the shell, quoted; without redirections           */
    char *log;        /* where its output goes                                 */
    char *needs;      /* the checkpoint that is analyzed; NULL                 */
    size_t n_targets;
    char **target; /* [n_targets] files that it writes */
};

/* What of the files of an analysis was made with other options than the study's. */
struct ks_graph_change {
    bool spectra, steps; /* steps: the Lanczos steps that --keep-basis has left */
};

struct ks_graph {
    const struct ks_study *study;
    size_t n_jobs, n_runs;
    /* [n_jobs] the trainings, job i that of run i; then the analyses, by runs, checkpoints and
     * analyses of the study, those inside; owned */
    struct ks_graph_job *job;
    struct ks_graph_change change[KS_STUDY_ANALYSES]; /* of each analysis */
};

/* What the commands of a graph are made of. */
struct ks_graph_programs {
    const char *train, *analyze; /* the programs' paths */
    bool resume_any;             /* trainings go on with --resume=any, else with --resume */
    size_t memory; /* bytes that an analysis may fill, unless the study says so itself;
                    * 0: what the analyzer thinks right */
};

/* How many jobs the graph of a study has. */
size_t ks_graph_jobs(const struct ks_study *study);

/* The study has to outlive the graph. The caller frees with ks_graph_free. */
ks_status ks_graph_new(const struct ks_study *study, const struct ks_graph_programs *programs,
                       struct ks_graph **graph);
void ks_graph_free(struct ks_graph *graph); /* NULL is fine */

/* How many targets of job i are there, in the study's folder `dir`. */
size_t ks_graph_targets(const struct ks_graph *graph, size_t i, const char *dir);
/* Nothing is left to do of job i. A training is done when all its targets are there and the run is
 * over: its folder "resume" is gone, or in a study with `stop` its run.json says so. An analysis is
 * done when its spectrum is there and its checkpoint will not be written again: the training is
 * done, or was stopped at the checkpoint's step or later and will go on from there. */
bool ks_graph_is_done(const struct ks_graph *graph, size_t i, const char *dir);

/* Prints what is left to do as commands for the shell: the file `study` (a whole path; NULL: it is
 * there) becomes the folder's study.study, and at the end the program `plot` draws. */
ks_status ks_graph_print(const struct ks_graph *graph, const char *dir, const char *study,
                         const char *plot, FILE *out);

/* Records that the files of an analysis were made with other options: its jobs become stale. */
void ks_graph_set_change(struct ks_graph *graph, size_t analysis, struct ks_graph_change change);

/* Looks at all spectra that are there: those that cannot be read, that say they are of another run
 * or step, or whose checkpoint_sha256 is not that of their checkpoint become stale, and are named
 * on standard error unless `quiet`. Reads every checkpoint that has a spectrum: about 0.1 s each.
 */
ks_status ks_graph_check_spectra(struct ks_graph *graph, const char *dir, bool quiet);

/* Removes stale spectra and Lanczos steps, so that they are made again; where options have changed,
 * also those of checkpoints behind `stop`. */
ks_status ks_graph_remove_stale(struct ks_graph *graph, const char *dir);
/* Prints the same as commands for the shell. */
ks_status ks_graph_print_stale(const struct ks_graph *graph, const char *dir, FILE *out);

/* Writes the makefile "study.mk" in the study's folder. */
ks_status ks_graph_write(const struct ks_graph *graph, const char *dir);

/* Runs `jobs` jobs at a time by GNU make until all is done or one fails; with `keep_going` until
 * nothing more can be done. Says on standard error what is to be done, then a line for each job
 * that is done, unless `quiet`. A failure (KS_RUN) names the run and the last line of its log.
 * Interrupted, it stops the jobs and fails; what was done stays. */
ks_status ks_graph_run(const struct ks_graph *graph, const char *dir, size_t jobs, bool keep_going,
                       bool quiet);
/* The last ks_graph_run was interrupted. */
bool ks_graph_stopped(void);

#endif
