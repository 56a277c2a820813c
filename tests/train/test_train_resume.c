/* Runs that are killed, stopped, or find the disk full at any moment, and are resumed: in the end
 * their files equal those of an uninterrupted run. For damaged files see test_resume_point.c. */
#include "resuming.h"

#include <sys/file.h>

enum { RUNS = 2 };
static const char *const reference[] = {"reference1", "reference2"}, *const folder[] = {"run1",
                                                                                        "run2"};
static const char *const normalizing[] = {"observation_normalization=1", "reward_scaling=bounded",
                                          NULL};
static double patience = 10; /* seconds: at first the duration of a run */

/* Seconds between resume points, of a clock that advances when it is read: a point in each step,
 * and 4 or 5 in a run. */
static const double ALWAYS = 0.5, SOMETIMES = 40;

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int make_runs(void **state)
{
    if (scratch_make(state) != 0)
        return -1;
    ks_blas_start(NULL);
    more.settings = normalizing;
    for (size_t i = 0; i < RUNS; i++) {
        double start;

        build_run(&unstarted[i], i + 1);
        start = seconds();
        assert_process_runs(&unstarted[i], reference[i], (struct launch){.resume = false});
        patience = fmin(patience, seconds() - start);
        assert_string_equal(process_said(reference[i]), "");
        assert_state(reference[i], "finished");
    }
    return 0;
}

static int remove_runs(void **state)
{
    for (size_t i = 0; i < RUNS; i++)
        ks_run_free(unstarted[i].run);
    return shell("rm -rf --", scratch_folder, "/nothing");
}

/* Resumes to the end, and compares with the uninterrupted run. */
static void finish(size_t i)
{
    assert_process_runs(&unstarted[i], folder[i], (struct launch){.resume = true});
    assert_same_run(folder[i], reference[i]);
    remove_folder(folder[i]);
}

/* Resume points do not affect the results; nor do threads, except for their number in run.json. */
TEST(test_uninterrupted)
{
    for (size_t i = 0; i < RUNS; i++) {
        assert_process_runs(&unstarted[i], folder[i], (struct launch){.save_every = ALWAYS});
        assert_same_run(folder[i], reference[i]);
        remove_folder(folder[i]);
    }
    assert_same_file("reference1/step_000000030.h5", "reference2/step_000000030.h5");
}

/* Injects the fault into the runs, into the first at operation k and into the second at k + 1.
 * Returns whether they got that far. */
static bool try_fault(int which, size_t k)
{
    int result[RUNS];
    pid_t child[RUNS];

    for (size_t i = 0; i < RUNS; i++)
        child[i] = start_run(
            &unstarted[i], folder[i],
            &(struct launch){.save_every = SOMETIMES, .fault = which, .fault_at = k + i});
    for (size_t i = 0; i < RUNS; i++) {
        result[i] = await_run(child[i]);
        if (result[i] != 0 && result[i] != (which == KILL ? KILLED : 1) &&
            (which != SIGNAL || result[i] != TERMINATED))
            fail_msg("operation %zu: exit status %d: %s", k + i, result[i],
                     process_said(folder[i]));
    }
    return result[0] != 0;
}

/* Killed at every single operation on files of a run. */
TEST(test_kills_at_all_operations)
{
    size_t k = 1;

    while (try_fault(KILL, k)) {
        finish(0);
        finish(1);
        k += 2;
    }
    assert_true(k > 100);
    remove_folder(folder[0]);
    remove_folder(folder[1]);
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

/* A signal between two steps or during an evaluation: a resume point is written at once. A signal
 * before the first step ends the program; one after the last step is ignored. */
TEST(test_signals)
{
    size_t stopped = 0, k = 1;

    for (; try_fault(SIGNAL, k); k += 7)
        for (size_t i = 0; i < RUNS; i++) {
            if (*process_said(folder[i])) {
                assert_process_said(folder[i], "stopped by SIGTERM at environment step ");
                assert_state(folder[i], "stopped");
                assert_int_equal(newest_point(folder[i]), described_number(folder[i], "env_step"));
                stopped++;
            }
            finish(i);
        }
    assert_true(stopped > 20);
    remove_folder(folder[0]);
    remove_folder(folder[1]);
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

/* progress.csv, if it exists, ends with a complete row. */
static void assert_whole_rows(const char *name)
{
    char path[100];
    unsigned char *bytes;
    size_t size;

    snprintf(path, sizeof path, "%s/progress.csv", name);
    if (access(scratch(path), F_OK) != 0)
        return;
    bytes = read_bytes(scratch(path), &size);
    assert_true(size == 0 || bytes[size - 1] == '\n');
}

/* The disk is full from some operation on: one line that names a file, exit status 1. */
TEST(test_full_disk)
{
    size_t k = 1;

    for (; try_fault(DISK_FULL, k); k += 5)
        for (size_t i = 0; i < RUNS; i++) {
            assert_process_said(folder[i], "No space left on device");
            assert_process_said(folder[i], scratch(folder[i]));
            assert_ptr_equal(strchr(process_said(folder[i]), '\n') + 1,
                             strchr(process_said(folder[i]), '\0'));
            assert_whole_rows(folder[i]);
            finish(i);
        }
    assert_true(k > 60);
    remove_folder(folder[0]);
    remove_folder(folder[1]);
}

/* Kills and resumes both runs after random times until both have finished; turn 41 is not killed.
 * Returns the number of kills. */
static size_t kill_and_resume(struct ks_rng *rng)
{
    bool done[RUNS] = {false};
    size_t kills = 0;

    for (size_t turn = 0; !done[0] || !done[1]; turn++) {
        double wait = turn < 40 ? ks_rng_uniform(rng, 0, patience) : 60;
        pid_t child[RUNS];

        for (size_t i = 0; i < RUNS; i++)
            if (!done[i])
                child[i] = start_run(&unstarted[i], folder[i],
                                     &(struct launch){.resume = true, .save_every = ALWAYS});
        if (wait < 60)
            nanosleep(
                &(struct timespec){.tv_sec = (time_t)wait, .tv_nsec = (long)(1e9 * fmod(wait, 1))},
                NULL);
        for (size_t i = 0; i < RUNS; i++)
            if (!done[i]) {
                int result;

                if (wait < 60)
                    kill(child[i], SIGKILL);
                result = await_run(child[i]);
                assert_true(result == KILLED || result == 0);
                kills += result == KILLED;
                done[i] = result == 0;
                patience *= done[i] ? 0.9 : 1; /* so that more processes are killed than finish */
            }
    }
    return kills;
}

TEST(test_deaths_at_random)
{
    struct ks_rng rng = ks_rng_start(21, 0);
    size_t kills = 0;

    for (int i = 0; i < 4 || (kills < 20 && i < 50); i++) {
        kills += kill_and_resume(&rng);
        for (size_t k = 0; k < RUNS; k++) {
            assert_same_run(folder[k], reference[k]);
            remove_folder(folder[k]);
        }
    }
    assert_true(kills >= 20);
}

/* The same run is killed again and again, also while it resumes and repairs its files. */
TEST(test_repeated_kills)
{
    struct ks_rng rng = ks_rng_start(22, 0);
    size_t deaths = 0;
    int result;

    do {
        result = run_process(&unstarted[0], folder[0],
                             (struct launch){.resume = true,
                                             .save_every = ALWAYS,
                                             .fault = KILL,
                                             .fault_at = 1 + ks_rng_index(&rng, 40)});
        deaths += result == KILLED;
    } while (result == KILLED && deaths < 60);
    assert_true(deaths > 10);
    finish(0);
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

CMFixtureFunction tests_setup = make_runs, tests_teardown = remove_runs;
