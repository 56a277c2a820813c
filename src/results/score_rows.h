/* Scores one by one, from tables of returns and from the folders of studies. */
#ifndef KS_RESULTS_SCORE_ROWS_H
#define KS_RESULTS_SCORE_ROWS_H

#include <stddef.h>

#include "core/error.h"

/* The score of a run of a system at a step. The strings belong to the ks_score_rows; control
 * characters in them are escaped. */
struct ks_score_row {
    const char *path; /* the file, for messages */
    const char *system, *task;
    double seed, step, value; /* value: NaN if it is missing */
    const char *settings;     /* of the training, "KEY=VALUE KEY=VALUE ..."; NULL: not known */
};

/* Start with {0}. */
struct ks_score_rows {
    size_t n, room, n_names, name_room;
    struct ks_score_row *row; /* [n]; owned                     */
    char **name;              /* [n_names] the strings of the rows, each once; all owned */
};

/* Adds the rows of a CSV file. Its columns may have these names, of which the first that the file
 * has counts; other columns are ignored:
 *
 *   the system    method, system, architecture, exp_name (none: the file's name without ".csv")
 *   the task      env, env_name, task
 *   the run       seed
 *   the step      env_step, step
 *   the score     return, return_mean, value, score
 *
 * Fails with KS_IO or KS_FORMAT. */
ks_status ks_score_rows_add_csv(const char *path, struct ks_score_rows *rows);

/* Adds the runs of a study's folder: of each evaluation up to the study's end `return_mean`, or for
 * tasks of MyoSuite `success`, from progress.csv. An evaluation without a finite score gives no
 * row, except for the last one, which gives a row with NaN. Fails with KS_IO or KS_FORMAT. */
ks_status ks_score_rows_add_study(const char *dir, struct ks_score_rows *rows);

/* Keeps only the rows of the systems in `list`, names between commas, which is overwritten. Fails
 * with KS_USAGE if one of them has no rows. */
ks_status ks_score_rows_keep(struct ks_score_rows *rows, char *list);

void ks_score_rows_free(struct ks_score_rows *rows);

/* The names of all systems; of the tasks of a system (NULL: of all systems). Each name once, in the
 * order of the rows, into *names, which the caller frees; the strings belong to `rows`. */
ks_status ks_score_rows_systems(const struct ks_score_rows *rows, size_t *n, const char ***names);
ks_status ks_score_rows_tasks(const struct ks_score_rows *rows, const char *system, size_t *n,
                              const char ***names);

#endif
