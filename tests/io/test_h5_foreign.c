/* Malicious or damaged HDF5 files: reading must not open other files, crash or hang. */
#include <signal.h>
#include <sys/resource.h>

#include "analyzer.h"
#include "example_checkpoint.h"
#include "io/h5_reader.h"

static const struct ks_h5_shape PAIR = {1, {2}};
static const double VALUES[2] = {3, 5};
static const int SECONDS = 60; /* a test that takes longer hangs */

/* A file as another program writes it: a dataset /own, with values. */
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

/* A dataset of two numbers with the creation property list `list`, which says where they are
 * stored. */
static void put_foreign(hid_t file, const char *name, hid_t list)
{
    hsize_t dims[] = {2};
    hid_t space = H5Screate_simple(1, dims, NULL);
    hid_t set = H5Dcreate2(file, name, H5T_IEEE_F64LE, space, H5P_DEFAULT, list, H5P_DEFAULT);

    assert_true(set >= 0);
    H5Dclose(set);
    H5Sclose(space);
    H5Pclose(list);
}

static hid_t stored_in(const char *path)
{
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);

    assert_true(H5Pset_external(list, path, 0, sizeof VALUES) >= 0);
    return list;
}

static hid_t virtual_of(const char *path, const char *object)
{
    hsize_t dims[] = {2};
    hid_t list = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(1, dims, NULL);

    assert_true(H5Pset_virtual(list, space, path, object, space) >= 0);
    H5Sclose(space);
    return list;
}

static void assert_refused(const struct ks_h5 *h5, const char *object, const char *words)
{
    struct ks_h5_shape shape;
    double values[2];

    assert_fails(ks_h5_shape(h5, object, &shape), KS_FORMAT, words);
    assert_fails(ks_h5_read(h5, object, &PAIR, values), KS_FORMAT, words);
    assert_one_line(h5->path);
    assert_non_null(strstr(ks_error_text(), object));
}

static void test_links(void **state)
{
    const char *path = scratch("a.h5"), *other = scratch("other.h5");
    const H5L_class_t own = {.version = H5L_LINK_CLASS_T_VERS, .id = H5L_TYPE_UD_MIN + 7};
    struct ks_h5_shape shape;
    double values[2];
    struct ks_h5 *h5;
    bool there;
    hid_t file;

    (void)state;
    H5Fclose(new_file(other));
    file = new_file(path);
    assert_true(H5Lcreate_soft("/own", file, "/soft", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    assert_true(H5Lcreate_soft("/none", file, "/dangling", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    assert_true(H5Lcreate_external(other, "/", file, "/out", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    assert_true(H5Lcreate_soft("/out/own", file, "/way", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    H5Fclose(file);
    assert_ok(ks_h5_open(path, NULL, &h5));
    assert_ok(ks_h5_read(h5, "/soft", &PAIR, values));
    assert_memory_equal(values, VALUES, sizeof values);
    assert_ok(ks_h5_has(h5, "/dangling", &there));
    assert_false(there);
    assert_refused(h5, "/out", "found an external link");
    assert_fails(ks_h5_shape(h5, "/out/own", &shape), KS_FORMAT, "/out: expected an object of the");
    assert_fails(ks_h5_has_attribute(h5, "/out", "a", &there), KS_FORMAT, "an external link");
    assert_fails(ks_h5_shape(h5, "/way", &shape), KS_IO, "/way");
    assert_one_line(path);
    ks_h5_close(h5);

    assert_true(
        H5Lregister(&(H5L_class_t){.version = own.version,
                                   .id = own.id,
                                   .trav_func = (H5L_traverse_func_t)(void (*)(void))abort}) >= 0);
    file = edit(path);
    assert_true(H5Lcreate_ud(file, "/ours", own.id, "x", 1, H5P_DEFAULT, H5P_DEFAULT) >= 0);
    H5Fclose(file);
    assert_ok(ks_h5_open(path, NULL, &h5));
    assert_refused(h5, "/ours", "found a user-defined link");
    ks_h5_close(h5);
    assert_true(H5Lunregister(own.id) >= 0);
}

static void test_values_in_other_files(void **state)
{
    const char *path = scratch("a.h5"), *other = scratch("other.h5"), *pipe = scratch("pipe");
    struct ks_h5 *h5;
    hid_t file;

    (void)state;
    assert_int_equal(mkfifo(pipe, 0600), 0);
    H5Fclose(new_file(other));
    file = new_file(path);
    put_foreign(file, "/external", stored_in(other));
    put_foreign(file, "/pipe", stored_in(pipe));
    put_foreign(file, "/virtual", virtual_of(other, "/own"));
    put_foreign(file, "/missing", virtual_of("no such file", "/own"));
    put_foreign(file, "/piped", virtual_of(pipe, "/own"));
    put_foreign(file, "/itself", virtual_of(".", "/itself"));
    H5Fclose(file);
    assert_ok(ks_h5_open(path, NULL, &h5));
    assert_refused(h5, "/external", "found external storage");
    assert_refused(h5, "/pipe", "found external storage");
    assert_refused(h5, "/virtual", "found a virtual dataset");
    assert_refused(h5, "/missing", "found a virtual dataset");
    assert_refused(h5, "/piped", "found a virtual dataset");
    assert_refused(h5, "/itself", "found a virtual dataset");
    ks_h5_close(h5);
}

static size_t copy(unsigned flags, size_t n, const unsigned *values, size_t size, size_t *room,
                   void **buffer)
{
    (void)flags, (void)n, (void)values, (void)room, (void)buffer;
    return size;
}

/* HDF5_PLUGIN_PATH contains a named pipe instead of a library: opening it would block for ever. */
static void test_no_plugins(void **state)
{
    const char *path = scratch("a.h5"), *pipe = scratch("libours.so");
    const H5Z_class2_t filter = {.version = H5Z_CLASS_T_VERS,
                                 .id = 300,
                                 .encoder_present = 1,
                                 .decoder_present = 1,
                                 .name = "ours",
                                 .filter = copy};
    hid_t file, list = H5Pcreate(H5P_DATASET_CREATE), set;
    hsize_t dims[] = {2};
    hid_t space = H5Screate_simple(1, dims, NULL);
    double values[2];
    struct ks_h5 *h5;

    (void)state;
    assert_true(H5Zregister(&filter) >= 0 && H5Pset_chunk(list, 1, dims) >= 0 &&
                H5Pset_filter(list, filter.id, H5Z_FLAG_MANDATORY, 0, NULL) >= 0);
    file = new_file(path);
    set = H5Dcreate2(file, "/packed", H5T_IEEE_F64LE, space, H5P_DEFAULT, list, H5P_DEFAULT);
    assert_true(H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, VALUES) >= 0);
    H5Dclose(set);
    H5Pclose(list);
    H5Sclose(space);
    H5Fclose(file);
    assert_true(H5Zunregister(filter.id) >= 0);
    assert_int_equal(mkfifo(pipe, 0600), 0);
    assert_true(H5PLprepend(scratch_folder) >= 0);
    ks_h5_reader_limits(0, 3);
    assert_ok(ks_h5_open(path, NULL, &h5));
    assert_fails(ks_h5_read(h5, "/packed", &PAIR, values), KS_IO, "/packed: cannot be read");
    assert_one_line(path);
    ks_h5_close(h5);
    ks_h5_reader_limits(0, 0);
    assert_true(H5PLremove(0) >= 0);
}

/* --- a reader process that crashes or hangs --- */

/* Sets the size of a variable-length string in HDF5's global heap to `size`. */
static void break_heap(const char *path, uint64_t size)
{
    static const char HEAP[] = "GCOL";
    enum { OBJECT_SIZE = 24 }; /* offset from the heap's start */
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
    assert_fails(ks_h5_open(path, "test", &h5), KS_IO, "/: the file is damaged");
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
    assert_fails(ks_h5_open(path, "test", &h5), KS_IO, "did not finish within 1 s");
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
    assert_fails(ks_h5_has(h5, "/own", &there), KS_IO, "/own: the file is damaged");
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

/* The reader ignores signals by which a user stops the program. */
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

/* The value of the line of /proc/PID/limits that starts with `name`; -1: unlimited. */
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
    core.rlim_cur = core.rlim_max; /* this process may write a core file */
    assert_int_equal(setrlimit(RLIMIT_CORE, &core), 0);
    H5Fclose(new_file(path));
    assert_ok(ks_h5_open(path, NULL, &h5));
    assert_int_equal((int)limit_of(h5->reader->pid, "Max core file size"), 0);
    assert_in_range((int)limit_of(h5->reader->pid, "Max cpu time"), 1, SECONDS);
    if (ks_memory_available("", 1) > 0)
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

/* Two readers at a time, closed in either order: closing does not block, and no process remains. */
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

/* --- the programs --- */

static void test_analyze(void **state)
{
    const char *path = scratch("c.h5"), *pipe = scratch("pipe");
    hid_t file;

    (void)state;
    write_one(path, make_plain(MSE), false);
    file = edit(path);
    assert_true(H5Ldelete(file, "/batch/target", H5P_DEFAULT) >= 0);
    assert_true(H5Lcreate_external("/etc/passwd", "/x", file, "/batch/target", H5P_DEFAULT,
                                   H5P_DEFAULT) >= 0);
    H5Fclose(file);
    assert_int_equal(analyzer("c.h5"), 2);
    assert_non_null(strstr(complained, "c.h5: /batch/target: expected an object of the file"));
    assert_int_equal(mkfifo(pipe, 0600), 0);
    assert_int_equal(analyzer("pipe"), 2);
    assert_non_null(strstr(complained, "pipe: expected an HDF5 file, found a special file"));
    write_one(scratch("c.h5"), make_plain(MSE), false);
    assert_int_equal(analyzer("--apply pipe --output out.h5 c.h5"), 2);
    assert_non_null(strstr(complained, "pipe: expected an HDF5 file, found a special file"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_links, scratch_clean),
        cmocka_unit_test_teardown(test_values_in_other_files, scratch_clean),
        cmocka_unit_test_teardown(test_no_plugins, scratch_clean),
        cmocka_unit_test_teardown(test_crash, scratch_clean),
        cmocka_unit_test_teardown(test_endless_loop, scratch_clean),
        cmocka_unit_test_teardown(test_silence, scratch_clean),
        cmocka_unit_test_teardown(test_killed, scratch_clean),
        cmocka_unit_test_teardown(test_signals, scratch_clean),
        cmocka_unit_test_teardown(test_limits, scratch_clean),
        cmocka_unit_test_teardown(test_two_files, scratch_clean),
        cmocka_unit_test_teardown(test_analyze, scratch_clean),
    };

    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
