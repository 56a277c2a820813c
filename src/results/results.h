/* The results in a study's folder: spectra and returns of its runs, and which runs can be
 * aggregated. */
#ifndef KS_RESULTS_RESULTS_H
#define KS_RESULTS_RESULTS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "core/memory.h"
#include "io/csv.h"
#include "io/spectrum.h"
#include "statistics/catalogue.h"
#include "study/study_file.h"

struct ks_result {
    size_t architecture, seed; /* indices in the study                                      */
    /* [n_analyses, n_checkpoints] of the study, the standard analysis first; NULL: missing. The
     * spectra are owned. */
    struct ks_spectrum **spectrum;
    double *returns;           /* [n_evaluations] of the study; NaN: missing                */
    bool is_over;              /* trained to the end or to `stop`, as its run.json says     */
    bool complete;             /* whether it can be aggregated                              */
    bool exists;               /* false: a name from elsewhere lacks this seed              */
    char began[KS_STUDY_DATE]; /* the day on which its training began; "": unknown */
};

struct ks_results {
    char *dir; /* owned */
    struct ks_study *study;
    struct ks_study *own_study; /* what `study` points to if it was read from the folder; owned */
    struct ks_pool pool;        /* the arrays, also of runs. Owned */
    size_t n_runs;
    struct ks_result *run; /* [architectures, seeds] */
    bool *included;        /* [architectures] whether any of its runs is complete */
    /* [n_analyses, architectures] of the included ones, the standard analysis first */
    struct ks_comparability *conditions;
    size_t n_groups; /* of architectures whose spectra are comparable */
    /* The steps that are aggregated: all, or with grid = common the steps that every completed run
     * has. [n_checkpoints], [n_evaluations]. */
    bool *common_checkpoint, *common_evaluation;
    struct ks_list warnings; /* one line each, which are printed and go into the report. Owned */
};

/* Finds the steps that are aggregated and the runs that are complete; warns about what is missing.
 * Part of ks_results_read. KS_MEMORY. */
ks_status ks_results_judge(struct ks_results *results);

/* Reads the existing results of `study`, which must outlive *results; NULL: of dir/study.study.
 * Takes back `factors` of runs from elsewhere whose loss their spectra contradict.
 *
 * Missing results and a malformed progress.csv make their run incomplete: it is left out, and one
 * warning names all such runs. There are two exceptions. If the training of a run is over, a
 * missing spectrum belongs to a failed analysis: the run is complete, and the spectrum's statistics
 * are NaN, which the tables drop and count. Missing spectra of further analyses never make a run
 * incomplete and are counted in the same way.
 *
 * Fails (KS_FORMAT, KS_IO) on a spectrum that cannot be read or belongs to another checkpoint, on
 * two returns at one step, and on a return that is NaN or infinite unless missing = drop. The
 * caller frees. */
ks_status ks_results_read(const char *dir, struct ks_study *study, struct ks_results **results);
void ks_results_free(struct ks_results *results); /* NULL is fine */
KS_OWNER(ks_results_free, struct ks_results *)

/* The complete runs of an architecture. */
struct ks_runs {
    size_t n;
    const struct ks_result *run[KS_STUDY_SEEDS];
};
struct ks_runs ks_results_runs(const struct ks_results *results, size_t architecture);

/* Adds a warning if architectures have too few runs: bootstrap intervals are then too narrow. */
ks_status ks_results_warn_intervals(struct ks_results *results);

/* *path = a file in the folder of a run; the caller frees. */
ks_status ks_results_path(const struct ks_results *results, const struct ks_result *run,
                          const char *name, char **path);
/* The progress.csv of a run; NULL if it is missing or is no table, about which ks_results_read has
 * warned. The caller frees. */
ks_status ks_results_progress(const struct ks_results *results, const struct ks_result *run,
                              struct ks_csv **csv);

/* The spectrum of an analysis at a checkpoint, or NULL. */
const struct ks_spectrum *ks_results_spectrum(const struct ks_results *results,
                                              const struct ks_result *run, size_t analysis,
                                              size_t checkpoint);
/* A statistic of that spectrum; NaN if the spectrum or the statistic is missing. */
double ks_results_statistic(const struct ks_results *results, const struct ks_result *run,
                            size_t analysis, size_t checkpoint, enum ks_statistic_id statistic);

/* Whether a checkpoint is pooled in an analysis: it is aggregated, after the first update (before,
 * spectra say nothing about training), and the study asks for it. */
bool ks_results_is_pooled(const struct ks_results *results, size_t analysis, size_t checkpoint);

/* Whether a checkpoint is aggregated and any run of the architecture has it; the last such one. */
bool ks_results_has(const struct ks_results *results, size_t architecture, size_t checkpoint);
size_t ks_results_last(const struct ks_results *results, size_t architecture);
/* Whether an evaluation is aggregated and every complete run of the architecture has its return. */
bool ks_results_has_return(const struct ks_results *results, size_t architecture,
                           size_t evaluation);

/* The operator of a spectrum of all critics and layers; NULL for one of a block. Points into it. */
const char *ks_results_operator(const struct ks_spectrum *spectrum);

/* The included architectures in the order of tables and plots: by loss (ce, mse, other), then
 * normalization (bn, ln, dense, other), then without weight normalization before with it, then
 * variants behind what they change. Returns their number. */
size_t ks_results_order(const struct ks_results *results, size_t *architecture);

/* --- What makes spectra incomparable (conditions.c). --- */

enum ks_condition {
    KS_CONDITION_MINIBATCHES, /* their number                                           */
    KS_CONDITION_ROWS,        /* their size: rows that carry loss                       */
    KS_CONDITION_ORDER,       /* Lanczos steps                                          */
    KS_CONDITION_OPERATOR,
    KS_CONDITION_DISCOUNT,
    KS_CONDITION_REWARD_SCALE,
    KS_CONDITION_LOSS,
    KS_CONDITION_KIND,       /* of minibatches: fixed in a run, or fresh at each checkpoint    */
    KS_CONDITION_PARAMETERS, /* their number; compared only within an architecture             */
    KS_CONDITIONS
};

struct ks_comparability {
    /* The distinct values in the spectra of this architecture and analysis, in the order in which
     * these have them; none without a spectrum, for the standard analysis "not said". Owned. */
    struct ks_list value[KS_CONDITIONS];
    bool differs[KS_CONDITIONS]; /* from the values of group 1, or its own spectra differ     */
    bool mixed; /* its own spectra differ; for the standard analysis: in any analysis           */
    /* Set for the standard analysis: architectures of one group can be compared. Counted from 1; 0
     * for one from elsewhere that has no spectra. */
    size_t group;
};

/* Fills results->conditions and n_groups, at least 1. Two architectures agree if they do in each
 * analysis of which both have spectra. Architectures that are trained here are in group 1: in
 * what they differ, such as their losses, is the study's design; likewise the losses of runs from
 * elsewhere with `factors`. The reward scale of runs that are trained here is not compared, as they
 * set it by their own returns. Others are in the first group with whose members they agree.
 * KS_MEMORY. */
ks_status ks_conditions_find(struct ks_results *results);
/* Whether two architectures are in one group, or one of them is in none. */
bool ks_results_comparable(const struct ks_results *results, size_t a, size_t b);
/* Frees the values of all conditions. */
void ks_conditions_clear(struct ks_results *results);
/* *text = "19 and 20": all values of a condition; the caller frees. KS_MEMORY. */
ks_status ks_condition_print(const struct ks_comparability *conditions, enum ks_condition condition,
                             char **text);
/* *text = "loss huber; discount 0.9": the conditions in which an architecture differs from group 1,
 * or its own spectra differ. If only a further analysis differs, its name follows: "order 9 in
 * [analyze xqc]". against: an architecture of group 1, whose values follow, "discount 0.9 against
 * 0.99"; n_architectures for none. The caller frees. KS_MEMORY. */
ks_status ks_conditions_print(const struct ks_results *results, size_t architecture, size_t against,
                              char **text);

/* --- The returns of one run of a study, from its progress.csv. --- */

/* A run of a study: indices into study->architecture and study->seed; and the column of its
 * progress.csv that is read: "return_mean". */
struct ks_study_run {
    size_t architecture, seed;
    const char *column;
    bool is_over; /* as its run.json says: its table has all returns */
};

/* Reads the returns of a run from the progress.csv in `folder`, or the returns.csv of one from
 * elsewhere, into returns [n_evaluations of the study]; missing returns leave their entries as they
 * are. If the file cannot be read as a table, *malformed is true, the message is in ks_error_text()
 * and the status is KS_OK. Fails with KS_FORMAT on two returns at one step, and on a NaN or
 * infinite return unless the study says missing = drop; if the run is over, also on a file that is
 * missing or no table (KS_IO, KS_FORMAT), and on a missing return unless the study says grid =
 * common. Of a run from elsewhere, a table whose last return is not usable counts as malformed, and
 * other such returns as missing. */
ks_status ks_returns_read(const struct ks_study *study, struct ks_study_run run, const char *folder,
                          double *returns, bool *malformed);

#endif
