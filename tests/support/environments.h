/* One environment at a time, and its comparison with recorded episodes and start states. */
#ifndef KS_TEST_ENVIRONMENTS_H
#define KS_TEST_ENVIRONMENTS_H

#include "suites.h"

enum { WIDEST = 376 };

/* The current environment, and its last observation. */
extern struct ks_env *env;

extern double seen[WIDEST];

/* Replaces the current environment by one of this task. */
void take(const char *task);
int drop(void **state);

/* The reward in the given state, with all controls 0. */
double reward(const double *qpos, const double *qvel, const double *target);

enum { HAND = 23, MUSCLES = 39 };

static const char *const myo_tasks[] = {
    "myo-key-turn",  "myo-key-turn-hard",  "myo-obj-hold", "myo-obj-hold-hard",
    "myo-pen-twirl", "myo-pen-twirl-hard", "myo-pose",     "myo-pose-hard",
    "myo-reach",     "myo-reach-hard"};

enum { MYO_TASKS = sizeof myo_tasks / sizeof *myo_tasks };

/* Makes one control step with this action for all muscles; returns the reward. */
double myo_step(double action, enum ks_env_end *end);

/* Compares the current environment with recorded episodes of its task. */
void check_episodes(const struct trajectory *t);

/* Draws start states, and forces the same ones with other velocities. */
void check_starts(const struct trajectory *t);

#endif
