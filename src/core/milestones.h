/* Where a run stops to evaluate and to write checkpoints, in environment steps.
 *
 * The training engine follows this rule, and the study predicts the names of its files by it. */
#ifndef KS_CORE_MILESTONES_H
#define KS_CORE_MILESTONES_H

#include <stddef.h>

/* Environment steps of a run: what schedules multiply them by fits 64 bits. */
#define KS_MOST_STEPS 1000000000000

/* Checkpoints of a run of `steps` environment steps: `checkpoints` evenly spaced ones, at steps k /
 * checkpoints for k = 1.., each rounded up to a multiple of `action_repeat`, and one just before
 * the first update, at random_steps action_repeat (`random_steps` counts agent steps), unless the
 * run ends before it. Sets env_steps [checkpoints + 1], ascending and distinct; returns how many
 * there are. */
size_t ks_milestones_checkpoints(size_t steps, size_t checkpoints, size_t random_steps,
                                 size_t action_repeat, size_t *env_steps);

/* Evaluations: at the start, then `evaluations` times evenly as above, the last one at the end.
 * Sets env_steps [evaluations + 1], ascending and distinct; returns how many there are. */
size_t ks_milestones_evaluations(size_t steps, size_t evaluations, size_t action_repeat,
                                 size_t *env_steps);

/* The name of the checkpoint of an environment step, "step_000050000.h5", into name[32]. */
void ks_checkpoint_name(size_t env_step, char name[32]);

#endif
