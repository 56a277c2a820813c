/* Agent steps, evaluations and frozen minibatches of a run, each compared with the algorithm's
 * definition. On dog-trot, with tiny networks, in the engine's precision. */

#include <malloc.h>

#include "readers.h"
#include "runs.h"

#include "agent/stream.h"
#include "core/memory.h"
#include "train/learner.h"
#include "train/resume_point.h"

enum { SEED = 5, RANDOM_STEPS = 6, BATCH = 4, FROZEN = 2 };

struct run_fixture {
    struct ks_train_options *options;
    struct ks_run *run;
    size_t observations, actions;
};

static struct run_fixture begin(size_t random_steps)
{
    struct run_fixture s = {
        .options = plan_run("dog-trot", "dense+mse",
                            "hidden=4 depth=1 actor_hidden=4 actor_depth=1 batch=4 utd=1 "
                            "eval_episodes=1 analysis_minibatches=2 actor_lr=0.1 critic_lr=0.1")};

    s.options->settings.random_steps = random_steps;
    assert_ok(ks_run_new(s.options, &s.run));
    begin_run(s.run);
    s.observations = s.run->learner.agent->config.observations;
    s.actions = s.run->learner.agent->config.actions;
    return s;
}

static void steps(struct run_fixture *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        assert_ok(ks_learner_step(&s->run->learner, s->run->metrics));
}

/* The action of the policy at the current observation, with the noise of this step. */
static void policy_action(struct run_fixture *s, bool noisy, float *action)
{
    struct ks_rng rng = ks_stream(SEED, KS_EXPLORATION, 0);
    double noise[64];

    rng.drawn = s->run->learner.agent_steps * s->actions;
    for (size_t j = 0; j < s->actions; j++)
        noise[j] = ks_rng_normal(&rng);
    KS(agent_act)(s->run->learner.agent, s->run->learner.player.s, noisy ? noise : NULL, action);
}

/* Actions are uniform until the first update, then those of the policy with noise. Replay holds
 * each action and the observations before and after it. */
TEST(test_actions)
{
    struct run_fixture s = begin(RANDOM_STEPS);

    for (size_t k = 0; k < 2 * RANDOM_STEPS; k++) {
        struct ks_rng rng = ks_stream(SEED, KS_EXPLORATION, 0);
        float expected[64], mean[64], before[256];
        struct ks_transition stored;

        rng.drawn = k * s.actions;
        policy_action(&s, false, mean);
        policy_action(&s, true, expected);
        memcpy(before, s.run->learner.player.s, s.observations * sizeof *before);
        for (size_t j = 0; j < s.actions && k < RANDOM_STEPS; j++)
            expected[j] = (float)ks_rng_uniform(&rng, -1, 1);
        steps(&s, 1);
        assert_int_equal(s.run->learner.agent->updates,
                         k < RANDOM_STEPS ? 0 : k + 1 - RANDOM_STEPS);
        stored = ks_replay_get(s.run->learner.replay, k);
        assert_memory_equal(stored.a, expected, s.actions * sizeof *expected);
        assert_memory_not_equal(stored.a, mean, s.actions * sizeof *mean);
        assert_memory_equal(stored.s, before, s.observations * sizeof *before);
        assert_memory_equal(stored.next_s, s.run->learner.player.s,
                            s.observations * sizeof *before);
    }
    assert_int_equal(s.run->learner.env_step, 2 * 2 * RANDOM_STEPS);
}

/* The raw rewards of BATCH rows drawn with a random stream. */
static void draw_raw(const struct run_fixture *s, struct ks_rng *rng, double *reward)
{
    float *block;
    size_t n = s->observations;
    struct ks_rows rows = {.n = BATCH, .reward = reward};

    block = hold(calloc(BATCH * (2 * n + s->actions + 1), sizeof *block));
    rows.s = block;
    rows.next_s = rows.s + BATCH * n;
    rows.a = rows.next_s + BATCH * n;
    rows.mask = rows.a + BATCH * s->actions;
    ks_replay_draw(s->run->learner.replay, rng, &(struct ks_window){.n = 1}, &rows);
}

static double running_scale(const struct run_fixture *s)
{
    return ks_returns_divisor(&s->run->learner.returns, KS_SCALE_STD, 0);
}

/* An update uses rewards divided by the scale of all returns so far, or raw ones without
 * reward_normalization; raw_rewards affects only checkpoints. */
TEST(test_update_rewards)
{
    for (size_t normalized = 0; normalized < 2; normalized++) {
        struct run_fixture s = begin(RANDOM_STEPS);
        struct ks_rng rng = ks_stream(SEED, KS_REPLAY, 0);
        double reward[BATCH], scale;

        s.options->settings.reward_normalization = normalized;
        s.options->settings.raw_rewards = 1;
        steps(&s, RANDOM_STEPS + 3);
        scale = normalized ? running_scale(&s) : 1;
        assert_true(!normalized || fabs(scale - 1) > 0.01);
        rng.drawn = 2 * BATCH; /* the third update */
        draw_raw(&s, &rng, reward);
        for (size_t i = 0; i < BATCH; i++) {
            assert_true(reward[i] != 0);
            assert_close(s.run->learner.rows.reward[i], reward[i] / scale, 1e-12);
        }
    }
}

/* Before the updates of agent step 8 the agent starts anew: networks, moments and learning rates.
 * With range, rewards are scaled with the temperature before that. */
TEST(test_reset)
{
    enum { RESET = 8 };
    struct run_fixture s = begin(RANDOM_STEPS);

    s.options->settings.reset_step = RESET;
    s.options->settings.reward_scaling = 2;
    for (size_t k = 1; k <= RESET + 2; k++) {
        const size_t since = k >= RESET ? RESET - 1 : RANDOM_STEPS; /* steps before the first */
        const double temperature = KS(agent_temperature)(s.run->learner.agent);
        struct ks_rng rng = ks_learner_minibatch_rng(&s.run->learner);
        double reward[BATCH];

        steps(&s, 1);
        if (k <= RANDOM_STEPS)
            continue;
        assert_int_equal(s.run->learner.agent->critic_adam.step, k - since);
        assert_int_equal(s.run->learner.agent->updates, k - RANDOM_STEPS);
        draw_raw(&s, &rng, reward);
        assert_close(s.run->learner.rows.reward[0],
                     reward[0] / ks_learner_reward_scale(&s.run->learner, temperature), 1e-12);
    }
}

/* Targets of up to three agent steps: rewards and the last state's value are discounted by the
 * run's gamma, and their sum is divided by the scale. */
TEST(test_n_step)
{
    struct ks_rng rng = ks_stream(SEED, KS_REPLAY, 0), again = rng;
    struct ks_batch batch;
    struct run_fixture s = begin(50);
    size_t newest = 9;

    s.options->settings.n_step = 3;
    steps(&s, newest + 1);
    assert_ok(ks_learner_batch(&s.run->learner, &rng, &batch));
    ks_learner_scale_rewards(&s.run->learner, 0.01);
    for (size_t i = 0; i < BATCH; i++) {
        size_t t = ks_rng_index(&again, newest + 1), k = newest - t < 2 ? newest - t : 2;
        struct ks_transition end = ks_replay_get(s.run->learner.replay, t + k);
        double sum = 0;

        for (size_t j = 0; j <= k; j++)
            sum += pow(0.99, (double)j) *
                   (double)ks_replay_get(s.run->learner.replay, t + j).reward;
        assert_close(batch.reward[i], sum / running_scale(&s), 1e-12);
        assert_close((double)batch.mask[i], pow(0.99, (double)k), 1e-7);
        assert_memory_equal(batch.next_s + i * s.observations, end.next_s,
                            s.observations * sizeof *end.next_s);
    }
    assert_int_equal(rng.drawn, again.drawn);
}

/* The frozen targets of the run's current step, and those from raw rewards. */
static void frozen_targets(struct run_fixture *s, size_t normalization, size_t raw, double *target,
                           double *target_raw)
{
    KS_OWNED_BY(ks_checkpoint_free) struct ks_checkpoint *c = NULL;

    s->options->settings.reward_normalization = normalization;
    s->options->settings.raw_rewards = raw;
    assert_ok(ks_save_checkpoint(s->run));
    assert_ok(try_checkpoint(scratch(text_of("step_%09zu.h5", s->run->learner.env_step)), &c));
    memcpy(target, c->target, FROZEN * BATCH * sizeof *target);
    memcpy(target_raw, c->target_raw, FROZEN * BATCH * sizeof *target);
}

/* In y = r + ..., raw rewards change only r: y_raw - y = r - r / scale, with the same draws.
 * Without reward_normalization, raw_rewards has no effect. The targets from raw rewards are the
 * same with every setting. */
TEST(test_frozen_rewards)
{
    double normal[FROZEN * BATCH], raw[FROZEN * BATCH], off[FROZEN * BATCH];
    double both[FROZEN * BATCH], reward[FROZEN * BATCH], scale;
    double always[4][FROZEN * BATCH];
    struct run_fixture s = begin(50);
    struct ks_rng rng;

    steps(&s, 10);
    frozen_targets(&s, 1, 0, normal, always[0]);
    frozen_targets(&s, 1, 1, raw, always[1]);
    frozen_targets(&s, 0, 0, off, always[2]);
    frozen_targets(&s, 0, 1, both, always[3]);
    rng = ks_stream(SEED, KS_FROZEN_REPLAY, s.run->learner.env_step);
    for (size_t i = 0; i < FROZEN; i++)
        draw_raw(&s, &rng, reward + i * BATCH);
    scale = running_scale(&s);
    for (size_t i = 0; i < FROZEN * BATCH; i++) {
        assert_true(fabs(reward[i] - reward[i] / scale) > 1e-4);
        assert_close(raw[i] - normal[i], reward[i] - reward[i] / scale,
                     1e-6 * (1 + fabs(reward[i] / scale)));
    }
    assert_memory_equal(off, raw, sizeof raw);
    assert_memory_equal(both, raw, sizeof raw);
    for (size_t i = 0; i < 4; i++)
        assert_memory_equal(always[i], raw, sizeof raw);
}

/* The reference results in a checkpoint are those of the run's own networks in float32, for the
 * first frozen minibatch. A reader accepts them, and not for other parameters. */
TEST(test_references)
{
    struct ks_checkpoint *c;
    struct run_fixture s = begin(5);
    const struct KS(net) *net;
    double loss = 0;
    float *x, *primal;

    steps(&s, 12);
    assert_ok(ks_save_checkpoint(s.run));
    assert_ok(try_checkpoint(scratch("step_000000024.h5"), &c));
    net = s.run->learner.agent->critic_train;
    assert_int_equal(c->references.output.minibatches, 1);
    assert_int_equal(c->references.output.rows, BATCH);
    assert_false(c->references.output.wide);
    x = hold(calloc(net->rows * net->arch->in, sizeof *x));
    primal = hold(calloc(net->primal, sizeof *primal));
    for (size_t i = 0; i < net->rows * net->arch->in; i++)
        x[i] = (float)c->input[i];
    for (size_t e = 0; e < c->critic.ensemble; e++) {
        const float *f;

        KS(net_forward)(net, s.run->learner.agent->critic[e].w, NULL, x, primal);
        f = KS(net_output)(net, primal);
        for (size_t i = 0; i < BATCH; i++) {
            const double error = (double)f[i] - c->target[i];

            assert_close(c->references.output.value[i * c->critic.ensemble + e], (double)f[i],
                         1e-5 * fabs((double)f[i]));
            loss += error * error / 2 / BATCH;
        }
    }
    assert_close(c->references.loss.value[0], loss, 1e-5 * loss);
    assert_true(c->references.gradient_norm.value[0] > 0);
    assert_ok(ks_references_compare(c, "a run", FROZEN));
    c->critic.w[0] += 1;
    assert_fails(ks_references_compare(c, "a run", FROZEN), KS_FORMAT,
                 "a run: /batch/output: minibatch 0, row ");
    ks_checkpoint_free(c);
}

/* ks_learner_last_batch draws the minibatch of the last update again, with one update per agent
 * step (which may begin before the transition is stored) and with two. */
TEST(test_last_batch)
{
    for (size_t utd = 1; utd <= 2; utd++)
        for (size_t threads = 1; threads <= 2; threads++) {
            struct run_fixture s = begin(5);
            struct ks_batch batch;

            s.options->settings.utd = utd;
            s.options->settings.threads = threads;
            for (size_t k = 0; k < 12; k++) {
                steps(&s, 1);
                if (s.run->learner.agent->updates == 0)
                    continue;
                assert_ok(ks_learner_last_batch(&s.run->learner, &batch));
                for (size_t i = 0; i < BATCH * s.observations; i++)
                    assert_true(s.run->learner.agent->s[i] == batch.s[i] &&
                                s.run->learner.agent->next_s[i] == batch.next_s[i]);
            }
            assert_int_equal(s.run->learner.agent->updates, utd * 7);
        }
}

/* The last action of an evaluation is tanh(mean) at its observation; training is not affected by
 * the evaluation. */
TEST(test_evaluation)
{
    float expected[64], *before;
    struct run_fixture s = begin(RANDOM_STEPS);
    size_t drawn;

    steps(&s, RANDOM_STEPS + 1);
    before = hold(calloc(s.observations, sizeof *before));
    memcpy(before, s.run->learner.player.s, s.observations * sizeof *before);
    drawn = s.run->learner.replay->count;
    assert_ok(ks_evaluate(&s.run->evaluation, &s.run->learner, 1));
    KS(agent_act)(s.run->learner.agent, s.run->evaluation.player.s, NULL, expected);
    assert_memory_equal(s.run->evaluation.player.a, expected, s.actions * sizeof *expected);
    for (size_t j = 0; j < s.actions; j++)
        assert_close(s.run->evaluation.player.action[j], (double)expected[j], 0);
    assert_close(s.run->evaluation.return_mean, s.run->evaluation.episode_returns[0], 0);
    assert_true(s.run->evaluation.return_mean > 0);
    assert_memory_equal(before, s.run->learner.player.s, s.observations * sizeof *before);
    assert_int_equal(s.run->learner.replay->count, drawn);
}

/* After the 1000 environment steps of an episode: the next one starts at the next start state of
 * the stream; the last transition leads to the last observation, which is not a terminal state; the
 * discounted return restarts at the last step. */
TEST(test_episodes)
{
    enum { LAST = 499 };
    double *start, reward;
    struct ks_transition last, after;
    struct ks_rng resets = ks_stream(SEED, KS_RESETS, 0);
    struct ks_env *env;
    struct run_fixture s = begin(2 * LAST);

    start = hold(calloc(s.observations, sizeof *start));
    assert_ok(ks_env_new("dog-trot", NULL, &env));
    assert_ok(ks_env_reset(env, &resets, start));
    assert_ok(ks_env_reset(env, &resets, start));
    steps(&s, LAST + 1);
    reward = (double)ks_replay_get(s.run->learner.replay, LAST).reward;
    assert_close(s.run->learner.returns.g, reward, 1e-6 * reward);
    steps(&s, 1);
    last = ks_replay_get(s.run->learner.replay, LAST);
    after = ks_replay_get(s.run->learner.replay, LAST + 1);
    for (size_t i = 0; i < s.observations; i++)
        assert_true(after.s[i] == (float)start[i]);
    assert_memory_not_equal(last.next_s, after.s, s.observations * sizeof *last.next_s);
    assert_true(last.mask == 1 && last.last);
    assert_true(!after.last && !ks_replay_get(s.run->learner.replay, LAST - 1).last);
    ks_env_free(env);
}

/* Bytes allocated and not freed. */
static size_t allocated(void)
{
    struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

/* Once replay is full, memory does not grow, through episodes, updates, resume points and
 * checkpoints. Libraries allocate some buffers when they are first needed, for example when two
 * threads first multiply at the same time, so it is enough that one of several stretches shows no
 * growth: a leak would show in all. Not under AddressSanitizer, which changes the counts and finds
 * leaks itself. */
TEST(test_memory_is_flat)
{
#ifdef __SANITIZE_ADDRESS__
    skip();
#endif
    enum { WARM = 40, STRETCHES = 4, STRETCH = 80 };
    struct ks_resume_points *points;
    struct run_fixture s = begin(RANDOM_STEPS);
    size_t before = 0, least = SIZE_MAX;

    assert_ok(ks_resume_new(s.run, &points));
    ks_replay_free(s.run->learner.replay);
    assert_ok(ks_replay_new(20, s.observations, s.actions, &s.run->learner.replay));
    for (size_t k = 1; k <= WARM + STRETCHES * STRETCH; k++) {
        steps(&s, 1);
        if (k % 20 == 0) {
            assert_ok(ks_resume_write(points, s.run));
            assert_ok(ks_save_checkpoint(s.run));
        }
        if (k >= WARM && (k - WARM) % STRETCH == 0) {
            size_t now = allocated(), grown = now > before ? now - before : 0;

            least = k > WARM && grown < least ? grown : least;
            before = now;
        }
    }
    /* A leak in each step is at least 32 bytes per step, malloc's smallest block. Freed blocks that
     * threads cache count as allocated: a few hundred bytes, depending on how the threads
     * interleave. */
    assert_in_range(least, 0, 8 * STRETCH);
    assert_ok(ks_resume_clear(points));
    ks_resume_free(points);
}

CMFixtureFunction tests_setup = scratch_make, tests_teardown = scratch_remove;
