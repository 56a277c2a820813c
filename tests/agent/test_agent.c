/* The agent over several updates: policy delay, threads, frozen minibatches, actions; and what it
 * refuses. In double; single updates are in test_update.c. */
#include "agents.h"

/* The actor and the temperature step at updates 0, 3, 6; in between the actor's parameters stay and
 * its running statistics move. log T steps by the rate, against the sign of H - H*, at first. */
TEST(test_delay)
{
    struct KS(agent) *a = make_agent("bn+wn+ce");

    for (size_t k = 0; k < 7; k++) {
        struct before b = remember(a);
        double log_t = a->log_temperature;
        size_t n = a->actor_arch->parameters, states = a->actor_arch->states;
        struct ks_update u = update_with(a, k);

        assert_int_equal(u.actor_stepped, k % 3 == 0);
        assert_int_equal(memcmp(b.actor, a->actor.w, n * sizeof(double)) != 0, k % 3 == 0);
        assert_int_equal(a->log_temperature != log_t, k % 3 == 0);
        assert_int_not_equal(memcmp(b.actor_state, a->actor.state, states * sizeof(double)), 0);
        if (k == 0)
            assert_close(a->log_temperature - log_t, u.entropy > -1.5 ? -1e-3 : 1e-3, 1e-9);
    }
    assert_int_equal(a->critic_adam.step, 7);
    assert_int_equal(a->actor_adam.step, 3);
    assert_int_equal(a->updates, 7);
}

/* After one step from zero, m = (1 - 0.9) g gives the gradient g; compared with central differences
 * in log T of the loss T (H - H*), with H constant. */
TEST(test_temperature_gradient)
{
    const double h = 1e-5;
    struct KS(agent) *a = make_agent("ln+mse");
    double log_t = a->log_temperature, slope;
    struct ks_update u = update_with(a, 0);

    slope = (exp(log_t + h) - exp(log_t - h)) / (2 * h) * (u.entropy - a->config.target_entropy);
    assert_true(fabs(slope) > 1e-3);
    assert_close(a->temperature_m / (1 - 0.9), slope, 1e-8 * (1 + fabs(slope)));
}

static void run_updates(struct KS(agent) *a, size_t n)
{
    for (size_t k = 0; k < n; k++)
        update_with(a, k);
}

TEST(test_threads)
{
    struct KS(agent) *one = make_agent("bn+wn+ce"), *two = make_agent_of("bn+wn+ce", 2);
    size_t n = one->critic_arch->parameters;

    run_updates(one, 7);
    run_updates(two, 7);
    for (size_t e = 0; e < 2; e++)
        assert_memory_equal(one->critic[e].w, two->critic[e].w, n * sizeof(double));
    assert_memory_equal(one->actor.w, two->actor.w, one->actor_arch->parameters * sizeof(double));
    assert_memory_equal(&one->log_temperature, &two->log_temperature, sizeof(double));
}

/* A frozen minibatch equals what an update uses: the same noise, input and targets. */
TEST(test_freeze)
{
    static const char *const names[] = {"bn+wn+ce", "ln+mse"};

    for (size_t i = 0; i < 2; i++) {
        struct KS(agent) *a = make_agent(names[i]);
        struct ks_rng rng = ks_stream(SEED, KS_NEXT_ACTION, 0);
        double input[2 * BATCH * WIDTH], target[BATCH * 11];
        size_t rows = KS(agent_rows)(a), columns = a->critic_arch->loss.targets;
        struct ks_batch batch = draw_transitions(3);

        assert_int_equal(rows, i == 0 ? 2 * BATCH : BATCH);
        shake_all(a);
        KS(agent_fill_checkpoint_batch)(a, &batch, &rng, input);
        KS(agent_fill_checkpoint_target)(a, &batch, target);
        update_with(a, 3);
        assert_memory_equal(input, a->input, rows * WIDTH * sizeof *input);
        assert_memory_equal(target, a->target, BATCH * columns * sizeof *target);
        assert_close(input[OBSERVATIONS], (double)batch.a[0], 0);
    }
}

TEST(test_act)
{
    struct KS(agent) *a = make_agent("bn+wn+ce");
    float s[OBSERVATIONS] = {1, -2, 3, 0.5F, 0}, mean[ACTIONS], sample[ACTIONS];
    double x[OBSERVATIONS] = {1, -2, 3, 0.5, 0}, noise[ACTIONS] = {0.3, -1, 2}, *head;

    run_updates(a, 4);
    head = actor_outputs(a, 1, x);
    KS(agent_act)(a, s, NULL, mean);
    KS(agent_act)(a, s, noise, sample);
    for (size_t j = 0; j < ACTIONS; j++) {
        assert_close((double)mean[j], tanh(head[j]), 1e-7);
        assert_close((double)sample[j], tanh(head[j] + exp(head[ACTIONS + j]) * noise[j]), 1e-7);
    }
}

TEST(test_not_finite)
{
    struct ks_batch batch = draw_transitions(6);
    double reward[BATCH];
    struct ks_update u;
    struct KS(agent) *a = make_agent("bn+wn+ce");

    a->critic[1].w[a->critic_arch->layer[4].offset + 3] = NAN;
    assert_fails(KS(agent_check)(a), KS_NUMBER, "critic parameters");
    assert_fails(KS(agent_update)(a, &batch, &u), KS_NUMBER, "critic 1");
    a = make_agent("dense+mse");
    memcpy(reward, batch.reward, sizeof reward);
    reward[2] = INFINITY;
    batch.reward = reward;
    assert_int_equal(KS(agent_update)(a, &batch, &u), KS_NUMBER);
}

static void assert_found(struct KS(agent) *a, double *at, const char *words)
{
    double before = *at;

    *at = INFINITY;
    assert_fails(KS(agent_check)(a), KS_NUMBER, words);
    *at = before;
    assert_ok(KS(agent_check)(a));
}

/* The square of a gradient of 1e170 overflows. Parameters and first moments stay finite, so only
 * the check of the second moments finds it. */
TEST(test_moments)
{
    struct KS(agent) *a = make_agent("dense+mse");

    assert_found(a, &a->critic[1].m[3], "critic first moments");
    assert_found(a, &a->critic[0].v[3], "critic second moments");
    assert_found(a, &a->actor.m[2], "actor first moments");
    assert_found(a, &a->actor.v[2], "actor second moments");
    assert_found(a, &a->temperature_v, "temperature moments");
    for (size_t i = 0; i < a->critic_arch->parameters; i++)
        a->critic[0].g[i] = 1e170;
    assert_true(KS(adam_step)(a->critic_arch, &a->critic_adam, &a->critic[0]));
    assert_fails(KS(agent_check)(a), KS_NUMBER, "critic second moments");
}

TEST(test_bad_descriptions)
{
    static const char critic[] = "dense 1\nloss mse\n";
    static const char actor[] = "dense 6\npolicy tanh-gaussian log-std=clip\n";
    struct ks_agent_config config;
    struct KS(agent) *a;

    config = small_config(actor, actor);
    assert_fails(KS(agent_new)(&config, &a), KS_FORMAT, "loss ce");
    config = small_config(critic, critic);
    assert_fails(KS(agent_new)(&config, &a), KS_FORMAT, "3 actions");
    config = small_config(critic, "dense 4\npolicy tanh-gaussian log-std=clip\n");
    assert_fails(KS(agent_new)(&config, &a), KS_FORMAT, "found 2");
    assert_null(a);
}

/* Every allocation fails once: the error is returned, and nothing leaks (AddressSanitizer). */
TEST(test_out_of_memory)
{
    struct ks_agent_config config = named_config("bn+wn+ce");
    struct KS(agent) *a = NULL;
    struct starved s = {.least = 50};

    while (starving(&s)) {
        s.status = KS(agent_new)(&config, &a);
        assert_true(s.status == KS_OK || !a);
    }
    KS(agent_free)(a);
}
