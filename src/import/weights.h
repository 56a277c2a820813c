/* Files of other programs that hold named arrays: safetensors, NumPy's .npz, Flax's msgpack, HDF5.
 *
 * Such a file may come from anywhere and may be damaged. So opening it reads names, types and
 * shapes only, each checked against the bytes that the file has, before memory is allocated for
 * what it claims. Values are read array by array, and only those that are asked for.
 *
 * To add a format: a file of this folder with a `const struct ks_weights_format`, and a row of the
 * table in weights.c. */
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
    KS_STORED_SHAPE = 192 /* bytes of a shape in words */
};

/* The types of real numbers that are read. Anything else is KS_NOT_REAL: integers, booleans,
 * complex numbers, text. */
enum ks_real_type { KS_NOT_REAL, KS_FLOAT16, KS_BFLOAT16, KS_FLOAT32, KS_FLOAT64 };

/* One array of a file. */
struct ks_stored {
    char *name;                /* owned                                                        */
    char type[KS_STORED_TYPE]; /* "float32"; of KS_NOT_REAL the word that the file has         */
    enum ks_real_type real;
    bool big_endian;
    bool first_fastest; /* Fortran's order: neighbours in memory differ in the first index */
    size_t n_dims, dims[KS_STORED_DIMS];
    uint64_t at; /* where its values are, in the format's own words */
};

struct ks_weights_format;

struct ks_weights {
    char *path; /* owned */
    const struct ks_weights_format *format;
    uint64_t size;          /* of the file, in bytes                            */
    struct ks_stored *list; /* [n], with room for more; in the file's order. Owned */
    size_t n, room;
    void *file; /* the format's own */
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

/* Opens the file, whose format is known by its content, or else by its name. Fails with KS_IO or
 * KS_FORMAT. The caller ends with ks_weights_close; NULL is fine. */
ks_status ks_weights_open(const char *path, struct ks_weights **weights);
void ks_weights_close(struct ks_weights *w);

/* The array of that name, or NULL. */
const struct ks_stored *ks_weights_find(const struct ks_weights *w, const char *name);
/* Reads an array of real numbers, widened to double, into a new *values, which the caller frees.
 * Fails with KS_FORMAT if it is not of real numbers, or not finite. */
ks_status ks_weights_read(const struct ks_weights *w, const struct ks_stored *s, double **values);

/* The number of elements. */
size_t ks_stored_count(const struct ks_stored *s);
/* Prints "float32 [256, 17]" and returns `text`. */
const char *ks_stored_describe(const struct ks_stored *s, char text[KS_STORED_SHAPE]);
/* Prints "[256, 17]" and returns `text`. */
const char *ks_shape_print(size_t n_dims, const size_t *dims, char text[KS_STORED_SHAPE]);

/* --- for formats --- */

/* Appends an array, whose name is copied. Fails with KS_FORMAT if these are too many, if name or
 * shape are too long, or if the number of elements of at least one byte cannot be addressed. */
ks_status ks_weights_add(struct ks_weights *w, const char *name, const struct ks_stored *s);
/* Fails unless real values of this shape take exactly `bytes`. */
ks_status ks_stored_expect_bytes(const struct ks_weights *w, const char *name,
                                 const struct ks_stored *s, uint64_t bytes);
/* Sets type and real from NumPy's name of a type without byte order, "float32". */
void ks_stored_set_type(struct ks_stored *s, const char *name);
/* Bytes of a number; 0 for KS_NOT_REAL. */
size_t ks_real_bytes(enum ks_real_type type);
/* Widens n numbers as they are in the file. */
void ks_real_widen(const struct ks_stored *s, size_t n, const unsigned char *bytes, double *values);
/* "PATH: cannot be imported: ..." with the line of Python that converts a file of PyTorch's. */
ks_status ks_weights_refuse_pickle(struct ks_weights *w);

extern const struct ks_weights_format ks_npz_format, ks_safetensors_format, ks_msgpack_format,
    ks_hdf5_format;

#endif
