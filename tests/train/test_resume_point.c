/* Resume points: damaged, missing and foreign files, and how often points are written. */
#include <sys/statvfs.h>

#include "resuming.h"

/* A run stopped at steps 14 and 16 has resume points of both; between them a row, a checkpoint and
 * the first transitions of a segment were written. */
static int set_up_two_points(void **state)
{
    if (set_up(state) != 0)
        return -1;
    remove_folder(STOPPED_RUN);
    assert_process_runs(&unstarted[0], STOPPED_RUN,
                        (struct launch){.save_every = 1e9, .stop_at = 14});
    assert_process_runs(&unstarted[0], STOPPED_RUN,
                        (struct launch){.resume = KS_RESUME_EXACT, .stop_at = STOPPED});
    return 0;
}

/* The run resumes, from the older point if a message is expected, and ends like the uninterrupted
 * run. */
static void assert_same_after(const char *message)
{
    if (resume(KS_RESUME_EXACT) != 0)
        fail_msg("%s", process_said(RUN));
    if (!message)
        assert_string_equal(process_said(RUN), "");
    else
        assert_process_said(RUN, message);
    if (message)
        assert_process_said(RUN, "going on from the other resume point, environment step 14\n");
    assert_same_run(RUN, REFERENCE);
}

/* Changes byte `at` of a file of the run, or cuts the file there; negative: counted from its end.
 */
static void damage(const char *file, long at, bool cut)
{
    unsigned char *bytes;
    size_t size, place;

    bytes = read_bytes(in_run(file), &size);
    place = at < 0 ? size - (size_t)-at : (size_t)at;
    bytes[place] ^= 16;
    write_bytes(in_run(file), bytes, cut ? place : size);
}

TEST(test_undamaged)
{
    copy_stopped_run();
    assert_same_after(NULL);
}

/* Files that only the newest point needs, changed or truncated at several places: the older point
 * is used. */
TEST(test_newest_point_is_damaged)
{
    static const char *const files[] = {"resume/point.1", "resume/replay.000005"};

    for (size_t f = 0; f < 2; f++)
        for (size_t cut = 0; cut < 2; cut++)
            for (size_t k = 0; k < 8; k++) {
                struct stat there;

                copy_stopped_run();
                assert_int_equal(stat(in_run(files[f]), &there), 0);
                damage(files[f], k < 7 ? (long)k * there.st_size / 7 : -1, cut);
                assert_same_after(files[f]);
            }
    copy_stopped_run();
    assert_int_equal(remove(in_run("resume/point.1")), 0); /* as if it had never been written */
    assert_int_equal(resume(KS_RESUME_EXACT), 0);
    assert_same_run(RUN, REFERENCE);
}

/* Files that both points need: the run is refused. */
TEST(test_both_points_are_damaged)
{
    static const char *const files[] = {"resume/replay.000003", "progress.csv"};

    for (size_t f = 0; f < 2; f++)
        for (size_t cut = 0; cut < 3; cut++) {
            copy_stopped_run();
            damage(files[f], 100, cut);
            if (cut == 2)
                assert_int_equal(remove(in_run(files[f])), 0);
            assert_refused(KS_RESUME_EXACT, f == 0 && cut == 0 ? "resume/replay.000004" : files[f]);
            assert_process_said(RUN, "; without --resume the run starts over");
        }
    copy_stopped_run();
    for (size_t i = 0; i < 2; i++)
        write_bytes(in_run(i == 0 ? "resume/point.0" : "resume/point.1"), "kappascope", 10);
    assert_refused(KS_RESUME_EXACT, "resume/point.0: damaged: only 10 bytes");
}

/* progress.csv has lost the row after the older point. */
TEST(test_lost_row)
{
    copy_stopped_run();
    damage("progress.csv", -2, true);
    assert_same_after("progress.csv: expected at least ");
}

TEST(test_lost_checkpoint)
{
    copy_stopped_run();
    assert_int_equal(remove(in_run("step_000000015.h5")), 0);
    assert_refused(KS_RESUME_EXACT, "step_000000015.h5: missing");
}

/* A checkpoint after the older point is computed again, so it may be missing. */
TEST(test_checkpoint_to_come)
{
    copy_stopped_run();
    assert_int_equal(remove(in_run("step_000000015.h5")), 0);
    assert_int_equal(remove(in_run("resume/point.1")), 0);
    assert_int_equal(resume(KS_RESUME_EXACT), 0);
    assert_same_run(RUN, REFERENCE);
}

/* The version number after the magic string, and the magic string. */
TEST(test_versions)
{
    unsigned char *bytes;
    size_t size;

    copy_stopped_run();
    bytes = read_bytes(in_run("resume/point.1"), &size);
    bytes[24]++;
    write_bytes(in_run("resume/point.1"), bytes, size);
    assert_same_after("resume/point.1: expected version 3, found 4");
    copy_stopped_run();
    bytes[0]++;
    write_bytes(in_run("resume/point.1"), bytes, size);
    assert_same_after("resume/point.1: not a resume point");
}

/* Folders in place of files cannot be read: that is an error, and the older point is not used
 * instead. */
TEST(test_unreadable)
{
    static const char *const files[] = {"resume/point.1", "resume/replay.000005", "progress.csv"};

    for (size_t f = 0; f < 3; f++) {
        copy_stopped_run();
        assert_int_equal(remove(in_run(files[f])), 0);
        assert_int_equal(mkdir(in_run(files[f]), 0777), 0);
        assert_refused(KS_RESUME_EXACT, files[f]);
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
TEST(test_little_disk)
{
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
TEST(test_interval)
{
    const double intervals[] = {0, 1e-9, 50};
    const uint64_t expected[] = {1, 29, 2};

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
        }
        assert_int_equal(newest, expected[i]); /* counted from 0 */
    }
}

CMFixtureFunction tests_setup = set_up_two_points, tests_teardown = tear_down;
