/* Runs from pixels: what replay gets is what the agent saw, frames by channel; the noise of
 * actions; the last minibatch again after steps without an update; divergences. On
 * cartpole-swingup_sparse, with tiny networks and episodes of 10 agent steps. Skipped where nothing
 * can draw. */
#include "runs.h"

#include "core/memory.h"
#include "env/domain.h"

enum { SEED = 5, BATCH = 4, RANDOM_STEPS = 8, NOISE_STEPS = 20, SEEN = KS_FRAMES * KS_FRAME };

static int set_up(void **state)
{
    if (scratch_make(state) != 0)
        return -1;
    write_text("e.system", "[system]\ncritic = v.arch\nactor = f.arch\nimage = i.arch\n"
                           "trunk = t.arch\n");
    write_text("v.arch", "dense 4\nrelu\ndense 1\nloss mse\n");
    write_text("f.arch", "dense 3\ndense A\npolicy tanh\n");
    write_text("i.arch", "conv2d 2 size=8 stride=8 channels=9 height=84 width=84\nrelu\noutputs\n");
    write_text("t.arch", "dense 3\ntanh\noutputs\n");
    return 0;
}

/* NULL: nothing can draw. */
static struct ks_run *make(void)
{
    static char path[512];
    struct ks_train_options *options;
    struct ks_run *run = NULL;
    ks_status status;

    snprintf(path, sizeof path, "%s", scratch("e.system"));
    options = plan_run("cartpole-swingup_sparse-pixels", path,
                       "batch=4 utd=1 update_every=2 random_steps=8 n_step=2 action_repeat=100 "
                       "policy_delay=1 noise_steps=20 noise=0.9 noise_end=0.4 replay=17 "
                       "eval_episodes=1 checkpoints=1 analysis_minibatches=2");
    options->steps = 6000;
    status = ks_run_new(options, &run);
    if (status == KS_MISSING) {
        print_message("skipped: %s\n", ks_error_text());
        return NULL;
    }
    assert_ok(status);
    return begin_run(run);
}

/* The newest frame that the player saw is what its environment shows, by channel. */
static void check_frame(const struct ks_player *p)
{
    static uint8_t frame[KS_FRAME];
    const size_t places = KS_FRAME / 3;

    assert_ok(ks_render_frame(p->render, frame));
    for (size_t i = 0; i < KS_FRAME; i++)
        assert_true(p->s[SEEN - KS_FRAME + i % 3 * places + i / 3] == ks_pixel(frame[i]));
}

/* Over three episodes: row number k of replay is the state before its step, the row behind an
 * episode its last state; replay goes around. */
TEST(test_stored)
{
    struct ks_run *run = make();
    float *before = hold(malloc(SEEN * sizeof *before)),
          *found = hold(malloc(SEEN * sizeof *found));
    struct ks_learner *l = run ? &run->learner : NULL;
    size_t row = 0;

    for (size_t k = 0; run && k < 32; k++, row++) {
        const bool starts = k % 10 == 0, ends = k % 10 == 9;
        struct ks_transition t;

        memcpy(before, l->player.s, SEEN * sizeof *before);
        check_frame(&l->player);
        for (size_t i = 0; i < 2 * KS_FRAME && starts; i++)
            assert_true(before[i] == before[i + KS_FRAME]);
        assert_ok(ks_learner_step(l, run->metrics));
        assert_int_equal(l->replay->added, row + (ends ? 2 : 1));
        t = ks_replay_get(l->replay, row % l->replay->capacity);
        assert_true(!t.only_frame && t.last == ends && t.mask == 1);
        assert_true(t.a[0] == l->player.a[0]);
        ks_replay_see(l->replay, row % l->replay->capacity, KS_SHIFT, KS_SHIFT, found);
        assert_memory_equal(found, before, SEEN * sizeof *found);
        if (ends) {
            row++;
            t = ks_replay_get(l->replay, row % l->replay->capacity);
            assert_true(t.only_frame);
            ks_replay_see(l->replay, row % l->replay->capacity, KS_SHIFT, KS_SHIFT, found);
            assert_memory_equal(found, before + KS_FRAME, (SEEN - KS_FRAME) * sizeof *found);
        }
    }
    assert_true(!run || row > l->replay->capacity);
}

/* The noise falls linearly, then stays; every second step makes an update. */
TEST(test_schedule)
{
    struct ks_run *run = make();
    struct ks_learner *l = run ? &run->learner : NULL;

    for (size_t k = 0; run && k < 24; k++) {
        const double share = k < NOISE_STEPS ? (double)k / NOISE_STEPS : 1;

        assert_ok(ks_learner_step(l, run->metrics));
        assert_close(l->agent->noise, 0.9 - 0.5 * share, 1e-15);
        assert_int_equal(l->agent->updates, k < RANDOM_STEPS ? 0 : (k - RANDOM_STEPS) / 2 + 1);
    }
}

/* Also after the step that follows an update, which may end an episode, as replay goes around. */
TEST(test_last_batch)
{
    struct ks_run *run = make();
    const size_t n = BATCH * (size_t)SEEN;
    float *s = hold(malloc(2 * n * sizeof *s)), a[BATCH];
    struct ks_learner *l = run ? &run->learner : NULL;
    struct ks_batch batch;

    for (size_t k = 0; run && k < 30; k++) {
        const bool updates = k >= RANDOM_STEPS && (k - RANDOM_STEPS) % 2 == 0;

        assert_ok(ks_learner_step(l, run->metrics));
        if (updates) {
            memcpy(s, l->rows.s, n * sizeof *s);
            memcpy(s + n, l->rows.next_s, n * sizeof *s);
            memcpy(a, l->rows.a, sizeof a);
        }
        if (k < RANDOM_STEPS)
            continue;
        memset(l->rows.s, 0, n * sizeof *s);
        assert_ok(ks_learner_last_batch(l, &batch));
        assert_memory_equal(batch.s, s, n * sizeof *s);
        assert_memory_equal(batch.next_s, s + n, n * sizeof *s);
        assert_memory_equal(batch.a, a, sizeof a);
    }
}

/* In a run that has just resumed, which has drawn nothing yet: the frame before the divergence is
 * the newest one of the episode's last state. */
TEST(test_divergence)
{
    struct ks_run *run = make();
    float *found = hold(malloc(SEEN * sizeof *found)),
          *before = hold(malloc(SEEN * sizeof *before));
    struct ks_learner *l = run ? &run->learner : NULL;

    for (size_t k = 0; run && k < 4; k++)
        assert_ok(ks_learner_step(l, run->metrics));
    if (!run)
        return;
    memcpy(before, l->player.s, SEEN * sizeof *before);
    memset(l->player.picture, 0, KS_FRAME);
    l->player.env->data->qvel[0] = 9e9; /* with its own force beyond MuJoCo's limit of 1e10 */
    l->player.env->data->qvel[1] = 9e9;
    assert_ok(ks_learner_step(l, run->metrics));
    assert_int_equal(ks_env_divergences(l->player.env), 1);
    assert_true(ks_replay_get(l->replay, 5).only_frame);
    ks_replay_see(l->replay, 5, KS_SHIFT, KS_SHIFT, found);
    assert_memory_equal(found, before + KS_FRAME, (SEEN - KS_FRAME) * sizeof *found);
    assert_memory_equal(found + SEEN - KS_FRAME, before + SEEN - KS_FRAME,
                        KS_FRAME * sizeof *found);
}

CMFixtureFunction tests_setup = set_up, tests_teardown = scratch_remove;
