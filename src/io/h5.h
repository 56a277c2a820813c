/* A thin layer over HDF5's C API: every call checked, every failure one line that names the file,
 * the object, what was expected and what was found.
 *
 * Files are read in a process of their own, which may crash or hang on a damaged one: that, too, is
 * a failure with one line (h5_reader.h). What lies outside the file itself is not read: external
 * links, external storage and virtual datasets are refused.
 *
 * Reading takes any numeric type, width, byte order and storage layout and gives double. Writing
 * gives chunked, shuffled, compressed datasets with Fletcher-32 checksums, in HDF5 1.10's format,
 * whose metadata carry checksums too; no time is stored, so equal content gives equal bytes. HDF5
 * is not reentrant: one thread at a time. */
#ifndef KS_IO_H5_H
#define KS_IO_H5_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hdf5.h>

#include "core/error.h"
#include "io/attribute.h"
#include "io/file.h"

enum { KS_H5_RANK = 4, KS_H5_VERSION = 1 };

struct ks_h5 {
    char *path; /* owned */
    hid_t id;   /* writing: of libhdf5 */
    bool writing;
    struct ks_h5_reader *reader; /* reading: the process that does it; owned           */
    struct ks_file file;         /* writing: where the file will appear                    */
    void *image;                 /* writing: its bytes, with room for image_room; owned    */
    size_t image_room;
    bool image_failed; /* there was no memory for them                           */
    double *claimed;   /* reading: where the bytes of all arrays are added up, which are then not
                        * read; NULL: they are read. Not owned */
};

struct ks_h5_shape {
    size_t rank, dims[KS_H5_RANK];
};

enum ks_h5_type { KS_H5_F32, KS_H5_F64, KS_H5_I64 };

/* "1.10.8" */
const char *ks_h5_version(void);

/* Opens for reading and checks the root attributes `format` and `version`; format NULL: any HDF5
 * file. Fails with KS_IO or KS_FORMAT. The caller ends with ks_h5_close. */
ks_status ks_h5_open(const char *path, const char *format, struct ks_h5 **h5);
/* A new file, built in memory, with its `format` and `version`. It appears when ks_h5_commit
 * succeeds (KS_FULL, KS_IO otherwise); the caller ends with ks_h5_close in any case. */
ks_status ks_h5_create(const char *path, const char *format, struct ks_h5 **h5);
ks_status ks_h5_commit(struct ks_h5 *h5);
void ks_h5_close(struct ks_h5 *h5); /* frees; NULL is fine */

/* An absolute path leads to a dataset or a group. Soft links that lead nowhere count as absent;
 * other links out of the file fail with KS_FORMAT. */
ks_status ks_h5_has(const struct ks_h5 *h5, const char *object, bool *there);

/* The shape of a numeric dataset; fails where it is missing or something else. */
ks_status ks_h5_shape(const struct ks_h5 *h5, const char *object, struct ks_h5_shape *shape);
/* Fails unless the dataset has this shape. */
ks_status ks_h5_expect_shape(const struct ks_h5 *h5, const char *object,
                             const struct ks_h5_shape *shape);
/* Reads a dataset of this shape into values [product of dims]. */
ks_status ks_h5_read(const struct ks_h5 *h5, const char *object, const struct ks_h5_shape *shape,
                     double *values);
/* The same into a fresh array, which the caller frees. Where h5->claimed is not NULL it only checks
 * the shape, and adds the array's bytes there; *values is NULL. */
ks_status ks_h5_read_new(const struct ks_h5 *h5, const char *object,
                         const struct ks_h5_shape *shape, double **values);
/* Fails with KS_FORMAT where one of values [n] is not finite; NULL, of an array that was not read,
 * is fine. */
ks_status ks_h5_expect_finite(const struct ks_h5 *h5, const char *object, size_t n,
                              const double *values);

/* Creates a group unless it is there; its parent exists. */
ks_status ks_h5_group(struct ks_h5 *h5, const char *group);
/* Writes a dataset of this shape; its group exists. */
ks_status ks_h5_write(struct ks_h5 *h5, const char *object, enum ks_h5_type type,
                      const struct ks_h5_shape *shape, const double *values);
/* The same; fails with KS_NUMBER where a value is not finite, or would not be in F32. */
ks_status ks_h5_write_finite(struct ks_h5 *h5, const char *object, enum ks_h5_type type,
                             const struct ks_h5_shape *shape, const double *values);

/* Attributes. `object` is "/" for the root. */
ks_status ks_h5_has_attribute(const struct ks_h5 *h5, const char *object, const char *name,
                              bool *there);
/* Reads one and converts it to `type`; the caller clears it. */
ks_status ks_h5_read_attribute(const struct ks_h5 *h5, const char *object, const char *name,
                               enum ks_attribute_type type, struct ks_attribute *attribute);
ks_status ks_h5_read_integer(const struct ks_h5 *h5, const char *object, const char *name,
                             int64_t low, int64_t *value);
ks_status ks_h5_read_string(const struct ks_h5 *h5, const char *object, const char *name,
                            char **value);
/* Appends all of an object that are numbers, strings or lists of numbers, by name; others are left
 * out. The caller clears them, also after a failure. */
ks_status ks_h5_read_attributes(const struct ks_h5 *h5, const char *object,
                                struct ks_attributes *attributes);
ks_status ks_h5_write_attribute(struct ks_h5 *h5, const char *object,
                                const struct ks_attribute *attribute);
ks_status ks_h5_write_attributes(struct ks_h5 *h5, const char *object,
                                 const struct ks_attributes *attributes);
ks_status ks_h5_write_integer(struct ks_h5 *h5, const char *object, const char *name,
                              int64_t value);
ks_status ks_h5_write_number(struct ks_h5 *h5, const char *object, const char *name, double value);
ks_status ks_h5_write_string(struct ks_h5 *h5, const char *object, const char *name,
                             const char *value);

/* For the functions above: records "PATH: OBJECT: what (HDF5: its innermost message)"; object NULL:
 * the file itself. Called directly after the HDF5 call that failed. */
ks_status ks_h5_fail(const struct ks_h5 *h5, ks_status status, const char *object,
                     const char *what);

#endif
