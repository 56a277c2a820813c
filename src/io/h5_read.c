#include "io/h5_read.h"

#include <math.h>
#include <stdlib.h>

#include "core/memory.h"
#include "io/h5_ask.h"
#include "io/h5_local.h"

ks_status ks_h5_has(const struct ks_h5 *h5, const char *object, bool *found)
{
    return ks_h5_ask_has(h5, object, found);
}

ks_status ks_h5_shape(const struct ks_h5 *h5, const char *object, struct ks_h5_shape *shape)
{
    enum ks_h5_stored stored;

    return ks_h5_ask_shape(h5, object, shape, &stored);
}

ks_status ks_h5_find_shape(const struct ks_h5 *h5, const char *object, bool *found,
                           struct ks_h5_shape *shape)
{
    KS_TRY(ks_h5_has(h5, object, found));
    return *found ? ks_h5_shape(h5, object, shape) : KS_OK;
}

ks_status ks_h5_stored(const struct ks_h5 *h5, const char *object, enum ks_h5_stored *stored)
{
    struct ks_h5_shape shape;

    return ks_h5_ask_shape(h5, object, &shape, stored);
}

ks_status ks_h5_expect_shape(const struct ks_h5 *h5, const char *object,
                             const struct ks_h5_shape *shape)
{
    struct ks_h5_shape found = {.n_dims = 0};

    KS_TRY(ks_h5_shape(h5, object, &found));
    return ks_h5_compare_shape(h5, object, shape, &found);
}

ks_status ks_h5_expect_reals(const struct ks_h5 *h5, const char *object,
                             const struct ks_h5_shape *shape)
{
    struct ks_h5_shape found = {.n_dims = 0};
    enum ks_h5_stored stored;

    KS_TRY(ks_h5_ask_shape(h5, object, &found, &stored));
    if (stored == KS_H5_INTEGERS)
        return ks_fail(KS_FORMAT,
                       "%s: %s: expected real numbers (float32 or float64), found integers",
                       h5->path, object);
    return ks_h5_compare_shape(h5, object, shape, &found);
}

ks_status ks_h5_read(const struct ks_h5 *h5, const char *object, const struct ks_h5_shape *shape,
                     double *values)
{
    return ks_h5_ask_values(h5, object, shape, values);
}

/* The number of elements; fails if their bytes do not fit into a size_t. */
static ks_status count(const struct ks_h5 *h5, const char *object, const struct ks_h5_shape *shape,
                       size_t *n)
{
    *n = 1;
    for (size_t i = 0; i < shape->n_dims; i++) {
        if (shape->dims[i] > 0 && *n > SIZE_MAX / sizeof(double) / shape->dims[i])
            return ks_fail(KS_FORMAT, "%s: %s: more numbers than can be addressed", h5->path,
                           object);
        *n *= shape->dims[i];
    }
    return KS_OK;
}

/* In floating point, because a file can claim any number of elements. */
static double bytes_of(const struct ks_h5_shape *shape)
{
    double bytes = sizeof(double);

    for (size_t i = 0; i < shape->n_dims; i++)
        bytes *= (double)shape->dims[i];
    return bytes;
}

ks_status ks_h5_read_new(const struct ks_h5 *h5, const char *object,
                         const struct ks_h5_shape *shape, double **out)
{
    ks_status status = KS_OK;
    double *values = NULL;
    size_t n;

    *out = NULL;
    KS_TRY(ks_h5_expect_shape(h5, object, shape)); /* before memory is allocated for it */
    if (h5->claimed) {
        *h5->claimed += bytes_of(shape);
        return KS_OK;
    }
    KS_TRY(count(h5, object, shape, &n));
    if (ks_alloc(n, sizeof *values, &values) != KS_OK)
        return ks_fail(KS_MEMORY, "%s: %s: out of memory for %zu numbers", h5->path, object, n);
    KS_GO(ks_h5_read(h5, object, shape, values));
    *out = values, values = NULL;
done:
    free(values);
    return status;
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

/* --- attributes --- */

ks_status ks_h5_has_attribute(const struct ks_h5 *h5, const char *object, const char *name,
                              bool *found)
{
    return ks_h5_ask_has_attribute(h5, object, name, found);
}

ks_status ks_h5_read_attribute(const struct ks_h5 *h5, const char *object, const char *name,
                               enum ks_attribute_type type, struct ks_attribute *attribute)
{
    static const char *const words[] = {"a number", "an integer", "a string", "a list of numbers"};
    bool found, fits = false;

    KS_TRY(ks_h5_has_attribute(h5, object, name, &found));
    if (!found)
        return ks_fail(KS_FORMAT, "%s: %s: attribute %s: missing", h5->path, object, name);
    KS_TRY(ks_h5_ask_attribute(h5, object, name, attribute, &fits));
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

ks_status ks_h5_read_attributes(const struct ks_h5 *h5, const char *object,
                                struct ks_attributes *attributes)
{
    return ks_h5_ask_attributes(h5, object, attributes);
}

ks_status ks_h5_read_names(const struct ks_h5 *h5, const char *object, bool attributes,
                           struct ks_h5_names *names)
{
    return ks_h5_ask_names(h5, object, attributes, names);
}
