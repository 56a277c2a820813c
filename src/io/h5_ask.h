/* One function for each question to the reader process (h5_reader.h). For h5_read.c only. The
 * functions of the same names in h5_read.h and h5_local.h are documented there. */
#ifndef KS_IO_H5_ASK_H
#define KS_IO_H5_ASK_H

#include <stdbool.h>

#include "core/error.h"
#include "io/attribute.h"
#include "io/h5_file.h"

ks_status ks_h5_ask_has(const struct ks_h5 *h5, const char *object, bool *found);
ks_status ks_h5_ask_shape(const struct ks_h5 *h5, const char *object, struct ks_h5_shape *shape,
                          enum ks_h5_stored *stored);
ks_status ks_h5_ask_values(const struct ks_h5 *h5, const char *object,
                           const struct ks_h5_shape *shape, double *values);
ks_status ks_h5_ask_has_attribute(const struct ks_h5 *h5, const char *object, const char *name,
                                  bool *found);
ks_status ks_h5_ask_attribute(const struct ks_h5 *h5, const char *object, const char *name,
                              struct ks_attribute *attribute, bool *known);
ks_status ks_h5_ask_attributes(const struct ks_h5 *h5, const char *object,
                               struct ks_attributes *attributes);
ks_status ks_h5_ask_names(const struct ks_h5 *h5, const char *object, bool attributes,
                          struct ks_h5_names *names);

#endif
