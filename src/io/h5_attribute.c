/* Attributes of HDF5 objects, read as named numbers, strings and lists; names of objects and of
 * attributes. */
#include "io/h5.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/line.h"
#include "core/memory.h"

/* --- one attribute --- */

/* An open attribute: where it is, its handles, and its type and size. */
struct open_attribute {
    const struct ks_h5 *h5;
    const char *object, *name;
    hid_t id, type, space;
    H5T_class_t kind;
    bool scalar;
    size_t n; /* elements */
};

static ks_status attribute_fail(const struct open_attribute *r)
{
    char what[KS_ATTRIBUTE_NAME + 64];

    snprintf(what, sizeof what, "attribute %s: cannot be read", r->name);
    return ks_h5_fail(r->h5, KS_IO, r->object, what);
}

/* False if HDF5 fails. */
static bool open_attribute(struct open_attribute *r)
{
    hssize_t n;

    r->type = r->space = H5I_INVALID_HID;
    r->id = H5Aopen_by_name(r->h5->id, r->object, r->name, H5P_DEFAULT, H5P_DEFAULT);
    if (r->id < 0 || (r->type = H5Aget_type(r->id)) < 0 || (r->space = H5Aget_space(r->id)) < 0 ||
        (n = H5Sget_simple_extent_npoints(r->space)) < 0)
        return false;
    r->kind = H5Tget_class(r->type);
    r->scalar = H5Sget_simple_extent_type(r->space) == H5S_SCALAR;
    r->n = (size_t)n;
    return true;
}

/* A struct ks_attribute holds a number, a list of numbers or a string. */
static bool representable(const struct open_attribute *r)
{
    bool number = r->kind == H5T_INTEGER || r->kind == H5T_FLOAT;

    if (r->kind == H5T_STRING)
        return r->n == 1 && H5Tget_size(r->type) <= KS_H5_LONGEST;
    return number && r->n <= KS_H5_LONGEST && H5Sget_simple_extent_ndims(r->space) <= 1;
}

/* The type in memory of the file's string: the same characters, with room for a terminating zero.
 */
static hid_t string_type(const struct open_attribute *r)
{
    bool variable = H5Tis_variable_str(r->type) > 0;
    hid_t type = H5Tcopy(H5T_C_S1);

    if (type >= 0 && (H5Tset_size(type, variable ? H5T_VARIABLE : H5Tget_size(r->type) + 1) < 0 ||
                      H5Tset_strpad(type, H5T_STR_NULLTERM) < 0 ||
                      H5Tset_cset(type, H5Tget_cset(r->type)) < 0)) {
        H5Tclose(type);
        return H5I_INVALID_HID;
    }
    return type;
}

static ks_status read_string(const struct open_attribute *r, char **out)
{
    ks_status status = KS_OK;
    KS_OWNED_BY(ks_h5_release) hid_t type = string_type(r);
    char *variable = NULL;
    bool fixed;

    if (type < 0)
        return attribute_fail(r);
    fixed = H5Tis_variable_str(type) <= 0;
    if (fixed)
        KS_TRY(ks_alloc(H5Tget_size(type), 1, out));
    if (H5Aread(r->id, type, fixed ? (void *)*out : &variable) < 0)
        status = attribute_fail(r);
    else if (!fixed)
        status = ks_copy_string(variable ? variable : "", out);
    if (variable)
        H5Dvlen_reclaim(type, r->space, H5P_DEFAULT, &variable);
    return status;
}

/* HDF5 would clip an unsigned integer above INT64_MAX, and a clipped seed is another seed. */
static ks_status read_integer(const struct open_attribute *r, int64_t *value)
{
    uint64_t unsigned_value = 0;

    if (H5Tget_sign(r->type) != H5T_SGN_NONE)
        return H5Aread(r->id, H5T_NATIVE_INT64, value) < 0 ? attribute_fail(r) : KS_OK;
    if (H5Aread(r->id, H5T_NATIVE_UINT64, &unsigned_value) < 0)
        return attribute_fail(r);
    if (unsigned_value > INT64_MAX)
        return ks_fail(KS_FORMAT, "%s: %s: attribute %s: above 2^63 - 1", r->h5->path, r->object,
                       r->name);
    *value = (int64_t)unsigned_value;
    return KS_OK;
}

static ks_status read_value(const struct open_attribute *r, struct ks_attribute *a)
{
    double *numbers = &a->number;

    if (r->kind == H5T_STRING) {
        a->type = KS_ATTRIBUTE_STRING;
        return read_string(r, &a->string);
    }
    if (r->scalar && r->kind == H5T_INTEGER) {
        a->type = KS_ATTRIBUTE_INTEGER;
        return read_integer(r, &a->integer);
    }
    a->type = r->scalar ? KS_ATTRIBUTE_NUMBER : KS_ATTRIBUTE_LIST;
    if (!r->scalar) {
        KS_TRY(ks_alloc(r->n, sizeof *a->list, &a->list));
        a->n = r->n;
        numbers = a->list;
    }
    if (r->n > 0 && H5Aread(r->id, H5T_NATIVE_DOUBLE, numbers) < 0)
        return attribute_fail(r);
    return KS_OK;
}

/* Reads an existing attribute; *known is false if a struct ks_attribute cannot hold its type. The
 * caller clears it. */
static ks_status read_any(const struct ks_h5 *h5, const char *object, const char *name,
                          struct ks_attribute *out, bool *known)
{
    ks_status status = KS_OK;
    struct open_attribute r = {.h5 = h5, .object = object, .name = name};

    *out = (struct ks_attribute){.n = 0};
    *known = false;
    if (snprintf(out->name, sizeof out->name, "%s", name) >= (int)sizeof out->name)
        return KS_OK;
    if (!open_attribute(&r)) {
        status = attribute_fail(&r);
    } else if (representable(&r)) {
        status = read_value(&r, out);
        *known = status == KS_OK;
    }
    ks_h5_release(r.space);
    ks_h5_release(r.type);
    ks_h5_release(r.id);
    if (status != KS_OK)
        ks_attribute_clear(out);
    return status;
}

ks_status ks_h5_has_attribute(const struct ks_h5 *h5, const char *object, const char *name,
                              bool *found)
{
    htri_t exists;

    *found = false;
    if (strcmp(object, "/") != 0) {
        KS_TRY(ks_h5_has(h5, object, found));
        if (!*found)
            return KS_OK;
    }
    exists = H5Aexists_by_name(h5->id, object, name, H5P_DEFAULT);
    if (exists < 0)
        return ks_h5_fail(h5, KS_IO, object, "its attributes cannot be read");
    *found = exists > 0;
    return KS_OK;
}

ks_status ks_h5_read_attribute(const struct ks_h5 *h5, const char *object, const char *name,
                               enum ks_attribute_type type, struct ks_attribute *attribute)
{
    static const char *const words[] = {"a number", "an integer", "a string", "a list of numbers"};
    bool found, fits = false;

    KS_TRY(ks_h5_has_attribute(h5, object, name, &found));
    if (!found)
        return ks_fail(KS_FORMAT, "%s: %s: attribute %s: missing", h5->path, object, name);
    KS_TRY(read_any(h5, object, name, attribute, &fits));
    if (fits) {
        ks_status status = ks_attribute_convert(attribute, type, &fits);

        if (status != KS_OK || !fits)
            ks_attribute_clear(attribute);
        KS_TRY(status);
    }
    if (!fits)
        return ks_fail(KS_FORMAT, "%s: %s: attribute %s: expected %s, found something else",
                       h5->path, object, name, words[type]);
    return KS_OK;
}

ks_status ks_h5_read_integer(const struct ks_h5 *h5, const char *object, const char *name,
                             int64_t low, int64_t *value)
{
    struct ks_attribute a = {.n = 0};

    KS_TRY(ks_h5_read_attribute(h5, object, name, KS_ATTRIBUTE_INTEGER, &a));
    if (a.integer < low)
        return ks_fail(KS_FORMAT, "%s: %s: attribute %s: expected at least %lld, found %lld",
                       h5->path, object, name, (long long)low, (long long)a.integer);
    *value = a.integer;
    return KS_OK;
}

ks_status ks_h5_read_string(const struct ks_h5 *h5, const char *object, const char *name,
                            char **value)
{
    struct ks_attribute a = {.n = 0};

    *value = NULL;
    KS_TRY(ks_h5_read_attribute(h5, object, name, KS_ATTRIBUTE_STRING, &a));
    *value = a.string;
    return KS_OK;
}

/* --- names --- */

static herr_t add_name(struct ks_h5_names *names, const char *name)
{
    if (names->n == KS_H5_NAMES)
        return 1; /* ends the iteration */
    names->status = ks_grow(names->n, sizeof *names->name, &names->room, &names->name);
    if (names->status != KS_OK)
        return -1;
    snprintf(names->name[names->n++], sizeof *names->name, "%s", name);
    return 0;
}

static herr_t take_object(hid_t group, const char *name, const H5L_info_t *info, void *data)
{
    (void)group, (void)info;
    return add_name(data, name);
}

static herr_t take_attribute(hid_t object, const char *name, const H5A_info_t *info, void *data)
{
    (void)object, (void)info;
    return add_name(data, name);
}

void ks_h5_names_clear(struct ks_h5_names *names)
{
    free(names->name);
}

ks_status ks_h5_read_names(const struct ks_h5 *h5, const char *object, bool attributes,
                           struct ks_h5_names *names)
{
    hsize_t position = 0;
    herr_t result;
    bool found;

    KS_TRY(ks_h5_has(h5, object, &found)); /* that no link on the way leads out of the file */
    result = attributes ? H5Aiterate_by_name(h5->id, object, H5_INDEX_NAME, H5_ITER_INC, &position,
                                             take_attribute, names, H5P_DEFAULT)
                        : H5Literate_by_name(h5->id, object, H5_INDEX_NAME, H5_ITER_INC, &position,
                                             take_object, names, H5P_DEFAULT);

    if (result < 0 && names->status == KS_OK)
        return ks_h5_fail(h5, KS_IO, object, "its contents cannot be listed");
    return names->status;
}

ks_status ks_h5_read_attributes(const struct ks_h5 *h5, const char *object,
                                struct ks_attributes *attributes)
{
    KS_CLEARED_BY(ks_h5_names_clear) struct ks_h5_names names = {.n = 0};
    bool found;

    KS_TRY(ks_h5_has(h5, object, &found));
    if (found)
        KS_TRY(ks_h5_read_names(h5, object, true, &names));
    for (size_t i = 0; i < names.n; i++) {
        struct ks_attribute one;
        bool known;

        KS_TRY(read_any(h5, object, names.name[i], &one, &known));
        if (known)
            ks_attribute_add(attributes, &one);
    }
    return attributes->status;
}

ks_status ks_h5_expect_known(const struct ks_h5 *h5, const char *object, bool attributes,
                             const char *const *known, const char *by)
{
    KS_CLEARED_BY(ks_h5_names_clear) struct ks_h5_names names = {.n = 0};
    char list[256]; /* "input, target, loss" */

    KS_TRY(ks_h5_read_names(h5, object, attributes, &names));
    ks_words_print(known, ", ", ", ", sizeof list, list);
    for (size_t i = 0; i < names.n; i++)
        if (!known[ks_word_index(names.name[i], SIZE_MAX, known)])
            return ks_fail(KS_FORMAT, "%s: %s%s%s%s: expected only %s%s", h5->path, object,
                           attributes ? ": unknown attribute " : "/", names.name[i],
                           attributes ? "" : ": unknown object", *list ? list : "none", by);
    return KS_OK;
}
