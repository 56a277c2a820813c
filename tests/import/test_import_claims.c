/* Hostile files of weights: what they claim beyond their bytes is refused before memory is
 * allocated for it. */
#include "foreign_formats.h"
#include "importing.h"

/* Writes a file of safetensors with this header and 8 bytes of values. */
static void write_header(const char *json)
{
    unsigned char file[512] = {0};

    file[0] = (unsigned char)strlen(json);
    memcpy(file + 8, json, strlen(json));
    write_bytes(scratch("w.safetensors"), file, 8 + strlen(json) + 8);
}

static void test_safetensors(void **state)
{
    static const struct {
        const char *json, *words;
    } cases[] = {
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,9]}}", "expected offsets"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}", "expected offsets"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}}", "expected 12 bytes"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,8]}}",
         "more numbers than can be addressed"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,8]}}", "expected dtype"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,2],\"data_offsets\":[0,8]}}",
         "expected dtype"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},\"a\":1}", "duplicate"},
        {"{\"a\":3", "not a readable safetensors file"},
        {"{\"a\":3}", "expected dtype"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[17592186044417],\"data_offsets\":[0,8]}}",
         "more numbers than can be addressed"},
    };
    const struct export e = {.text = MSE, .type = "<f4", .torch = true};
    struct ks_checkpoint *c = export_example(&e);

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_header(cases[i].json);
        assert_refused(import_one("w.safetensors"), KS_FORMAT, cases[i].words);
    }
    write_header("[]");
    assert_int_equal(rename(scratch("w.safetensors"), scratch("w")), 0);
    assert_refused(import_one("w"), KS_FORMAT, "found something else");
    write_bytes(scratch("w.safetensors"), "\xff\xff\xff\xff\xff\xff\xff\xff{}", 10);
    assert_refused(import_one("w.safetensors"), KS_FORMAT, "its header is longer than the file");
    write_bytes(scratch("w.safetensors"), "abc", 3);
    assert_refused(import_one("w.safetensors"), KS_FORMAT, "it ends in its first 8 bytes");
    clear_files(c);
}

/* Claims of many objects in few bytes: refused before msgpack-c allocates for them. */
static void test_msgpack(void **state)
{
    static const struct {
        const char *bytes;
        size_t n;
    } cases[] = {
        {"\xdf\xff\xff\xff\xff\xa1"
         "a\xc0",
         8}, /* a map of 2^32 - 1 entries       */
        {"\x81\xa1"
         "a\xdd\x10\x00\x00\x00\xc0",
         9}, /* a list of 2^28                  */
        {"\x81\xa1"
         "a\xc6\xff\xff\xff\xff\xc0",
         9}, /* 4 GiB of bytes                  */
        {"\x81\xa1"
         "a\xc1",
         4}, /* a format that does not exist    */
        {"\x81\xa1"
         "a",
         3}, /* ends before the value           */
        {"\x81\xa1"
         "a\xc0\xc0",
         5}, /* goes on behind the object       */
        {"\x81\xa1"
         "a\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91"
         "\x91\x91\x91\x91\x91\x91\x91\x91\x91\xc0",
         32}, /* too deep                        */
    };
    const struct export e = {.text = MSE, .type = "<f4", .torch = true};
    struct ks_checkpoint *c = export_example(&e);

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_bytes(scratch("w.msgpack"), cases[i].bytes, cases[i].n);
        assert_refused(import_one("w.msgpack"), KS_FORMAT, "expected one complete dictionary");
    }
    write_bytes(scratch("w.msgpack"),
                "\x81\xa1"
                "a\xc7\x02\x01\x93\xc0",
                8);
    assert_refused(import_one("w.msgpack"), KS_FORMAT, "a: not an array of Flax");
    write_bytes(scratch("w.msgpack"), "\x81\x01\xc0", 3);
    assert_refused(import_one("w.msgpack"), KS_FORMAT, "expected names, found another key");
    clear_files(c);
}

/* Chunks of two types would be read as one of them. */
static void test_chunks_of_msgpack(void **state)
{
    static const struct foreign narrow = {.type = "<f4", .n_dims = 1, .dims = {2}},
                                wide = {.type = "<f8", .n_dims = 1, .dims = {1}};
    struct ks_checkpoint *c = export_example(&torch64);
    const unsigned char bytes[8] = {0};
    msgpack_sbuffer buffer;
    msgpack_packer pk;

    (void)state;
    msgpack_sbuffer_init(&buffer);
    msgpack_packer_init(&pk, &buffer, msgpack_sbuffer_write);
    msgpack_pack_map(&pk, 1);
    pack_text(&pk, "a");
    msgpack_pack_map(&pk, 3);
    pack_text(&pk, "__msgpack_chunked_array__");
    msgpack_pack_true(&pk);
    pack_text(&pk, "shape");
    msgpack_pack_map(&pk, 1);
    pack_text(&pk, "0");
    msgpack_pack_int(&pk, 2);
    pack_text(&pk, "chunks");
    msgpack_pack_map(&pk, 2);
    pack_text(&pk, "0");
    pack_content(&pk, &narrow, 1, narrow.dims, bytes, sizeof bytes);
    pack_text(&pk, "1");
    pack_content(&pk, &wide, 1, wide.dims, bytes, sizeof bytes);
    write_bytes(scratch("w.msgpack"), buffer.data, buffer.size);
    msgpack_sbuffer_destroy(&buffer);
    assert_refused(import_one("w.msgpack"), KS_FORMAT, "a: not an array of Flax");
    clear_files(c);
}

/* An archive with one array a, whose header has this shape, and without values. */
static void write_archive(const char *shape)
{
    enum { HEADER = 10 + 118 };
    zip_t *zip = zip_open(scratch("w.npz"), ZIP_CREATE | ZIP_TRUNCATE, NULL);
    char *bytes = malloc(HEADER + 1);
    int used;

    assert_true(zip && bytes);
    memcpy(bytes, "\x93NUMPY\1\0\x76\0", 10);
    used = snprintf(bytes + 10, HEADER - 9, "{'descr': '<f8', 'fortran_order': False, 'shape': %s}",
                    shape);
    assert_true(used > 0 && used <= HEADER - 10);
    memset(bytes + 10 + used, ' ', (size_t)(HEADER - 10 - used));
    zip_put(zip, "a.npy", (unsigned char *)bytes, HEADER, ZIP_CM_STORE);
    assert_int_equal(zip_close(zip), 0);
}

/* Changes the size of the array in the archive's list of entries (APPNOTE.TXT of PKWARE, 4.3.12).
 */
static void claim_size(uint32_t size)
{
    size_t n, at = 0;
    unsigned char *bytes = read_bytes(scratch("w.npz"), &n);

    while (at + 46 < n && memcmp(bytes + at, "PK\1\2", 4) != 0)
        at++;
    for (size_t k = 0; k < 4; k++)
        bytes[at + 24 + k] = (unsigned char)(size >> 8 * k);
    write_bytes(scratch("w.npz"), bytes, n);
    free(bytes);
}

static void test_npz(void **state)
{
    struct ks_checkpoint *c = export_example(&torch64);

    (void)state;
    write_archive("(2000000000,)");
    assert_refused(import_one("w.npz"), KS_FORMAT, "a: expected 16000000000 bytes for float64");
    write_archive("(1, 1, 1, 1, 1, 1, 1, 1, 1)");
    assert_refused(import_one("w.npz"), KS_FORMAT,
                   "a.npy: expected a header as NumPy writes it, "
                   "with at most 8 dimensions");
    write_archive("(131072,)");
    claim_size(128 + 8 * 131072);
    assert_refused(
        import_one("w.npz"), KS_FORMAT,
        "a.npy: expected an array that fits into 128 bytes of the archive, found a claim "
        "of 1048704 bytes");
    clear_files(c);
}

/* Datasets without values, which take no room in the file, for 2^33 critics. */
static void test_hdf5(void **state)
{
    const struct export e = {.text = MSE, .type = "<f8", .torch = true, .stacked = true};
    const struct ks_axes axes = {.has_ensemble = true};
    static const char *const name = "w.h5";
    struct ks_checkpoint *c = export_example(&e);
    hid_t file = H5Fcreate(scratch(name), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);

    (void)state;
    for (size_t i = 0; i < critic.n; i++) {
        const struct foreign *a = &critic.list[i];
        hsize_t dims[3] = {1ULL << 33, a->dims[1], a->dims[2]}, chunk[3] = {1024, 1, 1};
        hid_t space = H5Screate_simple((int)a->n_dims, dims, NULL), list, set;

        list = H5Pcreate(H5P_DATASET_CREATE);
        H5Pset_chunk(list, (int)a->n_dims, chunk);
        set = H5Dcreate2(file, a->name, H5T_IEEE_F64LE, space, H5P_DEFAULT, list, H5P_DEFAULT);
        assert_true(set >= 0);
        H5Dclose(set);
        H5Pclose(list);
        H5Sclose(space);
    }
    H5Fclose(file);
    assert_refused(import_files(1, &name, &axes), KS_MEMORY,
                   "w.h5: the critics: expected at least 1.99e+03 GB of free memory");
    clear_files(c);
}

/* A group without a name: "/" and its path would be the same, so the walk would go in circles. */
static void test_names_of_hdf5(void **state)
{
    struct ks_checkpoint *c = export_example(&torch64);
    hid_t file = H5Fcreate(scratch("w.h5"), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    unsigned char *bytes;
    size_t n, changed = 0;

    (void)state;
    H5Gclose(H5Gcreate2(file, "NAMELESS", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Fclose(file);
    bytes = read_bytes(scratch("w.h5"), &n);
    for (size_t i = 0; i + 8 < n; i++)
        if (memcmp(bytes + i, "NAMELESS", 8) == 0) {
            memset(bytes + i, 0, 8);
            changed++;
        }
    assert_int_equal(changed, 1);
    write_bytes(scratch("w.h5"), bytes, n);
    free(bytes);
    assert_refused(import_one("w.h5"), KS_FORMAT,
                   "w.h5: /: expected names of objects, found the name ''");
    clear_files(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_safetensors, scratch_clean),
        cmocka_unit_test_teardown(test_msgpack, scratch_clean),
        cmocka_unit_test_teardown(test_chunks_of_msgpack, scratch_clean),
        cmocka_unit_test_teardown(test_npz, scratch_clean),
        cmocka_unit_test_teardown(test_hdf5, scratch_clean),
        cmocka_unit_test_teardown(test_names_of_hdf5, scratch_clean),
    };

    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
