/* Test fixtures for the tasks of MyoSuite. */
#ifndef KS_ONE_MYOSUITE_H
#define KS_ONE_MYOSUITE_H

#include "one_env.h"

enum { HAND = 23, MUSCLES = 39 };

static const char *const tasks[] = {"myo-key-turn",      "myo-key-turn-hard", "myo-obj-hold",
                                    "myo-obj-hold-hard", "myo-pen-twirl",     "myo-pen-twirl-hard",
                                    "myo-pose",          "myo-pose-hard",     "myo-reach",
                                    "myo-reach-hard"};
enum { TASKS = sizeof tasks / sizeof *tasks };

/* Makes one control step with this action for all muscles; returns the reward. */
static inline double step(double action, enum ks_env_end *end)
{
    double actions[MUSCLES], value;

    for (size_t i = 0; i < MUSCLES; i++)
        actions[i] = action;
    assert_ok(ks_env_step(env, actions, seen, &value, end));
    return value;
}

#endif
