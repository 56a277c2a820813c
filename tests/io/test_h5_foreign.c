/* Malicious or damaged HDF5 files: reading must not open other files, crash or hang. */
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>

#include <hdf5.h>
#include <lzf.h>

#include "example.h"
#include "io/scout.h"
#include "kappascope.h"
#include "programs.h"

static const struct ks_h5_shape PAIR = {1, {2}};
static const double VALUES[2] = {3, 5};
static const int SECONDS = 60; /* a test that takes longer hangs */

/* A file as another program writes it: a dataset /own, with values. */
static hid_t new_file(const char *path)
{
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);

    add_dataset(file, "/own", H5T_IEEE_F64LE, &(struct stored){1, {2}, VALUES, 0});
    return file;
}

/* A dataset of two numbers with the creation property list `list`, which says where they are
 * stored. */
static void put_foreign(hid_t file, const char *name, hid_t list)
{
    add_dataset(file, name, H5T_IEEE_F64LE, &(struct stored){1, {2}, NULL, list});
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
    assert_contains(ks_error_text(), object);
}

TEST_CLEAN(test_links)
{
    const char *path = scratch("a.h5"), *other = scratch("other.h5");
    const H5L_class_t own = {.version = H5L_LINK_CLASS_T_VERS, .id = H5L_TYPE_UD_MIN + 7};
    struct ks_h5_shape shape;
    double values[2];
    struct ks_h5 *h5;
    bool there;
    hid_t file;

    H5Fclose(new_file(other));
    file = new_file(path);
    assert_true(H5Lcreate_soft("/own", file, "/soft", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    assert_true(H5Lcreate_soft("/none", file, "/dangling", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    assert_true(H5Lcreate_external(other, "/", file, "/out", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    assert_true(H5Lcreate_soft("/out/own", file, "/way", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    assert_true(H5Lcreate_soft("/loop", file, "/loop", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    H5Gclose(H5Gcreate2(file, "/g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    assert_true(H5Lcreate_soft("next", file, "/g/up", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    assert_true(H5Lcreate_soft("/soft", file, "/g/next", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    H5Fclose(file);
    assert_ok(ks_h5_open(path, NULL, &h5));
    assert_ok(ks_h5_read(h5, "/soft", &PAIR, values));
    assert_memory_equal(values, VALUES, sizeof values);
    assert_ok(ks_h5_has(h5, "/dangling", &there));
    assert_false(there);
    assert_refused(h5, "/out", "found an external link");
    assert_fails(ks_h5_shape(h5, "/out/own", &shape), KS_FORMAT, "/out: expected an object of the");
    assert_fails(ks_h5_has_attribute(h5, "/out", "a", &there), KS_FORMAT, "an external link");
    assert_fails(ks_h5_shape(h5, "/way", &shape), KS_FORMAT, "/out: expected an object of the");
    assert_fails(ks_h5_has(h5, "/loop", &there), KS_FORMAT,
                 "/loop: expected an object of the file "
                 "itself, found another soft link");
    assert_ok(ks_h5_read(h5, "/g/up", &PAIR, values));
    assert_memory_equal(values, VALUES, sizeof values);
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

TEST_CLEAN(test_values_in_other_files)
{
    const char *path = scratch("a.h5"), *other = scratch("other.h5"), *pipe = scratch("pipe");
    struct ks_h5 *h5;
    hid_t file;

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

/* A dataset of one chunk that this filter, which libhdf5 does not have, has compressed. */
static void write_compressed(const char *path, H5Z_filter_t filter, size_t bytes,
                             const void *compressed)
{
    enum { N = 64 };
    static const unsigned options[] = {4, 0x105, N * sizeof(double)};
    static const hsize_t dims[] = {N}, start[] = {0};
    hid_t list = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(1, dims, NULL), file, set;

    if (H5Zfilter_avail(filter) > 0) /* of ours, which only reads */
        assert_true(H5Zunregister(filter) >= 0);
    file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Pset_chunk(list, 1, dims) >= 0);
    assert_true(H5Pset_filter(list, filter, H5Z_FLAG_OPTIONAL, 3, options) >= 0);
    set = H5Dcreate2(file, "/x", H5T_IEEE_F64LE, space, H5P_DEFAULT, list, H5P_DEFAULT);
    assert_true(H5Dwrite_chunk(set, H5P_DEFAULT, 0, start, bytes, compressed) >= 0);
    H5Dclose(set);
    H5Sclose(space);
    H5Pclose(list);
    H5Fclose(file);
}

/* What h5py's lzf has compressed is read; an unknown filter is named, with the way out. */
TEST_CLEAN(test_filters)
{
    static const struct ks_h5_shape shape = {.n_dims = 1, .dims = {64}};
    double values[64], found[64];
    char compressed[sizeof values];
    const char *path = scratch("a.h5");
    struct ks_h5 *h5;
    unsigned bytes;

    for (size_t i = 0; i < 64; i++)
        values[i] = (double)(i / 20) - 1.5;
    bytes = lzf_compress(values, sizeof values, compressed, sizeof compressed);
    assert_in_range(bytes, 1, sizeof values / 2);
    write_compressed(path, 32000, bytes, compressed);
    assert_ok(ks_h5_open(path, NULL, &h5));
    assert_ok(ks_h5_read(h5, "/x", &shape, found));
    assert_memory_equal(found, values, sizeof values);
    ks_h5_close(h5);
    compressed[0] = 127; /* more literal bytes than there are */
    write_compressed(path, 32000, bytes / 8, compressed);
    assert_ok(ks_h5_open(path, NULL, &h5));
    assert_fails(ks_h5_read(h5, "/x", &shape, found), KS_IO, "/x: cannot be read: damaged?");
    ks_h5_close(h5);
    write_compressed(path, 32015, bytes, compressed);
    assert_ok(ks_h5_open(path, NULL, &h5));
    assert_fails(ks_h5_read(h5, "/x", &shape, found), KS_FORMAT,
                 "/x: compressed with filter 32015, which HDF5 cannot read here: write it with "
                 "compression='gzip' or none (h5repack -f GZIP=1)");
    ks_h5_close(h5);
}

/* HDF5_PLUGIN_PATH contains a named pipe instead of a library: opening it would block for ever. */
TEST_CLEAN(test_no_plugins)
{
    const char *path = scratch("a.h5"), *pipe = scratch("libours.so");
    const H5Z_class2_t filter = {.version = H5Z_CLASS_T_VERS,
                                 .id = 300,
                                 .encoder_present = 1,
                                 .decoder_present = 1,
                                 .name = "ours",
                                 .filter = copy};
    hid_t file, list = H5Pcreate(H5P_DATASET_CREATE);
    const hsize_t chunk = 2;
    double values[2];
    struct ks_h5 *h5;
    unsigned before, after;

    assert_true(H5Zregister(&filter) >= 0 && H5Pset_chunk(list, 1, &chunk) >= 0 &&
                H5Pset_filter(list, filter.id, H5Z_FLAG_MANDATORY, 0, NULL) >= 0);
    file = new_file(path);
    add_dataset(file, "/packed", H5T_IEEE_F64LE, &(struct stored){1, {2}, VALUES, list});
    H5Pclose(list);
    H5Fclose(file);
    assert_true(H5Zunregister(filter.id) >= 0);
    assert_int_equal(mkfifo(pipe, 0600), 0);
    assert_true(H5PLprepend(scratch_folder) >= 0);
    assert_true(H5PLget_loading_state(&before) >= 0);
    alarm((unsigned)SECONDS);
    assert_ok(ks_h5_open(path, NULL, &h5));
    assert_fails(ks_h5_read(h5, "/packed", &PAIR, values), KS_FORMAT,
                 "/packed: compressed with ours, filter 300, which HDF5 cannot read here");
    assert_one_line(path);
    ks_h5_close(h5);
    alarm(0);
    assert_true(H5PLget_loading_state(&after) >= 0);
    assert_int_equal(after, before); /* the setting belongs to the whole process */
    assert_true(H5PLremove(0) >= 0);
}

/* --- a scout that crashes or hangs --- */

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

    break_heap(path, (uint64_t)1 << 32);
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
    assert_fails(ks_scout(path, 0), KS_IO, "the file is damaged: the HDF5 library crashed (Segm");
    crashing = false;
    assert_one_line(path);
    assert_ok(ks_scout(path, 0));
}

TEST_CLEAN(test_endless_loop)
{
    const char *path = scratch("a.h5");

    break_heap(path, (uint64_t)0 - 16);
    assert_int_equal(setenv("KAPPASCOPE_SCOUT", "1", 1), 0);
    assert_fails(ks_scout(path, 0), KS_IO, "did not finish in time");
    assert_one_line(path);
    assert_int_equal(setenv("KAPPASCOPE_SCOUT", "0", 1), 0);
    assert_ok(ks_scout(path, 0)); /* no scout is asked for */
    assert_int_equal(unsetenv("KAPPASCOPE_SCOUT"), 0);
    assert_true(waitpid(-1, NULL, WNOHANG) < 0); /* no process remains */
}

/* A file that the reading process takes for a spectrum, whose values the list says how to store. */
static void write_values(const char *path, const hsize_t dims[2], hid_t list, const double *values)
{
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);

    assert_true(file >= 0);
    H5Gclose(H5Gcreate2(file, "/summary", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Gclose(H5Gcreate2(file, "/ritz", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    add_dataset(file, "/ritz/value", H5T_IEEE_F64LE,
                &(struct stored){2, {dims[0], dims[1]}, values, list});
    H5Pclose(list);
    H5Fclose(file);
    set_string(path, "/", "format", "kappascope-spectrum");
    set_integer(path, "/", "version", 1);
}

/* A spectrum of a few kilobytes that declares more than any memory. */
TEST_CLEAN(test_memory)
{
    const char *path = scratch("s.h5");
    const hsize_t dims[] = {1000000, 1000000000}, chunk[] = {1, 1000};
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);

    assert_true(H5Pset_chunk(list, 2, chunk) >= 0);
    write_values(path, dims, list, NULL);
#ifdef __SANITIZE_ADDRESS__
    skip(); /* the sanitizer ends the program that allocates too much */
#endif
    assert_fails(ks_scout(path, 0), KS_MEMORY, "/ritz/value: out of memory");
    assert_one_line(path);
}

static size_t wait_for_ever(unsigned flags, size_t n, const unsigned *values, size_t size,
                            size_t *room, void **buffer)
{
    while (flags & H5Z_FLAG_REVERSE)
        pause();
    return size;
}

/* Without processor time, reading ends, too. */
TEST_CLEAN(test_waiting)
{
    const H5Z_class2_t filter = {.version = H5Z_CLASS_T_VERS,
                                 .id = 300,
                                 .encoder_present = 1,
                                 .decoder_present = 1,
                                 .name = "waiting",
                                 .filter = wait_for_ever};
    const char *path = scratch("s.h5");
    const hsize_t dims[] = {1, 2};
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);

    assert_true(H5Zregister(&filter) >= 0 && H5Pset_chunk(list, 2, dims) >= 0 &&
                H5Pset_filter(list, filter.id, H5Z_FLAG_MANDATORY, 0, NULL) >= 0);
    write_values(path, dims, list, VALUES);
    assert_int_equal(setenv("KAPPASCOPE_SCOUT", "1", 1), 0);
    assert_fails(ks_scout(path, 0), KS_IO, "did not finish in time");
    assert_int_equal(unsetenv("KAPPASCOPE_SCOUT"), 0);
    assert_true(H5Zunregister(filter.id) >= 0);
}

/* A user's file of another kind, and an array that the caller refuses by its size, are left to the
 * caller; what an ordinary failure says comes from the child. */
TEST_CLEAN(test_verdicts)
{
    const char *path = scratch("a.h5"), *vectors = scratch("v.h5");
    const double v[4] = {1, 2, NAN, 4};

    H5Fclose(new_file(path));
    assert_ok(ks_scout(path, 0));
    write_one(path, make_plain(MSE), false);
    assert_ok(ks_scout(path, 0));
    H5Fclose(new_file(vectors));
    set_string(vectors, "/", "format", "kappascope-vector");
    set_integer(vectors, "/", "version", 1);
    assert_fails(ks_scout(vectors, 0), KS_FORMAT, "/vector: missing");
    replace(vectors, "/vector", H5T_IEEE_F64LE, &(struct stored){2, {2, 2}, v, 0});
    assert_fails(ks_scout(vectors, 0), KS_FORMAT, "found nan at element 2");
    assert_one_line(vectors);
    assert_ok(ks_scout(vectors, sizeof v - 1));
    assert_fails(ks_scout(scratch("none.h5"), 0), KS_IO, "none.h5: cannot be opened");
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
        _exit(ks_scout(path, 0) == KS_IO && strstr(ks_error_text(), "in time") ? 0 : 1);
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

/* --- the programs --- */

TEST_CLEAN(test_analyze)
{
    const char *path = scratch("c.h5"), *pipe = scratch("pipe");
    hid_t file;

    write_one(path, make_plain(MSE), false);
    file = edit(path);
    assert_true(H5Ldelete(file, "/batch/target", H5P_DEFAULT) >= 0);
    assert_true(H5Lcreate_external("/etc/passwd", "/x", file, "/batch/target", H5P_DEFAULT,
                                   H5P_DEFAULT) >= 0);
    H5Fclose(file);
    analyzer_refuses("c.h5", "c.h5: /batch/target: expected an object of the file");
    assert_int_equal(mkfifo(pipe, 0600), 0);
    analyzer_refuses("pipe", "pipe: expected an HDF5 file, found a special file");
    write_one(scratch("c.h5"), make_plain(MSE), false);
    analyzer_refuses("--apply pipe --output out.h5 c.h5",
                     "pipe: expected an HDF5 file, found a special file");
}

CMFixtureFunction tests_setup = scratch_make, tests_teardown = scratch_remove;
