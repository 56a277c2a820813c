/* The layer over HDF5: reads datasets of every type and layout, checks shapes, writes
 * deterministic files. */
#include <signal.h>
#include <sys/resource.h>

#include "example.h"

enum { TABLE_ROWS = 6, COLUMNS = 4, NUMBERS = TABLE_ROWS * COLUMNS };

static const struct ks_h5_shape SHAPE = {.n_dims = 2, .dims = {TABLE_ROWS, COLUMNS}};

/* Small integers: exact in every numeric type. */
static void fill(double *values)
{
    for (int i = 0; i < NUMBERS; i++)
        values[i] = (i * 7) % 23;
}

static hid_t half_float(bool big_endian) /* IEEE 754 binary16: 1 + 5 + 10 bits */
{
    hid_t type = H5Tcopy(big_endian ? H5T_IEEE_F32BE : H5T_IEEE_F32LE);

    assert_true(H5Tset_fields(type, 15, 10, 5, 0, 10) >= 0 && H5Tset_size(type, 2) >= 0 &&
                H5Tset_ebias(type, 15) >= 0);
    return type;
}

/* Writes a dataset as another program might; `list` is its creation property list. */
static void put(hid_t file, const char *name, hid_t type, hid_t list, const double *values)
{
    add_dataset(file, name, type, &(struct stored){2, {TABLE_ROWS, COLUMNS}, values, list});
}

static void expect(const struct ks_h5 *h5, const char *object, const double *expected)
{
    double values[NUMBERS];

    memset(values, 1, sizeof values);
    assert_ok(ks_h5_read(h5, object, &SHAPE, values));
    assert_memory_equal(values, expected, sizeof values);
}

#ifndef __SANITIZE_ADDRESS__
/* Limits this process to `more` bytes of additional address space. */
static void limit_memory(size_t more)
{
    double pages = 0;
    struct rlimit limit = {.rlim_max = RLIM_INFINITY};
    FILE *file = fopen("/proc/self/statm", "r");

    assert_non_null(file);
    assert_int_equal(fscanf(file, "%lf", &pages), 1);
    fclose(file);
    limit.rlim_cur = (rlim_t)(pages * (double)sysconf(_SC_PAGESIZE)) + more;
    assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
}

/* The status of writing a file in a process that has `more` bytes left. */
static ks_status write_within(const char *path, size_t more)
{
    double values[NUMBERS] = {0};
    ks_status status;
    struct ks_h5 *h5;
    int result;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL); /* without returning to cmocka */
        limit_memory(more);
        status = ks_h5_create(path, "test", KS_H5_VERSION, &h5);
        if (status == KS_OK) {
            ks_h5_write(h5, "/a", KS_H5_F64, &SHAPE, values);
            status = ks_h5_commit(h5);
        }
        ks_h5_close(h5);
        _exit((int)status);
    }
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_true(WIFEXITED(result)); /* libhdf5 crashes if it lacks memory to create a file */
    return (ks_status)WEXITSTATUS(result);
}

/* Writing needs no memory for an old file of the same name. This test comes first, because the
 * others leave free memory in the heap. */
TEST_CLEAN(test_little_memory)
{
    enum { OLD = 32 << 20 };
    const char *path = scratch("a.h5");

    for (size_t more = 0; more < 4 << 20; more += 1 << 18)
        assert_int_equal(write_within(path, more), KS_MEMORY);
    write_bytes(path, "", 0);
    assert_int_equal(truncate(path, OLD), 0);
    for (size_t more = OLD; more < OLD + (4 << 20); more += 1 << 18) {
        assert_int_equal(write_within(path, more), KS_OK);
        assert_int_equal(truncate(path, OLD), 0);
    }
}
#endif

TEST_CLEAN(test_any_type)
{
    const char *path = scratch("types.h5");
    double values[NUMBERS];
    hid_t types[] = {half_float(false), half_float(true), H5T_IEEE_F32BE, H5T_IEEE_F64BE,
                     H5T_IEEE_F32LE,    H5T_IEEE_F64LE,   H5T_STD_I8LE,   H5T_STD_U8BE,
                     H5T_STD_I16BE,     H5T_STD_U32LE,    H5T_STD_I64BE,  H5T_STD_U64LE,
                     H5T_NATIVE_LDOUBLE};
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    struct ks_h5 *h5;
    char name[16];

    fill(values);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        snprintf(name, sizeof name, "/%zu", i);
        put(file, name, types[i], H5P_DEFAULT, values);
    }
    H5Fclose(file);
    assert_ok(ks_h5_open(path, NULL, &h5));
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        snprintf(name, sizeof name, "/%zu", i);
        expect(h5, name, values);
    }
    ks_h5_close(h5);
    H5Tclose(types[0]);
    H5Tclose(types[1]);
}

TEST_CLEAN(test_any_layout)
{
    const char *path = scratch("layouts.h5");
    hsize_t chunk[2] = {4, 3};
    double values[NUMBERS];
    static const double zeros[NUMBERS];
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t compact = H5Pcreate(H5P_DATASET_CREATE), chunked = H5Pcreate(H5P_DATASET_CREATE),
          packed = H5Pcreate(H5P_DATASET_CREATE), unwritten = H5Pcreate(H5P_DATASET_CREATE);
    KS_OWNED_BY(ks_h5_close) struct ks_h5 *h5 = NULL;

    fill(values);
    H5Pset_layout(compact, H5D_COMPACT);
    H5Pset_chunk(chunked, 2, chunk);
    H5Pset_chunk(packed, 2, chunk);
    H5Pset_shuffle(packed);
    H5Pset_deflate(packed, 9);
    put(file, "/contiguous", H5T_IEEE_F64LE, H5P_DEFAULT, values);
    put(file, "/compact", H5T_IEEE_F64LE, compact, values);
    put(file, "/chunked", H5T_IEEE_F64LE, chunked, values);
    put(file, "/packed", H5T_IEEE_F64LE, packed, values);
    H5Pset_fill_time(unwritten, H5D_FILL_TIME_NEVER);
    add_dataset(file, "/unwritten", H5T_IEEE_F64LE,
                &(struct stored){2, {SHAPE.dims[0], SHAPE.dims[1]}, NULL, unwritten});
    H5Pclose(compact);
    H5Pclose(chunked);
    H5Pclose(packed);
    H5Pclose(unwritten);
    H5Fclose(file);
    assert_ok(ks_h5_open(path, NULL, &h5));
    expect(h5, "/contiguous", values);
    expect(h5, "/compact", values);
    expect(h5, "/chunked", values);
    expect(h5, "/packed", values);
    expect(h5, "/unwritten", zeros);
}

TEST_CLEAN(test_no_such_thing)
{
    const char *path = scratch("things.h5");
    const struct ks_h5_shape flat = {.n_dims = 1, .dims = {NUMBERS}},
                             wide = {.n_dims = 2, .dims = {TABLE_ROWS, COLUMNS + 1}};
    hid_t type = string_type(3, H5T_STR_NULLPAD, H5T_CSET_ASCII);
    const struct stored deep = {5, {1, 1, 1, 1, 1}, NULL, 0};
    double values[NUMBERS];
    struct ks_h5_shape shape;
    struct ks_h5 *h5;
    hid_t file;
    bool there;

    fill(values);
    assert_ok(ks_h5_create(path, "test", KS_H5_VERSION, &h5));
    ks_h5_group(h5, "/g");
    ks_h5_write(h5, "/g/set", KS_H5_F64, &SHAPE, values);
    assert_ok(ks_h5_commit(h5));
    ks_h5_close(h5);
    file = edit(path);
    assert_true(H5Lcreate_soft("/nowhere", file, "/g/link", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    add_dataset(file, "/g/words", type, &deep);
    add_dataset(file, "/g/deep", H5T_IEEE_F32LE, &deep);
    H5Tclose(type);
    H5Fclose(file);

    assert_ok(ks_h5_open(path, "test", &h5));
    assert_ok(ks_h5_has(h5, "/g/set", &there));
    assert_true(there);
    assert_ok(ks_h5_has(h5, "/g/none/set", &there));
    assert_false(there);
    assert_ok(ks_h5_has(h5, "/g/link", &there));
    assert_false(there);
    assert_ok(ks_h5_has(h5, "/", &there));
    assert_true(ks_h5_has(h5, "/g/set/below", &there) != KS_OK || !there);
    assert_fails(ks_h5_shape(h5, "/none", &shape), KS_FORMAT, "/none: missing");
    assert_fails(ks_h5_shape(h5, "/g", &shape), KS_FORMAT, "/g: expected a dataset");
    assert_fails(ks_h5_shape(h5, "/g/words", &shape), KS_FORMAT, "expected numbers");
    assert_fails(ks_h5_shape(h5, "/g/deep", &shape), KS_FORMAT, "at most 4 dimensions, found 5");
    assert_fails(ks_h5_read(h5, "/g/set", &flat, values), KS_FORMAT,
                 "/g/set: expected shape [24], found [6, 4]");
    assert_fails(ks_h5_read(h5, "/g/set", &wide, values), KS_FORMAT,
                 "expected shape [6, 5], found [6, 4]");
    assert_one_line(path);
    ks_h5_close(h5);
}

TEST_CLEAN(test_no_such_file)
{
    struct ks_h5 *h5;

    assert_fails(ks_h5_open(scratch("none.h5"), NULL, &h5), KS_IO, "No such file");
    assert_null(h5);
    assert_fails(ks_h5_open(scratch_folder, NULL, &h5), KS_IO, "a directory");
    assert_fails(ks_h5_open("/dev/null", NULL, &h5), KS_IO, "a special file");
    write_bytes(scratch("empty.h5"), "", 0);
    assert_fails(ks_h5_open(scratch("empty.h5"), NULL, &h5), KS_FORMAT, "signature not found");
    write_bytes(scratch("text.h5"), "step,return\n0,1\n", 16);
    assert_fails(ks_h5_open(scratch("text.h5"), NULL, &h5), KS_FORMAT, "signature not found");
    assert_one_line("text.h5");
}

TEST_CLEAN(test_format_and_version)
{
    const char *path = scratch("a.h5");
    struct ks_h5 *h5;

    assert_ok(ks_h5_create(path, "test", KS_H5_VERSION, &h5));
    assert_ok(ks_h5_commit(h5));
    ks_h5_close(h5);
    assert_fails(ks_h5_open(path, "other", &h5), KS_FORMAT, "expected \"other\", found \"test\"");
    remove_attribute(path, "/", "version");
    assert_fails(ks_h5_open(path, "test", &h5), KS_FORMAT, "version: missing");
    remove_attribute(path, "/", "format");
    assert_fails(ks_h5_open(path, "test", &h5), KS_FORMAT, "without the root attribute format");
}

/* Several chunks in each dimension, and a part of one at the ends. */
TEST_CLEAN(test_large_dataset)
{
    const struct ks_h5_shape shape = {.n_dims = 3, .dims = {3, 301, 1021}},
                             deep = {.n_dims = 2, .dims = {2, 140001}};
    const char *path = scratch("large.h5");
    const size_t n = 3 * 301 * 1021;
    struct ks_rng rng = ks_rng_start(0, 1);
    double *values, *read;
    struct ks_h5 *h5;

    values = hold(calloc(n, sizeof *values));
    for (size_t i = 0; i < n; i++)
        values[i] = ks_rng_normal(&rng);
    assert_ok(ks_h5_create(path, "test", KS_H5_VERSION, &h5));
    ks_h5_write(h5, "/a", KS_H5_F64, &shape, values);
    ks_h5_write(h5, "/b", KS_H5_F32, &shape, values);
    ks_h5_write(h5, "/c", KS_H5_F64, &deep, values);
    assert_ok(ks_h5_commit(h5));
    ks_h5_close(h5);
    assert_ok(ks_h5_open(path, "test", &h5));
    assert_ok(ks_h5_read_new(h5, "/a", &shape, &read));
    assert_memory_equal(read, values, n * sizeof *read);
    free(read);
    assert_ok(ks_h5_read_new(h5, "/b", &shape, &read));
    for (size_t i = 0; i < n; i++)
        if (read[i] != (float)values[i])
            fail_msg("element %zu: %.17g is not the float of %.17g", i, read[i], values[i]);
    free(read);
    assert_ok(ks_h5_read_new(h5, "/c", &deep, &read));
    assert_memory_equal(read, values, 2 * 140001 * sizeof *read);
    free(read);
    ks_h5_close(h5);
}

/* The first failure is kept: nothing is written after it, and no file appears. */
TEST_CLEAN(test_not_finite)
{
    static const struct {
        enum ks_h5_type type;
        double value;
        const char *words;
    } cases[] = {{KS_H5_F32, 1e39, "/b: expected finite numbers, found 1e+39 at element 3"},
                 {KS_H5_F64, NAN, "/b: expected finite numbers, found nan at element 3"}};
    double values[NUMBERS];
    struct ks_h5 *h5;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fill(values);
        values[3] = cases[i].value;
        assert_ok(ks_h5_create(scratch("a.h5"), "test", KS_H5_VERSION, &h5));
        ks_h5_write_finite(h5, "/b", cases[i].type, &SHAPE, values);
        values[3] = 0;
        ks_h5_write_finite(h5, "/b", cases[i].type, &SHAPE, values);
        assert_fails(ks_h5_commit(h5), KS_NUMBER, cases[i].words);
        ks_h5_close(h5);
        assert_false(ks_path_exists(scratch("a.h5")));
    }
}

TEST_CLEAN(test_storage)
{
    const char *path = scratch("a.h5");
    const H5Z_filter_t expected[] = {H5Z_FILTER_SHUFFLE, H5Z_FILTER_DEFLATE, H5Z_FILTER_FLETCHER32};
    double values[NUMBERS];
    struct ks_h5 *h5;
    hid_t file, set, list;

    fill(values);
    assert_ok(ks_h5_create(path, "test", KS_H5_VERSION, &h5));
    ks_h5_write(h5, "/a", KS_H5_F32, &SHAPE, values);
    assert_ok(ks_h5_commit(h5));
    ks_h5_close(h5);
    file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    set = H5Dopen2(file, "/a", H5P_DEFAULT);
    list = H5Dget_create_plist(set);
    assert_int_equal(H5Pget_layout(list), H5D_CHUNKED);
    assert_int_equal(H5Pget_nfilters(list), 3);
    for (unsigned int i = 0; i < 3; i++) {
        size_t none = 0;

        assert_int_equal(H5Pget_filter2(list, i, NULL, &none, NULL, 0, NULL, NULL), expected[i]);
    }
    H5Pclose(list);
    H5Dclose(set);
    H5Fclose(file);
}

/* Writes a file whose dataset /a holds these values. */
static void write_values(const char *path, const double *values)
{
    KS_OWNED_BY(ks_h5_close) struct ks_h5 *h5 = NULL;

    assert_ok(ks_h5_create(path, "test", KS_H5_VERSION, &h5));
    ks_h5_write(h5, "/a", KS_H5_F64, &SHAPE, values);
    assert_ok(ks_h5_commit(h5));
}

/* An open file keeps its bytes, whatever becomes of the file, also beside another one of its name.
 */
TEST_CLEAN(test_image)
{
    const char *path = scratch("a.h5");
    char before[KS_SHA256_TEXT], digest[KS_SHA256_TEXT];
    double values[NUMBERS], others[NUMBERS] = {1, 2, 3};
    KS_OWNED_BY(ks_h5_close) struct ks_h5 *second = NULL;
    struct ks_h5 *first;

    fill(values);
    write_values(path, values);
    assert_ok(ks_sha256_file(path, before));
    assert_ok(ks_h5_open(path, "test", &first));
    write_values(path, others);
    assert_ok(ks_h5_open(path, "test", &second));
    write_bytes(path, "", 0);
    expect(first, "/a", values);
    expect(second, "/a", others);
    assert_ok(ks_h5_sha256(first, digest));
    assert_string_equal(digest, before);
    ks_h5_close(first);
    expect(second, "/a", others);
}

/* A file of more than 256 MB is read by its path, which has to stay the same file. */
TEST_CLEAN(test_large_file)
{
    const char *path = scratch("a.h5");
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    double values[NUMBERS];
    char digest[KS_SHA256_TEXT];
    KS_OWNED_BY(ks_h5_close) struct ks_h5 *h5 = NULL;

    fill(values);
    assert_true(H5Pset_alloc_time(list, H5D_ALLOC_TIME_EARLY) >= 0);
    assert_true(H5Pset_fill_time(list, H5D_FILL_TIME_NEVER) >= 0);
    put(file, "/a", H5T_IEEE_F64LE, H5P_DEFAULT, values);
    add_dataset(file, "/b", H5T_IEEE_F64LE, &(struct stored){1, {(hsize_t)1 << 25}, NULL, list});
    H5Pclose(list);
    assert_true(H5Fclose(file) >= 0);
    assert_ok(ks_h5_open(path, NULL, &h5));
    assert_null(h5->image);
    expect(h5, "/a", values);
    assert_ok(ks_h5_sha256(h5, digest));
    write_values(scratch("b.h5"), values);
    assert_int_equal(rename(scratch("b.h5"), path), 0);
    assert_fails(ks_h5_sha256(h5, digest), KS_IO, "a.h5: changed while it was read");
}

/* A file with many bytes after its HDF5 end is refused: 8 GB of a mistaken extension were once
 * read. */
TEST_CLEAN(test_tail)
{
    enum { MEBIBYTE = 1 << 20 };
    struct ks_h5 *h5;
    struct stat there;

    assert_ok(ks_h5_create(scratch("a.h5"), "kappascope-test", KS_H5_VERSION, &h5));
    assert_ok(ks_h5_commit(h5));
    ks_h5_close(h5);
    assert_int_equal(stat(scratch("a.h5"), &there), 0);
    assert_int_equal(truncate(scratch("a.h5"), there.st_size + MEBIBYTE), 0);
    assert_ok(ks_h5_open(scratch("a.h5"), "kappascope-test", &h5));
    ks_h5_close(h5);
    assert_int_equal(truncate(scratch("a.h5"), (off_t)8192 * MEBIBYTE), 0);
    assert_fails(ks_h5_open(scratch("a.h5"), "kappascope-test", &h5), KS_FORMAT,
                 "as its HDF5 superblock says, found 8589934592");
    assert_one_line("a.h5");
}

CMFixtureFunction tests_setup = scratch_make, tests_teardown = scratch_remove;
