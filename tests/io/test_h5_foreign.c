/* Malicious or damaged HDF5 files: reading must not open other files, crash or hang. */
#include <hdf5.h>
#include <lzf.h>

#include "damaged.h"
#include "example.h"
#include "programs.h"

static const struct ks_h5_shape PAIR = {.n_dims = 1, .dims = {2}};
static const double VALUES[2] = {3, 5};
static const int SECONDS = 60; /* a test that takes longer hangs */

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
    char far[KS_H5_OBJECT + 1] = "/";
    hid_t file;

    write_foreign(other);
    write_foreign(path);
    file = edit(path);
    memset(far + 1, 'a', KS_H5_OBJECT - 1);
    assert_true(H5Lcreate_external(other, "/own", file, far, H5P_DEFAULT, H5P_DEFAULT) >= 0);
    assert_true(H5Lcreate_soft(far, file, "/far", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    far[KS_H5_OBJECT - 2] = '\0'; /* as much of it as a reader might take for the whole */
    assert_true(H5Lcreate_hard(file, "/own", file, far, H5P_DEFAULT, H5P_DEFAULT) >= 0);
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
    assert_fails(ks_h5_has(h5, "/far", &there), KS_FORMAT, "expected a link to a path of at most");
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
    KS_OWNED_BY(ks_h5_close) struct ks_h5 *h5 = NULL;
    hid_t file;

    assert_int_equal(mkfifo(pipe, 0600), 0);
    write_foreign(other);
    write_foreign(path);
    file = edit(path);
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

/* More chunks than are read at once, the last of them cut off by the dataset's ends. */
TEST_CLEAN(test_many_chunks)
{
    enum { A = 37, B = 101, C = 3 };
    static const struct ks_h5_shape shape = {.n_dims = 3, .dims = {A, B, C}};
    static const hsize_t chunk[] = {2, 1, 2};
    static double values[A * B * C], found[A * B * C];
    hid_t list = H5Pcreate(H5P_DATASET_CREATE), file;
    struct ks_h5 *h5;

    for (size_t i = 0; i < A * B * C; i++)
        values[i] = (double)i;
    file = H5Fcreate(scratch("a.h5"), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Pset_chunk(list, 3, chunk) >= 0);
    add_dataset(file, "/x", H5T_IEEE_F64LE, &(struct stored){3, {A, B, C}, values, list});
    H5Pclose(list);
    H5Fclose(file);
    assert_ok(ks_h5_open(scratch("a.h5"), NULL, &h5));
    assert_ok(ks_h5_read(h5, "/x", &shape, found));
    ks_h5_close(h5);
    assert_memory_equal(found, values, sizeof values);
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
    write_foreign(path);
    file = edit(path);
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
    analyzer_refuses("pipe", "pipe: cannot be opened: it is a special file");
    write_one(scratch("c.h5"), make_plain(MSE), false);
    analyzer_refuses("--apply pipe --output out.h5 c.h5",
                     "pipe: cannot be opened: it is a special file");
}

CMFixtureFunction tests_setup = scratch_make, tests_teardown = scratch_remove;
