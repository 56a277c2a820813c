/* What the tasks of MyoSuite have in common: MyoHand, with 23 joints and 39 muscles, whose joints
 * and muscles are the first ones of every model. MyoSuite 2.5.0, envs/env_base.py,
 * envs/myo/base_v0.py, envs/myo/myobase/__init__.py; the training program of XQC's authors
 * (xqc/envs/envs.py) has a time limit of 100 control steps and action repeat 2 for all of them.
 *
 * A task's `goal` is 0 if its target and its start state are fixed, 1 if they are random ("-hard").
 *
 * Where MyoSuite resets a simulation that has diverged and goes on, this ends the episode. */
#ifndef KS_ENV_MYOSUITE_H
#define KS_ENV_MYOSUITE_H

#include "env/domain.h"

enum { KS_HAND_JOINTS = 23, KS_HAND_MUSCLES = 39 };
static const double KS_PALM_UP = -1.5; /* pro_sup, the hand's first joint */

/* A domain with a hand: its model, with q more positions and v more velocities of an object, the
 * seconds of a control step, and what else differs between the five domains. */
#define KS_MYO_DOMAIN(file, q, v, seconds, ...)                                                    \
    {                                                                                              \
        .suite = &ks_env_myosuite,                                                                 \
        .model = {file, .nq = KS_HAND_JOINTS + (q), .nv = KS_HAND_JOINTS + (v),                    \
                  .nu = KS_HAND_MUSCLES, .na = KS_HAND_MUSCLES},                                   \
        .control_step = seconds, __VA_ARGS__                                                       \
    }

/* Begins an episode: makes its changes to the model, then resets the simulation to the model's own
 * pose, so that nothing of the episode before has an effect. */
void ks_env_myo_begin(struct ks_env *env);

/* Components of observations; both return the new end. Velocities, from number `first` on, are
 * multiplied by the length of a control step. */
double *ks_env_myo_append_velocities(const struct ks_env *env, int first, int n, double *out);
double *ks_env_myo_append_activations(const struct ks_env *env, double *out);

/* The norm of the muscles' activations over their number. */
double ks_env_myo_effort(const struct ks_env *env);
/* How many of two thresholds a distance is below. */
double ks_env_myo_bonus(double distance, double near, double nearer);

#endif
