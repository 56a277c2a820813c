/* A study as a graph of files: one job trains a run and writes all its checkpoints, one job
 * analyzes a checkpoint and writes its spectrum. The files are its only state: what is there is
 * done. */
#ifndef KS_GRAPH_H
#define KS_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "ks/error.h"
#include "ks/study.h"

/* The folder that a run keeps in its own until it is finished, to go on from. */
#define KS_GRAPH_RESUME "resume"

/* All paths are relative to the study's folder; all strings are owned. */
struct ks_job {
    bool trains;   /* else it analyzes                                         */
    size_t run;    /* its number: seeds outside, architectures inside          */
    char *label;   /* "train dog-trot/bn+wn+ce/seed0"                          */
    char *folder;  /* "runs/dog-trot/bn+wn+ce/seed0"                           */
    char *command; /* for the shell, quoted; without redirections              */
    char *log;     /* where its output goes                                    */
    char *needs;   /* the checkpoint that is analyzed; NULL                    */
    size_t step;   /* the environment step of that checkpoint; 0               */
    size_t n_targets;
    char **target; /* [n_targets] files that it writes                         */
};

struct ks_graph {
    const struct ks_study *study;
    size_t n_jobs, n_runs;
    struct ks_job *job; /* [n_jobs] the trainings, job i that of run i, then the analyses; owned */
    bool stale;       /* spectra that are there were made with other options: they count as none */
    bool stale_steps; /* so were the Lanczos steps that analyses have kept */
};

/* The study has to outlive the graph. `train` and `analyze` are the programs' paths. `memory`:
 * bytes an analysis may fill, unless the study says so itself; 0: what the analyzer thinks right.
 * The caller frees with ks_graph_free. */
ks_status ks_graph_new(const struct ks_study *study, const char *train, const char *analyze,
                       size_t memory, struct ks_graph **graph);
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

/* Removes stale spectra and Lanczos steps, so that they are made again. */
ks_status ks_graph_remove_stale(struct ks_graph *graph, const char *dir);

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
