/* Runs that are killed, stopped, or find the disk full at any moment, and are resumed: in the end
 * their files equal those of an uninterrupted run, with one thread or two, and with every part of
 * an agent that has a state. For damaged files see test_resume_point.c. */
#include "resuming.h"

#include <sys/file.h>

enum { RUNS = 2 }; /* with one thread, and with two */
static const char *const reference[] = {"reference1", "reference2"}, *const folder[] = {"run1",
                                                                                        "run2"};

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
static const char NORMALIZING[] = "observation_normalization=1 reward_scaling=bounded",
                  BOUNDED[] = "reward_scaling=bounded gamma=0 target_period=4",
                  RANGE[] = "reward_scaling=range target_value=mean policy_value=mean "
                            "temperature_beta1=0.5 reset_step=21";

/* Windows of 2 steps in episodes of 7, so that some rows of a replay of 9 can always be drawn. */
static const char WINDOWS[] = "horizon=2 n_step=2 target_period=6 replay_priority=0.4 "
                              "reward_scaling=magnitude gradient_norm=1 encoder_lr=0.01 "
                              "policy_delay=1";

/* Seconds between resume points, of a clock that advances when it is read: a point in each step,
 * and 4 or 5 in a run. */
#define ALWAYS    0.5
#define SOMETIMES 40

static const struct kind {
    const char *env, *system, *settings; /* system NULL: bn+wn+ce */
    double save_every;
    struct {
        size_t step, least; /* from one operation on files to the next; how many end the runs */
    } at[SIGNAL + 1];       /* for each fault; step 0: not at all */
} kinds[] = {
    {"walker-walk",
     NULL,
     NORMALIZING,
     SOMETIMES,
     {[KILL] = {3, 66}, [DISK_FULL] = {7, 16}, [SIGNAL] = {9, 14}}},
    {"cartpole-balance", NULL, BOUNDED, ALWAYS, {[KILL] = {34, 8}, [SIGNAL] = {18, 6}}},
    {"dog-trot", "own.system", RANGE, ALWAYS, {[KILL] = {34, 8}, [SIGNAL] = {18, 6}}},
    {"walker-walk", "embedding.system", WINDOWS, ALWAYS, {[KILL] = {34, 8}, [SIGNAL] = {18, 6}}}};

static void write_systems(void)
{
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
}

/* Builds the runs and trains uninterrupted ones. */
static void build(const struct kind *kind)
{
    static char path[512];

    snprintf(path, sizeof path, "%s", kind->system ? scratch(kind->system) : "");
    more = (struct more){kind->env, kind->system ? path : NULL, kind->settings};
    for (size_t i = 0; i < RUNS; i++) {
        build_run(&unstarted[i], i + 1);
        assert_process_runs(&unstarted[i], reference[i], (struct launch){.resume = KS_RESUME_NOT});
        assert_string_equal(process_said(reference[i]), "");
        assert_state(reference[i], "finished");
    }
    assert_same_file("reference1/step_000000030.h5", "reference2/step_000000030.h5");
}

static void free_runs(void)
{
    for (size_t i = 0; i < RUNS; i++) {
        ks_run_free(unstarted[i].run);
        remove_folder(reference[i]);
    }
}

static int make_runs(void **state)
{
    if (scratch_make(state) != 0)
        return -1;
    ks_blas_start(NULL);
    write_systems();
    build(&kinds[0]);
    return 0;
}

static int remove_runs(void **state)
{
    free_runs();
    return scratch_remove(state);
}

/* Resumes to the end, and compares with the uninterrupted run. */
static void finish(size_t i)
{
    assert_process_runs(&unstarted[i], folder[i], (struct launch){.resume = true});
    assert_same_run(folder[i], reference[i]);
    remove_folder(folder[i]);
}

/* Resume points do not affect the results. */
TEST(test_uninterrupted)
{
    for (size_t i = 0; i < RUNS; i++) {
        assert_process_runs(&unstarted[i], folder[i], (struct launch){.save_every = ALWAYS});
        assert_same_run(folder[i], reference[i]);
        remove_folder(folder[i]);
    }
}

/* The number of agent steps at the newest resume point: its header has the point's number and the
 * number of transitions. */
static size_t newest_point(const char *name)
{
    enum { NUMBER = 32, ROWS = 64 };
    uint64_t newest = 0, rows = 0;

    for (int i = 0; i < 2; i++) {
        char path[100];
        uint64_t number;
        unsigned char *bytes;
        size_t size;

        snprintf(path, sizeof path, "%s/resume/point.%d", name, i);
        if (access(scratch(path), F_OK) != 0)
            continue;
        bytes = read_bytes(scratch(path), &size);
        memcpy(&number, bytes + NUMBER, sizeof number);
        if (number >= newest)
            memcpy(&rows, bytes + ROWS, sizeof rows);
        newest = number > newest ? number : newest;
    }
    return rows;
}

static size_t described_number(const char *name, const char *key)
{
    json_t *object = described(name);
    size_t n = (size_t)json_integer_value(json_object_get(object, key));

    json_decref(object);
    return n;
}

/* SIGHUP, as when the terminal or the connection is closed, acts like SIGTERM. */
TEST(test_hangup)
{
    signal(SIGHUP, SIG_DFL); /* nohup, under which tests may run, has it ignored */
    signal_raised = SIGHUP;
    assert_int_equal(
        run_process(&unstarted[0], folder[0], (struct launch){.fault = SIGNAL, .fault_at = 40}), 1);
    signal_raised = SIGTERM;
    assert_process_said(folder[0], "stopped by SIGHUP at environment step ");
    assert_state(folder[0], "stopped");
    assert_int_equal(newest_point(folder[0]), described_number(folder[0], "env_step"));
    finish(0);
}

/* Ignored signals stay ignored, as nohup and background jobs of shell scripts expect. */
TEST(test_ignored_signal)
{
    static const int signals[] = {SIGTERM, SIGHUP};

    for (size_t i = 0; i < 2; i++) {
        int result;

        signal_raised = signals[i];
        signal(signal_raised, SIG_IGN);
        result = run_process(&unstarted[0], folder[0],
                             (struct launch){.fault = SIGNAL, .fault_at = 20});
        signal(signal_raised, SIG_DFL);
        signal_raised = SIGTERM;
        assert_int_equal(result, 0);
        assert_string_equal(process_said(folder[0]), "");
        finish(0);
    }
}

/* The same run is killed again and again, also while it resumes and repairs its files. */
TEST(test_repeated_kills)
{
    struct ks_rng rng = ks_rng_start(22, 0);

    for (size_t i = 0; i < RUNS; i++) {
        size_t deaths = 0;
        int result;

        do {
            result = run_process(&unstarted[i], folder[i],
                                 (struct launch){.resume = true,
                                                 .save_every = ALWAYS,
                                                 .fault = KILL,
                                                 .fault_at = 1 + ks_rng_index(&rng, 40)});
            deaths += result == KILLED;
        } while (result == KILLED && deaths < 60);
        assert_true(deaths > 10);
        finish(i);
    }
}

/* Stopped at a checkpoint, within an episode, at an ordinary step; and asked to stop at a step that
 * it has passed. */
TEST(test_stops)
{
    const size_t stops[] = {3, 8, 16, 16, 9, 29};

    for (size_t k = 0; k < sizeof stops / sizeof *stops; k++) {
        size_t at = k == 4 ? 16 : stops[k];

        assert_process_runs(&unstarted[1], folder[1],
                            (struct launch){.resume = true, .stop_at = stops[k]});
        assert_state(folder[1], "stopped");
        assert_int_equal(described_number(folder[1], "env_step"), at);
        assert_int_equal(described_number(folder[1], "update"), at > 8 ? at - 8 : 0);
    }
    finish(1);
}

/* Without --resume a stopped run starts over; with it, a run that has not been started yet starts.
 * */
TEST(test_without_resume)
{
    char point[100];

    assert_process_runs(&unstarted[0], folder[0], (struct launch){.resume = true, .stop_at = 20});
    snprintf(point, sizeof point, "%s/resume/point.0", folder[0]);
    assert_int_equal(access(scratch(point), F_OK), 0);
    assert_process_runs(&unstarted[0], folder[0], (struct launch){.stop_at = 2});
    assert_int_equal(described_number(folder[0], "env_step"), 2);
    assert_int_equal(count_files(folder[0]), 3); /* no checkpoint of the first start */
    assert_int_equal(count_files("run1/resume"), 2);
    finish(0);
}

/* A finished run is not changed, except that a resume folder left by a kill at the last moment is
 * removed. */
TEST(test_finished)
{
    struct stat before, after;

    assert_int_equal(shell("cp -a", reference[0], folder[0]), 0);
    assert_int_equal(stat(scratch("run1/run.json"), &before), 0);
    assert_int_equal(mkdir(scratch("run1/resume"), 0777), 0);
    write_bytes(scratch("run1/resume/replay.000003"), "x", 1);
    assert_process_runs(&unstarted[0], folder[0], (struct launch){.resume = true});
    assert_int_equal(stat(scratch("run1/run.json"), &after), 0);
    assert_true(before.st_ino == after.st_ino && before.st_mtim.tv_nsec == after.st_mtim.tv_nsec);
    assert_same_run(folder[0], reference[0]);
    remove_folder(folder[0]);
}

/* A folder in which another process trains is refused. */
TEST(test_two_at_once)
{
    int descriptor;

    assert_int_equal(mkdir(scratch(folder[0]), 0777), 0);
    descriptor = open(scratch(folder[0]), O_RDONLY | O_DIRECTORY);
    assert_int_equal(flock(descriptor, LOCK_EX), 0);
    assert_int_equal(run_process(&unstarted[0], folder[0], (struct launch){.resume = true}), 2);
    assert_process_said(folder[0], "in use by another kappascope-train");
    assert_int_equal(count_files(folder[0]), 0);
    close(descriptor);
    finish(0);
}

/* --- ended by a fault at any operation on files --- */

/* Injects the fault into the runs, into the first at operation k and into the second at k + 1.
 * Returns whether the first was ended. */
static bool try_fault(const struct kind *kind, enum fault which, size_t k)
{
    int result[RUNS];
    pid_t child[RUNS];

    for (size_t i = 0; i < RUNS; i++)
        child[i] = start_run(
            &unstarted[i], folder[i],
            &(struct launch){.save_every = kind->save_every, .fault = which, .fault_at = k + i});
    for (size_t i = 0; i < RUNS; i++) {
        result[i] = await_run(child[i]);
        if (result[i] != 0 && result[i] != (which == KILL ? KILLED : 1) &&
            (which != SIGNAL || result[i] != TERMINATED))
            fail_msg("operation %zu: exit status %d: %s", k + i, result[i],
                     process_said(folder[i]));
    }
    return result[0] != 0;
}

/* progress.csv, if it exists, ends with a complete row. */
static void assert_whole_rows(const char *name)
{
    const char *path = text_of("%s/progress.csv", name);
    unsigned char *bytes;
    size_t size;

    if (!exists(path))
        return;
    bytes = read_bytes(scratch(path), &size);
    assert_true(size == 0 || bytes[size - 1] == '\n');
}

/* A signal between two steps or during an evaluation, whose row of progress.csv is then measured
 * after the resume: a resume point is written at once. A signal before the first step ends the
 * program without a word. */
static void assert_stopped(size_t i)
{
    assert_process_said(folder[i], "stopped by SIGTERM at environment step ");
    assert_state(folder[i], "stopped");
    assert_int_equal(newest_point(folder[i]), described_number(folder[i], "env_step"));
}

/* The disk is full from some operation on: one line that names a file. */
static void assert_disk_full(size_t i)
{
    assert_process_said(folder[i], "No space left on device");
    assert_process_said(folder[i], scratch(folder[i]));
    assert_int_equal(count(process_said(folder[i]), "\n"), 1);
    assert_whole_rows(folder[i]);
}

/* Ends the runs at operation after operation, and resumes them. */
static void end_and_resume(const struct kind *kind, enum fault which)
{
    size_t ended = 0, k = 1;

    for (; try_fault(kind, which, k); k += kind->at[which].step)
        for (size_t i = 0; i < RUNS; i++) {
            const bool silent = *process_said(folder[i]) == '\0';

            if (which == DISK_FULL)
                assert_disk_full(i);
            else if (which == SIGNAL && !silent)
                assert_stopped(i);
            ended += which != SIGNAL || !silent;
            finish(i);
        }
    if (ended <= kind->at[which].least)
        fail_msg("%s: fault %d ended %zu runs", kind->env, which, ended);
    remove_folder(folder[0]);
    remove_folder(folder[1]);
}

/* The last test, as it builds other runs. */
TEST(test_ends)
{
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        if (k > 0) {
            free_runs();
            build(&kinds[k]);
        }
        for (enum fault which = KILL; which <= SIGNAL; which++)
            if (kinds[k].at[which].step > 0)
                end_and_resume(&kinds[k], which);
    }
}

CMFixtureFunction tests_setup = make_runs, tests_teardown = remove_runs;
