/* What kappascope-study --status and --dry-run say about a study: its progress, its remaining work,
 * the time and the disk space for it. */
#ifndef KS_STUDY_STATUS_H
#define KS_STUDY_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "core/error.h"
#include "study/graph.h"

struct ks_study_view {
    struct ks_graph *graph;
    const char *dir; /* the study's folder, which may not exist */
    size_t jobs;     /* at a time; 0: not known */
    bool held;       /* the folder's study.study has the same text, so runs have the same numbers
                      * as in Slurm's queue */
};

/* Prints a line per run, with its task in Slurm's queue if it has one, the sums, and the time left:
 * an estimate from the paces that the folder's files recorded, or "not known". If squeue fails, a
 * line on standard error says so. */
ks_status ks_study_print_status(const struct ks_study_view *view);

/* Prints the remaining work, the time and the disk space for it as comments of a shell script.
 * Paces that the folder's files do not have are measured first (estimate.h). `observations` and
 * `actions`: the widths of the task. */
ks_status ks_study_print_forecast(const struct ks_study_view *view, size_t observations,
                                  size_t actions, FILE *out);

#endif
