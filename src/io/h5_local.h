/* Reading with libhdf5 in this process: what the reader process does, and what writing needs to
 * look up in its own image. Callers outside src/io include h5.h. */
#ifndef KS_IO_H5_LOCAL_H
#define KS_IO_H5_LOCAL_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "io/attribute.h"
#include "io/h5_file.h"

/* As ks_h5_has, ks_h5_shape and ks_h5_stored, ks_h5_has_attribute and ks_h5_read_attributes in
 * h5_read.h. */
ks_status ks_h5_local_has(const struct ks_h5 *h5, const char *object, bool *found);
ks_status ks_h5_local_shape(const struct ks_h5 *h5, const char *object, struct ks_h5_shape *shape,
                            enum ks_h5_stored *stored);
ks_status ks_h5_local_has_attribute(const struct ks_h5 *h5, const char *object, const char *name,
                                    bool *found);
ks_status ks_h5_local_attributes(const struct ks_h5 *h5, const char *object,
                                 struct ks_attributes *attributes);
/* The names of a group's objects, or of an object's attributes, at most KS_H5_NAMES of them. The
 * caller frees names->name, also after a failure. */
ks_status ks_h5_local_names(const struct ks_h5 *h5, const char *object, bool attributes,
                            struct ks_h5_names *names);

/* Reads an existing attribute; *known is false if a struct ks_attribute cannot hold its type. The
 * caller clears it. */
ks_status ks_h5_local_attribute(const struct ks_h5 *h5, const char *object, const char *name,
                                struct ks_attribute *attribute, bool *known);

/* Reads the values of a dataset of this shape piece by piece: calls `before` with the piece's bytes
 * before reading it, and `take` with its n values afterwards. */
struct ks_h5_taker {
    void (*before)(size_t bytes, void *context);
    ks_status (*take)(size_t n, const double *values, void *context);
    void *context;
};
ks_status ks_h5_local_values(const struct ks_h5 *h5, const char *object,
                             const struct ks_h5_shape *shape, const struct ks_h5_taker *taker);

/* Fails unless the shape found is the one expected. */
ks_status ks_h5_compare_shape(const struct ks_h5 *h5, const char *object,
                              const struct ks_h5_shape *expected, const struct ks_h5_shape *found);

#endif
