/* Evaluation: episodes of the actor's mean action in an environment of their own. */
#ifndef KS_TRAIN_EVALUATION_H
#define KS_TRAIN_EVALUATION_H

#include <stddef.h>

#include "core/error.h"
#include "train/learner.h"
#include "train/plan.h"
#include "train/player.h"

struct ks_evaluation {
    const struct ks_plan *plan; /* not owned */
    struct ks_player player;
    double return_mean;      /* of the last evaluation; NaN before the first */
    double *episode_returns; /* [eval_episodes] of the last one; owned       */
    double success;          /* share of its episodes that solved the task; 0 without a goal */
};

/* `evaluation` is zero. On failure the caller still frees it. */
ks_status ks_evaluation_init(const struct ks_plan *plan, struct ks_evaluation *evaluation);
void ks_evaluation_free(struct ks_evaluation *evaluation); /* frees what it holds */

/* Plays eval_episodes episodes of a = tanh(mean), with the learner's agent as it is; `number`
 * determines their start states. Fails as ks_env_step, and with KS_RUN if the run is asked to stop.
 */
ks_status ks_evaluate(struct ks_evaluation *evaluation, const struct ks_learner *learner,
                      size_t number);

#endif
