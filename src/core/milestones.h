/* Milestones: the environment steps at which a run writes checkpoints and evaluates its policy.
 *
 * The training loop stops at them, and a study derives the names of its checkpoint files from
 * them. */
#ifndef KS_CORE_MILESTONES_H
#define KS_CORE_MILESTONES_H

#include <stddef.h>

/* The most environment steps of a run; small enough that step * count below fits 64 bits. */
#define KS_MOST_STEPS 1000000000000

/* Milestones for checkpoints of a run of `steps` environment steps: the steps steps * k /
 * checkpoints for k = 1..checkpoints, each rounded up to a multiple of `action_repeat`; and the
 * step just before the first update, random_steps * action_repeat (random_steps counts agent
 * steps), unless the run ends before it. Sets env_steps [checkpoints + 1], ascending and distinct,
 * and returns their number. */
size_t ks_milestones_checkpoints(size_t steps, size_t checkpoints, size_t random_steps,
                                 size_t action_repeat, size_t *env_steps);

/* Milestones for evaluations: step 0, then `evaluations` evenly spaced steps as above, the last one
 * at the end of the run. Sets env_steps [evaluations + 1], ascending and distinct, and returns
 * their number. */
size_t ks_milestones_evaluations(size_t steps, size_t evaluations, size_t action_repeat,
                                 size_t *env_steps);

/* The file name of the checkpoint at an environment step: "step_000050000.h5". */
void ks_checkpoint_name(size_t env_step, char name[32]);

#endif
