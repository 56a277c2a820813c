/* Writing to a file that ks_h5_create has created. Callers outside src/io include h5.h. */
#ifndef KS_IO_H5_WRITE_H
#define KS_IO_H5_WRITE_H

#include <stdint.h>

#include "core/error.h"
#include "io/attribute.h"
#include "io/h5_file.h"

enum ks_h5_type { KS_H5_F32, KS_H5_F64, KS_H5_I64 };

/* Creates a group unless it exists; its parent must exist. */
ks_status ks_h5_group(struct ks_h5 *h5, const char *group);
/* Writes a dataset of this shape; its group must exist. */
ks_status ks_h5_write(struct ks_h5 *h5, const char *object, enum ks_h5_type type,
                      const struct ks_h5_shape *shape, const double *values);
/* The same; fails with KS_NUMBER if a value is not finite, or would not be finite as F32. */
ks_status ks_h5_write_finite(struct ks_h5 *h5, const char *object, enum ks_h5_type type,
                             const struct ks_h5_shape *shape, const double *values);

ks_status ks_h5_write_attribute(struct ks_h5 *h5, const char *object,
                                const struct ks_attribute *attribute);
ks_status ks_h5_write_attributes(struct ks_h5 *h5, const char *object,
                                 const struct ks_attributes *attributes);
ks_status ks_h5_write_integer(struct ks_h5 *h5, const char *object, const char *name,
                              int64_t value);
ks_status ks_h5_write_number(struct ks_h5 *h5, const char *object, const char *name, double value);
ks_status ks_h5_write_string(struct ks_h5 *h5, const char *object, const char *name,
                             const char *value);

#endif
