/* A training run: its plan and its state. */
#ifndef KS_TRAIN_RUN_H
#define KS_TRAIN_RUN_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "train/learner.h"
#include "train/metrics.h"
#include "train/plan.h"

/* The conditions under which a run is computed: threads, versions of the program, of OpenBLAS and
 * of MuJoCo, BLAS kernel, how layers multiply, MuJoCo's flags, and the processor's name. They
 * affect only how results are rounded. --resume=exact requires the same conditions, except for the
 * processor's name; --resume=any records what has changed. */
struct json_t; /* of jansson */

struct ks_conditions {
    struct json_t *now;     /* an object; owned */
    struct json_t *changes; /* since the start of the run: an array of {env_step, what, from, to};
                             * owned. With changes, a run is not bit for bit equal to one
                             * without. */
};

/* opengl: of frames (env.h); NULL: there are none. Fails with KS_MEMORY; the caller still frees.
 */
ks_status ks_conditions_init(const struct ks_agent_config *config, const char *mujoco_flags,
                             const char *opengl, struct ks_conditions *conditions);
void ks_conditions_free(struct ks_conditions *conditions); /* frees what it holds */

/* Compares with those in `found`, the description in the resume point `path`, to which it adds what
 * older versions did not write because it was always so. Fails with KS_USAGE, naming the first
 * condition that differs and --resume=any, unless that was given (`any`). */
ks_status ks_conditions_compare(const struct ks_conditions *conditions, const char *path,
                                struct json_t *found, bool any);
/* For a run that continues from a resume point, described by `found`: takes over the changes that
 * the point lists and, with --resume=any, appends the conditions that differ now, at env_step.
 * Fails with KS_MEMORY. */
ks_status ks_conditions_continue(struct ks_conditions *conditions, const struct json_t *found,
                                 bool any, size_t env_step);

/* What identifies a run: all that decides what it computes. In JSON: env, architecture, seed,
 * steps, settings (all but `threads`), critic and actor (their descriptions), and `task` for a task
 * of the user's own (its file). run.json and every resume point contain it. The caller frees it;
 * NULL if a name is not valid UTF-8 or memory runs out. */
struct json_t *ks_fingerprint(const struct ks_plan *plan);
/* Compares with `found`, read from the file `path`. A setting that `found` lacks, because an older
 * version wrote it, is added to it with its default. Fails with KS_USAGE: "PATH: WHAT: expected
 * NAME X, found Y". */
ks_status ks_fingerprint_compare(const struct ks_plan *plan, const char *path, const char *what,
                                 struct json_t *found);

struct ks_run {
    struct ks_plan plan;             /* fixed before the first step                        */
    struct ks_learner learner;       /* agent, environment, replay, counters               */
    struct ks_evaluation evaluation; /* its environment and the last returns               */
    struct ks_conditions conditions; /* threads, versions, ... and their changes           */
    struct ks_metrics *metrics;      /* progress.csv; NULL until it is opened; owned       */
    int lock;                        /* descriptor of the locked folder; -1: not locked    */
    bool recorded;                   /* the record due at the current step is written      */
    char started[32], resumed[32];   /* UTC, ISO 8601; resumed "": the run was not resumed */
    double *env_state;               /* [ks_env_state_size]: work space of state.c; owned  */
};

/* Builds everything but the metrics; nothing is written. Fails with KS_USAGE, KS_FORMAT, KS_IO,
 * KS_MISSING, KS_MEMORY. */
ks_status ks_run_new(const struct ks_train_options *options, struct ks_run **run);
void ks_run_free(struct ks_run *run);
KS_OWNER(ks_run_free, struct ks_run *)

#endif
