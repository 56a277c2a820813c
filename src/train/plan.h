/* Everything about a run that is known before its first step and does not change afterwards. */
#ifndef KS_TRAIN_PLAN_H
#define KS_TRAIN_PLAN_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "env/env.h"
#include "train/architecture.h"
#include "train/settings.h"

/* Environment steps at which a run evaluates or writes a checkpoint, ascending. */
struct ks_milestones {
    size_t n, *env_step; /* [n]; owned */
};

struct ks_plan {
    const struct ks_train_options *options; /* not owned                                      */
    /* Of the run; of the architecture, for messages; of the task; see ks_env_identity, NULL: a task
     * of the table. They belong to the options and the environment. */
    const char *folder, *name, *task, *task_identity;
    char *text[KS_TEXTS]; /* descriptions of the networks; NULL: there is none. Owned */
    double gamma;
    size_t agent_steps; /* of the complete run                                             */
    size_t end;         /* the environment step at which training ends, after a whole number
                         * of agent steps                                                  */
    bool stops_early;   /* `end` comes before the end of the complete run                  */
    struct ks_milestones evaluations, checkpoints;
};

/* `plan` is zero; `env` is an environment of options->env. On failure (KS_USAGE, KS_FORMAT, KS_IO,
 * KS_MEMORY) the caller still frees it. */
ks_status ks_plan_init(const struct ks_train_options *options, const struct ks_env *env,
                       struct ks_plan *plan);
/* KS_USAGE if the run would make no update. */
ks_status ks_plan_check(const struct ks_plan *plan);
void ks_plan_free(struct ks_plan *plan); /* frees what it holds */

/* The path of a file in the run's folder; the caller frees *path. */
ks_status ks_plan_path(const struct ks_plan *plan, const char *name, char **path);
/* The path of the checkpoint of an environment step; the caller frees *path. */
ks_status ks_plan_checkpoint_path(const struct ks_plan *plan, size_t env_step, char **path);

#endif
