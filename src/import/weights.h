/* Files of other programs with named arrays: safetensors, NumPy's .npz, Flax's msgpack, HDF5.
 *
 * Such a file may come from anywhere, and it may be damaged or made to do harm. Opening it reads
 * only names, types and shapes, and compares them with the bytes that the file has. Memory for
 * values is allocated later, array by array, and only for arrays that are asked for.
 *
 * To add a format, write a file in this folder that defines a `const struct ks_weights_format`, and
 * add it to the table in weights.c. */
#ifndef KS_IMPORT_WEIGHTS_H
#define KS_IMPORT_WEIGHTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

enum {
    KS_STORED_ARRAYS = 1 << 16, /* most arrays of a file                   */
    KS_STORED_DIMS = 8,
    KS_STORED_TYPE = 24,
    KS_STORED_NAME = 512, /* most bytes of a name, with the terminating zero */
    KS_STORED_SHAPE = 192 /* bytes of a shape in words, with the terminating zero */
};

/* The types of real numbers that are read. Integers, booleans, complex numbers, text and everything
 * else are KS_NOT_REAL. */
enum ks_real_type { KS_NOT_REAL, KS_FLOAT16, KS_BFLOAT16, KS_FLOAT32, KS_FLOAT64 };

/* One array of a file. */
struct ks_stored {
    char *name;                /* owned                                                        */
    char type[KS_STORED_TYPE]; /* "float32"; for KS_NOT_REAL the word that the file has        */
    enum ks_real_type real;
    bool big_endian;
    bool first_fastest; /* Fortran's order: neighbours in memory differ in the first index */
    size_t n_dims, dims[KS_STORED_DIMS];
    uint64_t at; /* where its values are; each format has its own meaning of it */
};

struct ks_weights_format;

struct ks_weights {
    char *path; /* owned */
    const struct ks_weights_format *format;
    uint64_t size;          /* of the file, in bytes                            */
    struct ks_stored *list; /* [n], with room for more; in the file's order. Owned */
    size_t n, room;
    void *file; /* what the format keeps open; owned */
};

struct ks_weights_format {
    const char *name, *ending; /* "a NumPy archive", ".npz" */
    /* Whether a file that starts with head[n] and has `size` bytes in all is of this format. */
    bool (*recognizes)(const unsigned char *head, size_t n, uint64_t size);
    ks_status (*open)(struct ks_weights *w);
    /* Sets values [ks_stored_count(s)], in the order of the file. */
    ks_status (*read)(const struct ks_weights *w, const struct ks_stored *s, double *values);
    void (*close)(struct ks_weights *w); /* frees `file`, which may be NULL */
};

/* Opens a file. Its content decides which format it has, or if that does not, its name. Fails with
 * KS_IO or KS_FORMAT. The caller ends with ks_weights_close, which accepts NULL. */
ks_status ks_weights_open(const char *path, struct ks_weights **weights);
void ks_weights_close(struct ks_weights *w);

/* The array of that name, or NULL. */
const struct ks_stored *ks_weights_find(const struct ks_weights *w, const char *name);
/* Reads an array of real numbers as doubles, in the order of the file, into a new *values, which
 * the caller frees. Fails with KS_FORMAT if the array has no real numbers or one that is not
 * finite. */
ks_status ks_weights_read(const struct ks_weights *w, const struct ks_stored *s, double **values);
/* Fails with KS_MEMORY if so many bytes for `what` are more than the memory that is free. To be
 * called before memory is allocated for sizes that the file claims. */
ks_status ks_weights_expect_memory(const struct ks_weights *w, const char *what, double bytes);

/* The number of elements. */
size_t ks_stored_count(const struct ks_stored *s);
/* Prints "float32 [256, 17]" and returns `text`. */
const char *ks_stored_describe(const struct ks_stored *s, char text[KS_STORED_SHAPE]);
/* Prints "[256, 17]" and returns `text`. */
const char *ks_shape_print(size_t n_dims, const size_t *dims, char text[KS_STORED_SHAPE]);

/* --- for formats --- */

/* Appends an array and copies its name. Fails with KS_FORMAT if the file has too many arrays, if
 * the name is too long, or if the elements are more than the doubles that a process can address. */
ks_status ks_weights_add(struct ks_weights *w, const char *name, const struct ks_stored *s);
/* Fails unless real numbers of this shape take exactly `bytes`. */
ks_status ks_stored_expect_bytes(const struct ks_weights *w, const char *name,
                                 const struct ks_stored *s, uint64_t bytes);
/* Sets `type` and `real` from NumPy's name of a type without byte order, such as "float32". */
void ks_stored_set_type(struct ks_stored *s, const char *name);
/* Bytes of a number; 0 for KS_NOT_REAL. */
size_t ks_real_bytes(enum ks_real_type type);
/* Converts n numbers from the bytes of the file to double. */
void ks_real_widen(const struct ks_stored *s, size_t n, const unsigned char *bytes, double *values);
/* Fails with KS_FORMAT and the line of Python that converts a file of PyTorch. */
ks_status ks_weights_refuse_pickle(struct ks_weights *w);

extern const struct ks_weights_format ks_npz_format, ks_safetensors_format, ks_msgpack_format,
    ks_hdf5_format;

#endif
