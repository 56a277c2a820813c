/* Training from pixels as a user runs it: a system with a tiny image, killed and resumed; what is
 * refused. */
#include "critics.h"
#include "programs.h"

#include "io/csv.h"

static const char SYSTEM[] =
    "[system]\ncritic = v.arch\nactor = f.arch\nimage = i.arch\ntrunk = t.arch\n[train]\n"
    "n_step = 3\npolicy_delay = 1\nrandom_steps = 8\nupdate_every = 2\nutd = 1\n"
    "action_repeat = 100\nbatch = 8\neval_episodes = 1\nevaluations = 2\ncheckpoints = 2\n"
    "analysis_minibatches = 2\nlr_end = 0.0003\nnoise_steps = 20\n";
/* Replay is full before the end. */
#define RUN                                                                                        \
    "--quiet --env cartpole-swingup_sparse-pixels --arch own.system --steps 4000 --set replay=20 "

static int set_up(void **state)
{
    if (scratch_make(state) != 0)
        return -1;
    write_text("own.system", SYSTEM);
    write_text("v.arch",
               "batchnorm\ndense 6 bias=no\nbatchnorm\nrelu\ndense 5\nloss ce min=-5 max=5\n");
    write_text("f.arch", "dense 4\nbatchnorm\ntanh\ndense A\npolicy tanh\n");
    write_text("i.arch", "conv2d 2 size=8 stride=8 channels=9 height=84 width=84\nrelu\noutputs\n");
    write_text("t.arch", "dense 3\nlayernorm\ntanh\noutputs\n");
    return 0;
}

/* Whether frames can be drawn here; says so if not. */
static bool draws(void)
{
    if (train(RUN "--out first") == 0)
        return true;
    assert_complains("'make deps-pixels' installs Mesa's");
    print_message("skipped: %s", complained);
    return false;
}

/* All numbers of two checkpoints, but for the speeds. */
static void assert_same(const char *file)
{
    char path[64];
    struct ks_checkpoint *a, *b;
    size_t n;

    snprintf(path, sizeof path, "first/%s", file);
    a = read_checkpoint(scratch(path));
    snprintf(path, sizeof path, "killed/%s", file);
    b = read_checkpoint(scratch(path));
    n = ks_networks_parameters(&a->critic);
    assert_memory_equal(a->critic.w, b->critic.w, n * sizeof *a->critic.w);
    assert_memory_equal(a->target_critic.w, b->target_critic.w, n * sizeof *a->critic.w);
    assert_memory_equal(a->adam_m, b->adam_m, n * sizeof *a->adam_m);
    assert_memory_equal(a->actor.w, b->actor.w,
                        ks_networks_parameters(&a->actor) * sizeof *a->actor.w);
    assert_memory_equal(a->input, b->input,
                        a->minibatches * a->rows * a->critic.arch->in * sizeof *a->input);
    assert_memory_equal(a->target, b->target,
                        a->minibatches * a->loss_rows * a->critic.arch->out * sizeof *a->target);
    assert_close(ks_attribute_find(&a->attributes, "return_mean")->number,
                 ks_attribute_find(&b->attributes, "return_mean")->number, 0);
}

/* progress.csv, but for the speeds. */
static void assert_same_progress(void)
{
    KS_OWNED_BY(ks_csv_free) struct ks_csv *a = NULL;
    KS_OWNED_BY(ks_csv_free) struct ks_csv *b = NULL;

    assert_ok(ks_csv_read(scratch("first/progress.csv"), false, &a));
    assert_ok(ks_csv_read(scratch("killed/progress.csv"), false, &b));
    assert_int_equal(a->rows, b->rows);
    assert_int_equal(a->columns, b->columns);
    for (size_t row = 0; row < a->rows; row++)
        for (size_t i = 0; i < a->columns; i++)
            if (!strstr(a->name[i], "_per_second") &&
                strcmp(ks_csv_cell(a, row, i), ks_csv_cell(b, row, i)) != 0)
                fail_msg("row %zu: %s: %s and %s", row, a->name[i], ks_csv_cell(a, row, i),
                         ks_csv_cell(b, row, i));
}

/* Checkpoints hold embeddings, with two kinds of which the critics were trained; they can be
 * analyzed. A run that is killed again and again, and resumed, writes the same. */
TEST(test_run)
{
    static const char *const files[] = {"step_000000800.h5", "step_000002000.h5",
                                        "step_000004000.h5"};
    struct ks_checkpoint *c;
    int kills = 0;

    if (!draws())
        return;
    c = read_checkpoint(scratch("first/step_000004000.h5"));
    assert_int_equal(c->critic.arch->in, 4);
    assert_int_equal(c->rows, 16);
    assert_string_equal(ks_attribute_find(&c->attributes, "env")->string,
                        "cartpole-swingup_sparse-pixels");
    assert_int_equal(ks_attribute_find(&c->attributes, "update")->integer, 16);
    assert_runs("--quiet --order 5 %s", scratch("first/step_000004000.h5"));
    snprintf(launcher, sizeof launcher, "timeout --signal=KILL 1.2");
    while (train(RUN "--save-every 0.001 --resume --out killed") != 0 && kills < 60)
        kills++;
    launcher[0] = '\0';
    if (kills == 60) /* too slow a machine to get further in so little time */
        assert_trains(RUN "--resume --out killed");
    print_message("%d kills\n", kills);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        assert_same(files[i]);
    assert_same_progress();
}

/* A frame that was changed on disk is not trained on. */
TEST(test_damage)
{
    if (!draws())
        return;
    assert_trains(RUN "--stop-at 2000 --out damaged");
    assert_int_equal(run_shell("f=$(ls damaged/resume/replay.* | head -1) && printf x |"
                               " dd of=$f bs=1 seek=30000 conv=notrunc status=none"),
                     0);
    assert_int_equal(train(RUN "--resume --out damaged"), 2);
    assert_complains("replay");
    assert_complains("without --resume the run starts over");
}

TEST(test_refusals)
{
    train_refuses("--quiet --env walker-walk --arch own.system --steps 4000 --out r",
                  "walker-walk: own.system: expected a task from pixels");
    train_refuses("--quiet --env Ant-v4-pixels --arch own.system --steps 4000 --out r",
                  "unknown task 'Ant-v4-pixels'");
    if (!draws())
        return;
    train_refuses("--quiet --env walker-walk-pixels --arch bn+ce --steps 14000 --out r",
                  "walker-walk-pixels: bn+ce: expected a system with image and trunk");
    train_refuses(RUN "--set random_steps=3 --out r",
                  "random_steps: with images expected more than n_step, 3, found 3");
    train_refuses(RUN "--set replay=17 --out r",
                  "replay: with images expected at least 18, found 17");
    train_refuses(RUN "--set observation_normalization=1 --out r",
                  "observation_normalization: expected 0");
    assert_int_equal(train("--quiet --env walker-walk-pixels --arch own.system --steps 1000000000 "
                           "--set replay=1000000000 --set action_repeat=1 --out r"),
                     1);
    assert_complains("replay will take 21");
    assert_complains("MB of memory are available: set a smaller capacity (replay)");
    assert_int_equal(run_shell("ls r/* 2>/dev/null | grep -v lock"), 1);
    train_refuses("--quiet --env walker-walk --arch sac --set update_every=2 --steps 14000 --out r",
                  "update_every: expected 1 without images, found 2");
}

CMFixtureFunction tests_setup = set_up, tests_teardown = scratch_remove;
