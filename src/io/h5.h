/* A thin layer over HDF5's C API. Every call is checked; every failure is one line that names the
 * file, the object, what was expected and what was found.
 *
 * libhdf5 1.10 trusts the files that it reads: eight wrong bytes can make it crash, loop forever
 * or allocate all memory. So a file from a user is first read by a scout (scout.c). Nothing outside
 * the file itself is read: external links, external storage and virtual datasets are refused.
 *
 * A file is opened once and read into memory as a whole; the scout, libhdf5 in this process, and
 * the checksum get these bytes. Only a file of more than 256 MB is read by its path, each time.
 *
 * Reading accepts any numeric type, width, byte order and storage layout and gives double. Writing
 * gives chunked, shuffled, compressed datasets with Fletcher-32 checksums in HDF5 1.10's format,
 * whose metadata carry checksums too. No time is stored, so equal content gives equal bytes. HDF5
 * is not reentrant: use one thread at a time.
 *
 * An object is named by its absolute path ("/critic/00_dense/kernel"); "/" is the root. */
#ifndef KS_IO_H5_H
#define KS_IO_H5_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <hdf5.h>

#include "core/error.h"
#include "core/memory.h"
#include "io/attribute.h"
#include "io/file.h"

enum {
    KS_H5_DIMS = 4,          /* most dimensions of a dataset                               */
    KS_H5_OBJECT = 256,      /* bytes of an object's path, including the terminating zero  */
    KS_H5_LONGEST = 1 << 20, /* most bytes of a string attribute, numbers of a list        */
    KS_H5_NAME = 128, /* bytes of one name in a list, with the zero; longer names are cut      */
    KS_H5_NAMES = 1 << 14, /* most names in a list                                        */
    KS_H5_SHAPE_TEXT = 128 /* bytes of a shape in words, with the zero                     */
};

/* The newest version of a checkpoint, and of all other formats. A file has the lowest version that
 * has what it uses. */
enum { KS_H5_VERSION = 1, KS_H5_CHECKPOINT_VERSION = 2 };

struct ks_h5 {
    char *path; /* owned */
    hid_t id;   /* libhdf5's handle of the file                                       */
    bool writing;
    bool forbids_plugins; /* reading: counts among the files for which plugins are off          */
    struct ks_file file;  /* writing: the temporary file that is renamed at the end             */
    void *image;          /* the file's bytes; NULL: it is read by its path. Owned              */
    size_t image_size;    /* of the file; writing: allocated                                    */
    struct stat found;    /* reading without an image: the file before it was opened            */
    bool image_failed;    /* writing: the image could not grow for lack of memory               */
    ks_status status;     /* writing: the first failure; nothing is written after it            */
    double *declared;     /* reading: if not NULL, arrays are not read, only the bytes that they
                           * would take are added up here. Not owned */
};

/* How a dataset's numbers are stored. */
enum ks_h5_stored { KS_H5_INTEGERS, KS_H5_REALS, KS_H5_WIDE_REALS /* float64 or more bits */ };
enum ks_h5_type { KS_H5_F32, KS_H5_F64, KS_H5_I64 };

struct ks_h5_shape {
    size_t n_dims, dims[KS_H5_DIMS];
    enum ks_h5_stored
        stored; /* of a dataset that was found; where a shape is expected, any will do */
};

/* Names of the objects in a group, or of the attributes of an object. */
struct ks_h5_names {
    char (*name)[KS_H5_NAME]; /* [n], with room for more; owned */
    size_t n, room;
    ks_status status; /* the failure that ended the list, if any */
};

/* --- files (h5.c) --- */

/* "1.10.8" */
const char *ks_h5_version(void);
/* Lets libhdf5 read h5py's compression "lzf" (lzf.c). KS_RUN if it does not accept the filter. */
ks_status ks_h5_register_lzf(void);

/* Whether the file starts as HDF5 files do. Fails with KS_IO. */
ks_status ks_h5_recognize(const char *path, bool *is);
/* Has the file read by a scout, opens it for reading, and checks its format; format NULL: any HDF5
 * file. Fails with KS_IO or KS_FORMAT. The caller ends with ks_h5_close. */
ks_status ks_h5_open(const char *path, const char *format, struct ks_h5 **h5);
/* The steps of this, for scout.c: reads the file's bytes, lets libhdf5 look at them, and checks the
 * root attributes `format` and `version`. */
ks_status ks_h5_load(const char *path, struct ks_h5 **h5);
ks_status ks_h5_start(struct ks_h5 *h5);
ks_status ks_h5_check_format(const struct ks_h5 *h5, const char *format);
/* The checksum of the bytes that are read from h5. Fails with KS_IO or KS_RUN. */
ks_status ks_h5_sha256(const struct ks_h5 *h5, char text[KS_SHA256_TEXT]);
/* A new file with its `format` and `version`, built in memory. It appears when ks_h5_commit
 * succeeds (KS_FULL, KS_IO otherwise). The caller ends with ks_h5_close in any case. */
ks_status ks_h5_create(const char *path, const char *format, int64_t version, struct ks_h5 **h5);
/* Fails with the file's status, too. */
ks_status ks_h5_commit(struct ks_h5 *h5);
void ks_h5_close(struct ks_h5 *h5); /* frees; NULL is fine */
KS_OWNER(ks_h5_close, struct ks_h5 *)

/* "[3, 6]" */
void ks_h5_print_shape(const struct ks_h5_shape *shape, char text[KS_H5_SHAPE_TEXT]);
/* For h5*.c: closes a handle of any kind unless it is negative. */
void ks_h5_release(hid_t id);
KS_OWNER(ks_h5_release, hid_t)
/* For h5*.c: records "PATH: OBJECT: WHAT (HDF5: its innermost message)"; object NULL: the file
 * itself. Call it directly after the HDF5 call that failed. */
ks_status ks_h5_fail(const struct ks_h5 *h5, ks_status status, const char *object,
                     const char *what);

/* --- reading datasets (h5_read.c) --- */

/* Whether the dataset or group exists. A soft link to nothing counts as absent. A link to another
 * file fails with KS_FORMAT. */
ks_status ks_h5_has(const struct ks_h5 *h5, const char *object, bool *found);

/* The shape of a numeric dataset; fails if it is missing or anything else. */
ks_status ks_h5_shape(const struct ks_h5 *h5, const char *object, struct ks_h5_shape *shape);
/* The shape of an optional dataset: *found is false if no object has this name. */
ks_status ks_h5_find_shape(const struct ks_h5 *h5, const char *object, bool *found,
                           struct ks_h5_shape *shape);
/* Fails unless the dataset has this shape, and if its numbers are stored as integers. Where real
 * numbers belong, integers are a sign of values that were rounded, or of another array. */
ks_status ks_h5_expect_reals(const struct ks_h5 *h5, const char *object,
                             const struct ks_h5_shape *shape);
/* Reads a dataset of this shape into values [product of dims]. */
ks_status ks_h5_read(const struct ks_h5 *h5, const char *object, const struct ks_h5_shape *shape,
                     double *values);
/* Reads a dataset of this shape into a new array, which the caller frees. If h5->declared is set,
 * this only checks the shape and adds the array's bytes to *h5->declared; *values becomes NULL. */
ks_status ks_h5_read_new(const struct ks_h5 *h5, const char *object,
                         const struct ks_h5_shape *shape, double **values);
/* Reads a dataset of this shape as ks_h5_read_new does. Fails with KS_FORMAT if its numbers are
 * stored as integers, or one of them is not finite. */
ks_status ks_h5_read_finite(const struct ks_h5 *h5, const char *object,
                            const struct ks_h5_shape *shape, double **values);
/* Fails with KS_FORMAT if one of the n values is not finite. Accepts NULL, for an array that was
 * not read. */
ks_status ks_h5_expect_finite(const struct ks_h5 *h5, const char *object, size_t n,
                              const double *values);

/* --- reading attributes, and names (h5_attribute.c) --- */

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
 * name; other types are skipped, and an object that does not exist has none. The caller clears
 * them, also after a failure. */
ks_status ks_h5_read_attributes(const struct ks_h5 *h5, const char *object,
                                struct ks_attributes *attributes);
/* The names of all objects in a group, or of all attributes of an object, whatever their types, at
 * most KS_H5_NAMES. The object must exist. The caller clears them, also after a failure. */
ks_status ks_h5_read_names(const struct ks_h5 *h5, const char *object, bool attributes,
                           struct ks_h5_names *names);
void ks_h5_names_clear(struct ks_h5_names *names);

/* Fails with KS_FORMAT unless the names of all objects in the group, or of all attributes of the
 * object, are among `known`, which ends in NULL. The message ends in `by`. An unknown one may be a
 * parameter that the description lacks, such as a bias, or a setting that the analysis would
 * ignore: then another critic would be analyzed. */
ks_status ks_h5_expect_known(const struct ks_h5 *h5, const char *object, bool attributes,
                             const char *const *known, const char *by);

/* --- writing to a file that ks_h5_create has created (h5_write.c). Whoever writes checks nothing:
 * the first failure is kept in h5->status, and ks_h5_commit returns it. --- */

/* Creates a group unless it exists; its parent must exist. */
void ks_h5_group(struct ks_h5 *h5, const char *group);
/* Writes a dataset of this shape; its group must exist. */
void ks_h5_write(struct ks_h5 *h5, const char *object, enum ks_h5_type type,
                 const struct ks_h5_shape *shape, const double *values);
/* As ks_h5_write; fails with KS_NUMBER if a value is not finite, or would not be finite as F32. */
void ks_h5_write_finite(struct ks_h5 *h5, const char *object, enum ks_h5_type type,
                        const struct ks_h5_shape *shape, const double *values);

void ks_h5_write_attribute(struct ks_h5 *h5, const char *object,
                           const struct ks_attribute *attribute);
/* Creates the group `object` first if it does not exist and the list is not empty. Fails with the
 * status of the list, too. */
void ks_h5_write_attributes(struct ks_h5 *h5, const char *object,
                            const struct ks_attributes *attributes);
void ks_h5_write_integer(struct ks_h5 *h5, const char *object, const char *name, int64_t value);
void ks_h5_write_number(struct ks_h5 *h5, const char *object, const char *name, double value);
void ks_h5_write_string(struct ks_h5 *h5, const char *object, const char *name, const char *value);

#endif
