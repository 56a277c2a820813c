/* Reading a file that ks_h5_open has opened: datasets and attributes. Callers outside src/io
 * include h5.h. An object is named by its absolute path ("/critic/00_dense/kernel"); "/" is the
 * root. */
#ifndef KS_IO_H5_READ_H
#define KS_IO_H5_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "io/attribute.h"
#include "io/h5_file.h"

/* Whether the dataset or group exists. A soft link to nothing counts as absent. A link to another
 * file fails with KS_FORMAT. */
ks_status ks_h5_has(const struct ks_h5 *h5, const char *object, bool *found);

/* The shape of a numeric dataset; fails if it is missing or anything else. */
ks_status ks_h5_shape(const struct ks_h5 *h5, const char *object, struct ks_h5_shape *shape);
/* The same for an optional dataset: *found is false if no object has this name. */
ks_status ks_h5_find_shape(const struct ks_h5 *h5, const char *object, bool *found,
                           struct ks_h5_shape *shape);
/* How the numbers of a dataset are stored; fails as ks_h5_shape does. */
ks_status ks_h5_stored(const struct ks_h5 *h5, const char *object, enum ks_h5_stored *stored);
/* Fails unless the dataset has this shape. */
ks_status ks_h5_expect_shape(const struct ks_h5 *h5, const char *object,
                             const struct ks_h5_shape *shape);
/* The same, and fails if its numbers are stored as integers. Where real numbers belong, integers
 * are a sign of values that were rounded, or of another array. */
ks_status ks_h5_expect_reals(const struct ks_h5 *h5, const char *object,
                             const struct ks_h5_shape *shape);
/* Reads a dataset of this shape into values [product of dims]. */
ks_status ks_h5_read(const struct ks_h5 *h5, const char *object, const struct ks_h5_shape *shape,
                     double *values);
/* The same into a new array, which the caller frees. If h5->claimed is set, this only checks the
 * shape and adds the array's bytes to *h5->claimed, and *values becomes NULL. */
ks_status ks_h5_read_new(const struct ks_h5 *h5, const char *object,
                         const struct ks_h5_shape *shape, double **values);
/* Fails with KS_FORMAT if one of the n values is not finite. Accepts NULL, for an array that was
 * not read. */
ks_status ks_h5_expect_finite(const struct ks_h5 *h5, const char *object, size_t n,
                              const double *values);

/* Whether the object exists and has the attribute. */
ks_status ks_h5_has_attribute(const struct ks_h5 *h5, const char *object, const char *name,
                              bool *found);
/* Reads an attribute and converts it to `type`. The caller ends with ks_attribute_clear. */
ks_status ks_h5_read_attribute(const struct ks_h5 *h5, const char *object, const char *name,
                               enum ks_attribute_type type, struct ks_attribute *attribute);
/* Read an integer, which must be at least `low`, and a string, which the caller frees. */
ks_status ks_h5_read_integer(const struct ks_h5 *h5, const char *object, const char *name,
                             int64_t low, int64_t *value);
ks_status ks_h5_read_string(const struct ks_h5 *h5, const char *object, const char *name,
                            char **value);
/* Appends all attributes of an object that are numbers, strings or lists of numbers, ordered by
 * name; other types are skipped. The caller clears them, also after a failure. */
ks_status ks_h5_read_attributes(const struct ks_h5 *h5, const char *object,
                                struct ks_attributes *attributes);
/* The names of all objects in a group, or of all attributes of an object, whatever their types. The
 * object must exist. The caller frees names->name, also after a failure. */
ks_status ks_h5_read_names(const struct ks_h5 *h5, const char *object, bool attributes,
                           struct ks_h5_names *names);

#endif
