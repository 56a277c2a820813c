/* A study: what a `.study` file asks for. Its form is in configs/README.md. */
#ifndef KS_STUDY_STUDY_FILE_H
#define KS_STUDY_STUDY_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "train/settings.h"

enum {
    KS_STUDY_ARCHITECTURES = 64,
    KS_STUDY_SEEDS = 256,
    KS_STUDY_SETTINGS = 64,
    KS_STUDY_ANALYSES = 16,
    KS_STUDY_NAME = 32 /* characters of the name of an analysis, as in options.h */
};

struct ks_setting {
    char *key, *value; /* owned */
    size_t line;       /* where it stands in the file */
};

/* What is computed of every checkpoint: the options of [analyze], or those of [analyze NAME]. */
struct ks_study_analysis {
    char name[KS_STUDY_NAME + 1]; /* NAME; KS_STUDY_STANDARD for [analyze] */
    size_t n;
    struct ks_setting setting[KS_STUDY_SETTINGS];
};
#define KS_STUDY_STANDARD "standard"

struct ks_study_architecture {
    char *name;     /* "bn+wn+ce": names the folder; owned                          */
    char *word;     /* as the study's file writes it: the name, or a file; owned    */
    char *argument; /* what training gets as --arch: the name, or the file's path from the working
                     * directory; owned */
    /* What the names of the twelve say: "bn", "ln" or "dense"; "ce" or "mse"; else "other",
     * "other". */
    const char *normalization, *loss;
    bool weight_normalization;
};

struct ks_study {
    char *path, *name, *text; /* the file, its name without folder and .study, its bytes; owned */
    size_t env_line;          /* where env stands in the file */
    char *env;                /* owned */
    size_t n_architectures, n_seeds, steps;
    size_t stop, stop_line; /* runs stop there, schedules are those of `steps`; 0: at the end */
    struct ks_study_architecture architecture[KS_STUDY_ARCHITECTURES];
    size_t seed[KS_STUDY_SEEDS];
    bool drop_missing; /* missing = drop: runs without a number leave; else an error */
    bool common_grid;  /* grid = common: only the steps that all runs have          */
    size_t n_train, n_analyses;
    struct ks_setting train[KS_STUDY_SETTINGS];
    struct ks_study_analysis analysis[KS_STUDY_ANALYSES]; /* the standard one is always the first */
    struct ks_settings settings;                          /* the defaults and [train] */
    /* What follows from them, in environment steps. The last agent step ends at `end`; checkpoints
     * and evaluations are those of the schedules up to there. */
    size_t first_update; /* no update before it */
    size_t end;
    size_t n_checkpoints, *checkpoint; /* owned */
    size_t n_scheduled;                /* checkpoints of runs that do not stop, in the same list */
    size_t n_evaluations, *evaluation; /* owned */
};

/* Reads and checks; what is wrong is named by file and line (KS_FORMAT, KS_IO). With `check_files`
 * the architectures have to be there, too. The caller frees. */
ks_status ks_study_read(const char *path, bool check_files, struct ks_study **study);
void ks_study_free(struct ks_study *study); /* NULL is fine */

/* Refuses what an analysis asks of critics that will not have it, for a task of these widths: so
 * many minibatches, that critic, that layer, a projection; KS_FORMAT with file and line. */
ks_status ks_study_check(const struct ks_study *study, size_t observations, size_t actions);

/* Of two studies that were read without check_files: what stands in the way of going on with the
 * trainings of `held` as those of `asked`, NULL where nothing does: `asked` may have another `stop`
 * and further architectures and seeds, and with `any_threads` another number of threads. */
const char *ks_study_difference(const struct ks_study *asked, const struct ks_study *held,
                                bool any_threads);
/* Of two analyses: whether they have the same options; whether those are the same that the kept
 * Lanczos steps (--keep-basis) depend on, so that the one can go on with the steps of the other. */
bool ks_study_same_analysis(const struct ks_study_analysis *a, const struct ks_study_analysis *b);
bool ks_study_same_steps(const struct ks_study_analysis *a, const struct ks_study_analysis *b);

/* The study's analysis of that name; NULL where it has none. */
const struct ks_study_analysis *ks_study_find_analysis(const struct ks_study *study,
                                                       const char *name);

/* "runs/ENV/ARCHITECTURE/seedS" into *folder, which the caller frees. */
ks_status ks_study_run_folder(const struct ks_study *study, size_t architecture, size_t seed,
                              char **folder);

/* A file that an analysis of the checkpoint at `step` writes: "FOLDER/step_000001000ENDING" of the
 * standard one, "FOLDER/step_000001000.NAMEENDING" of [analyze NAME]. The caller frees *path. */
ks_status ks_study_output(const struct ks_study_analysis *analysis, const char *folder, size_t step,
                          const char *ending, char **path);
#define KS_STUDY_SPECTRUM ".spectrum.h5"

/* What run.json in a run's folder says of it. */
struct ks_study_run_state {
    char word[16];   /* "running", "stopped", "finished", "failed"; "waiting" where there is no such
                      * file, "unknown" where it cannot be read */
    size_t env_step; /* the environment step that it was written at; 0 where it says none */
};
ks_status ks_study_run_state(const char *dir, const char *folder, struct ks_study_run_state *state);
/* The run is over for this study: finished, or stopped at `stop` or later. */
bool ks_study_run_is_over(const struct ks_study *study, const struct ks_study_run_state *state);

/* The file that is meant by `argument`: with a slash or .study at its end, that file; else the
 * shipped study of that name, and where there is none, that file. The caller frees *path. */
ks_status ks_study_find(const char *argument, char **path);

#endif
