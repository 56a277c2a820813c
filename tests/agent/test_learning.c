/* The whole agent learns a task of one step whose best action is known. With small networks, in
 * double. */
#include "test.h"

#include "agent/agent.h"
#include "core/rng.h"
#include "train/architecture.h"

enum { OBSERVATIONS = 4, ACTIONS = 1, BATCH = 64, UPDATES = 800 };

struct rows {
    float s[BATCH * OBSERVATIONS], a[BATCH], next_s[BATCH * OBSERVATIONS], mask[BATCH];
    double reward[BATCH];
};

/* With skips: three blocks, two of them residual. */
static struct KS(agent) *make_agent(const char *name, bool skip)
{
    struct ks_settings settings;
    struct KS(agent) *agent;
    char *text[KS_TEXTS];

    ks_settings_defaults(&settings);
    settings.hidden = settings.actor_hidden = 32;
    settings.depth = settings.actor_depth = skip ? 3 : 2;
    settings.skip = skip;
    settings.atoms = 51;
    assert_ok(ks_architecture(name, &settings, ACTIONS, text));
    assert_ok(KS(agent_new)(&(struct ks_agent_config){.critic = text[KS_CRITIC_TEXT],
                                                      .actor = text[KS_ACTOR_TEXT],
                                                      .observations = OBSERVATIONS,
                                                      .actions = ACTIONS,
                                                      .ensemble = 2,
                                                      .batch = BATCH,
                                                      .gamma = 0.9,
                                                      .tau = 0.02,
                                                      .critic_rate = {3e-3, 3e-4, UPDATES},
                                                      .actor_rate = {3e-3, 3e-4, UPDATES / 2},
                                                      .beta1 = 0.9,
                                                      .temperature_beta1 = 0.9,
                                                      .policy_delay = 2,
                                                      .temperature = 0.01,
                                                      .target_entropy = -2,
                                                      .seed = 11,
                                                      .threads = 1},
                            &agent));
    ks_texts_free(text);
    return agent;
}

static double best_action(const float *s)
{
    return 0.6 * (double)s[0];
}

/* Two numbers uniform on [-1, 1] and two constants, without which a layernorm would remove the
 * scale. */
static void draw_state(struct ks_rng *rng, float *s)
{
    s[0] = (float)ks_rng_uniform(rng, -1, 1);
    s[1] = (float)ks_rng_uniform(rng, -1, 1);
    s[2] = 1;
    s[3] = -1;
}

/* Actions uniform on [-1, 1]; reward 1 - 4 (a - best)^2. */
static struct ks_batch draw(struct rows *r, struct ks_rng *rng)
{
    for (size_t i = 0; i < BATCH; i++) {
        double off;

        draw_state(rng, r->s + i * OBSERVATIONS);
        draw_state(rng, r->next_s + i * OBSERVATIONS);
        r->a[i] = (float)ks_rng_uniform(rng, -1, 1);
        off = (double)r->a[i] - best_action(r->s + i * OBSERVATIONS);
        r->reward[i] = 1 - 4 * off * off;
        r->mask[i] = 0;
    }
    return (struct ks_batch){r->s, r->a, r->next_s, r->reward, r->mask};
}

static void learn(struct KS(agent) *a)
{
    struct ks_rng rng = ks_rng_start(12, 0);
    struct ks_update u;
    struct rows r;

    for (size_t k = 0; k < UPDATES; k++) {
        struct ks_batch batch = draw(&r, &rng);

        assert_ok(KS(agent_update)(a, &batch, &u));
    }
}

/* The root mean square error of the actor's mean action on new states. */
static double miss(struct KS(agent) *a)
{
    struct ks_rng rng = ks_rng_start(13, 0);
    double sum = 0;

    for (size_t i = 0; i < 200; i++) {
        float s[OBSERVATIONS], action;

        draw_state(&rng, s);
        KS(agent_act)(a, s, NULL, &action);
        sum += ((double)action - best_action(s)) * ((double)action - best_action(s)) / 200;
    }
    return sqrt(sum);
}

/* A mean action of 0 has an error of 0.6/sqrt(3) = 0.35. */
static void check_best_action(const char *name, bool skip)
{
    struct KS(agent) *a = make_agent(name, skip);
    double before = miss(a), after;

    learn(a);
    after = miss(a);
    if (!(after < 0.08))
        fail_msg("%s: the action misses by %g (%g at first)", name, after, before);
    KS(agent_free)(a);
}

TEST(test_best_action)
{
    for (size_t i = 0; ks_architectures[i].name; i++)
        check_best_action(ks_architectures[i].name, false);
    check_best_action("bn+wn+ce", true);
    check_best_action("ln+mse", true);
}
