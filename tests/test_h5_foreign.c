/* HDF5 files that somebody sends: they must not make a program crash or hang. */
#include <signal.h>
#include <sys/resource.h>

#include "analyzer.h"
#include "example_checkpoint.h"
#include "ks/h5_reader.h"

static const double VALUES[2] = {3, 5};
static const int SECONDS = 60; /* by then a test hangs */

/* A file of another program: a dataset /own, with values. */
static hid_t new_file(const char *path)
{
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hsize_t dims[] = {2};
    hid_t space = H5Screate_simple(1, dims, NULL);
    hid_t set = H5Dcreate2(file, "/own", H5T_IEEE_F64LE, space, H5P_DEFAULT, H5P_DEFAULT,
                           H5P_DEFAULT);

    assert_true(H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, VALUES) >= 0);
    H5Dclose(set);
    H5Sclose(space);
    return file;
}

/* --- a reader that ends, or does not --- */

/* A string of variable length lies in HDF5's global heap; `size` becomes its size there. */
static void break_heap(const char *path, uint64_t size)
{
    static const char HEAP[] = "GCOL";
    enum { OBJECT_SIZE = 24 }; /* from the heap's start */
    unsigned char *bytes, *heap;
    size_t n;

    H5Fclose(new_file(path));
    set_string(path, "/", "format", "test");
    bytes = read_bytes(path, &n);
    for (heap = bytes; memcmp(heap, HEAP, sizeof HEAP - 1) != 0; heap++)
        assert_true(heap + OBJECT_SIZE + sizeof size < bytes + n);
    memcpy(heap + OBJECT_SIZE, &size, sizeof size);
    write_bytes(path, bytes, n);
    free(bytes);
}

static void test_crash(void **state)
{
    const char *path = scratch("a.h5");
    struct ks_h5 *h5;

    (void)state;
    break_heap(path, (uint64_t)1 << 32);
    assert_fails(ks_h5_open(path, "test", &h5), KS_IO, "/: a damaged file");
    assert_non_null(strstr(ks_error_text(), "crashed"));
    assert_one_line(path);
    assert_null(h5);
    assert_int_equal(analyzer("%s", path), 2);
    assert_int_equal(strncmp(complained, "kappascope-analyze: ", 20), 0);
    assert_non_null(strstr(complained, "crashed"));
    assert_ptr_equal(strchr(complained, '\n'), complained + strlen(complained) - 1);
}

static void test_endless_loop(void **state)
{
    const char *path = scratch("a.h5");
    struct ks_h5 *h5;

    (void)state;
    break_heap(path, (uint64_t)0 - 16);
    ks_h5_reader_limits(1, 0);
    assert_fails(ks_h5_open(path, "test", &h5), KS_IO, "came to no end within 1 s");
    assert_one_line(path);
    ks_h5_reader_limits(0, 0);
}

static void test_silence(void **state)
{
    const char *path = scratch("a.h5");
    struct ks_h5 *h5;
    bool there;

    (void)state;
    H5Fclose(new_file(path));
    ks_h5_reader_limits(0, 1);
    assert_ok(ks_h5_open(path, NULL, &h5));
    assert_int_equal(kill(h5->reader->pid, SIGSTOP), 0);
    assert_fails(ks_h5_has(h5, "/own", &there), KS_IO, "/own: a damaged file");
    assert_non_null(strstr(ks_error_text(), "gave no answer for 1 s"));
    assert_fails(ks_h5_has(h5, "/own", &there), KS_IO, "has ended");
    ks_h5_close(h5);
    ks_h5_reader_limits(0, 0);
}

static void test_killed(void **state)
{
    const char *path = scratch("a.h5");
    struct ks_h5 *h5;
    bool there;

    (void)state;
    H5Fclose(new_file(path));
    assert_ok(ks_h5_open(path, NULL, &h5));
    assert_int_equal(kill(h5->reader->pid, SIGKILL), 0);
    assert_fails(ks_h5_has(h5, "/own", &there), KS_IO, "was killed");
    assert_one_line(path);
    ks_h5_close(h5);
}

static void mark(int number)
{
    (void)number;
    abort(); /* the reader has none of the program's handlers */
}

/* Signals that mean the program are not the reader's to obey. */
static void test_signals(void **state)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};
    const char *path = scratch("a.h5");
    struct ks_h5 *h5;
    bool there;

    (void)state;
    H5Fclose(new_file(path));
    signal(SIGTERM, mark);
    assert_ok(ks_h5_open(path, NULL, &h5));
    signal(SIGTERM, SIG_DFL);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        assert_int_equal(kill(h5->reader->pid, numbers[i]), 0);
    assert_ok(ks_h5_has(h5, "/own", &there));
    assert_true(there);
    ks_h5_close(h5);
}

/* The limit of the system that starts with `name`: its number, or -1 for none. */
static double limit_of(pid_t pid, const char *name)
{
    char path[64], line[256], number[64] = "";
    double value = -2;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%ld/limits", (long)pid);
    file = fopen(path, "r");
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

static void test_limits(void **state)
{
    const char *path = scratch("a.h5");
    struct rlimit core;
    struct ks_h5 *h5;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_CORE, &core), 0);
    core.rlim_cur = core.rlim_max; /* this process may leave a core file */
    assert_int_equal(setrlimit(RLIMIT_CORE, &core), 0);
    H5Fclose(new_file(path));
    assert_ok(ks_h5_open(path, NULL, &h5));
    assert_int_equal((int)limit_of(h5->reader->pid, "Max core file size"), 0);
    assert_in_range((int)limit_of(h5->reader->pid, "Max cpu time"), 1, SECONDS);
    if (ks_memory_free("") > 0)
        assert_true(limit_of(h5->reader->pid, "Max address space") > 0);
    ks_h5_close(h5);
}

static size_t children(void)
{
    char path[64], list[4096];
    FILE *file;
    size_t n;

    snprintf(path, sizeof path, "/proc/self/task/%ld/children", (long)getpid());
    file = fopen(path, "r");
    if (!file)
        return 0; /* a kernel without that file */
    n = fread(list, 1, sizeof list, file);
    fclose(file);
    return n;
}

/* Two at a time, closed in either order: none is waited for in vain, none is left. */
static void test_two_files(void **state)
{
    const char *path = scratch("a.h5");
    struct ks_h5 *h5[2];

    (void)state;
    H5Fclose(new_file(path));
    for (int first = 0; first < 2; first++) {
        assert_ok(ks_h5_open(path, NULL, &h5[0]));
        assert_ok(ks_h5_open(path, NULL, &h5[1]));
        ks_h5_close(h5[first]);
        ks_h5_close(h5[1 - first]);
        assert_int_equal(children(), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_crash, scratch_clean),
        cmocka_unit_test_teardown(test_endless_loop, scratch_clean),
        cmocka_unit_test_teardown(test_silence, scratch_clean),
        cmocka_unit_test_teardown(test_killed, scratch_clean),
        cmocka_unit_test_teardown(test_signals, scratch_clean),
        cmocka_unit_test_teardown(test_limits, scratch_clean),
        cmocka_unit_test_teardown(test_two_files, scratch_clean),
    };

    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
