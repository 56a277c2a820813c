/* Datasets of any numeric type and storage layout, read as double. */
#include "io/h5.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "core/memory.h"

enum {
    SOFT_LINKS = 16,   /* the most on the way to an object, as in libhdf5 */
    MOST_CHUNKS = 1000 /* that one call of libhdf5 reads */
};

/* Replaces the soft link of the first `end` bytes of the path by what it leads to: `size` bytes
 * with the zero, of which H5Lget_val would give the first ones. */
static ks_status follow(const struct ks_h5 *h5, const char *link, size_t size, size_t end,
                        char path[KS_H5_OBJECT])
{
    char target[KS_H5_OBJECT] = "", whole[2 * KS_H5_OBJECT];
    size_t before, length;

    if (size <= sizeof target && H5Lget_val(h5->id, link, target, size, H5P_DEFAULT) < 0)
        return ks_h5_fail(h5, KS_IO, link, "cannot be looked up");
    before = target[0] == '/' ? 0 : (size_t)(strrchr(link, '/') - link) + 1;
    length = (size_t)snprintf(whole, sizeof whole, "%.*s%s%s", (int)before, path, target,
                              path + end);
    if (size > sizeof target || length >= KS_H5_OBJECT)
        return ks_fail(KS_FORMAT, "%s: %s: expected a link to a path of at most %d bytes", h5->path,
                       link, KS_H5_OBJECT - 1);
    memcpy(path, whole, length + 1);
    return KS_OK;
}

/* Component by component, because libhdf5 follows all links on the way to an object, and links
 * other than hard and soft ones may lead anywhere. H5Lexists fails if a group on the way is
 * missing. */
ks_status ks_h5_has(const struct ks_h5 *h5, const char *object, bool *found)
{
    char path[KS_H5_OBJECT], prefix[KS_H5_OBJECT];
    size_t soft = 0;

    assert(object[0] == '/' && strlen(object) < sizeof path);
    snprintf(path, sizeof path, "%s", object);
    *found = path[1] == '\0'; /* the root */
    for (size_t end = 1; !*found; end++) {
        H5L_info_t info;
        htri_t exists;

        if (path[end] != '/' && path[end] != '\0')
            continue;
        snprintf(prefix, sizeof prefix, "%.*s", (int)end, path);
        exists = H5Lexists(h5->id, prefix, H5P_DEFAULT);
        if (exists == 0)
            return KS_OK;
        if (exists < 0 || H5Lget_info(h5->id, prefix, &info, H5P_DEFAULT) < 0)
            return ks_h5_fail(h5, KS_IO, object, "cannot be looked up");
        if (info.type == H5L_TYPE_SOFT && soft++ < SOFT_LINKS) {
            KS_TRY(follow(h5, prefix, info.u.val_size, end, path));
            end = 0;
        } else if (info.type != H5L_TYPE_HARD) {
            return ks_fail(KS_FORMAT,
                           "%s: %s: expected an object of the file itself, found %s link", h5->path,
                           prefix,
                           info.type == H5L_TYPE_EXTERNAL ? "an external"
                           : info.type == H5L_TYPE_SOFT   ? "another soft"
                                                          : "a user-defined");
        } else {
            *found = path[end] == '\0';
        }
    }
    return KS_OK;
}

static ks_status read_type(const struct ks_h5 *h5, const char *object, hid_t set,
                           struct ks_h5_shape *shape)
{
    KS_OWNED_BY(ks_h5_release) hid_t type = H5Dget_type(set);
    H5T_class_t kind = type < 0 ? H5T_NO_CLASS : H5Tget_class(type);
    size_t bytes = type < 0 ? 0 : H5Tget_size(type);

    if (type < 0)
        return ks_h5_fail(h5, KS_IO, object, "its type cannot be read");
    if (kind != H5T_FLOAT && kind != H5T_INTEGER)
        return ks_fail(KS_FORMAT, "%s: %s: expected numbers, found another type", h5->path, object);
    shape->stored = kind == H5T_INTEGER      ? KS_H5_INTEGERS
                    : bytes < sizeof(double) ? KS_H5_REALS
                                             : KS_H5_WIDE_REALS;
    return KS_OK;
}

/* All filters of the dataset must be there. */
static ks_status expect_filters(const struct ks_h5 *h5, const char *object, hid_t list)
{
    const int n = H5Pget_nfilters(list);

    for (int i = 0; i < n; i++) {
        char name[64] = "";
        size_t options = 0;
        unsigned flags;
        H5Z_filter_t filter = H5Pget_filter2(list, (unsigned)i, &flags, &options, NULL,
                                             sizeof name - 1, name, NULL);

        if (filter > 0 && H5Zfilter_avail(filter) <= 0)
            return ks_fail(
                KS_FORMAT,
                "%s: %s: compressed with %s%sfilter %d, which HDF5 cannot read here: write it with "
                "compression='gzip' or none (h5repack -f GZIP=1)",
                h5->path, object, name, *name ? ", " : "", filter);
    }
    return KS_OK;
}

/* The values must be in this file, not in other files that it names: libhdf5 reads zeros from a
 * virtual dataset whose source file is missing. */
static ks_status expect_own_values(const struct ks_h5 *h5, const char *object, hid_t list)
{
    H5D_layout_t layout = H5Pget_layout(list);
    int files = layout == H5D_LAYOUT_ERROR ? -1 : H5Pget_external_count(list);

    if (files < 0)
        return ks_h5_fail(h5, KS_IO, object, "its storage layout cannot be read");
    if (layout == H5D_VIRTUAL || files > 0)
        return ks_fail(KS_FORMAT, "%s: %s: expected values in the file itself, found %s", h5->path,
                       object, layout == H5D_VIRTUAL ? "a virtual dataset" : "external storage");
    return KS_OK;
}

static ks_status check_storage(const struct ks_h5 *h5, const char *object, hid_t set)
{
    KS_OWNED_BY(ks_h5_release) hid_t list = H5Dget_create_plist(set);

    if (list < 0)
        return ks_h5_fail(h5, KS_IO, object, "its storage layout cannot be read");
    KS_TRY(expect_own_values(h5, object, list));
    return expect_filters(h5, object, list);
}

static ks_status read_shape(const struct ks_h5 *h5, const char *object, hid_t set,
                            struct ks_h5_shape *shape)
{
    hsize_t dims[H5S_MAX_RANK];
    KS_OWNED_BY(ks_h5_release) hid_t space = H5Dget_space(set);
    int rank = space < 0 ? -1 : H5Sget_simple_extent_dims(space, dims, NULL);

    if (rank < 0)
        return ks_h5_fail(h5, KS_IO, object, "its shape cannot be read");
    if (rank > KS_H5_DIMS)
        return ks_fail(KS_FORMAT, "%s: %s: expected at most %d dimensions, found %d", h5->path,
                       object, KS_H5_DIMS, rank);
    shape->n_dims = (size_t)rank;
    for (size_t i = 0; i < shape->n_dims; i++)
        shape->dims[i] = (size_t)dims[i];
    return KS_OK;
}

/* Opens a numeric dataset; the caller releases *set, also after a failure. */
static ks_status open_set(const struct ks_h5 *h5, const char *object, hid_t *set,
                          struct ks_h5_shape *shape)
{
    bool found;

    *set = H5I_INVALID_HID;
    KS_TRY(ks_h5_has(h5, object, &found));
    if (!found)
        return ks_fail(KS_FORMAT, "%s: %s: missing", h5->path, object);
    *set = H5Oopen(h5->id, object, H5P_DEFAULT);
    if (*set < 0)
        return ks_h5_fail(h5, KS_IO, object, "cannot be opened");
    if (H5Iget_type(*set) != H5I_DATASET)
        return ks_fail(KS_FORMAT, "%s: %s: expected a dataset, found another object", h5->path,
                       object);
    KS_TRY(check_storage(h5, object, *set));
    KS_TRY(read_type(h5, object, *set, shape));
    return read_shape(h5, object, *set, shape);
}

ks_status ks_h5_shape(const struct ks_h5 *h5, const char *object, struct ks_h5_shape *shape)
{
    KS_OWNED_BY(ks_h5_release) hid_t set = H5I_INVALID_HID;

    return open_set(h5, object, &set, shape);
}

ks_status ks_h5_find_shape(const struct ks_h5 *h5, const char *object, bool *found,
                           struct ks_h5_shape *shape)
{
    KS_TRY(ks_h5_has(h5, object, found));
    return *found ? ks_h5_shape(h5, object, shape) : KS_OK;
}

static ks_status compare_shape(const struct ks_h5 *h5, const char *object,
                               const struct ks_h5_shape *expected, const struct ks_h5_shape *found)
{
    char want[KS_H5_SHAPE_TEXT], got[KS_H5_SHAPE_TEXT];

    ks_h5_print_shape(expected, want);
    ks_h5_print_shape(found, got);
    return strcmp(want, got) == 0 ? KS_OK
                                  : ks_fail(KS_FORMAT, "%s: %s: expected shape %s, found %s",
                                            h5->path, object, want, got);
}

ks_status ks_h5_expect_reals(const struct ks_h5 *h5, const char *object,
                             const struct ks_h5_shape *shape)
{
    struct ks_h5_shape found = {.n_dims = 0};

    KS_TRY(ks_h5_shape(h5, object, &found));
    if (found.stored == KS_H5_INTEGERS)
        return ks_fail(KS_FORMAT,
                       "%s: %s: expected real numbers (float32 or float64), found integers",
                       h5->path, object);
    return compare_shape(h5, object, shape, &found);
}

/* A chunked dataset of `rank` dimensions that is read into `values`, which has its shape. */
struct chunked {
    hid_t set, space;
    size_t rank;
    hsize_t chunk[KS_H5_DIMS];
    double *values;
};

/* Reads the block of `count` entries from `start` on, in halves while it has too many chunks:
 * libhdf5 1.14 takes 6 KB for each chunk of a call, however small the chunk is. */
static bool read_block(const struct chunked *c, const hsize_t *start, const hsize_t *count)
{
    hsize_t half[KS_H5_DIMS], middle[KS_H5_DIMS], rest[KS_H5_DIMS];
    double chunks = 1, most = 0;
    size_t longest = 0;

    for (size_t i = 0; i < c->rank; i++) {
        const double n = ceil((double)count[i] / (double)c->chunk[i]);

        chunks *= n;
        if (n > most)
            most = n, longest = i;
        half[i] = rest[i] = count[i];
        middle[i] = start[i];
    }
    if (chunks <= MOST_CHUNKS)
        return H5Sselect_hyperslab(c->space, H5S_SELECT_SET, start, NULL, count, NULL) >= 0 &&
               H5Dread(c->set, H5T_NATIVE_DOUBLE, c->space, c->space, H5P_DEFAULT, c->values) >= 0;
    half[longest] = (hsize_t)(most / 2) * c->chunk[longest];
    middle[longest] += half[longest];
    rest[longest] -= half[longest];
    return read_block(c, start, half) && read_block(c, middle, rest);
}

static bool read_values(hid_t set, double *values)
{
    static const hsize_t start[KS_H5_DIMS] = {0};
    struct chunked c = {.set = set, .values = values};
    KS_OWNED_BY(ks_h5_release) hid_t list = H5Dget_create_plist(set);
    KS_OWNED_BY(ks_h5_release) hid_t space = H5Dget_space(set);
    hsize_t dims[KS_H5_DIMS];
    int rank = list >= 0 && H5Pget_layout(list) == H5D_CHUNKED
                   ? H5Pget_chunk(list, KS_H5_DIMS, c.chunk)
                   : 0;

    if (rank <= 0)
        return H5Dread(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0;
    c.rank = (size_t)rank;
    c.space = space;
    return space >= 0 && H5Sget_simple_extent_dims(space, dims, NULL) == rank &&
           read_block(&c, start, dims);
}

/* The numbers of an array, in floating point, because a file can declare any. */
static double count(const struct ks_h5_shape *shape)
{
    double n = 1;

    for (size_t i = 0; i < shape->n_dims; i++)
        n *= (double)shape->dims[i];
    return n;
}

ks_status ks_h5_read(const struct ks_h5 *h5, const char *object, const struct ks_h5_shape *shape,
                     double *values)
{
    struct ks_h5_shape found = {.n_dims = 0};
    KS_OWNED_BY(ks_h5_release) hid_t set = H5I_INVALID_HID;

    KS_TRY(open_set(h5, object, &set, &found));
    KS_TRY(compare_shape(h5, object, shape, &found));
    /* numbers that were never written, under H5D_FILL_TIME_NEVER, HDF5 leaves as they are */
    memset(values, 0, (size_t)count(shape) * sizeof *values);
    return count(shape) == 0 || read_values(set, values)
               ? KS_OK
               : ks_h5_fail(h5, KS_IO, object, "cannot be read: damaged?");
}

ks_status ks_h5_read_new(const struct ks_h5 *h5, const char *object,
                         const struct ks_h5_shape *shape, double **out)
{
    struct ks_h5_shape found = {.n_dims = 0};
    const double n = count(shape);
    KS_OWNED double *values = NULL;

    *out = NULL;
    KS_TRY(ks_h5_shape(h5, object, &found));
    KS_TRY(compare_shape(h5, object, shape, &found)); /* before memory is allocated for it */
    if (h5->declared) {
        *h5->declared += n * sizeof *values;
        return KS_OK;
    }
    if (n * sizeof *values >= (double)SIZE_MAX)
        return ks_fail(KS_FORMAT, "%s: %s: more numbers than can be addressed", h5->path, object);
    if (ks_alloc((size_t)n, sizeof *values, &values) != KS_OK)
        return ks_fail(KS_MEMORY, "%s: %s: out of memory for %.0f numbers", h5->path, object, n);
    KS_TRY(ks_h5_read(h5, object, shape, values));
    *out = values, values = NULL;
    return KS_OK;
}

ks_status ks_h5_expect_finite(const struct ks_h5 *h5, const char *object, size_t n,
                              const double *values)
{
    for (size_t i = 0; values && i < n; i++)
        if (!isfinite(values[i]))
            return ks_fail(KS_FORMAT, "%s: %s: expected finite numbers, found %g at element %zu",
                           h5->path, object, values[i], i);
    return KS_OK;
}

ks_status ks_h5_read_finite(const struct ks_h5 *h5, const char *object,
                            const struct ks_h5_shape *shape, double **values)
{
    KS_TRY(ks_h5_expect_reals(h5, object, shape));
    KS_TRY(ks_h5_read_new(h5, object, shape, values));
    return ks_h5_expect_finite(h5, object, (size_t)count(shape), *values);
}
