/* The replay log: rows are read back as they were appended, or the damaged file is named. */
#include "io/replay_log.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>

#include "core/memory.h"
#include "scratch.h"

/* Rows of 5 bytes, 4 in a segment. */
enum { WIDTH = 5, SEGMENT = 4, MOST = 21, HEADER = 80 };

static struct ks_replay_log *fresh(void)
{
    struct ks_replay_log *log;

    assert_ok(ks_replay_log_new(scratch_folder, WIDTH, SEGMENT, &log));
    return log;
}

/* Appends rows from `from` to `to` - 1, `n` at a time. */
static void append(struct ks_replay_log *log, size_t from, size_t to, size_t n)
{
    unsigned char rows[MOST * WIDTH];

    for (; from < to; from += n) {
        size_t now = to - from < n ? to - from : n;

        for (size_t i = 0; i < now; i++)
            memset(rows + i * WIDTH, (int)(from + i), WIDTH);
        assert_ok(ks_replay_log_append(log, now, rows));
    }
}

struct taken {
    size_t next, n, wrong; /* the next expected row; numbers of rows read and of rows that differ */
};

static ks_status take(void *context, const void *row)
{
    struct taken *t = context;
    unsigned char expected[WIDTH];

    memset(expected, (int)t->next++, WIDTH);
    t->wrong += memcmp(row, expected, WIDTH) != 0;
    t->n++;
    return KS_OK;
}

static ks_status read_from(struct ks_replay_log *log, const struct ks_replay_log_mark *mark,
                           size_t first, struct taken *t)
{
    *t = (struct taken){.next = first};
    return ks_replay_log_read(log, mark, first, take, t);
}

static void assert_reads(const struct ks_replay_log_mark *mark, size_t first)
{
    KS_OWNED_BY(ks_replay_log_free) struct ks_replay_log *log = fresh();
    struct taken t;

    assert_ok(read_from(log, mark, first, &t));
    assert_true(t.n == mark->rows - first && t.wrong == 0);
}

static void assert_damaged(const struct ks_replay_log_mark *mark, size_t first, const char *file)
{
    KS_OWNED_BY(ks_replay_log_free) struct ks_replay_log *log = fresh();
    struct taken t;

    assert_int_equal(read_from(log, mark, first, &t), KS_FORMAT);
    assert_one_line(file);
}

/* The files do not depend on how many rows are appended at a time. The log can be read up to every
 * mark and from every row, and then continued as if it had never been interrupted. */
TEST_CLEAN(test_all_marks)
{
    struct ks_replay_log_mark mark[MOST + 1];
    struct ks_replay_log *log = fresh();

    for (size_t k = 0; k <= MOST; k++) {
        mark[k] = log->mark;
        append(log, k, k + (k < MOST), 1);
    }
    assert_ok(ks_replay_log_flush(log));
    ks_replay_log_free(log);
    for (size_t k = MOST + 1; k-- > 0;)
        for (size_t first = k > 0 ? k - 1 : 0; first < MOST; first -= first < 3 ? first + 1 : 3) {
            struct ks_replay_log *again = fresh();
            struct taken t;

            assert_ok(read_from(again, &mark[k], first, &t)); /* removes the rows after the mark */
            assert_true(t.n == k - first && t.wrong == 0);
            append(again, k, MOST, 3 + k % 5);
            assert_memory_equal(&again->mark, &mark[MOST], sizeof mark[MOST]);
            ks_replay_log_free(again);
            assert_reads(&mark[MOST], 0);
        }
}

TEST_CLEAN(test_drop)
{
    struct ks_replay_log *log = fresh();
    struct ks_replay_log_mark mark;

    append(log, 0, 22, 6);
    assert_ok(ks_replay_log_flush(log));
    assert_int_equal(scratch_files(false), 6);
    assert_ok(ks_replay_log_drop(log, 3));
    assert_int_equal(scratch_files(false), 6);
    assert_ok(ks_replay_log_drop(log, 4)); /* all four rows of the first segment */
    assert_int_equal(scratch_files(false), 5);
    assert_ok(ks_replay_log_drop(log, 19));
    assert_int_equal(scratch_files(false), 2);
    append(log, 22, 26, 1);
    mark = log->mark;
    ks_replay_log_free(log);
    assert_reads(&mark, 16);
    assert_reads(&mark, 25);
    assert_damaged(&mark, 15, "replay.000003: missing");
    log = fresh(); /* older segments are also dropped later */
    assert_ok(read_from(log, &mark, 25, &(struct taken){0}));
    assert_ok(ks_replay_log_drop(log, 24));
    assert_int_equal(scratch_files(false), 1);
    ks_replay_log_free(log);
}

/* Every byte of every file is changed, and every file is truncated at every byte. */
TEST_CLEAN(test_damage)
{
    struct ks_replay_log *log = fresh();
    struct ks_replay_log_mark mark;

    append(log, 0, 10, 10);
    mark = log->mark;
    ks_replay_log_free(log);
    for (size_t segment = 0; segment < 3; segment++) {
        unsigned char *bytes;
        char name[32];
        size_t size;

        snprintf(name, sizeof name, "replay.%06zu", segment);
        bytes = read_bytes(scratch(name), &size);
        assert_int_equal(size, HEADER + WIDTH * (segment < 2 ? SEGMENT : 2));
        for (size_t i = 0; i < size; i++) {
            bytes[i] ^= 1;
            write_bytes(scratch(name), bytes, size);
            assert_damaged(&mark, 1, "replay.00000");
            bytes[i] ^= 1;
            write_bytes(scratch(name), bytes, i);
            assert_damaged(&mark, 1, name);
        }
        write_bytes(scratch(name), bytes, size);
        assert_reads(&mark, 1);
        assert_int_equal(remove(scratch(name)), 0);
        assert_damaged(&mark, 1, name);
        write_bytes(scratch(name), bytes, size);
    }
}

/* Other sizes, rows of another log, a segment renamed to another number. */
TEST_CLEAN(test_foreign_segments)
{
    struct ks_replay_log *log = fresh();
    struct ks_replay_log_mark mark, other;
    struct taken t;
    char path[2][300];

    append(log, 0, 10, 1);
    mark = log->mark;
    ks_replay_log_free(log);
    other = mark;
    other.chain[7] ^= 4;
    assert_damaged(&other, 0, "replay.000002");
    other = (struct ks_replay_log_mark){.rows = 9};
    memcpy(other.chain, mark.chain, sizeof mark.chain);
    assert_damaged(&other, 0, "replay.000002");
    assert_ok(ks_replay_log_new(scratch_folder, WIDTH, SEGMENT + 1, &log));
    assert_fails(read_from(log, &mark, 0, &t), KS_FORMAT, "replay.000000: damaged, or not part");
    ks_replay_log_free(log);
    for (size_t i = 0; i < 2; i++)
        snprintf(path[i], sizeof path[i], "%s/replay.00000%zu", scratch_folder, i);
    assert_int_equal(rename(path[0], path[1]), 0);
    assert_damaged(&mark, 5, "replay.000001");
}

/* A folder with the name of a segment cannot be opened, which the message says. */
TEST_CLEAN(test_unreadable)
{
    struct ks_replay_log *log = fresh();
    struct ks_replay_log_mark mark;
    struct taken t;

    append(log, 0, 3, 1);
    mark = log->mark;
    ks_replay_log_free(log);
    assert_int_equal(remove(scratch("replay.000000")), 0);
    assert_int_equal(mkdir(scratch("replay.000000"), 0777), 0);
    log = fresh();
    assert_fails(read_from(log, &mark, 0, &t), KS_IO, "replay.000000: cannot be opened");
    assert_int_equal(ks_replay_log_append(log, 1, "12345"), KS_IO);
    assert_one_line("replay.000000");
    ks_replay_log_free(log);
}

/* A limit on file sizes stops write() half way: earlier rows can still be read. */
TEST_CLEAN(test_full_disk)
{
    struct ks_replay_log *log = fresh();
    struct rlimit old, small;
    struct ks_replay_log_mark mark;
    ks_status status;

    append(log, 0, 6, 1);
    mark = log->mark;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = (struct rlimit){.rlim_cur = HEADER + 2 * WIDTH + 3, .rlim_max = old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    status = ks_replay_log_append(log, 1, "\6\6\6\6\6");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_fails(status, KS_FULL, "replay.000001: cannot be written");
    ks_replay_log_free(log);
    assert_reads(&mark, 0);
}

TEST_CLEAN(test_allocation_failures)
{
    struct ks_replay_log_mark mark = {.rows = 0};
    struct starved s = {0};

    while (starving(&s)) {
        struct ks_replay_log *log = NULL;
        struct taken t;

        s.status = ks_replay_log_new(scratch_folder, WIDTH, SEGMENT, &log);
        if (s.status == KS_OK)
            s.status = ks_replay_log_append(log, 2, "\0\0\0\0\0\1\1\1\1\1");
        if (s.status == KS_OK)
            s.status = ks_replay_log_flush(log);
        if (s.status == KS_OK) {
            mark = log->mark;
            ks_replay_log_free(log);
            s.status = ks_replay_log_new(scratch_folder, WIDTH, SEGMENT, &log);
        }
        if (s.status == KS_OK)
            s.status = read_from(log, &mark, 0, &t);
        if (s.status == KS_OK)
            s.status = ks_replay_log_drop(log, SEGMENT);
        ks_replay_log_free(log);
    }
}

CMFixtureFunction tests_setup = scratch_make, tests_teardown = scratch_remove;
