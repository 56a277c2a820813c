/* Arrays in the files of other programs, written byte by byte: NumPy's .npz. */
#ifndef KS_FOREIGN_FILES_H
#define KS_FOREIGN_FILES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zip.h>

#include "test.h"

enum { FOREIGN_NAME = 96, FOREIGN_DIMS = 5 };

struct foreign {
    char name[FOREIGN_NAME];
    const char *type; /* as NumPy writes it: "<f4" */
    size_t n_dims, dims[FOREIGN_DIMS];
    double *values; /* row-major; owned by the list */
    bool first_fastest;
};

struct foreign_list {
    struct foreign list[64];
    size_t n;
};

static inline size_t foreign_count(const struct foreign *a)
{
    size_t n = 1;

    for (size_t i = 0; i < a->n_dims; i++)
        n *= a->dims[i];
    return n;
}

/* Appends an array of zeros, to be filled. */
static inline struct foreign *foreign_add(struct foreign_list *files, const char *name,
                                          const char *type, size_t n_dims, const size_t *dims)
{
    struct foreign *a = &files->list[files->n++];

    assert_true(files->n <= sizeof files->list / sizeof *files->list);
    memset(a, 0, sizeof *a);
    snprintf(a->name, sizeof a->name, "%s", name);
    a->type = type;
    a->n_dims = n_dims;
    if (n_dims > 0)
        memcpy(a->dims, dims, n_dims * sizeof *dims);
    a->values = calloc(foreign_count(a) + 1, sizeof *a->values);
    assert_non_null(a->values);
    return a;
}

static inline struct foreign *foreign_find(struct foreign_list *files, const char *name)
{
    for (size_t i = 0; i < files->n; i++)
        if (strcmp(files->list[i].name, name) == 0)
            return &files->list[i];
    fail_msg("no array %s", name);
    return NULL;
}

static inline void foreign_clear(struct foreign_list *files)
{
    for (size_t i = 0; i < files->n; i++)
        free(files->list[i].values);
    files->n = 0;
}

static inline size_t foreign_size(const struct foreign *a)
{
    return (size_t)(a->type[2] - '0');
}

/* One number in the array's type. Of "<f2" the value must be exact in bfloat16, "<b2", too: a
 * normal number with at most 8 significant bits. */
static inline void foreign_encode(const struct foreign *a, double value, unsigned char *bytes)
{
    const size_t size = foreign_size(a);
    const float narrow = (float)value;
    uint64_t bits = 0;
    uint32_t word;

    memcpy(&word, &narrow, sizeof word);
    if (a->type[1] == 'i' || a->type[1] == 'u')
        bits = (uint64_t)(int64_t)value;
    else if (size == 8)
        memcpy(&bits, &value, sizeof bits);
    else if (size == 4)
        bits = word;
    else if (a->type[1] == 'b')
        bits = word >> 16;
    else if (value != 0)
        bits = (word >> 16 & 0x8000) | ((word >> 23 & 255) - 127 + 15) << 10 | (word >> 13 & 1023);
    for (size_t k = 0; k < size; k++)
        bytes[a->type[0] == '>' ? size - 1 - k : k] = (unsigned char)(bits >> 8 * k);
}

/* The offset in the file of the row-major element i. */
static inline size_t foreign_place(const struct foreign *a, size_t i)
{
    size_t place = 0, stride = 1, index[FOREIGN_DIMS];

    if (!a->first_fastest)
        return i;
    for (size_t k = a->n_dims; k-- > 0; i /= a->dims[k])
        index[k] = i % a->dims[k];
    for (size_t k = 0; k < a->n_dims; k++, stride *= a->dims[k - 1])
        place += index[k] * stride;
    return place;
}

static inline void foreign_values(const struct foreign *a, unsigned char *bytes)
{
    for (size_t i = 0; i < foreign_count(a); i++)
        foreign_encode(a, a->values[i], bytes + foreign_place(a, i) * foreign_size(a));
}

/* --- .npz --- */

/* The bytes of an .npy file; the caller frees. */
static inline unsigned char *npy_bytes(const struct foreign *a, size_t *size)
{
    char header[512], shape[128] = "";
    unsigned char *bytes;
    size_t length;

    for (size_t i = 0; i < a->n_dims; i++)
        snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%s%zu%s", i > 0 ? " " : "",
                 a->dims[i], i + 1 < a->n_dims || a->n_dims == 1 ? "," : "");
    snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': %s, 'shape': (%s), }",
             a->type, a->first_fastest ? "True" : "False", shape);
    length = (strlen(header) + 10 + 1 + 63) / 64 * 64 - 10;
    *size = 10 + length + foreign_count(a) * foreign_size(a);
    bytes = malloc(*size);
    assert_non_null(bytes);
    memcpy(bytes, "\x93NUMPY\1\0", 8);
    bytes[8] = (unsigned char)(length & 255), bytes[9] = (unsigned char)(length >> 8);
    memset(bytes + 10, ' ', length);
    memcpy(bytes + 10, header, strlen(header));
    bytes[10 + length - 1] = '\n';
    foreign_values(a, bytes + 10 + length);
    return bytes;
}

/* Adds a file to an open archive; takes ownership of bytes, from malloc. */
static inline void zip_put(zip_t *zip, const char *name, unsigned char *bytes, size_t size,
                           int method)
{
    zip_source_t *source = zip_source_buffer(zip, bytes, size, 1);
    zip_int64_t at = zip_file_add(zip, name, source, ZIP_FL_ENC_UTF_8);

    assert_true(at >= 0);
    assert_int_equal(zip_set_file_compression(zip, (zip_uint64_t)at, method, 0), 0);
}

static inline void write_npz(const char *path, const struct foreign_list *files, int method)
{
    zip_t *zip = zip_open(path, ZIP_CREATE | ZIP_TRUNCATE, NULL);
    char name[FOREIGN_NAME + 8];

    assert_non_null(zip);
    for (size_t i = 0; i < files->n; i++) {
        size_t size;
        unsigned char *bytes = npy_bytes(&files->list[i], &size);

        snprintf(name, sizeof name, "%s.npy", files->list[i].name);
        zip_put(zip, name, bytes, size, method);
    }
    assert_int_equal(zip_close(zip), 0);
}

#endif
