/* Files that appear complete or not at all, and SHA-256. */
#include "io/file.h"

#include <errno.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "core/memory.h"
#include "scratch.h"

enum { BIG = 100000, LIMIT = 5000, NOBODY = 65534 };

static void expect_bytes(const char *path, const char *expected)
{
    size_t size;
    unsigned char *bytes = read_bytes(path, &size);

    assert_int_equal(size, strlen(expected));
    assert_memory_equal(bytes, expected, size);
}

TEST_CLEAN(test_replaces)
{
    const char *path = scratch("a");

    assert_ok(ks_file_write(path, "one", 3));
    expect_bytes(path, "one");
    assert_ok(ks_file_write(path, "second", 6));
    expect_bytes(path, "second");
    assert_ok(ks_file_write(path, "", 0));
    expect_bytes(path, "");
    assert_int_equal(scratch_files(false), 1);
}

TEST_CLEAN(test_relative_path)
{
    char before[512];

    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(scratch_folder), 0);
    assert_ok(ks_file_write("here", "x", 1));
    expect_bytes("here", "x");
    assert_int_equal(chdir(before), 0);
    expect_bytes(scratch("here"), "x");
}

TEST_CLEAN(test_abandoned)
{
    const char *path = scratch("a");
    struct ks_file file;

    write_bytes(path, "old", 3);
    assert_ok(ks_file_create(path, &file));
    assert_int_equal(scratch_files(false), 2);
    ks_file_close(&file);
    assert_int_equal(scratch_files(false), 1);
    expect_bytes(path, "old");
}

TEST_CLEAN(test_refused_places)
{
    char below[300];

    assert_fails(ks_file_write(scratch("no/such"), "x", 1), KS_IO, "No such file");
    assert_one_line("no/such");
    assert_fails(ks_file_write(scratch_folder, "x", 1), KS_IO, "a directory");
    assert_fails(ks_file_write("/dev/full", "x", 1), KS_IO, "a special file");
    write_bytes(scratch("file"), "x", 1);
    snprintf(below, sizeof below, "%s/below", scratch("file"));
    assert_fails(ks_file_write(below, "x", 1), KS_IO, "Not a directory");
    assert_fails(ks_file_write("", "x", 1), KS_IO, "No such file");
    assert_int_equal(scratch_files(false), 1);
}

/* Root may write everywhere, so the test switches to the user `nobody`. */
TEST_CLEAN(test_unwritable_folder)
{
    const bool root = geteuid() == 0;
    ks_status status;

    assert_int_equal(chmod(scratch_folder, 0555), 0);
    if (root)
        assert_int_equal(seteuid(NOBODY), 0);
    status = ks_file_write(scratch("a"), "x", 1);
    if (root)
        assert_int_equal(seteuid(0), 0);
    assert_int_equal(chmod(scratch_folder, 0755), 0);
    assert_fails(status, KS_IO, "Permission denied");
    assert_int_equal(scratch_files(false), 0);
}

/* Which errors mean a wrong path, and which a failing disk. */
TEST(test_statuses)
{
    static const int place[] = {EACCES, EPERM, EROFS, ENOENT, ENOTDIR, EISDIR, ENAMETOOLONG},
                     disk[] = {ENOSPC, EDQUOT, EFBIG, EIO, ESTALE};

    for (size_t i = 0; i < sizeof place / sizeof *place; i++)
        assert_fails(ks_file_fail(place[i], "a/b", "put there"), KS_IO,
                     "a/b: cannot be put there: ");
    for (size_t i = 0; i < sizeof disk / sizeof *disk; i++)
        assert_fails(ks_file_fail(disk[i], "a/b", "put there"), KS_FULL, strerror(disk[i]));
}

/* A limit on file sizes interrupts write(), as a full disk does. */
TEST_CLEAN(test_full_disk)
{
    const char *path = scratch("a");
    struct rlimit old, small;
    char *big = hold(calloc(BIG, 1));
    ks_status status;

    assert_non_null(big);
    write_bytes(path, "old", 3);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = (struct rlimit){.rlim_cur = LIMIT, .rlim_max = old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    status = ks_file_write(path, big, BIG);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_fails(status, KS_FULL, "cannot be written");
    assert_one_line(path);
    expect_bytes(path, "old");
    assert_int_equal(scratch_files(false), 1);
}

/* Temporary files of dead processes are removed, also with the names of older versions. Files of
 * living processes and of other hosts stay, and so do other files. */
TEST_CLEAN(test_sweep)
{
    const char *names[5];
    char host[9];
    long dead = dead_process();

    find_host_name(scratch("new"), host);
    names[0] = text_of(".kappascope-%s-%ld-3.tmp", host, dead);
    names[1] = text_of(".kappascope-%s-%ld-3.tmp", host, (long)getpid());
    names[2] = text_of(".kappascope-%ld-3.tmp", dead);
    names[3] = text_of(".kappascope-%s-%ld-3.tmp", host, (long)getppid());
    host[0] = host[0] == '0' ? '1' : '0';
    names[4] = text_of(".kappascope-%s-%ld-3.tmp", host, dead);
    for (size_t i = 0; i < 5; i++)
        write_bytes(scratch(names[i]), "x", 1);
    write_bytes(scratch(".kappascope-x-3.tmp"), "x", 1);
    write_bytes(scratch("a.tmp"), "x", 1);
    assert_ok(ks_folder_sweep(scratch_folder));
    assert_int_equal(scratch_files(false), 4);
    assert_int_equal(access(scratch(names[3]), F_OK), 0);
    assert_int_equal(access(scratch(names[4]), F_OK), 0);
    assert_fails(ks_folder_sweep(scratch("none")), KS_IO, "none");
}

/* A name that is too long is refused before any work is done. */
TEST_CLEAN(test_long_name)
{
    char name[300];
    KS_CLEARED_BY(ks_file_close) struct ks_file file = {0};

    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    assert_fails(ks_file_create(name, &file), KS_IO, "File name too long");
}

/* A file system without locks, as some network file systems are. */
static int lock_error;

long syscall(long number, ...); /* not of POSIX */

int flock(int descriptor, int operation)
{
    errno = lock_error;
    return lock_error != 0 ? -1 : (int)syscall(SYS_flock, descriptor, operation);
}

TEST(test_locks)
{
    int mine, other;

    assert_ok(ks_folder_lock(scratch_folder, "program", &mine));
    assert_fails(ks_folder_lock(scratch_folder, "program", &other), KS_IO,
                 ": in use by another program");
    close(mine);
    close(other);
    assert_ok(ks_folder_lock(scratch_folder, "program", &mine));
    lock_error = ENOLCK;
    assert_ok(ks_folder_lock(scratch_folder, "program", &other));
    lock_error = 0;
    close(mine);
    close(other);
    assert_fails(ks_folder_lock(scratch("none"), "program", &other), KS_IO, "No such file");
    assert_int_equal(other, -1);
}

/* A full memory does not keep a file from being written. */
TEST_CLEAN(test_no_allocation)
{
    const char *path = scratch("a");

    ks_alloc_fail_at(1);
    assert_ok(ks_file_write(path, "x", 1));
    ks_alloc_fail_at(0);
    expect_bytes(path, "x");
}

/* NIST, "Descriptions of SHA-256" (examples to FIPS 180-4): "abc", the 448-bit message; the empty
 * message and a million a: NIST's SHA-2 additional test vectors. */
TEST_CLEAN(test_sha256)
{
    static const struct {
        const char *text, *digest;
    } known[] = {
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    };
    static char million[1000000];
    const char *path = scratch("message");
    unsigned char sum[KS_SHA256_BYTES];
    char digest[KS_SHA256_TEXT];

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        write_bytes(path, known[i].text, strlen(known[i].text));
        assert_ok(ks_sha256_file(path, digest));
        assert_string_equal(digest, known[i].digest);
    }
    memset(million, 'a', sizeof million);
    write_bytes(path, million, sizeof million);
    assert_ok(ks_sha256_file(path, digest));
    assert_string_equal(digest, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    assert_ok(ks_sha256(2, (struct ks_piece[]){{"a", 1}, {"bc", 2}}, sum));
    for (size_t i = 0; i < sizeof sum; i++)
        snprintf(digest + 2 * i, 3, "%02x", sum[i]);
    assert_string_equal(digest, known[0].digest);
    assert_fails(ks_sha256_file(scratch("none"), digest), KS_IO, "No such file");
    assert_fails(ks_sha256_file(scratch_folder, digest), KS_IO, "directory");
}

CMFixtureFunction tests_setup = scratch_make, tests_teardown = scratch_remove;
