/* The random streams of a run, all from its seed.
 *
 * A stream has a purpose and an index (a critic, an evaluation). The draws of an update start at
 * position update * (draws per update) of the stream, so the run's counters determine its random
 * state (except for KS_RESETS, whose position is stored). */
#ifndef KS_AGENT_STREAM_H
#define KS_AGENT_STREAM_H

#include <stdint.h>

#include "core/rng.h"

enum ks_purpose {
    KS_INIT_CRITIC = 1, /* initial parameters; index: the critic          */
    KS_INIT_ACTOR,
    KS_RESETS,          /* start states of the training episodes          */
    KS_EXPLORATION,     /* actions of the training episodes               */
    KS_REPLAY,          /* minibatches                                    */
    KS_NEXT_ACTION,     /* noise of a' in an update                       */
    KS_POLICY_ACTION,   /* noise of the actor's loss                      */
    KS_EVALUATION,      /* start states; index: the evaluation            */
    KS_FROZEN_REPLAY,   /* minibatches of a checkpoint; index: env step   */
    KS_FROZEN_ACTION,   /* noise of their a'; index: env step             */
    KS_INIT_OPTIMIST,   /* initial parameters                             */
    KS_OPTIMIST_ACTION, /* noise of the optimistic actor's loss           */
    KS_INIT_ENCODER,    /* initial parameters; index: the network         */
    KS_ENCODER_REPLAY   /* minibatches of the encoder's loss              */
};

static inline struct ks_rng ks_stream(uint64_t seed, enum ks_purpose purpose, uint64_t index)
{
    return ks_rng_start(seed, (uint64_t)purpose << 56 | index);
}

#endif
