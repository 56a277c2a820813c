/* Groups, datasets and attributes of a file that ks_h5_create has created. */
#include "io/h5.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    CHUNK_BYTES = 1 << 20, /* HDF5's chunk cache holds 1 MiB */
    DEFLATE_LEVEL = 1 /* higher levels hardly shrink weights, and training waits for the writing */
};

/* Without H5Pset_obj_track_times(false) equal content would not give equal bytes. */
static ks_status create_group(const struct ks_h5 *h5, const char *group)
{
    KS_OWNED_BY(ks_h5_release) hid_t creation = H5I_INVALID_HID;
    KS_OWNED_BY(ks_h5_release) hid_t id = H5I_INVALID_HID;
    bool found;

    KS_TRY(ks_h5_has(h5, group, &found));
    if (found)
        return KS_OK;
    creation = H5Pcreate(H5P_GROUP_CREATE);
    if (creation >= 0 && H5Pset_obj_track_times(creation, false) >= 0)
        id = H5Gcreate2(h5->id, group, H5P_DEFAULT, creation, H5P_DEFAULT);
    return id >= 0 ? KS_OK : ks_h5_fail(h5, KS_RUN, group, "cannot be created");
}

void ks_h5_group(struct ks_h5 *h5, const char *group)
{
    if (h5->status == KS_OK)
        h5->status = create_group(h5, group);
}

/* A chunk holds whole trailing dimensions while they fit into CHUNK_BYTES, then a part of the next
 * one, then 1. */
static hid_t creation_list(const struct ks_h5_shape *shape, size_t element)
{
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    hsize_t chunk[KS_H5_DIMS];
    size_t room = CHUNK_BYTES / element;

    for (size_t i = shape->n_dims; i-- > 0;) {
        size_t length = shape->dims[i] < room ? shape->dims[i] : room;

        chunk[i] = length > 0 ? length : 1;
        room /= (size_t)chunk[i];
    }
    if (list >= 0 &&
        (H5Pset_obj_track_times(list, false) < 0 ||
         H5Pset_chunk(list, (int)shape->n_dims, chunk) < 0 || H5Pset_shuffle(list) < 0 ||
         H5Pset_deflate(list, DEFLATE_LEVEL) < 0 || H5Pset_fletcher32(list) < 0)) {
        H5Pclose(list);
        return H5I_INVALID_HID;
    }
    return list;
}

static ks_status write_dataset(const struct ks_h5 *h5, const char *object, enum ks_h5_type type,
                               const struct ks_h5_shape *shape, const double *values)
{
    ks_status status = KS_OK;
    const hid_t stored = type == KS_H5_F32   ? H5T_IEEE_F32LE
                         : type == KS_H5_I64 ? H5T_STD_I64LE
                                             : H5T_IEEE_F64LE;
    KS_OWNED_BY(ks_h5_release) hid_t space = H5I_INVALID_HID;
    KS_OWNED_BY(ks_h5_release) hid_t list = creation_list(shape, H5Tget_size(stored));
    hid_t set = H5I_INVALID_HID;
    hsize_t dims[KS_H5_DIMS];

    assert(shape->n_dims >= 1 && shape->n_dims <= KS_H5_DIMS);
    for (size_t i = 0; i < shape->n_dims; i++)
        dims[i] = shape->dims[i];
    space = H5Screate_simple((int)shape->n_dims, dims, NULL);
    if (space >= 0 && list >= 0)
        set = H5Dcreate2(h5->id, object, stored, space, H5P_DEFAULT, list, H5P_DEFAULT);
    if (set < 0 || H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0)
        status = ks_h5_fail(h5, KS_RUN, object, "cannot be written");
    if (set >= 0 && H5Dclose(set) < 0 && status == KS_OK) /* chunks are compressed here */
        status = ks_h5_fail(h5, KS_RUN, object, "cannot be written");
    return status;
}

void ks_h5_write(struct ks_h5 *h5, const char *object, enum ks_h5_type type,
                 const struct ks_h5_shape *shape, const double *values)
{
    if (h5->status == KS_OK)
        h5->status = write_dataset(h5, object, type, shape, values);
}

void ks_h5_write_finite(struct ks_h5 *h5, const char *object, enum ks_h5_type type,
                        const struct ks_h5_shape *shape, const double *values)
{
    double largest = type == KS_H5_F32 ? FLT_MAX : DBL_MAX;
    size_t n = 1;

    for (size_t i = 0; i < shape->n_dims; i++)
        n *= shape->dims[i];
    for (size_t i = 0; i < n && h5->status == KS_OK; i++)
        if (!(fabs(values[i]) <= largest))
            h5->status = ks_fail(
                KS_NUMBER,
                "%s: %s: expected finite numbers, found %g at element %zu: the file is not written",
                h5->path, object, values[i], i);
    ks_h5_write(h5, object, type, shape, values);
}

/* The stored type, the type in memory and the value's address. Strings have a fixed length, because
 * HDF5 stores strings of variable length in a heap without a checksum. */
static hid_t attribute_type(const struct ks_attribute *a, hid_t *memory, const void **value)
{
    size_t length;
    hid_t type;

    switch (a->type) {
    case KS_ATTRIBUTE_STRING:
        length = strlen(a->string);
        type = H5Tcopy(H5T_C_S1);
        if (type >= 0 &&
            (H5Tset_size(type, length > 0 ? length : 1) < 0 ||
             H5Tset_strpad(type, H5T_STR_NULLPAD) < 0 || H5Tset_cset(type, H5T_CSET_UTF8) < 0)) {
            H5Tclose(type);
            return H5I_INVALID_HID;
        }
        *memory = type;
        *value = a->string;
        return type;
    case KS_ATTRIBUTE_INTEGER:
        *memory = H5T_NATIVE_INT64;
        *value = &a->integer;
        return H5Tcopy(H5T_STD_I64LE);
    default:
        *memory = H5T_NATIVE_DOUBLE;
        *value = a->type == KS_ATTRIBUTE_LIST ? a->list : &a->number;
        return H5Tcopy(H5T_IEEE_F64LE);
    }
}

static ks_status write_attribute(const struct ks_h5 *h5, const char *object,
                                 const struct ks_attribute *a)
{
    ks_status status = KS_OK;
    hsize_t n = a->n;
    hid_t memory = H5I_INVALID_HID, id = H5I_INVALID_HID;
    const void *value = NULL;
    char what[KS_ATTRIBUTE_NAME + 64];
    KS_OWNED_BY(ks_h5_release) hid_t type = attribute_type(a, &memory, &value);
    KS_OWNED_BY(ks_h5_release)
    hid_t space = a->type == KS_ATTRIBUTE_LIST ? H5Screate_simple(1, &n, NULL)
                                               : H5Screate(H5S_SCALAR);

    snprintf(what, sizeof what, "attribute %s: cannot be written", a->name);
    if (type >= 0 && space >= 0)
        id = H5Acreate_by_name(h5->id, object, a->name, type, space, H5P_DEFAULT, H5P_DEFAULT,
                               H5P_DEFAULT);
    if (id < 0 || H5Awrite(id, memory, value) < 0)
        status = ks_h5_fail(h5, KS_RUN, object, what);
    if (id >= 0 && H5Aclose(id) < 0 && status == KS_OK)
        status = ks_h5_fail(h5, KS_RUN, object, what);
    return status;
}

void ks_h5_write_attribute(struct ks_h5 *h5, const char *object, const struct ks_attribute *a)
{
    if (h5->status == KS_OK)
        h5->status = write_attribute(h5, object, a);
}

void ks_h5_write_attributes(struct ks_h5 *h5, const char *object, const struct ks_attributes *a)
{
    if (h5->status == KS_OK)
        h5->status = a->status;
    if (a->n > 0)
        ks_h5_group(h5, object);
    for (size_t i = 0; i < a->n; i++)
        ks_h5_write_attribute(h5, object, &a->list[i]);
}

void ks_h5_write_integer(struct ks_h5 *h5, const char *object, const char *name, int64_t value)
{
    struct ks_attribute a = {.type = KS_ATTRIBUTE_INTEGER, .integer = value};

    snprintf(a.name, sizeof a.name, "%s", name);
    ks_h5_write_attribute(h5, object, &a);
}

void ks_h5_write_number(struct ks_h5 *h5, const char *object, const char *name, double value)
{
    struct ks_attribute a = {.type = KS_ATTRIBUTE_NUMBER, .number = value};

    snprintf(a.name, sizeof a.name, "%s", name);
    ks_h5_write_attribute(h5, object, &a);
}

void ks_h5_write_string(struct ks_h5 *h5, const char *object, const char *name, const char *value)
{
    struct ks_attribute a = {.type = KS_ATTRIBUTE_STRING, .string = (char *)value}; /* only read */

    snprintf(a.name, sizeof a.name, "%s", name);
    ks_h5_write_attribute(h5, object, &a);
}
