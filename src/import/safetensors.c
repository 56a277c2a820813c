/* safetensors (github.com/huggingface/safetensors, "Format"): 8 bytes with the length of a header,
 * the header in JSON, then the values. The header has "dtype", "shape" and "data_offsets" for each
 * array. The offsets are those of the first byte and of the byte behind the last one, counted from
 * the end of the header. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "core/memory.h"
#include "import/weights.h"

enum { START = 8, PIECE = 1 << 16 };
static const uint64_t LONGEST_HEADER = (uint64_t)1 << 24;

static uint64_t header_length(const unsigned char *head)
{
    uint64_t length = 0;

    for (int i = START; i-- > 0;)
        length = length << 8 | head[i];
    return length;
}

static bool recognizes(const unsigned char *head, size_t n, uint64_t size)
{
    return n > START && head[START] == '{' && header_length(head) <= size - START;
}

static ks_status fail(const struct ks_weights *w, const char *what)
{
    return ks_fail(KS_FORMAT, "%s: not a readable safetensors file: %s", w->path, what);
}

static void set_type(struct ks_stored *s, const char *dtype)
{
    static const struct {
        const char *dtype, *name;
    } known[] = {{"F16", "float16"}, {"BF16", "bfloat16"}, {"F32", "float32"}, {"F64", "float64"}};

    ks_stored_set_type(s, dtype);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].dtype, dtype) == 0)
            ks_stored_set_type(s, known[i].name);
}

/* Reads a number of bytes or a dimension, which is an integer of at least 0. */
static bool read_size(const json_t *value, uint64_t *size)
{
    const json_int_t number = json_integer_value(value);

    if (!json_is_integer(value) || number < 0)
        return false;
    *size = (uint64_t)number;
    return true;
}

static bool read_shape(const json_t *shape, struct ks_stored *s)
{
    uint64_t dim;

    if (!json_is_array(shape) || json_array_size(shape) > KS_STORED_DIMS)
        return false;
    for (s->n_dims = 0; s->n_dims < json_array_size(shape); s->n_dims++) {
        if (!read_size(json_array_get(shape, s->n_dims), &dim))
            return false;
        s->dims[s->n_dims] = (size_t)dim;
    }
    return true;
}

/* `data` is the place in the file where the values start. */
static ks_status add_array(struct ks_weights *w, const char *name, const json_t *entry,
                           uint64_t data)
{
    const char *dtype = json_string_value(json_object_get(entry, "dtype"));
    const json_t *offsets = json_object_get(entry, "data_offsets");
    struct ks_stored s = {.n_dims = 0};
    uint64_t from, to;

    if (!dtype || !read_shape(json_object_get(entry, "shape"), &s) ||
        !read_size(json_array_get(offsets, 0), &from) ||
        !read_size(json_array_get(offsets, 1), &to))
        return ks_fail(KS_FORMAT,
                       "%s: %s: expected dtype, a shape of at most %d dimensions and "
                       "data_offsets in the header",
                       w->path, name, KS_STORED_DIMS);
    if (from > to || to > w->size - data)
        return ks_fail(KS_FORMAT,
                       "%s: %s: expected offsets from 0 to %llu, the number of bytes behind the "
                       "header, found %llu to %llu",
                       w->path, name, (unsigned long long)(w->size - data),
                       (unsigned long long)from, (unsigned long long)to);
    set_type(&s, dtype);
    s.at = data + from;
    KS_TRY(ks_weights_add(w, name, &s));
    return ks_stored_expect_bytes(w, name, &s, to - from);
}

static ks_status read_header(struct ks_weights *w, FILE *file, char **text, size_t *length)
{
    unsigned char head[START];
    uint64_t n;

    if (fread(head, 1, START, file) != START)
        return fail(w, "it ends in its first 8 bytes");
    n = header_length(head);
    if (n > w->size - START || n > LONGEST_HEADER)
        return fail(w, "its header is longer than the file, or than 16 MiB");
    KS_TRY(ks_alloc((size_t)n + 1, 1, text));
    *length = (size_t)n;
    return fread(*text, 1, *length, file) == *length ? KS_OK : fail(w, "it ends in its header");
}

static ks_status open_file(struct ks_weights *w)
{
    ks_status status = KS_OK;
    json_t *header = NULL, *entry;
    char *text = NULL;
    const char *name;
    json_error_t error;
    size_t length = 0;
    FILE *file = fopen(w->path, "rb");

    w->file = file;
    if (!file)
        return ks_fail(KS_IO, "%s: cannot be opened: %s", w->path, strerror(errno));
    KS_GO(read_header(w, file, &text, &length));
    header = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
    if (!json_is_object(header)) {
        status = fail(w, header ? "its header is not an object of JSON" : error.text);
        goto done;
    }
    json_object_foreach(header, name, entry)
    {
        if (strcmp(name, "__metadata__") != 0)
            KS_GO(add_array(w, name, entry, START + length));
    }
done:
    json_decref(header);
    free(text);
    return status;
}

static ks_status read_values(const struct ks_weights *w, const struct ks_stored *s, double *values)
{
    const size_t size = ks_real_bytes(s->real), n = ks_stored_count(s), most = PIECE / size;
    ks_status status = KS_OK;
    unsigned char *piece = NULL;

    KS_TRY(ks_alloc(PIECE, 1, &piece));
    if (fseeko(w->file, (off_t)s->at, SEEK_SET) != 0)
        KS_GO(ks_fail(KS_IO, "%s: cannot be read: %s", w->path, strerror(errno)));
    for (size_t done = 0; done < n;) {
        const size_t now = n - done < most ? n - done : most;

        if (fread(piece, size, now, w->file) != now)
            KS_GO(ks_fail(KS_IO, "%s: %s: cannot be read", w->path, s->name));
        ks_real_widen(s, now, piece, values + done);
        done += now;
    }
done:
    free(piece);
    return status;
}

static void close_file(struct ks_weights *w)
{
    if (w->file)
        fclose(w->file);
}

const struct ks_weights_format ks_safetensors_format = {.name = "safetensors",
                                                        .ending = ".safetensors",
                                                        .recognizes = recognizes,
                                                        .open = open_file,
                                                        .read = read_values,
                                                        .close = close_file};
