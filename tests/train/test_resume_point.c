/* Resume points: damaged, missing and foreign files, and how often points are written. */
#include <sys/statvfs.h>

#include "resuming.h"

#include "io/sha256.h"

static struct unstarted_run unstarted[2]; /* one thread, two */
static const char STOPPED_RUN[] = "stopped", REFERENCE[] = "reference", RUN[] = "run";

/* A run stopped at steps 14 and 16 has resume points of both; between them a row, a checkpoint and
 * the first transitions of a segment were written. */
static int set_up(void **state)
{
    if (scratch_make(state) != 0)
        return -1;
    ks_blas_start(NULL);
    build_run(&unstarted[0], 1);
    build_run(&unstarted[1], 2);
    assert_process_runs(&unstarted[0], REFERENCE, (struct launch){.resume = false});
    assert_process_runs(&unstarted[0], STOPPED_RUN,
                        (struct launch){.save_every = 1e9, .stop_at = 14});
    assert_process_runs(&unstarted[0], STOPPED_RUN, (struct launch){.resume = true, .stop_at = 16});
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    ks_run_free(unstarted[0].run);
    ks_run_free(unstarted[1].run);
    return shell("rm -rf --", scratch_folder, "/nothing");
}

/* Copies the stopped run. in_run: a path in the copy. */
static void copy_stopped_run(void)
{
    remove_folder(RUN);
    assert_int_equal(shell("cp -a", STOPPED_RUN, RUN), 0);
}

static const char *in_run(const char *file)
{
    char name[100];

    snprintf(name, sizeof name, "%s/%s", RUN, file);
    return scratch(name);
}

static int resume(void)
{
    return run_process(&unstarted[0], RUN, (struct launch){.resume = true});
}

/* The run resumes, from the older point if a message is expected, and ends like the uninterrupted
 * run. */
static void assert_resumes(const char *message)
{
    if (resume() != 0)
        fail_msg("%s", process_said(RUN));
    if (!message)
        assert_string_equal(process_said(RUN), "");
    else
        assert_process_said(RUN, message);
    if (message)
        assert_process_said(RUN, "going on from the other resume point, environment step 14\n");
    assert_same_run(RUN, REFERENCE);
}

/* Refused with one line; no file changes. */
static void assert_refused(int expected, const char *message)
{
    int result = resume();
    const char *text = process_said(RUN);

    if (result != expected || !strstr(text, message) || strchr(text, '\n') != strchr(text, 0) - 1)
        fail_msg("exit status %d: '%s' is not one line with '%s'", result, text, message);
    assert_state(RUN, "stopped");
}

static void test_undamaged(void **state)
{
    (void)state;
    copy_stopped_run();
    assert_resumes(NULL);
}

/* Files that only the newest point needs, changed or truncated at several places: the older point
 * is used. */
static void test_newest_point_is_damaged(void **state)
{
    static const char *const files[] = {"resume/point.1", "resume/replay.000005"};

    (void)state;
    for (size_t f = 0; f < 2; f++)
        for (size_t cut = 0; cut < 2; cut++)
            for (size_t k = 0; k < 8; k++) {
                unsigned char *bytes;
                size_t size, at;

                copy_stopped_run();
                bytes = read_bytes(in_run(files[f]), &size);
                at = k < 7 ? k * size / 7 : size - 1;
                bytes[at] ^= 16;
                write_bytes(in_run(files[f]), bytes, cut ? at : size);
                free(bytes);
                assert_resumes(files[f]);
            }
    copy_stopped_run();
    assert_int_equal(remove(in_run("resume/point.1")), 0); /* as if it had never been written */
    assert_int_equal(resume(), 0);
    assert_same_run(RUN, REFERENCE);
}

/* Files that both points need: the run is refused. */
static void test_both_points_are_damaged(void **state)
{
    static const char *const files[] = {"resume/replay.000003", "progress.csv"};

    (void)state;
    for (size_t f = 0; f < 2; f++)
        for (size_t cut = 0; cut < 3; cut++) {
            unsigned char *bytes;
            size_t size;

            copy_stopped_run();
            bytes = read_bytes(in_run(files[f]), &size);
            bytes[100] ^= 16;
            write_bytes(in_run(files[f]), bytes, cut ? 100 : size);
            if (cut == 2)
                assert_int_equal(remove(in_run(files[f])), 0);
            free(bytes);
            assert_refused(2, f == 0 && cut == 0 ? "resume/replay.000004" : files[f]);
            assert_process_said(RUN, "; without --resume the run starts over");
        }
    copy_stopped_run();
    for (size_t i = 0; i < 2; i++)
        write_bytes(in_run(i == 0 ? "resume/point.0" : "resume/point.1"), "kappascope", 10);
    assert_refused(2, "resume/point.0: damaged: only 10 bytes");
}

/* progress.csv has lost the row after the older point. */
static void test_lost_row(void **state)
{
    unsigned char *bytes;
    size_t size;

    (void)state;
    copy_stopped_run();
    bytes = read_bytes(in_run("progress.csv"), &size);
    write_bytes(in_run("progress.csv"), bytes, size - 2);
    free(bytes);
    assert_resumes("progress.csv: expected at least ");
}

static void test_lost_checkpoint(void **state)
{
    (void)state;
    copy_stopped_run();
    assert_int_equal(remove(in_run("step_000000015.h5")), 0);
    assert_refused(2, "step_000000015.h5: missing");
}

/* A checkpoint after the older point is computed again, so it may be missing. */
static void test_checkpoint_to_come(void **state)
{
    (void)state;
    copy_stopped_run();
    assert_int_equal(remove(in_run("step_000000015.h5")), 0);
    assert_int_equal(remove(in_run("resume/point.1")), 0);
    assert_int_equal(resume(), 0);
    assert_same_run(RUN, REFERENCE);
}

/* Replaces `from` by `to` in both points, and updates their checksums. */
static void forge(const char *from, const char *to)
{
    assert_int_equal(strlen(from), strlen(to));
    copy_stopped_run();
    for (int i = 0; i < 2; i++) {
        char file[40];
        unsigned char *bytes;
        size_t size, content, length = strlen(from), n = 0;

        snprintf(file, sizeof file, "resume/point.%d", i);
        bytes = read_bytes(in_run(file), &size);
        content = size - KS_SHA256_BYTES;
        for (size_t at = 0; at + length < content; at++)
            if (memcmp(bytes + at, from, length) == 0) {
                memcpy(bytes + at, to, length);
                n++;
            }
        assert_int_equal(n, 1);
        assert_ok(ks_sha256(1, &(struct ks_piece){bytes, content}, bytes + content));
        write_bytes(in_run(file), bytes, size);
        free(bytes);
    }
}

/* Points of other versions and other runs are refused with one line that says what differs. */
static void test_other_runs(void **state)
{
    static const char *const words[][3] = {
        {"\"mujoco\": \"3", "\"mujoco\": \"9", "expected mujoco \"3"},
        {"\"kappascope\": \"0", "\"kappascope\": \"9", "expected kappascope \"0"},
        {"\"seed\": 7", "\"seed\": 6", "expected seed 7, found 6"},
        {"\"tau\": 0.005", "\"tau\": 0.006", "expected tau 0.005, found 0.006"},
    };
    char kernel[100], other[100];

    (void)state;
    snprintf(kernel, sizeof kernel, "\"%s\"", ks_blas_kernel());
    snprintf(other, sizeof other, "%s", kernel);
    other[1] ^= 1;
    forge(kernel, other);
    assert_refused(2,
                   "point.1: --resume needs what the run was started with: expected blas_kernel");
    for (size_t i = 0; i < 4; i++) {
        forge(words[i][0], words[i][1]);
        assert_refused(2, words[i][2]);
    }
    copy_stopped_run(); /* another number of threads */
    assert_int_equal(run_process(&unstarted[1], RUN, (struct launch){.resume = true}), 2);
    assert_process_said(RUN, "expected threads 2, found 1");
    assert_state(RUN, "stopped");
}

/* The version number after the magic string, and the magic string. */
static void test_versions(void **state)
{
    unsigned char *bytes;
    size_t size;

    (void)state;
    copy_stopped_run();
    bytes = read_bytes(in_run("resume/point.1"), &size);
    bytes[24]++;
    write_bytes(in_run("resume/point.1"), bytes, size);
    assert_resumes("resume/point.1: expected version 3, found 4");
    copy_stopped_run();
    bytes[0]++;
    write_bytes(in_run("resume/point.1"), bytes, size);
    assert_resumes("resume/point.1: not a resume point");
    free(bytes);
}

/* Folders in place of files cannot be read: that is an error, and the older point is not used
 * instead. */
static void test_unreadable(void **state)
{
    static const char *const files[] = {"resume/point.1", "resume/replay.000005", "progress.csv"};

    (void)state;
    for (size_t f = 0; f < 3; f++) {
        copy_stopped_run();
        assert_int_equal(remove(in_run(files[f])), 0);
        assert_int_equal(mkdir(in_run(files[f]), 0777), 0);
        assert_refused(2, files[f]);
    }
}

static fsblkcnt_t left; /* on the disk: bytes */

int statvfs(const char *path, struct statvfs *disk)
{
    (void)path;
    *disk = (struct statvfs){.f_frsize = 1, .f_bavail = left};
    return 0;
}

/* A warning names a disk with too little room; the run starts. */
static void test_little_disk(void **state)
{
    (void)state;
    unstarted[0].options.quiet = false;
    for (size_t i = 0; i < 2; i++) {
        remove_folder(RUN);
        left = i == 0 ? 10000 : 10000000;
        assert_process_runs(&unstarted[0], RUN, (struct launch){.stop_at = 1});
        assert_process_said(RUN, "disk: up to 0 MB for resume points");
        assert_true((strstr(process_said(RUN), "has 0 MB left") != NULL) == (i == 0));
    }
    unstarted[0].options.quiet = true;
}

/* With a clock that advances when it is read, writing a point takes one second, so the next one
 * follows after 100; the first after 60; with --save-every after the given time. */
static void test_interval(void **state)
{
    const double intervals[] = {0, 1e-9, 50};
    const uint64_t expected[] = {1, 29, 2};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        unsigned char *bytes;
        uint64_t number, newest = 0;
        size_t size;

        remove_folder(RUN);
        assert_process_runs(&unstarted[0], RUN,
                            (struct launch){.save_every = intervals[i], .stop_at = 29});
        for (int k = 0; k < 2; k++) {
            bytes = read_bytes(in_run(k == 0 ? "resume/point.0" : "resume/point.1"), &size);
            memcpy(&number, bytes + 32, sizeof number);
            newest = number > newest ? number : newest;
            free(bytes);
        }
        assert_int_equal(newest, expected[i]); /* counted from 0 */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_undamaged),
        cmocka_unit_test(test_newest_point_is_damaged),
        cmocka_unit_test(test_both_points_are_damaged),
        cmocka_unit_test(test_lost_row),
        cmocka_unit_test(test_lost_checkpoint),
        cmocka_unit_test(test_checkpoint_to_come),
        cmocka_unit_test(test_other_runs),
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_unreadable),
        cmocka_unit_test(test_little_disk),
        cmocka_unit_test(test_interval),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
