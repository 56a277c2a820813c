/* Milestones: the environment steps at which a run writes checkpoints and evaluates its policy.
 *
 * The training loop stops at them, and a study derives the names of its checkpoint files from
 * them. */
#ifndef KS_CORE_MILESTONES_H
#define KS_CORE_MILESTONES_H

#include <stddef.h>

/* The most environment steps of a run; small enough that step * count below fits 64 bits. */
#define KS_MOST_STEPS 1000000000000

/* Milestones of a run of `steps` environment steps: the steps steps * k / count for k = 1..count,
 * each rounded up to a multiple of `action_repeat`; and the step `also`, a multiple too, unless the
 * run ends before it: for checkpoints the step just before the first update, for evaluations 0.
 * Sets env_steps [count + 1], ascending and distinct, and returns their number. */
size_t ks_milestones(size_t steps, size_t count, size_t also, size_t action_repeat,
                     size_t *env_steps);

/* The file name of the checkpoint at an environment step: "step_000050000.h5". */
void ks_checkpoint_name(size_t env_step, char name[32]);

#endif
