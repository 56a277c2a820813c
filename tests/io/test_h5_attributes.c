/* HDF5 attributes: strings and integers of every type, lists, conversions. */
#include "example.h"

struct layout {
    hid_t type, space; /* in the file   */
    hid_t memory;      /* type of *value */
};

static void put_attribute(hid_t file, const char *name, struct layout l, const void *value)
{
    hid_t attribute = H5Acreate2(file, name, l.type, l.space, H5P_DEFAULT, H5P_DEFAULT);

    assert_true(attribute >= 0 && H5Awrite(attribute, l.memory, value) >= 0);
    H5Aclose(attribute);
}

static void expect_text(const struct ks_h5 *h5, const char *name, const char *expected)
{
    char *value = NULL;

    assert_ok(ks_h5_read_string(h5, "/", name, &value));
    assert_string_equal(value, expected);
    free(value);
}

TEST_CLEAN(test_any_string)
{
    const char *path = scratch("strings.h5");
    const char *word = "word", *none = NULL, *two[] = {"a", "b"};
    hsize_t one = 1, pair = 2;
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t scalar = H5Screate(H5S_SCALAR), row = H5Screate_simple(1, &one, NULL),
          twice = H5Screate_simple(1, &pair, NULL);
    hid_t zero = string_type(8, H5T_STR_NULLTERM, H5T_CSET_ASCII),
          space = string_type(8, H5T_STR_SPACEPAD, H5T_CSET_ASCII),
          full = string_type(4, H5T_STR_NULLPAD, H5T_CSET_UTF8),
          variable = string_type(H5T_VARIABLE, H5T_STR_NULLTERM, H5T_CSET_UTF8),
          ascii = string_type(H5T_VARIABLE, H5T_STR_NULLTERM, H5T_CSET_ASCII);
    struct ks_h5 *h5;
    char *value;

    put_attribute(file, "zero", (struct layout){zero, scalar, zero}, "word\0\0\0");
    put_attribute(file, "space", (struct layout){space, scalar, space}, "word    ");
    put_attribute(file, "full", (struct layout){full, scalar, full}, "word");
    put_attribute(file, "variable", (struct layout){variable, scalar, variable}, &word);
    put_attribute(file, "ascii", (struct layout){ascii, row, ascii}, &word);
    put_attribute(file, "none", (struct layout){variable, scalar, variable}, &none);
    put_attribute(file, "two", (struct layout){variable, twice, variable}, two);
    H5Fclose(file);
    assert_ok(ks_h5_open(path, NULL, &h5));
    expect_text(h5, "zero", "word");
    expect_text(h5, "space", "word");
    expect_text(h5, "full", "word");
    expect_text(h5, "variable", "word");
    expect_text(h5, "ascii", "word");
    expect_text(h5, "none", "");
    assert_fails(ks_h5_read_string(h5, "/", "two", &value), KS_FORMAT, "expected a string");
    assert_fails(ks_h5_read_string(h5, "/", "three", &value), KS_FORMAT, "three: missing");
    ks_h5_close(h5);
    H5Tclose(zero), H5Tclose(space), H5Tclose(full), H5Tclose(variable), H5Tclose(ascii);
    H5Sclose(scalar), H5Sclose(row), H5Sclose(twice);
}

TEST_CLEAN(test_any_integer)
{
    const char *path = scratch("integers.h5");
    const hid_t types[] = {H5T_STD_I8BE, H5T_STD_U16LE, H5T_STD_I32BE, H5T_STD_U64BE,
                           H5T_IEEE_F64LE};
    const uint64_t huge = UINT64_MAX;
    const int64_t value = 77;
    const double fraction = 1.5;
    hsize_t one = 1;
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t scalar = H5Screate(H5S_SCALAR), row = H5Screate_simple(1, &one, NULL);
    struct ks_h5 *h5;
    int64_t found;
    char name[8];

    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        snprintf(name, sizeof name, "i%zu", i);
        put_attribute(file, name, (struct layout){types[i], i % 2 ? row : scalar, H5T_NATIVE_INT64},
                      &value);
    }
    put_attribute(file, "huge", (struct layout){H5T_STD_U64LE, scalar, H5T_NATIVE_UINT64}, &huge);
    put_attribute(file, "fraction", (struct layout){H5T_IEEE_F64LE, scalar, H5T_NATIVE_DOUBLE},
                  &fraction);
    H5Fclose(file);
    assert_ok(ks_h5_open(path, NULL, &h5));
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        snprintf(name, sizeof name, "i%zu", i);
        assert_ok(ks_h5_read_integer(h5, "/", name, 1, &found));
        assert_int_equal(found, value);
    }
    assert_fails(ks_h5_read_integer(h5, "/", "i0", 78, &found), KS_FORMAT, "expected at least 78");
    assert_fails(ks_h5_read_integer(h5, "/", "huge", 0, &found), KS_FORMAT,
                 "attribute huge: above 2^63 - 1");
    assert_fails(ks_h5_read_integer(h5, "/", "fraction", 0, &found), KS_FORMAT, "an integer");
    ks_h5_close(h5);
    H5Sclose(scalar), H5Sclose(row);
}

/* A list of strings, a type that ks_h5_read_attributes skips. */
static void add_skipped_attribute(const char *path)
{
    const char *picture[2] = {"no", "use"};
    hsize_t pair = 2;
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    hid_t type = string_type(H5T_VARIABLE, H5T_STR_NULLTERM, H5T_CSET_UTF8);
    hid_t space = H5Screate_simple(1, &pair, NULL);

    put_attribute(file, "picture", (struct layout){type, space, type}, picture);
    H5Tclose(type);
    H5Sclose(space);
    H5Fclose(file);
}

/* An attribute that exists is not written again: that failure is the file's. */
TEST_CLEAN(test_twice)
{
    struct ks_h5 *h5;

    assert_ok(ks_h5_create(scratch("twice.h5"), "test", KS_H5_VERSION, &h5));
    ks_h5_write_integer(h5, "/", "count", 1);
    ks_h5_write_integer(h5, "/", "count", 2);
    assert_fails(ks_h5_commit(h5), KS_RUN, "attribute count");
    ks_h5_close(h5);
}

TEST_CLEAN(test_attribute_lists)
{
    const char *path = scratch("lists.h5");
    double returns[3] = {1.5, -2, NAN};
    char text[] = "two\nlines", nothing[] = "";
    struct ks_attribute written[] = {
        {.name = "count", .type = KS_ATTRIBUTE_INTEGER, .integer = -5},
        {.name = "empty", .type = KS_ATTRIBUTE_STRING, .string = nothing},
        {.name = "gamma", .type = KS_ATTRIBUTE_NUMBER, .number = 0.99},
        {.name = "returns", .type = KS_ATTRIBUTE_LIST, .list = returns, .n = 3},
        {.name = "text", .type = KS_ATTRIBUTE_STRING, .string = text},
    };
    enum { WRITTEN = sizeof written / sizeof *written };
    struct ks_attributes read = {.n = 0};
    struct ks_attribute *list;
    struct ks_h5 *h5;

    assert_ok(ks_h5_create(path, "test", KS_H5_VERSION, &h5));
    ks_h5_group(h5, "/metrics");
    ks_h5_write_attributes(h5, "/metrics", &(struct ks_attributes){.list = written, .n = WRITTEN});
    assert_ok(ks_h5_commit(h5));
    ks_h5_close(h5);
    add_skipped_attribute(path);

    assert_ok(ks_h5_open(path, "test", &h5));
    assert_ok(ks_h5_read_attributes(h5, "/metrics", &read));
    assert_int_equal(read.n, WRITTEN);
    list = read.list;
    for (size_t i = 0; i < read.n; i++) {
        assert_string_equal(list[i].name, written[i].name);
        assert_int_equal(list[i].type, written[i].type);
    }
    assert_int_equal(list[0].integer, -5);
    assert_string_equal(list[1].string, "");
    assert_true(list[2].number == 0.99);
    assert_int_equal(list[3].n, 3);
    assert_memory_equal(list[3].list, returns, sizeof returns);
    assert_string_equal(list[4].string, text);
    ks_attributes_clear(&read);
    assert_ok(ks_h5_read_attributes(h5, "/", &read));
    assert_int_equal(read.n, 2); /* format and version, without the picture */
    ks_attributes_clear(&read);
    ks_h5_close(h5);
}

TEST(test_conversions)
{
    struct ks_attribute a = {.type = KS_ATTRIBUTE_NUMBER, .number = 3}, b;
    bool fits;

    assert_ok(ks_attribute_convert(&a, KS_ATTRIBUTE_STRING, &fits));
    assert_false(fits);
    assert_ok(ks_attribute_convert(&a, KS_ATTRIBUTE_INTEGER, &fits));
    assert_true(fits && a.integer == 3);
    assert_ok(ks_attribute_convert(&a, KS_ATTRIBUTE_LIST, &fits));
    assert_true(fits && a.n == 1 && a.list[0] == 3);
    assert_ok(ks_attribute_copy(&a, &b));
    assert_true(b.list != a.list && b.list[0] == 3);
    assert_ok(ks_attribute_convert(&b, KS_ATTRIBUTE_NUMBER, &fits));
    assert_true(fits && b.number == 3 && !b.list);
    b.number = 0.5;
    assert_ok(ks_attribute_convert(&b, KS_ATTRIBUTE_INTEGER, &fits));
    assert_true(!fits && b.number == 0.5);
    b.number = NAN;
    assert_ok(ks_attribute_convert(&b, KS_ATTRIBUTE_INTEGER, &fits));
    assert_false(fits);
    ks_attribute_clear(&a);
}

CMFixtureFunction tests_setup = scratch_make, tests_teardown = scratch_remove;
