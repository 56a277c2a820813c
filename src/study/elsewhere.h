/* Runs that were trained elsewhere: the folders runs/ENV/NAME/seedS beside the study's file, with
 * checkpoints and a returns.csv. What a study derives of runs that it trains, it finds there. */
#ifndef KS_STUDY_ELSEWHERE_H
#define KS_STUDY_ELSEWHERE_H

#include <stddef.h>

#include "core/error.h"
#include "io/csv.h"
#include "study/study_file.h"

/* Names in a folder but hidden ones, in the order of strcmp. */
struct ks_folder_names {
    int n;
    struct dirent **list; /* [n]; owned, by scandir */
};
/* A folder that does not exist has none. The caller clears. */
void ks_folder_names_read(const char *folder, struct ks_folder_names *names);
void ks_folder_names_clear(struct ks_folder_names *names);

/* Files that are left out for one reason: their number and the name of the first. */
struct ks_left_out {
    size_t n;
    char first[256];
};
void ks_left_out_add(struct ks_left_out *files, const char *name);
/* One warning, "FOLDER/FIRST: WHY" and how many more there are; none without files. */
ks_status ks_left_out_warn(struct ks_study *study, const char *folder,
                           const struct ks_left_out *files, const char *why);

/* Warns about each of the first few of *n things, which it counts; then about the number of the
 * rest, "PATH: N further WHATs are left out". */
ks_status ks_warn_few(struct ks_study *study, size_t *n, const char *message);
ks_status ks_warn_rest(struct ks_study *study, const char *path, size_t n, const char *what);

/* Whether a file is named nearly like a checkpoint: step_5.h5, step_000000005.hdf5. */
bool ks_elsewhere_resembles_checkpoint(const char *name);

/* Adds what the study's file does not say: the task, the names and the seeds that have folders. The
 * names that it does say must have some; without `check`, one that has none is warned about. Warns
 * about given seeds that a name lacks, and about what resembles a run but has another name. Does
 * nothing without runs from elsewhere. KS_FORMAT if there are no folders, or folders of several
 * tasks. */
ks_status ks_elsewhere_names(struct ks_study *study, bool check);

/* Adds the steps of all checkpoints and returns of runs from elsewhere to those that the study has,
 * up to its end, and sets which run has which. Warns, and goes on without it, about a checkpoint
 * that cannot be read, that names another seed or step, or has another network than the first one
 * of its run; about files that resemble checkpoints but have other names; about a table of returns
 * that cannot be read, and its rows without a usable return; about returns that are missing beside
 * a checkpoint or beside other seeds. Does nothing without runs from elsewhere. */
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
/* Reads the table with all its columns, but only the rows that have a return, in the order of their
 * steps. Fails likewise. The caller frees *csv. */
ks_status ks_elsewhere_table(const char *path, struct ks_csv **csv);

#endif
