#include "import/weights.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/memory.h"
#include "core/path.h"

static const double SMALL = 64e6; /* the free memory is looked up for more bytes than this */
/* The most numbers of an array: as many doubles as an address space of 47 bits has. The bytes of
 * KS_STORED_ARRAYS such arrays together do not wrap around. */
static const size_t MOST_NUMBERS = (size_t)1 << 44;

/* --- formats --- */

static bool is_pickle(const unsigned char *head, size_t n, uint64_t size)
{
    (void)size;
    return n >= 3 && head[0] == 0x80 && head[1] >= 1 && head[1] <= 5; /* opcode PROTO, version */
}

ks_status ks_weights_refuse_pickle(struct ks_weights *w)
{
    const int stem = (int)strcspn(ks_path_base(w->path), ".");

    return ks_fail(
        KS_FORMAT,
        "%s: a pickle can run any code and is not read; this converts a state_dict: "
        "python3 -c 'import sys, torch, numpy; numpy.savez(sys.argv[2], **{k: v.numpy() "
        "for k, v in torch.load(sys.argv[1], map_location=\"cpu\", weights_only=True).items()})' "
        "%s %.*s.npz",
        w->path, w->path, stem, ks_path_base(w->path));
}

static const struct ks_weights_format pickle = {
    .name = "a pickle", .ending = ".pt", .recognizes = is_pickle, .open = ks_weights_refuse_pickle};
static const struct ks_weights_format pth = {.name = "a pickle",
                                             .ending = ".pth",
                                             .recognizes = is_pickle,
                                             .open = ks_weights_refuse_pickle};

/* The order matters. A safetensors file starts with the length of its header, which can look like a
 * pickle or like a map of MessagePack. The signature of HDF5 looks like such a map, too. */
enum { FORMATS = 6 };
static const struct ks_weights_format *const formats[FORMATS] = {
    &ks_npz_format, &ks_safetensors_format, &ks_hdf5_format, &pickle, &pth, &ks_msgpack_format};

static const struct ks_weights_format *find_format(const char *path, const unsigned char *head,
                                                   size_t n, uint64_t size)
{
    for (size_t i = 0; i < FORMATS; i++)
        if (formats[i]->recognizes(head, n, size))
            return formats[i];
    for (size_t i = 0; i < FORMATS; i++)
        if (ks_path_ends(path, formats[i]->ending))
            return formats[i];
    return NULL;
}

/* --- opening --- */

static ks_status read_head(struct ks_weights *w, unsigned char *head, size_t most, size_t *n)
{
    struct stat info;
    FILE *file;

    if (stat(w->path, &info) != 0)
        return ks_fail(KS_IO, "%s: cannot be opened: %s", w->path, strerror(errno));
    if (!S_ISREG(info.st_mode))
        return ks_fail(KS_IO, "%s: expected a file, found a folder or a device", w->path);
    w->size = (uint64_t)info.st_size;
    file = fopen(w->path, "rb");
    if (!file)
        return ks_fail(KS_IO, "%s: cannot be opened: %s", w->path, strerror(errno));
    *n = fread(head, 1, most, file);
    fclose(file);
    return KS_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static ks_status refuse_doubles(const struct ks_weights *w)
{
    ks_status status = KS_OK;
    const char **names = NULL;

    KS_TRY(ks_alloc(w->n, sizeof *names, &names));
    for (size_t i = 0; i < w->n; i++)
        names[i] = w->list[i].name;
    qsort(names, w->n, sizeof *names, by_name);
    for (size_t i = 1; i < w->n && status == KS_OK; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            status = ks_fail(KS_FORMAT, "%s: two arrays have the name %s", w->path, names[i]);
    free(names);
    return status;
}

ks_status ks_weights_open(const char *path, struct ks_weights **weights)
{
    unsigned char head[64] = {0};
    ks_status status = KS_OK;
    struct ks_weights *w = NULL;
    size_t n = 0;

    *weights = NULL;
    KS_TRY(ks_alloc(1, sizeof *w, &w));
    KS_GO(ks_copy_string(path, &w->path));
    KS_GO(read_head(w, head, sizeof head, &n));
    w->format = find_format(path, head, n, w->size);
    if (!w->format) {
        status = ks_fail(KS_FORMAT,
                         "%s: expected a file of safetensors, NumPy (.npz), Flax (.msgpack) or "
                         "HDF5 (.h5), found something else",
                         path);
        goto done;
    }
    KS_GO(w->format->open(w));
    KS_GO(refuse_doubles(w));
    *weights = w, w = NULL;
done:
    ks_weights_close(w);
    return status;
}

void ks_weights_close(struct ks_weights *w)
{
    if (!w)
        return;
    if (w->format && w->format->close)
        w->format->close(w);
    for (size_t i = 0; i < w->n; i++)
        free(w->list[i].name);
    free(w->list);
    free(w->path);
    free(w);
}

/* --- arrays --- */

const struct ks_stored *ks_weights_find(const struct ks_weights *w, const char *name)
{
    for (size_t i = 0; i < w->n; i++)
        if (strcmp(w->list[i].name, name) == 0)
            return &w->list[i];
    return NULL;
}

size_t ks_stored_count(const struct ks_stored *s)
{
    size_t n = 1;

    for (size_t i = 0; i < s->n_dims; i++)
        n *= s->dims[i];
    return n;
}

const char *ks_shape_print(size_t n_dims, const size_t *dims, char text[KS_STORED_SHAPE])
{
    size_t at = (size_t)snprintf(text, KS_STORED_SHAPE, "[");

    for (size_t i = 0; i < n_dims; i++)
        at += (size_t)snprintf(text + at, KS_STORED_SHAPE - at, "%s%zu", i > 0 ? ", " : "",
                               dims[i]);
    snprintf(text + at, KS_STORED_SHAPE - at, "]");
    return text;
}

const char *ks_stored_describe(const struct ks_stored *s, char text[KS_STORED_SHAPE])
{
    char shape[KS_STORED_SHAPE];

    /* All 8 dimensions fit with 20 digits each. A long type is cut off. */
    snprintf(text, KS_STORED_SHAPE, "%.10s %.180s", s->type,
             ks_shape_print(s->n_dims, s->dims, shape));
    return text;
}

ks_status ks_weights_add(struct ks_weights *w, const char *name, const struct ks_stored *s)
{
    struct ks_stored *at;
    size_t left = MOST_NUMBERS;

    if (w->n == KS_STORED_ARRAYS)
        return ks_fail(KS_FORMAT, "%s: expected at most %d arrays", w->path, KS_STORED_ARRAYS);
    if (strlen(name) >= KS_STORED_NAME)
        return ks_fail(KS_FORMAT, "%s: %.40s...: expected a name of at most %d bytes", w->path,
                       name, KS_STORED_NAME - 1);
    for (size_t i = 0; i < s->n_dims; i++) {
        if (s->dims[i] > left)
            return ks_fail(KS_FORMAT, "%s: %s: more numbers than can be addressed", w->path, name);
        left /= s->dims[i] > 0 ? s->dims[i] : 1;
    }
    KS_TRY(ks_grow(w->n, sizeof *w->list, &w->room, &w->list));
    at = &w->list[w->n];
    *at = *s;
    KS_TRY(ks_copy_string(name, &at->name));
    w->n++;
    return KS_OK;
}

ks_status ks_stored_expect_bytes(const struct ks_weights *w, const char *name,
                                 const struct ks_stored *s, uint64_t bytes)
{
    const double expected = (double)ks_stored_count(s) * (double)ks_real_bytes(s->real);
    char words[KS_STORED_SHAPE];

    if (s->real == KS_NOT_REAL || (double)bytes == expected)
        return KS_OK;
    return ks_fail(KS_FORMAT, "%s: %s: expected %.0f bytes for %s, found %llu", w->path, name,
                   expected, ks_stored_describe(s, words), (unsigned long long)bytes);
}

ks_status ks_weights_expect_memory(const struct ks_weights *w, const char *what, double bytes)
{
    const double left = bytes > SMALL ? (double)ks_memory_available("", 1) : bytes;

    if (left > 0 && bytes > left)
        return ks_fail(KS_MEMORY, "%s: %s: expected at least %.3g GB of free memory, found %.3g GB",
                       w->path, what, bytes / 1e9, left / 1e9);
    return KS_OK;
}

ks_status ks_weights_read(const struct ks_weights *w, const struct ks_stored *s, double **out)
{
    const size_t n = ks_stored_count(s);
    ks_status status = KS_OK;
    double *values = NULL;

    *out = NULL;
    if (s->real == KS_NOT_REAL)
        return ks_fail(KS_FORMAT, "%s: %s: expected real numbers, found %s", w->path, s->name,
                       s->type);
    KS_TRY(ks_weights_expect_memory(w, s->name, (double)n * sizeof *values));
    KS_GO(ks_alloc(n, sizeof *values, &values));
    KS_GO(w->format->read(w, s, values));
    for (size_t i = 0; i < n; i++)
        if (!isfinite(values[i]))
            KS_GO(ks_fail(KS_FORMAT, "%s: %s: expected finite numbers, found %g at element %zu",
                          w->path, s->name, values[i], i));
    *out = values, values = NULL;
done:
    free(values);
    return status;
}
