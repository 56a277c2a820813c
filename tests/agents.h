/* Small agents and minibatches for tests. */
#ifndef KS_TEST_AGENTS_H
#define KS_TEST_AGENTS_H

#include <stdlib.h>
#include <string.h>

#include "test.h"

#include "ks/agent.h"
#include "ks/architecture.h"
#include "ks/rng.h"

enum { OBSERVATIONS = 5, ACTIONS = 3, BATCH = 6, WIDTH = OBSERVATIONS + ACTIONS };

/* Descriptions of one of the twelve, small; owned by the caller. */
static inline void describe_small(const char *name, char **critic, char **actor)
{
    struct ks_settings settings;

    ks_settings_start(&settings);
    settings.hidden = 7;
    settings.actor_hidden = 6;
    settings.depth = settings.actor_depth = 2;
    settings.atoms = 11;
    settings.v_min = -3;
    settings.v_max = 4;
    assert_ok(ks_architecture(name, &settings, ACTIONS, critic, actor));
}

static inline struct ks_agent_config small_config(const char *critic, const char *actor)
{
    return (struct ks_agent_config){.critic = critic,
                                    .actor = actor,
                                    .observations = OBSERVATIONS,
                                    .actions = ACTIONS,
                                    .ensemble = 2,
                                    .batch = BATCH,
                                    .gamma = 0.9,
                                    .tau = 0.1,
                                    .critic_rate = {1e-3, 1e-4, 100},
                                    .actor_rate = {1e-3, 1e-4, 100},
                                    .policy_delay = 3,
                                    .temperature = 0.2,
                                    .target_entropy = -1.5,
                                    .seed = 7,
                                    .threads = 1};
}

struct transitions {
    float s[BATCH * OBSERVATIONS], a[BATCH * ACTIONS], next_s[BATCH * OBSERVATIONS], mask[BATCH];
    double reward[BATCH];
};

static inline struct ks_batch draw_transitions(struct transitions *t, uint64_t seed)
{
    struct ks_rng rng = ks_rng_start(seed, 99);

    for (size_t i = 0; i < BATCH * OBSERVATIONS; i++) {
        t->s[i] = (float)(1 + 2 * ks_rng_normal(&rng));
        t->next_s[i] = (float)(1 + 2 * ks_rng_normal(&rng));
    }
    for (size_t i = 0; i < BATCH * ACTIONS; i++)
        t->a[i] = (float)ks_rng_uniform(&rng, -1, 1);
    for (size_t i = 0; i < BATCH; i++) {
        t->reward[i] = ks_rng_normal(&rng);
        t->mask[i] = i % 3 != 1;
    }
    return (struct ks_batch){t->s, t->a, t->next_s, t->reward, t->mask};
}

#endif
