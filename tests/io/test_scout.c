/* The process that reads a file before a program does: it may crash or hang, and has limits. */
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>

#include "damaged.h"
#include "example.h"
#include "io/checkpoint.h"
#include "io/scout.h"
#include "kappascope.h"
#include "programs.h"

static const int SECONDS = 60; /* a test that takes longer hangs */

/* --- a scout that crashes or hangs --- */

/* HDF5 1.10 crashes on this file, 1.14 refuses it. */
TEST_CLEAN(test_damaged_heap)
{
    static const struct {
        const char *name, *arguments;
    } programs[] = {{"kappascope-analyze", "a.h5"},
                    {"kappascope-analyze", "--apply a.h5 --output o.h5 c.h5"},
                    {"kappascope-inspect", "a.h5"},
                    {"kappascope-audit", "a.h5"},
                    {"kappascope-audit", "--against a.h5 c.h5"}};
    const char *path = scratch("a.h5");
    struct ks_h5 *h5;

    break_heap(path, (uint64_t)1 << 32);
    assert_int_equal(ks_h5_open(path, NULL, &h5), KS_IO); /* no program can forget the scout */
    assert_one_line(path);
    assert_int_equal(kappascope_scout(path), KAPPASCOPE_IO);
    assert_one_line(path);
    write_one(scratch("c.h5"), make_plain(MSE), false);
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        assert_int_equal(run_program(programs[i].name, programs[i].arguments), 2);
        assert_ptr_equal(strstr(complained, programs[i].name), complained);
        assert_complains("a.h5: ");
        assert_ptr_equal(strchr(complained, '\n'), complained + strlen(complained) - 1);
    }
}

static bool crashing;

static void crash(void)
{
    if (crashing) {
        signal(SIGSEGV, SIG_DFL); /* cmocka has a handler */
        raise(SIGSEGV);
    }
}

TEST_CLEAN(test_crash)
{
    const char *path = scratch("a.h5");

    write_one(path, make_plain(MSE), false);
    assert_int_equal(pthread_atfork(NULL, NULL, crash), 0); /* in the reading process */
    crashing = true;
    assert_fails(ks_scout(path), KS_IO, "the file is damaged: the HDF5 library crashed (Segm");
    crashing = false;
    assert_one_line(path);
    assert_ok(ks_scout(path));
}

TEST_CLEAN(test_endless_loop)
{
    const char *path = scratch("a.h5");

    break_heap(path, (uint64_t)0 - 16);
    assert_int_equal(setenv("KAPPASCOPE_SCOUT", "1", 1), 0);
    assert_fails(ks_scout(path), KS_IO, "did not finish in time");
    assert_one_line(path);
    assert_int_equal(setenv("KAPPASCOPE_SCOUT", "0", 1), 0);
    assert_ok(ks_scout(path)); /* no scout is asked for */
    assert_int_equal(unsetenv("KAPPASCOPE_SCOUT"), 0);
    assert_true(waitpid(-1, NULL, WNOHANG) < 0); /* no process remains */
}

/* A spectrum of a few kilobytes that declares more than any memory. */
TEST_CLEAN(test_memory)
{
    const char *path = scratch("s.h5");
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);

    assert_true(H5Pset_chunk(list, 2, (hsize_t[]){1, 1000}) >= 0);
    H5Gclose(H5Gcreate2(file, "/summary", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Gclose(H5Gcreate2(file, "/ritz", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    add_dataset(file, "/ritz/value", H5T_IEEE_F64LE,
                &(struct stored){2, {1000000, 1000000000}, NULL, list});
    H5Pclose(list);
    H5Fclose(file);
    set_string(path, "/", "format", "kappascope-spectrum");
    set_integer(path, "/", "version", 1);
#ifdef __SANITIZE_ADDRESS__
    skip(); /* the sanitizer ends the program that allocates too much */
#endif
    assert_fails(ks_scout(path), KS_MEMORY, "/ritz/value: out of memory");
    assert_one_line(path);
}

/* A user's file of another kind, and an array that the caller refuses by its size, are left to the
 * caller; what an ordinary failure says comes from the child. */
TEST_CLEAN(test_verdicts)
{
    const char *path = scratch("a.h5"), *vectors = scratch("v.h5");
    const double v[4] = {1, 2, NAN, 4};
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);

    write_foreign(path);
    assert_ok(ks_scout(path));
    write_one(path, make_plain(MSE), false);
    assert_ok(ks_scout(path));
    write_foreign(vectors);
    set_string(vectors, "/", "format", "kappascope-vector");
    set_integer(vectors, "/", "version", 1);
    assert_fails(ks_scout(vectors), KS_FORMAT, "/vector: missing");
    replace(vectors, "/vector", H5T_IEEE_F64LE, &(struct stored){2, {2, 1}, v, 0});
    assert_ok(ks_scout(vectors));
    replace(vectors, "/eigenvalue", H5T_IEEE_F64LE, &(struct stored){1, {3}, v, 0});
    assert_fails(ks_scout(vectors), KS_FORMAT, "/eigenvalue: expected");
    replace(vectors, "/vector", H5T_IEEE_F64LE, &(struct stored){2, {2, 2}, v, 0});
    assert_fails(ks_scout(vectors), KS_FORMAT, "found nan at element 2");
    assert_one_line(vectors);
    assert_true(H5Pset_chunk(list, 2, (hsize_t[]){1, 1000}) >= 0);
    replace(vectors, "/vector", H5T_IEEE_F64LE,
            &(struct stored){2, {1 << 20, 1 << 30}, NULL, list});
    assert_ok(ks_scout(vectors));
    H5Pclose(list);
    set_string(vectors, "/", "format", "kappascope-layers");
    set_integer(vectors, "/", "version", 99);
    assert_fails(ks_scout(vectors), KS_FORMAT, "version");
    assert_fails(ks_scout(scratch("none.h5")), KS_IO, "none.h5: cannot be opened");
}

/* --- the child --- */

static void mark(int number)
{
    (void)number;
    abort(); /* the child has none of the program's handlers */
}

/* The process whose parent is `parent`; waits until there is one. */
static pid_t child_of(pid_t parent)
{
    for (int tries = 0; tries < 10 * SECONDS; tries++) {
        DIR *list = opendir("/proc");
        struct dirent *entry;
        pid_t found = 0;

        assert_non_null(list);
        while ((entry = readdir(list))) {
            long pid = 0, of = 0;
            FILE *file;

            file = sscanf(entry->d_name, "%ld", &pid) == 1
                       ? fopen(text_of("/proc/%s/stat", entry->d_name), "r")
                       : NULL;
            if (file && fscanf(file, "%*d (%*[^)]) %*c %ld", &of) == 1 && of == (long)parent)
                found = (pid_t)pid;
            if (file)
                fclose(file);
        }
        closedir(list);
        if (found > 0)
            return found;
        nanosleep(&(struct timespec){0, 100000000}, NULL);
    }
    fail_msg("no scout");
    return 0;
}

/* The value of the line of /proc/PID/limits that starts with `name`; -1: unlimited. */
static double limit_of(pid_t pid, const char *name)
{
    char line[256], number[64] = "";
    double value = -2;
    FILE *file;

    file = fopen(text_of("/proc/%ld/limits", (long)pid), "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        if (strncmp(line, name, strlen(name)) == 0)
            assert_int_equal(sscanf(line + strlen(name), "%63s", number), 1);
    fclose(file);
    if (strcmp(number, "unlimited") == 0)
        return -1;
    assert_int_equal(sscanf(number, "%lf", &value), 1);
    return value;
}

/* The child has limits, writes no core file, and ignores the signals by which a user stops the
 * program: a loop of which it is in the middle still ends by its processor time. */
TEST_CLEAN(test_limits)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};
    const char *path = scratch("a.h5");
    struct rlimit core;
    pid_t program, child;
    int result;

    assert_int_equal(getrlimit(RLIMIT_CORE, &core), 0);
    core.rlim_cur = core.rlim_max; /* this process may write a core file */
    assert_int_equal(setrlimit(RLIMIT_CORE, &core), 0);
    break_heap(path, (uint64_t)0 - 16);
    assert_int_equal(setenv("KAPPASCOPE_SCOUT", "3", 1), 0);
    program = fork();
    if (program == 0) {
        signal(SIGTERM, mark);
        _exit(ks_scout(path) == KS_IO && strstr(ks_error_text(), "in time") ? 0 : 1);
    }
    child = child_of(program);
    nanosleep(&(struct timespec){0, 500000000}, NULL); /* in the loop */
    assert_int_equal((int)limit_of(child, "Max core file size"), 0);
    assert_in_range((int)limit_of(child, "Max cpu time"), 1, SECONDS);
    if (ks_memory_available("", 1) > 0)
        assert_true(limit_of(child, "Max address space") > 0);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        assert_int_equal(kill(child, numbers[i]), 0);
    assert_int_equal(waitpid(program, &result, 0), program);
    assert_int_equal(result, 0);
    assert_int_equal(unsetenv("KAPPASCOPE_SCOUT"), 0);
}

CMFixtureFunction tests_setup = scratch_make, tests_teardown = scratch_remove;
