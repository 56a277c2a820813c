/* Runs of a system with an encoder: when it is trained and targets are copied, what is drawn, the
 * scale of rewards and values, priorities, frozen minibatches. On dog-trot, with tiny networks, in
 * the engine's precision. */
#include "readers.h"
#include "runs.h"

#include "agent/stream.h"
#include "core/memory.h"
#include "train/learner.h"

enum { SEED = 5, RANDOM_STEPS = 12, BATCH = 4, PERIOD = 3, HORIZON = 4, WIDTH = 7 };

static int set_up(void **state)
{
    if (scratch_make(state) != 0)
        return -1;
    write_text("e.system", "[system]\ncritic = v.arch\nactor = f.arch\nencoder_state = s.arch\n"
                           "encoder_action = a.arch\nencoder_pair = p.arch\n"
                           "encoder_model = m.arch\n");
    write_text("v.arch", "dense 6\nelu\ndense 1\nloss huber weight=0.5\n");
    write_text("f.arch", "dense 5\ndense A\npolicy tanh\n");
    write_text("s.arch", "dense 6\nelu\noutputs\n");
    write_text("a.arch", "dense 3\nelu\noutputs\n");
    write_text("p.arch", "dense 7\noutputs\n");
    write_text("m.arch", "dense 72\noutputs\n");
    return 0;
}

/* The options of a run with these settings besides. */
static struct ks_train_options *plan(const char *more)
{
    static char path[512];

    snprintf(path, sizeof path, "%s", scratch("e.system"));
    return plan_run("dog-trot", path,
                    text_of("batch=4 utd=1 random_steps=12 horizon=4 n_step=2 gamma=0.9 "
                            "target_period=3 replay_priority=0.4 reward_scaling=magnitude "
                            "policy_delay=1 eval_episodes=1 analysis_minibatches=2 %s",
                            more));
}

static struct ks_run *make(void)
{
    struct ks_run *run;

    assert_ok(ks_run_new(plan(""), &run));
    return begin_run(run);
}

static double mean_reward(const struct ks_replay *r)
{
    double sum = 0;

    for (size_t k = 0; k < r->count; k++)
        sum += fabs((double)ks_replay_get(r, k).reward);
    return sum / (double)r->count;
}

/* Before updates 0, 3, 6, ... the networks are copied, the mean reward is measured and the encoder
 * steps 3 times; in between nothing of this changes. Values are in the units of the scale before.
 */
TEST(test_refresh)
{
    struct ks_run *run = make();
    struct ks_learner *l = &run->learner;
    const struct KS(agent) *a = l->agent;
    const size_t bytes = a->critic_arch->parameters * sizeof *a->critic->w;
    double scale = 1;
    float w[256], copied[256];

    assert_true(bytes <= sizeof w);
    for (size_t k = 0; k < RANDOM_STEPS + 3 * PERIOD + 1; k++) {
        const int64_t update = a->updates;

        memcpy(w, a->critic[1].w, bytes);
        assert_ok(ks_learner_step(l, run->metrics));
        if (k < RANDOM_STEPS) {
            assert_int_equal(a->encoder->adam.step, 0);
            continue;
        }
        if (update % PERIOD == 0) {
            const double now = mean_reward(l->replay);

            assert_close(a->value_scale, scale / now, 1e-12 * scale / now);
            memcpy(copied, w, bytes);
            scale = now;
        }
        assert_memory_equal(a->critic[1].target, copied, bytes);
        assert_memory_not_equal(a->critic[1].w, copied, bytes);
        assert_close(ks_learner_reward_scale(l, 0), scale, 1e-12);
        assert_int_equal(a->encoder->adam.step, (update / PERIOD + 1) * PERIOD);
    }
}

/* The rows of an update start at slots with complete windows; their rewards, of up to two steps,
 * are divided by the scale; afterwards their priorities follow from the agent's deviations. A
 * minibatch drawn for another purpose does not disturb that of the update. */
TEST(test_rows)
{
    struct ks_run *run = make();
    struct ks_learner *l = &run->learner;
    float s[BATCH];
    struct ks_batch batch;
    size_t raised = 0;

    for (size_t k = 0; k < RANDOM_STEPS + 8; k++) {
        const size_t newest = k; /* replay is not full, and the episode is the first */

        assert_ok(ks_learner_step(l, run->metrics));
        for (size_t i = 0; i < BATCH && k >= RANDOM_STEPS; i++) {
            const size_t slot = l->drawn.slot[i];
            const struct ks_transition t = ks_replay_get(l->replay, slot);
            const struct ks_transition next = ks_replay_get(l->replay, slot + 1);
            const double reward = (double)t.reward + 0.9 * (double)next.reward;
            size_t last = i; /* of the rows with this slot */

            assert_true(slot + HORIZON <= newest);
            s[i] = l->rows.s[i * l->replay->observations];
            assert_true(s[i] == t.s[0]);
            assert_close(l->rows.reward[i], reward / ks_learner_reward_scale(l, 0), 1e-9);
            for (size_t j = i; j < BATCH; j++)
                last = l->drawn.slot[j] == slot ? j : last;
            assert_close((double)l->priorities->priority[slot],
                         pow(fmax((double)l->agent->deviation[last], 1), 0.4), 1e-6);
            raised += l->priorities->priority[slot] > 1;
        }
    }
    assert_true(raised > 0);
    assert_true(l->priorities->largest > 1 &&
                l->priorities->priority[RANDOM_STEPS + 7] <= l->priorities->largest);
    run->evaluation.return_mean = 0;
    assert_ok(ks_save_checkpoint(run));
    assert_ok(ks_learner_last_batch(l, &batch));
    for (size_t i = 0; i < BATCH; i++)
        assert_true(l->rows.s[i * l->replay->observations] == s[i]);
}

/* A checkpoint's minibatches are embeddings; its targets are those of the Huber loss. */
TEST(test_frozen)
{
    struct ks_run *run = make();
    struct ks_learner *l = &run->learner;
    struct ks_rng replay, noise;
    KS_OWNED_BY(ks_checkpoint_free) struct ks_checkpoint *c = NULL;
    struct ks_batch batch;
    double input[BATCH * WIDTH], target[BATCH];
    KS_OWNED char *path = NULL;

    for (size_t k = 0; k < RANDOM_STEPS + 4; k++)
        assert_ok(ks_learner_step(l, run->metrics));
    run->evaluation.return_mean = 0;
    assert_ok(ks_save_checkpoint(run));
    assert_ok(ks_plan_checkpoint_path(&run->plan, l->env_step, &path));
    assert_ok(try_checkpoint(path, &c));
    assert_int_equal(l->agent->critic_arch->in, WIDTH);
    assert_int_equal(l->agent->actor_arch->in, 6);
    assert_int_equal(c->rows, BATCH);
    replay = ks_stream(SEED, KS_FROZEN_REPLAY, l->env_step);
    noise = ks_stream(SEED, KS_FROZEN_ACTION, l->env_step);
    assert_ok(ks_learner_batch(l, &replay, &batch));
    KS(agent_fill_checkpoint_batch)(l->agent, &batch, &noise, input);
    ks_learner_scale_rewards(l, 0);
    KS(agent_fill_checkpoint_target)(l->agent, &batch, target);
    for (size_t i = 0; i < BATCH * WIDTH; i++)
        assert_close(c->input[i], input[i], 1e-6 * (1 + fabs(input[i])));
    for (size_t i = 0; i < BATCH; i++)
        assert_close(c->target[i], target[i], 1e-6 * (1 + fabs(target[i])));
}

TEST(test_refusals)
{
    struct ks_train_options *options = plan("target_period=0 reward_scaling=std");
    struct ks_settings settings;
    struct ks_run *run;

    assert_fails(ks_run_new(options, &run), KS_USAGE, "target_period: expected at least 1");
    ks_settings_defaults(&settings);
    assert_ok(ks_settings_assign(&settings, "reward_scaling=magnitude"));
    assert_fails(ks_settings_check(&settings), KS_USAGE, "magnitude needs a target_period");
    assert_ok(ks_settings_assign(&options->settings, "replay_priority=0.4"));
    options->architecture = "bn+mse";
    assert_fails(ks_run_new(options, &run), KS_USAGE, "replay_priority: expected 0 without");
}

CMFixtureFunction tests_setup = set_up, tests_teardown = scratch_remove;
