/* An open HDF5 file, and what every h5_*.c file needs of it. Callers outside src/io include h5.h.
 */
#ifndef KS_IO_H5_FILE_H
#define KS_IO_H5_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include <hdf5.h>

#include "core/error.h"
#include "io/file.h"

enum {
    KS_H5_DIMS = 4,          /* most dimensions of a dataset                               */
    KS_H5_OBJECT = 256,      /* bytes of an object's path, including the terminating zero  */
    KS_H5_LONGEST = 1 << 20, /* most bytes of a string attribute, numbers of a list        */
    KS_H5_NAME = 128, /* bytes of one name in a list, with the zero; longer names are cut      */
    KS_H5_NAMES = 1 << 14, /* most names in a list                                        */
    KS_H5_SHAPE_TEXT = 128 /* bytes of a shape in words, with the zero                     */
};

struct ks_h5 {
    char *path; /* owned */
    hid_t id;   /* libhdf5's handle; invalid in a program that reads through `reader` */
    bool writing;
    struct ks_h5_reader *reader; /* reading: the process that reads the file; owned              */
    struct ks_file file;         /* writing: the temporary file that is renamed at the end       */
    void *image;                 /* writing: the new file's bytes, image_room allocated; owned   */
    size_t image_room;
    bool image_failed; /* writing: the image could not grow for lack of memory         */
    double *claimed;   /* reading: if not NULL, arrays are not read, only their bytes are
                        * added up here. Not owned */
};

/* How a dataset's numbers are stored. */
enum ks_h5_stored { KS_H5_INTEGERS, KS_H5_REALS, KS_H5_WIDE_REALS /* float64 or more bits */ };

struct ks_h5_shape {
    size_t n_dims, dims[KS_H5_DIMS];
};

/* "[3, 6]" */
void ks_h5_print_shape(const struct ks_h5_shape *shape, char text[KS_H5_SHAPE_TEXT]);

/* Names of the objects in a group, or of the attributes of an object. */
struct ks_h5_names {
    char (*name)[KS_H5_NAME]; /* [n], with room for more; owned: free() it */
    size_t n, room;
};

/* "1.10.8" */
const char *ks_h5_version(void);

/* Prepares libhdf5 and creates a handle with this path, which opens no file yet. Fails with
 * KS_MEMORY or KS_RUN; the caller frees with ks_h5_file_free. */
ks_status ks_h5_file_new(const char *path, bool writing, struct ks_h5 **h5);
/* Closes h5->id and frees the handle, but ends neither the reader nor the temporary file. */
void ks_h5_file_free(struct ks_h5 *h5);

/* Opens h5->path in this process with libhdf5, for reading: only the reader process calls this. */
ks_status ks_h5_file_open(struct ks_h5 *h5);

/* Records "PATH: OBJECT: WHAT (HDF5: its innermost message)"; object NULL: the file itself. Call it
 * directly after the HDF5 call that failed. */
ks_status ks_h5_fail(const struct ks_h5 *h5, ks_status status, const char *object,
                     const char *what);

#endif
