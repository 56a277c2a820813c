/* Runs that were trained elsewhere: the folders runs/ENV/NAME/seedS beside the study's file, with
 * checkpoints and a returns.csv. What a study derives of runs that it trains, it finds there. */
#ifndef KS_STUDY_ELSEWHERE_H
#define KS_STUDY_ELSEWHERE_H

#include <stddef.h>

#include "core/error.h"
#include "study/study_file.h"

/* Names in a folder but hidden ones, in the order of strcmp. */
struct ks_folder_names {
    int n;
    struct dirent **list; /* [n]; owned, by scandir */
};
/* A folder that does not exist has none. The caller clears. */
void ks_folder_names_read(const char *folder, struct ks_folder_names *names);
void ks_folder_names_clear(struct ks_folder_names *names);

/* Adds what the study's file does not say: the task, the names and the seeds that have folders. The
 * names that it does say must have some; without `check`, one that has none is warned about. Does
 * nothing without runs from elsewhere. KS_FORMAT if there are no folders, or folders of several
 * tasks. */
ks_status ks_elsewhere_names(struct ks_study *study, bool check);

/* Adds the steps of all checkpoints and returns of runs from elsewhere to those that the study has,
 * up to its end, and sets which run has which. Warns, and goes on without it, about a checkpoint
 * that cannot be read, that names another seed or step, or has another network than the first one
 * of its run; about a table of returns that cannot be read, and its rows without a usable return;
 * about returns that are missing beside a checkpoint or beside other seeds. Does nothing without
 * runs from elsewhere. */
ks_status ks_elsewhere_steps(struct ks_study *study);

/* A row of returns.csv. */
struct ks_elsewhere_return {
    size_t step, line; /* environment step; line of the file, from 1        */
    double value;      /* NaN: not a finite number, or given twice in the file */
};
/* Reads the table, ordered by steps without repeated ones. Rows whose step is no step, and what is
 * wrong with returns, are left to `study`'s warnings (NULL: to nobody). A file that is missing or
 * is no table fails with KS_IO or KS_FORMAT. The caller frees *row. */
ks_status ks_elsewhere_returns(const char *path, struct ks_study *study, size_t *n,
                               struct ks_elsewhere_return **row);
#define KS_ELSEWHERE_RETURNS "returns.csv"

#endif
