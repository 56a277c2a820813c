/* A study, as a `.study` file describes it. configs/README.md documents the format. */
#ifndef KS_STUDY_STUDY_FILE_H
#define KS_STUDY_STUDY_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "core/memory.h"
#include "pipeline/options.h"
#include "train/settings.h"

struct ks_spectrum;

enum {
    KS_STUDY_ARCHITECTURES = 64,
    KS_STUDY_SEEDS = 256,
    KS_STUDY_SETTINGS = 64,
    KS_STUDY_ANALYSES = 16,
    KS_STUDY_NAME = 32 /* characters in the name of an analysis, as in options.h */
};

struct ks_setting {
    char *key, *value; /* owned */
    size_t line;       /* its line in the file */
};
/* The setting of that key among list[n], or NULL. */
const struct ks_setting *ks_setting_find(const struct ks_setting *list, size_t n, const char *key);

/* What a further analysis is of. */
enum ks_study_checkpoints {
    KS_STUDY_ALL,
    KS_STUDY_TRAINED, /* those after the first update             */
    KS_STUDY_LAST     /* the last one up to the end of the study  */
};
struct ks_study_scope {
    enum ks_study_checkpoints checkpoints;
    char *architectures;             /* names of the study's architectures; NULL: of all; owned */
    size_t line;                     /* of `architectures` in the file                          */
    bool of[KS_STUDY_ARCHITECTURES]; /* which they are                              */
};

/* One analysis: the options of [analyze] or of [analyze NAME]. */
struct ks_study_analysis {
    char name[KS_STUDY_NAME + 1]; /* NAME; KS_STUDY_STANDARD for [analyze] */
    struct ks_study_scope scope;
    size_t n;
    struct ks_setting setting[KS_STUDY_SETTINGS]; /* as the file writes them       */
    struct ks_analyze_options asked;              /* as they are given; texts: of `setting` */
    struct ks_spectrum_options options;           /* as the analyzer will use them */
};
#define KS_STUDY_STANDARD "standard"

struct ks_study_architecture {
    char *name;     /* "bn+wn+ce", or the NAME of [variant NAME]: names the folder; owned */
    char *word;     /* as the study's file writes it: the name, or a file; owned    */
    char *argument; /* what training gets as --arch: the name, or the file's path from the working
                     * directory; owned */
    /* Of the twelve named architectures and their variants "bn", "ln" or "dense", and "ce" or
     * "mse"; else "other". */
    const char *normalization, *loss;
    bool weight_normalization;
    bool elsewhere;   /* its runs were trained elsewhere: the name is only their folder's      */
    bool has_factors; /* a key `factors NAME` says the three above of runs from elsewhere      */
    size_t family;    /* the number of its group in `family`, from 1; 0: it is in none         */
    size_t line;      /* of [variant NAME] in the file; 0: from the list `architectures` */
    size_t n_own;     /* settings that the variant changes */
    struct ks_setting own[KS_STUDY_SETTINGS];
    struct ks_settings settings; /* the defaults, [train] and its own */
};

struct ks_study {
    char *path, *name, *text; /* the file, its name without folder and .study, its bytes; owned */
    char *folder;             /* that of the file: runs from elsewhere are there; owned */
    size_t env_line;          /* the line of env in the file */
    char *env;                /* the task's name, owned */
    char *env_argument;       /* what training gets: the name, or the path of its file; owned */
    size_t n_architectures, n_seeds, steps;
    size_t stop, stop_line; /* runs stop at step `stop` (0: at `steps`), with the milestones of a
                             * run of `steps`; its line in the file */
    struct ks_study_architecture architecture[KS_STUDY_ARCHITECTURES];
    size_t seed[KS_STUDY_SEEDS];
    bool elsewhere; /* trained = elsewhere: it trains no runs */
    char *family;   /* groups of names that share a colour: "a b | c"; NULL: none; owned */
    size_t family_line, n_factors;
    struct ks_setting factors[KS_STUDY_ARCHITECTURES]; /* NAME, and its factors: "bn wn ce" */
    bool drop_missing; /* missing = drop: runs with a NaN return are left out */
    bool common_grid;  /* grid = common: only the steps that all runs (from
                        * elsewhere: of a name) have */
    size_t n_train, n_analyses;
    struct ks_setting train[KS_STUDY_SETTINGS];
    struct ks_study_analysis analysis[KS_STUDY_ANALYSES]; /* the standard one is always the first */
    struct ks_settings settings;                          /* the defaults and [train] */
    /* Derived, in environment steps. */
    size_t first_update;               /* the step of the first gradient update                  */
    size_t end;                        /* where the last agent step ends: `stop` or `steps`,
                                        * rounded up                                             */
    size_t n_checkpoints, *checkpoint; /* [n_scheduled] owned; the first n_checkpoints are <= end */
    size_t n_scheduled;                /* checkpoints of runs that go on to `steps`              */
    size_t n_evaluations, *evaluation; /* [n_evaluations] owned; those up to `end`               */
    /* Of a study with runs from elsewhere: which steps each run has, [architectures, seeds, steps].
     * NULL: every run has all. Owned. */
    bool *has_checkpoint, *has_return;
    struct ks_list warnings; /* about files of runs from elsewhere, a line each. Owned */
};

/* Why a study is read. RUN: to run its jobs; its architectures must be known names or existing
 * files. COMPARE: to see how a newer study differs from it; its folders are not looked at, as they
 * may have changed since. SHOW: anything else. */
enum ks_study_use { KS_STUDY_SHOW, KS_STUDY_RUN, KS_STUDY_COMPARE };
/* Reads and checks a file. Errors name file and line (KS_FORMAT, KS_IO). The caller frees. */
ks_status ks_study_read(const char *path, enum ks_study_use use, struct ks_study **study);
void ks_study_free(struct ks_study *study); /* NULL is fine */
KS_OWNER(ks_study_free, struct ks_study *)

/* Checks the analyses against the critics that the study will train, for a task of these widths:
 * the number of minibatches, the critic, the layer, a projected layer for `manifold`, the size for
 * `exact`. Fails with KS_FORMAT, file and line. */
ks_status ks_study_check(const struct ks_study *study, size_t observations, size_t actions);

/* Disk space in bytes, for the whole study; by the shapes of the arrays in float32, before their
 * compression, which saves a tenth to a fifth. */
struct ks_disk {
    double checkpoints; /* all of them, in the end                                     */
    double resume;      /* resume points and replay of one unfinished run; the largest */
};
/* For a task of these widths. Fails with KS_USAGE, KS_FORMAT, KS_IO or KS_MEMORY. */
ks_status ks_study_disk(const struct ks_study *study, size_t observations, size_t actions,
                        struct ks_disk *disk);

/* Whether a run has a checkpoint, and a return, at a step (an index). Of runs that are trained here
 * these are the steps that they are to have; of runs from elsewhere, what their folders hold. */
struct ks_study_place {
    size_t architecture, seed, step; /* indices in the study */
};
bool ks_study_has_checkpoint(const struct ks_study *study, struct ks_study_place at);
bool ks_study_has_return(const struct ks_study *study, struct ks_study_place at);
/* Whether any run of the architecture has a checkpoint there; the last such one. */
bool ks_study_has_any(const struct ks_study *study, size_t architecture, size_t checkpoint);
size_t ks_study_last_checkpoint(const struct ks_study *study, size_t architecture);
/* Whether the study has this run: not every name from elsewhere has all seeds. */
bool ks_study_has_run(const struct ks_study *study, size_t architecture, size_t seed);
bool ks_study_trains(const struct ks_study *study); /* whether it has architectures to train */
bool ks_study_has_seed(const struct ks_study *study, size_t seed);
bool ks_study_has_elsewhere(const struct ks_study *study); /* names of runs from elsewhere */

/* Whether the study asks for this analysis at this checkpoint (an index) of any architecture, or of
 * this one. [analyze] is of all. */
bool ks_study_asks_checkpoint(const struct ks_study *study, size_t analysis, size_t checkpoint);
bool ks_study_asks(const struct ks_study *study, size_t analysis, size_t architecture,
                   size_t checkpoint);
size_t ks_study_asked_checkpoints(const struct ks_study *study, size_t analysis,
                                  size_t architecture); /* their number */

/* For a study that its folder holds: systems which `asked` has under the same word are its files,
 * whose settings `held` gets. Fails like ks_study_read. */
ks_status ks_study_find_systems(struct ks_study *held, const struct ks_study *asked);
/* Compares a study with the one that its folder holds. Returns the name of a difference because of
 * which the runs of `held` cannot go on as runs of `asked`, NULL if they can. `asked` may have
 * another `stop` and more architectures and seeds, and with `any_threads` another number of
 * threads. */
const char *ks_study_difference(const struct ks_study *asked, const struct ks_study *held,
                                bool any_threads);
/* Whether two analyses have the same options. */
bool ks_study_same_analysis(const struct ks_study_analysis *a, const struct ks_study_analysis *b);

/* Analyses of a study, as indices. */
struct ks_study_analyses {
    size_t n, index[KS_STUDY_ANALYSES];
};
/* The analyses of the same checkpoints and architectures whose options differ from those of
 * `analysis` in the seed of the start vectors alone, or in whether rounding is measured; the
 * analysis itself comes first. */
struct ks_study_analyses ks_study_starts(const struct ks_study *study, size_t analysis);

/* The index of the architecture of that name; n_architectures if there is none. */
size_t ks_study_find_architecture(const struct ks_study *study, const char *name);
/* The architecture of the list `architectures` that a variant changes, as an index; n_architectures
 * if there is none. `architecture`: an index, too. */
size_t ks_study_base(const struct ks_study *study, size_t architecture);

/* The study's analysis of that name, or NULL. */
const struct ks_study_analysis *ks_study_find_analysis(const struct ks_study *study,
                                                       const char *name);

/* "runs/ENV/ARCHITECTURE/seedS" into *folder, which the caller frees. */
ks_status ks_study_run_folder(const struct ks_study *study, size_t architecture, size_t seed,
                              char **folder);

/* The path of a file that the analysis of the checkpoint at `step` writes:
 * "FOLDER/step_000001000ENDING" for the standard analysis, "FOLDER/step_000001000.NAMEENDING" for
 * [analyze NAME]. The caller frees *path. */
ks_status ks_study_output(const struct ks_study_analysis *analysis, const char *folder, size_t step,
                          const char *ending, char **path);
#define KS_STUDY_SPECTRUM ".spectrum.h5"

/* The state of a run, as the run.json in its folder says. */
enum { KS_STUDY_DATE = sizeof "2026-11-26" };
struct ks_study_run_state {
    char word[16];   /* "running", "stopped", "finished", "failed"; "waiting" if the file does not
                      * exist, "unknown" if it cannot be read */
    size_t env_step; /* the environment step at which it was written; 0: unknown */
    bool resumable;  /* it may go on: not finished, waiting, unknown or failed permanently */
    bool has_reason; /* a signal or an error ended it */
    char began[KS_STUDY_DATE]; /* the day on which it began, as 2026-11-26; "": unknown */
};
ks_status ks_study_run_state(const char *dir, const char *folder, struct ks_study_run_state *state);
/* Whether the run needs no more training for this study: finished, or stopped at `stop` or later. A
 * run that a signal stopped at `stop` itself is not over: it may lack its last checkpoint. */
bool ks_study_run_is_over(const struct ks_study *study, const struct ks_study_run_state *state);

/* Resolves a command-line argument to a file: an argument with a slash, or that ends in ".study",
 * is a path; another one is the name of a shipped study, or if there is none, a path. The path of a
 * folder stands for its study.study. The caller frees *path. */
ks_status ks_study_find(const char *argument, char **path);

/* The changes of the run in dir/folder: 'from environment step 16 on, blas_kernel was "Haswell", is
 * "SkylakeX"; ...'; "" if run.json has none or cannot be read. The caller frees *text. Fails only
 * for lack of memory. */
ks_status ks_changes_read(const char *dir, const char *folder, char **text);

/* A spectrum of a study. */
struct ks_study_spectrum {
    size_t architecture, seed, analysis; /* indices in the study */
    size_t step;                         /* environment step     */
};

/* Reads a spectrum. Refuses one whose attributes name another checkpoint or other options than the
 * study's analysis has, such as a spectrum made by hand. Fails with KS_FORMAT or KS_IO; the caller
 * frees. */
ks_status ks_study_read_spectrum(const struct ks_study *study, const struct ks_study_spectrum *id,
                                 const char *path, struct ks_spectrum **spectrum);

#endif
