/* What kappascope-train refuses: exit status 2, one line on standard error, and no file is changed.
 * */
#include "programs.h"

/* Expects exit status 2, one line that contains `words`, and no folder `bad`. If the command is not
 * refused, it ends soon: it is a run of one agent step. */
static void refused(const char *words, const char *arguments)
{
    const char *steps = strstr(arguments, "--steps") ? "" : "--steps 20000";

    if (train("--quiet --set eval_episodes=1 --set batch=8 "
              "--set analysis_minibatches=1 %s %s",
              steps, arguments) != 2)
        fail_msg("%s: not refused: '%s'", arguments, complained);
    assert_complains(words);
    assert_ptr_equal(strchr(complained, '\n'), complained + strlen(complained) - 1);
    assert_false(exists("bad"));
}

TEST(test_refused)
{
    refused("lr_end: expected at most critic_lr",
            "--env cartpole-balance --arch bn+wn+ce --out bad --set critic_lr=1e-5");
    refused("--env", "--arch bn+wn+ce --out bad");
    refused("--arch", "--env cartpole-balance --out bad");
    refused("--out", "--env cartpole-balance --arch bn+wn+ce");
    refused("dog-swim", "--env dog-swim --arch bn+wn+ce --out bad");
    refused("bn+wm+ce", "--env cartpole-balance --arch bn+wm+ce --out bad");
    refused("none.arch", "--env cartpole-balance --arch none.arch --out bad");
    refused("--seed", "--env cartpole-balance --arch bn+wn+ce --out bad --seed -1");
    refused("--steps", "--env cartpole-balance --arch bn+wn+ce --out bad --steps 0");
    refused("--stop-at", "--env cartpole-balance --arch bn+wn+ce --out bad --stop-at 1.5");
    refused("--stop-at: expected at most --steps, 20, found 21",
            "--env cartpole-balance --arch bn+wn+ce --out bad --steps 20 --stop-at 21");
    refused("--save-every", "--env cartpole-balance --arch bn+wn+ce --out bad --save-every -1");
    refused("batch", "--env cartpole-balance --arch bn+wn+ce --out bad --set batch=0");
    refused("'widht'", "--env cartpole-balance --arch bn+wn+ce --out bad --set widht=3");
    refused("decay", "--env cartpole-balance --arch bn+wn+ce --out bad --set weight_decay=0.1");
    refused("--frames", "--env cartpole-balance --arch bn+wn+ce --out bad --frames 3");
    refused("'more'", "--env cartpole-balance --arch bn+wn+ce --out bad more");
}

/* Standard output that cannot be written is a failure at run time (exit status 1). */
TEST(test_full_output)
{
    if (access("/dev/full", W_OK) != 0)
        skip();
    assert_int_equal(train("--list >/dev/full"), 1);
    assert_complains("standard output");
    assert_int_equal(train("--help >/dev/full"), 1);
    assert_int_equal(train("--version >/dev/full"), 1);
}

TEST(test_bad_file)
{
    write_text("policy.arch", "dense 4\npolicy tanh-gaussian log-std=clip\n");
    write_text("broken.arch", "dense 4\nrelu slope=2\ndense 1\nloss mse\n");
    write_text("spectral.arch", "dense 4 norm=spectral\nrelu\ndense 1\nloss mse\n");
    write_text("outputs.arch", "dense 4\noutputs\n");
    write_text("latin.arch", "# gr\366\337er\ndense 4\nrelu\ndense 1\nloss mse\n");
    write_text("several.arch", "dense 4\nrelu\ndense 2\nloss huber\n");
    refused("policy.arch: expected 'loss ce'",
            "--env cartpole-balance --arch policy.arch --out bad");
    refused("spectral.arch: norm=spectral is for analysis",
            "--env cartpole-balance --arch spectral.arch --out bad");
    refused("outputs.arch: expected 'loss ce', 'loss mse', 'loss huber' or 'loss quantile', found "
            "outputs",
            "--env cartpole-balance --arch outputs.arch --out bad");
    refused("a name or a description of the run is not valid UTF-8",
            "--env cartpole-balance --arch latin.arch --out bad");
    refused("several.arch: loss huber: for training expected a last dense of 1 column, found 2",
            "--env cartpole-balance --arch several.arch --out bad");
    refused("broken.arch:2: ", "--env cartpole-balance --arch broken.arch --out bad");
    refused("hidden", "--env cartpole-balance --arch policy.arch --out bad --set hidden=8");
    refused("none.arch: cannot be opened: No such",
            "--env cartpole-balance --arch none.arch --out bad --set hidden=8");
}

/* A pipe is not waited for. */
TEST(test_special_files)
{
    static const char *const arguments[] = {"--env cartpole-balance --arch pipe.arch --out bad",
                                            "--env cartpole-balance --arch pipe.system --out bad",
                                            "--env ./pipe.so --arch bn+wn+ce --out bad"};

    alarm(60);
    for (size_t i = 0; i < sizeof arguments / sizeof *arguments; i++) {
        static const char *const names[] = {"pipe.arch", "pipe.system", "pipe.so"};

        assert_int_equal(mkfifo(scratch(names[i]), 0600), 0);
        refused(text_of("%s: cannot be opened: it is a special file", names[i]), arguments[i]);
    }
    alarm(0);
}

/* The folder of a different run, a file in place of the folder, an invalid run.json, checkpoints
 * without run.json: nothing is changed. */
TEST(test_folders)
{
    assert_trains(SMALL "--set evaluations=1 --arch bn+wn+ce --seed 3 --out one");
    copy_file(scratch("one/run.json"), scratch("before"));
    train_refuses(SMALL "--set evaluations=1 --arch bn+wn+ce --seed 4 --out one",
                  "expected seed 4, found 3");
    train_refuses(SMALL "--set evaluations=1 --arch bn+wn+ce --seed 3 --out one --set tau=0.01",
                  "expected tau 0.01, found 0.005");
    assert_same_files(scratch("one/run.json"), scratch("before"));
    write_bytes(scratch("file"), "", 0);
    refused("file", "--env cartpole-balance --arch bn+wn+ce --out file");
    write_text("odd/run.json", "{\"env\":");
    refused("odd/run.json", "--env cartpole-balance --arch bn+wn+ce --out odd");
    write_text("odd/run.json", "[]");
    refused("odd/run.json", "--env cartpole-balance --arch bn+wn+ce --out odd");
    write_text("strange/step_000000200.h5", "mine");
    refused("no run.json", "--env cartpole-balance --arch bn+wn+ce --out strange");
}

/* A run of a system with an optimistic actor is not that of the system without it. */
TEST(test_folder_of_another_system)
{
    static const char ONE[] =
        "--quiet --env cartpole-balance --steps 120 --set batch=8 --set random_steps=30 "
        "--set eval_episodes=1 --set checkpoints=1 --set analysis_minibatches=1 "
        "--set evaluations=1 --arch own.system --out optimistic";

    write_text("c.arch", "dense 6\nrelu\ndense 1\nloss mse\n");
    write_text("a.arch", "dense 5\ndense 2A\npolicy tanh-gaussian log-std=squash\n");
    write_text("o.arch", "dense 4\nrelu\ndense A\npolicy shift gain=1\n");
    write_text("own.system", "[system]\ncritic = c.arch\nactor = a.arch\noptimist = o.arch\n");
    assert_trains(ONE);
    write_text("own.system", "[system]\ncritic = c.arch\nactor = a.arch\n");
    train_refuses(ONE, "optimistic/run.json");
    assert_complains("expected no optimist, found one");
}

CMFixtureFunction tests_setup = scratch_make, tests_teardown = scratch_remove;
