/* The optimistic actor: its loss and gradient, its dual variables, its actions, a reset of the
 * agent. In double. tests/peer/update.sh compares its steps with PyTorch's. */
#include "agents.h"

#include "agent/actor.h"

static const char SHIFT[] = "dense 6\nlayernorm\nrelu\ndense 3 bias=no\npolicy shift gain=0.5\n";

static struct KS(agent) *make(const char *name)
{
    struct ks_agent_config config = named_config(name);

    config.optimist = SHIFT;
    config.policy_delay = 1;
    return agent_of(&config);
}

/* An agent in the middle of training, with the work space of an update. */
static struct KS(agent) *make_shaken(const char *name)
{
    struct KS(agent) *a = make(name);

    update(a);
    shake_all(a);
    shake(a->optimist->arch->parameters, 9, a->optimist->shift.w);
    return a;
}

TEST(test_gradient)
{
    static const char *const names[] = {QUANTILES, "ln+mse"};

    for (size_t k = 0; k < 2; k++) {
        struct KS(agent) *a = make_shaken(names[k]);
        struct KS(optimist) *o = a->optimist;
        double *g, kl;

        KS(optimist_gradient)(a, &kl);
        g = copy(o->arch->parameters, o->shift.g);
        for (size_t i = 0; i < o->arch->parameters; i++) {
            const double w = o->shift.w[i], h = 1e-6;
            double up, down;

            o->shift.w[i] = w + h, up = KS(optimist_gradient)(a, &kl);
            o->shift.w[i] = w - h, down = KS(optimist_gradient)(a, &kl);
            o->shift.w[i] = w;
            assert_close(g[i], (up - down) / (2 * h), 1e-8 * (1 + fabs(g[i])));
        }
    }
}

/* The loss and the divergence by their definition, of the networks applied by hand. */
TEST(test_loss)
{
    struct KS(agent) *a = make_shaken(QUANTILES);
    struct KS(optimist) *o = a->optimist;
    double s[BATCH * OBSERVATIONS], x[BATCH * WIDTH], *head, *shift, *f[2];
    double found, kl, expected_kl = 0, bound = 0;

    found = KS(optimist_gradient)(a, &kl);
    memcpy(s, a->s, sizeof s);
    head = actor_outputs(a, BATCH, s);
    for (size_t i = 0; i < BATCH; i++) {
        memcpy(x + i * WIDTH, s + i * OBSERVATIONS, OBSERVATIONS * sizeof *x);
        memcpy(x + i * WIDTH + OBSERVATIONS, head + i * 2 * ACTIONS, ACTIONS * sizeof *x);
    }
    shift = forward(&(struct network){o->arch, o->shift.w, NULL, .evaluation = true}, BATCH, x);
    for (size_t i = 0; i < BATCH; i++)
        for (size_t j = 0; j < ACTIONS; j++) {
            const double mean = head[i * 2 * ACTIONS + j], d = shift[i * ACTIONS + j];
            const double std = exp(
                KS(policy_log_std)(&a->actor_arch->policy, head[i * 2 * ACTIONS + ACTIONS + j]));

            expected_kl += d * d / (2 * std * std) / BATCH;
            x[i * WIDTH + OBSERVATIONS + j] = tanh(mean + d +
                                                   0.75 * std * o->noise[i * ACTIONS + j]);
        }
    for (size_t e = 0; e < 2; e++)
        f[e] = forward(&(struct network){a->critic_arch, a->critic[e].w, NULL, .evaluation = true},
                       BATCH, x);
    for (size_t i = 0; i < BATCH * 11; i++)
        bound += ((f[0][i] + f[1][i]) / 2 +
                  KS(dual_value)(&o->optimism) * fabs(f[0][i] - f[1][i]) / 2) /
                 (BATCH * 11);
    assert_close(kl, expected_kl, 1e-12);
    assert_close(found, KS(dual_value)(&o->price) * kl - bound, 1e-12);
}

/* Optimism 1 and price 1/4 at the start. Far from the actor optimism falls and the price rises,
 * near it the other way round; Adam's first step is its rate, 3e-5. */
TEST(test_duals)
{
    for (int far = 0; far < 2; far++) {
        struct KS(agent) *a = make(QUANTILES);
        struct KS(optimist) *o = a->optimist;
        const struct ks_dual optimism = o->optimism, price = o->price;

        assert_close(KS(dual_value)(&optimism), 1, 1e-14);
        assert_close(KS(dual_value)(&price), 0.25, 1e-14);
        for (size_t i = 0; i < o->arch->parameters; i++)
            o->shift.w[i] *= far ? 1e3 : 1e-3;
        update(a);
        assert_close(o->optimism.x - optimism.x, far ? -3e-5 : 3e-5, 1e-9);
        assert_close(o->price.x - price.x, far ? 3e-5 : -3e-5, 1e-9);
    }
}

/* Noise: tanh(mean + shift + 0.75 std n). No noise: the actor's own mean. */
TEST(test_act)
{
    const float observation[OBSERVATIONS] = {0.3F, -1, 0.5F, 2, -0.2F};
    const double noise[ACTIONS] = {0.4, -1.2, 0.1};
    struct KS(agent) *a = make_shaken(QUANTILES);
    double s[OBSERVATIONS], x[WIDTH], *head, *shift;
    float action[ACTIONS];

    for (size_t j = 0; j < OBSERVATIONS; j++)
        x[j] = s[j] = (double)observation[j];
    head = actor_outputs(a, 1, s);
    memcpy(x + OBSERVATIONS, head, ACTIONS * sizeof *x);
    shift = forward(
        &(struct network){a->optimist->arch, a->optimist->shift.w, NULL, .evaluation = true}, 1, x);
    KS(agent_act)(a, observation, noise, action);
    for (size_t j = 0; j < ACTIONS; j++) {
        const double std = exp(KS(policy_log_std)(&a->actor_arch->policy, head[ACTIONS + j]));

        assert_true(fabs(shift[j]) > 1e-3);
        assert_close((double)action[j], tanh(head[j] + shift[j] + 0.75 * std * noise[j]), 1e-7);
    }
    KS(agent_act)(a, observation, NULL, action);
    for (size_t j = 0; j < ACTIONS; j++)
        assert_close((double)action[j], tanh(head[j]), 1e-7);
}

/* After a reset the agent has the parameters, moments, rates and dual variables of a new one. */
TEST(test_reset)
{
    struct KS(agent) *a = make(QUANTILES), *fresh = make(QUANTILES);
    const struct KS(trained) *now[] = {&a->critic[0], &a->critic[1], &a->actor,
                                       &a->optimist->shift};
    const struct KS(trained) *new[] = {&fresh->critic[0], &fresh->critic[1], &fresh->actor,
                                       &fresh->optimist->shift};
    const size_t n[] = {a->critic_arch->parameters, a->critic_arch->parameters,
                        a->actor_arch->parameters, a->optimist->arch->parameters};

    for (int i = 0; i < 3; i++)
        update(a);
    for (size_t k = 0; k < 4; k++)
        assert_true(memcmp(now[k]->w, new[k]->w, n[k] * sizeof(real)) != 0);
    assert_ok(KS(agent_reset)(a));
    for (size_t k = 0; k < 4; k++) {
        assert_memory_equal(now[k]->w, new[k]->w, n[k] * sizeof(real));
        assert_memory_equal(now[k]->m, new[k]->m, n[k] * sizeof(real));
        assert_memory_equal(now[k]->v, new[k]->v, n[k] * sizeof(real));
    }
    assert_memory_equal(a->critic[1].target, fresh->critic[1].target, n[1] * sizeof(real));
    assert_true(a->critic_adam.step == 0 && a->actor_adam.step == 0 && a->updates == 3);
    assert_true(a->log_temperature == fresh->log_temperature && a->temperature_m == 0 &&
                a->temperature_v == 0);
    assert_memory_equal(&a->optimist->price, &fresh->optimist->price,
                        sizeof fresh->optimist->price);
    assert_memory_equal(&a->optimist->optimism, &fresh->optimist->optimism,
                        sizeof fresh->optimist->optimism);
}

TEST(test_refusals)
{
    static const struct {
        const char *name, *optimist, *words;
        size_t critics;
    } cases[] = {
        {QUANTILES, "dense 2\npolicy shift\n", "expected 'policy shift' of 3 actions, found 2", 2},
        {QUANTILES, "dense 6\npolicy tanh-gaussian\n", "found another policy or 3", 2},
        {QUANTILES, "batchnorm\ndense 3\npolicy shift\n", "without batchnorm", 2},
        {QUANTILES, "dense 4 trainable=no\nrelu\ndense 3\npolicy shift\n", "optimist: trainable=no",
         2},
        {QUANTILES, "dense 4 norm=spectral\nrelu\ndense 3\npolicy shift\n",
         "optimist: norm=spectral", 2},
        {QUANTILES, SHIFT, "two critics without atoms", 3},
        {"ln+ce", SHIFT, "two critics without atoms", 2},
        {QUANTILES, "dense 3\npolicy shift gain=0\n", "gain: expected a number from 1e-12", 2},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ks_agent_config config = named_config(cases[i].name);
        struct KS(agent) *agent;

        config.optimist = cases[i].optimist;
        config.ensemble = cases[i].critics;
        assert_fails(KS(agent_new)(&config, &agent), KS_FORMAT, cases[i].words);
    }
}
