/* Runs with the parts that only some systems have: killed or stopped, and resumed, with one thread
 * or two, they end with the files of an uninterrupted run. */
#include "resuming.h"

/* A system with every part that has a state of its own. */
static const char SYSTEM[] = "[system]\ncritic = c.arch\nactor = a.arch\noptimist = o.arch\n",
                  CRITIC[] = "dense 6\nrelu\ndense 5\nloss quantile\n",
                  ACTOR[] = "dense 5\ndense 2A\npolicy tanh-gaussian log-std=squash\n",
                  OPTIMIST[] = "dense 4\nrelu\ndense A\npolicy shift gain=1\n";

/* A system with an encoder. */
static const char EMBEDDING[] =
    "[system]\ncritic = value.arch\nactor = fixed.arch\nencoder_state = state.arch\n"
    "encoder_action = action.arch\nencoder_pair = pair.arch\n"
    "encoder_model = model.arch\n",
                  VALUE[] = "dense 6\nelu\ndense 1\nloss huber\n",
                  FIXED[] = "dense 5\ndense A\npolicy tanh\n", STATE[] = "dense 6\nelu\noutputs\n",
                  ACTION[] = "dense 3\nelu\noutputs\n", PAIR[] = "dense 5\noutputs\n",
                  MODEL[] = "dense 72\noutputs\n";

/* With gamma 0, G is the reward. The rewards of cartpole-balance are nearly equal, so the largest
 * one decides about the divisor. Targets are copied every 4 updates: before these updates, a thread
 * that steps the environment must have ended. */
static const char *const bounded[] = {"reward_scaling=bounded", "gamma=0", "target_period=4", NULL},
                         *const range[] = {"reward_scaling=range", "target_value=mean",
                                           "policy_value=mean",    "temperature_beta1=0.5",
                                           "reset_step=21",        NULL};

/* Windows of 2 steps in episodes of 7, so that some rows of a replay of 9 can always be drawn. */
static const char *const embedding[] = {"horizon=2",
                                        "n_step=2",
                                        "target_period=6",
                                        "replay_priority=0.4",
                                        "reward_scaling=magnitude",
                                        "gradient_norm=1",
                                        "encoder_lr=0.01",
                                        "policy_delay=1",
                                        NULL};

static const struct kind {
    const char *env, *system; /* system NULL: bn+wn+ce */
    const char *const *settings;
} kinds[] = {{"cartpole-balance", NULL, bounded},
             {"dog-trot", "own.system", range},
             {"dog-trot", "embedding.system", embedding}};

enum { STRIDE = 17, SIGNAL_STRIDE = 9 }; /* of the operations on files at which runs end */

static int write_systems(void **state)
{
    if (scratch_make(state) != 0)
        return -1;
    ks_blas_start(NULL);
    write_text("own.system", SYSTEM);
    write_text("c.arch", CRITIC);
    write_text("a.arch", ACTOR);
    write_text("o.arch", OPTIMIST);
    write_text("embedding.system", EMBEDDING);
    write_text("value.arch", VALUE);
    write_text("fixed.arch", FIXED);
    write_text("state.arch", STATE);
    write_text("action.arch", ACTION);
    write_text("pair.arch", PAIR);
    write_text("model.arch", MODEL);
    return 0;
}

static void build(const struct kind *kind, size_t threads, struct unstarted_run *run)
{
    static char path[512];

    snprintf(path, sizeof path, "%s", kind->system ? scratch(kind->system) : "");
    more = (struct more){kind->env, kind->system ? path : NULL, kind->settings};
    build_run(run, threads);
}

/* Ended by this fault at several operations on files, each time from the start, until a run is not
 * ended. Returns how many were. */
static size_t end_and_resume(struct unstarted_run *u, int which, size_t stride)
{
    size_t ended = 0;
    bool ends = true;

    for (size_t at = 10; ends; at += stride) {
        const struct launch launch = {.save_every = 0.5, .fault = which, .fault_at = at};

        ends = run_process(u, "ended", launch) != 0;
        ended += ends;
        assert_process_runs(u, "ended", (struct launch){.resume = true});
        assert_same_run("ended", "whole");
        remove_folder("ended");
    }
    return ended;
}

/* Killed; or stopped by a signal, also during an evaluation, whose row of progress.csv is then
 * measured after the resume. */
TEST(test_ends)
{
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        struct unstarted_run one, two;

        build(&kinds[k], 1, &one);
        build(&kinds[k], 2, &two);
        assert_process_runs(&one, "whole", (struct launch){.resume = false});
        assert_process_runs(&two, "threads", (struct launch){.resume = false});
        assert_same_file("whole/step_000000030.h5", "threads/step_000000030.h5");
        assert_true(end_and_resume(&one, KILL, STRIDE) > 8);
        assert_true(end_and_resume(&one, SIGNAL, SIGNAL_STRIDE) > 8);
        remove_folder("whole");
        remove_folder("threads");
        ks_run_free(one.run);
        ks_run_free(two.run);
    }
}

CMFixtureFunction tests_setup = write_systems, tests_teardown = scratch_remove;
