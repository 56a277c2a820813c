/* The files of foreign_files.h as safetensors and as Flax's msgpack. */
#ifndef KS_FOREIGN_FORMATS_H
#define KS_FOREIGN_FORMATS_H

#include <msgpack.h>

#include "foreign_files.h"

static inline const char *foreign_word(const struct foreign *a, bool upper)
{
    static const struct {
        const char *type, *upper, *lower;
    } words[] = {{"<f2", "F16", "float16"}, {"<b2", "BF16", "bfloat16"}, {"<f4", "F32", "float32"},
                 {"<f8", "F64", "float64"}, {"<i8", "I64", "int64"},     {"<i4", "I32", "int32"}};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i].type, a->type) == 0)
            return upper ? words[i].upper : words[i].lower;
    fail_msg("no word for %s", a->type);
    return "";
}

/* The bytes of all values; the caller frees. */
static inline unsigned char *foreign_bytes(const struct foreign *a, size_t *size)
{
    unsigned char *bytes = malloc(foreign_count(a) * foreign_size(a) + 1);

    assert_non_null(bytes);
    *size = foreign_count(a) * foreign_size(a);
    foreign_values(a, bytes);
    return bytes;
}

static inline void put(FILE *file, const void *bytes, size_t size)
{
    assert_int_equal(fwrite(bytes, 1, size, file), size);
}

/* The header is padded with spaces, as the format allows, so that its length starts the file as a
 * pickle starts. */
static inline void write_safetensors(const char *path, const struct foreign_list *files)
{
    static char header[1 << 16];
    FILE *file = fopen(path, "wb");
    size_t used = (size_t)snprintf(header, sizeof header, "{\"__metadata__\":{\"format\":\"pt\"}");
    size_t at = 0, size;
    unsigned char length[8] = {0};

    assert_non_null(file);
    for (size_t i = 0; i < files->n; i++) {
        const struct foreign *a = &files->list[i];
        const size_t end = at + foreign_count(a) * foreign_size(a);

        used += (size_t)snprintf(header + used, sizeof header - used,
                                 ",\"%s\":{\"dtype\":\"%s\",\"shape\":[", a->name,
                                 foreign_word(a, true));
        for (size_t k = 0; k < a->n_dims; k++)
            used += (size_t)snprintf(header + used, sizeof header - used, "%s%zu", k ? "," : "",
                                     a->dims[k]);
        used += (size_t)snprintf(header + used, sizeof header - used,
                                 "],\"data_offsets\":[%zu,%zu]}", at, end);
        at = end;
    }
    used += (size_t)snprintf(header + used, sizeof header - used, "}");
    for (size_t padded = (used + 1023) / 1024 * 1024 + 0x80; used < padded; used++)
        header[used] = ' ';
    for (int k = 0; k < 8; k++)
        length[k] = (unsigned char)(used >> 8 * k);
    put(file, length, 8);
    put(file, header, used);
    for (size_t i = 0; i < files->n; i++) {
        unsigned char *bytes = foreign_bytes(&files->list[i], &size);

        put(file, bytes, size);
        free(bytes);
    }
    assert_int_equal(fclose(file), 0);
}

/* --- msgpack --- */

static inline void pack_text(msgpack_packer *pk, const char *text)
{
    msgpack_pack_str(pk, strlen(text));
    msgpack_pack_str_body(pk, text, strlen(text));
}

/* An extension of type 1: [shape, type, bytes]. */
static inline void pack_content(msgpack_packer *pk, const struct foreign *a, size_t n_dims,
                                const size_t *dims, const unsigned char *bytes, size_t size)
{
    msgpack_sbuffer inner;
    msgpack_packer content;

    msgpack_sbuffer_init(&inner);
    msgpack_packer_init(&content, &inner, msgpack_sbuffer_write);
    msgpack_pack_array(&content, 3);
    msgpack_pack_array(&content, n_dims);
    for (size_t i = 0; i < n_dims; i++)
        msgpack_pack_uint64(&content, dims[i]);
    pack_text(&content, foreign_word(a, false));
    msgpack_pack_bin(&content, size);
    msgpack_pack_bin_body(&content, bytes, size);
    msgpack_pack_ext(pk, inner.size, 1);
    msgpack_pack_ext_body(pk, inner.data, inner.size);
    msgpack_sbuffer_destroy(&inner);
}

/* Chunks of `most` numbers, as Flax writes arrays of more than 1 GiB. */
static inline void pack_chunks(msgpack_packer *pk, const struct foreign *a,
                               const unsigned char *bytes, size_t most)
{
    const size_t n = foreign_count(a), size = foreign_size(a);
    char key[24];

    msgpack_pack_map(pk, 3);
    pack_text(pk, "__msgpack_chunked_array__");
    msgpack_pack_true(pk);
    pack_text(pk, "shape");
    msgpack_pack_map(pk, a->n_dims);
    for (size_t i = 0; i < a->n_dims; i++) {
        snprintf(key, sizeof key, "%zu", i);
        pack_text(pk, key);
        msgpack_pack_uint64(pk, a->dims[i]);
    }
    pack_text(pk, "chunks");
    msgpack_pack_map(pk, (n + most - 1) / most);
    for (size_t i = 0; i * most < n; i++) {
        const size_t now = n - i * most < most ? n - i * most : most;

        snprintf(key, sizeof key, "%zu", i);
        pack_text(pk, key);
        pack_content(pk, a, 1, &now, bytes + i * most * size, now * size);
    }
}

/* {"params": {NAME: array, ...}, "step": 3}. Arrays of more than `most` numbers are in chunks. */
static inline void write_msgpack(const char *path, const struct foreign_list *files, size_t most)
{
    msgpack_sbuffer buffer;
    msgpack_packer pk;
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    msgpack_sbuffer_init(&buffer);
    msgpack_packer_init(&pk, &buffer, msgpack_sbuffer_write);
    msgpack_pack_map(&pk, 2);
    pack_text(&pk, "params");
    msgpack_pack_map(&pk, files->n);
    for (size_t i = 0; i < files->n; i++) {
        const struct foreign *a = &files->list[i];
        size_t size;
        unsigned char *bytes = foreign_bytes(a, &size);

        pack_text(&pk, a->name);
        if (foreign_count(a) > most)
            pack_chunks(&pk, a, bytes, most);
        else
            pack_content(&pk, a, a->n_dims, a->dims, bytes, size);
        free(bytes);
    }
    pack_text(&pk, "step");
    msgpack_pack_int(&pk, 3);
    put(file, buffer.data, buffer.size);
    msgpack_sbuffer_destroy(&buffer);
    assert_int_equal(fclose(file), 0);
}

#endif
