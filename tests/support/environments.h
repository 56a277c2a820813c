/* One environment at a time. */
#ifndef KS_TEST_ENVIRONMENTS_H
#define KS_TEST_ENVIRONMENTS_H

#include "suites.h"

/* The current environment, and its last observation. */
extern struct ks_env *env;

extern double seen[WIDEST];

/* Replaces the current environment by one of this task. */
void take(const char *task);
int drop(void **state);

/* The reward in the given state, with all controls 0. */
double reward(const double *qpos, const double *qvel, const double *target);

#endif
