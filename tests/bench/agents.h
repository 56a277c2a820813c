/* Agents of the study's architectures and random transitions, for benchmarks of updates. */
#ifndef KS_BENCH_AGENTS_H
#define KS_BENCH_AGENTS_H

#include "agent/agent.h"
#include "train/architecture.h"

#include "critics.h"

/* CYCLE: the actor steps in one update of them; with images in each. */
enum { ENSEMBLE = 2, CYCLE = 3 };

struct agent_case {
    const char *architecture;
    size_t width, observations, actions; /* width 0: the study's */
    int threads;
    enum ks_products products;
};

static inline struct KS(agent) *make_agent(const struct agent_case *c)
{
    struct ks_settings settings;
    struct KS(agent) *agent;
    char *text[KS_TEXTS];

    ks_settings_defaults(&settings);
    if (c->width)
        settings.hidden = settings.actor_hidden = c->width;
    must(ks_architecture(c->architecture, &settings, c->actions, text));
    must(KS(agent_new)(
        &(struct ks_agent_config){
            .critic = text[KS_CRITIC_TEXT],
            .actor = text[KS_ACTOR_TEXT],
            .pixels = text[KS_PIXELS_TEXT] ? (const char *const *)&text[KS_PIXELS_TEXT] : NULL,
            .observations = c->observations,
            .actions = c->actions,
            .ensemble = ENSEMBLE,
            .batch = BATCH,
            .gamma = 0.99,
            .tau = 0.005,
            .critic_rate = {3e-4, 3e-5, 1e6},
            .actor_rate = {3e-4, 3e-5, 1e6},
            .beta1 = 0.9,
            .temperature_beta1 = 0.9,
            .encoder_rate = {1e-4, 1e-4, 1},
            .noise_clip = 0.3,
            .policy_delay = text[KS_PIXELS_TEXT] ? 1 : CYCLE,
            .temperature = 0.01,
            .target_entropy = -19,
            .products = c->products,
            .threads = c->threads},
        &agent));
    ks_texts_free(text);
    return agent;
}

static inline float *uniform(size_t n)
{
    struct ks_rng rng = ks_rng_start(0, n);
    float *a;

    must(ks_alloc(n, sizeof *a, &a));
    for (size_t i = 0; i < n; i++)
        a[i] = (float)ks_rng_uniform(&rng, -1, 1);
    return a;
}

/* Random transitions, all with the reward 1; `free_transitions` frees them. */
static inline struct ks_batch make_transitions(const struct agent_case *c)
{
    double *reward;
    float *mask;

    must(ks_alloc(BATCH, sizeof *reward, &reward));
    must(ks_alloc(BATCH, sizeof *mask, &mask));
    for (size_t i = 0; i < BATCH; i++)
        reward[i] = mask[i] = 1;
    return (struct ks_batch){uniform(BATCH * c->observations), uniform(BATCH * c->actions),
                             uniform(BATCH * c->observations + 1), reward, mask};
}

static inline void free_transitions(const struct ks_batch *batch)
{
    free((void *)batch->s), free((void *)batch->a), free((void *)batch->next_s);
    free((void *)batch->reward), free((void *)batch->mask);
}

#endif
