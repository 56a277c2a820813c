/* A study's graph on a cluster: job arrays of Slurm, submitted with sbatch.
 *
 * Task N of an array works on run N of the graph, with GNU make and study.mk, so the files decide
 * what it has to do:
 *
 *   train     an array: the runs whose training is not complete
 *   analyze   an array: the missing spectra of these runs, each task after its training
 *   analyze   a second array: the missing spectra of the runs that are trained already
 *   plot      a job after all of these
 *
 * A task makes a spectrum per processor at a time, each in one thread, so the results have the same
 * bits as with ks_graph_run.
 *
 * Slurm schedules, starts again what was lost with a node, and keeps the order. A task that comes
 * near its time limit gets SIGUSR1: it stops its program, which for a training writes a resume
 * point, and puts itself back into the queue. If it got no further than at its start, it fails
 * instead. Every task holds a lock on a file in its run's folder, which the nodes of most shared
 * file systems see; the folder locks of train and study are often seen by their own node only. */
#ifndef KS_STUDY_SLURM_H
#define KS_STUDY_SLURM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "core/error.h"
#include "study/graph.h"

/* The folder of the tasks' script and logs, in the study's folder. */
#define KS_SLURM_FOLDER "slurm"
/* The lock of a run's task, in the run's folder. */
#define KS_SLURM_LOCK "slurm.lock"

struct ks_slurm {
    const char *plot; /* path of the program                                           */
    size_t jobs;      /* most tasks of an array at a time; 0: no limit                 */
    bool keep_going;  /* plot after failures, too, and make the other spectra of a run */
    bool quiet;       /* do not name the submitted jobs on standard error              */
    char *options; /* further options of sbatch, quoted for the shell; each after a space; they come
                    * last; NULL: none; owned */
};

/* Adds the words of a text, split as by a shell, to the options. Fails with KS_USAGE. The caller
 * frees s->options. */
ks_status ks_slurm_add_options(struct ks_slurm *s, const char *text);

/* Writes the tasks' script slurm/task.sh into the study's folder `dir`. Fails with KS_IO, KS_FULL,
 * KS_MISSING (no make). */
ks_status ks_slurm_write(const struct ks_graph *graph, const char *dir, const struct ks_slurm *s);

/* Writes study.mk and the script into the study's folder, and submits the work that is not done. If
 * one job is refused, those submitted before it are cancelled. Fails with KS_MISSING (no sbatch) or
 * KS_RUN, with the last line that sbatch printed. */
ks_status ks_slurm_submit(struct ks_graph *graph, const char *dir, const struct ks_slurm *s);
/* Prints what ks_slurm_submit would do as commands for a shell in the study's folder. */
ks_status ks_slurm_print(struct ks_graph *graph, const char *dir, const struct ks_slurm *s,
                         FILE *out);

/* A task in Slurm's queue. */
struct ks_slurm_task {
    unsigned long job;
    size_t run;     /* of the graph; SIZE_MAX for the plot job      */
    char kind[16];  /* "train", "analyze", "plot"                   */
    char state[24]; /* as squeue says: "PENDING", "RUNNING", ...    */
    char node[64];  /* where it runs; empty: it does not run        */
};

/* The tasks of the study in `dir` that this user has in the queue, into *task, which the caller
 * frees. None if nothing was ever submitted from this folder, or there is no squeue. Fails with
 * KS_RUN if squeue fails. */
ks_status ks_slurm_queue(const char *dir, size_t *n, struct ks_slurm_task **task);

/* Fails with KS_USAGE, naming the jobs, if the queue has tasks of the study in `dir`: they and
 * another command would work on the same files. Fails with KS_RUN if squeue does. */
ks_status ks_slurm_refuse(const char *dir);

#endif
