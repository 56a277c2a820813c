/* Flax's files: flax.serialization.to_bytes writes nested dictionaries as MessagePack. An array is
 * an extension of type 1 whose content is, again in MessagePack, [shape, name of the type, bytes];
 * type 3, a NumPy scalar, has the same content. An array of more than 1 GiB is a dictionary with
 * `__msgpack_chunked_array__`, `shape` and `chunks`, both of them dictionaries with the keys 0, 1,
 * ... (flax/serialization.py). Names are joined by '/'. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <msgpack.h>

#include "core/memory.h"
#include "import/msgpack_bounds.h"
#include "import/weights.h"
#include "io/text.h"

enum {
    ARRAY = 1,
    SCALAR = 3,
    MOST_CHUNKS = 4096 /* of 1 GiB */
};
static const char CHUNKED[] = "__msgpack_chunked_array__";

/* The values of an array, or one chunk of them. */
struct chunk {
    const unsigned char *bytes; /* in the file's bytes */
    size_t size;
};

struct packed {
    char *bytes; /* the file; owned */
    size_t size;
    msgpack_unpacked tree;
    struct chunk *chunk; /* [n], with room for more; owned. An array's first one is number `at` */
    size_t n, room;
};

static bool is_text(const msgpack_object *o, const char *text)
{
    return o->type == MSGPACK_OBJECT_STR && o->via.str.size == strlen(text) &&
           memcmp(o->via.str.ptr, text, o->via.str.size) == 0;
}

/* The value of a key in a map, or NULL. */
static const msgpack_object *find(const msgpack_object *map, const char *key)
{
    for (uint32_t i = 0; map->type == MSGPACK_OBJECT_MAP && i < map->via.map.size; i++)
        if (is_text(&map->via.map.ptr[i].key, key))
            return &map->via.map.ptr[i].val;
    return NULL;
}

static bool unpack(msgpack_unpacked *tree, const void *bytes, size_t n)
{
    return ks_msgpack_bounded(bytes, n) &&
           msgpack_unpack_next(tree, bytes, n, NULL) == MSGPACK_UNPACK_SUCCESS;
}

/* --- arrays --- */

static bool set_dim(struct ks_stored *s, const msgpack_object *dim)
{
    if (!dim || dim->type != MSGPACK_OBJECT_POSITIVE_INTEGER || s->n_dims == KS_STORED_DIMS)
        return false;
    s->dims[s->n_dims++] = (size_t)dim->via.u64;
    return true;
}

static bool is_content(const msgpack_object *o)
{
    return o->type == MSGPACK_OBJECT_ARRAY && o->via.array.size == 3 &&
           o->via.array.ptr[0].type == MSGPACK_OBJECT_ARRAY &&
           o->via.array.ptr[1].type == MSGPACK_OBJECT_STR &&
           o->via.array.ptr[2].type == MSGPACK_OBJECT_BIN;
}

/* Reads [shape, type, bytes]: sets the shape of s, unless s is NULL, and `type`, and appends the
 * bytes as a chunk. */
static ks_status read_content(struct packed *p, const msgpack_object *ext, struct ks_stored *s,
                              char type[KS_STORED_TYPE], bool *valid)
{
    ks_status status = KS_OK;
    const msgpack_object *part;
    msgpack_unpacked tree;

    *valid = false;
    msgpack_unpacked_init(&tree);
    if (!unpack(&tree, ext->via.ext.ptr, ext->via.ext.size) || !is_content(&tree.data))
        goto done;
    part = tree.data.via.array.ptr;
    snprintf(type, KS_STORED_TYPE, "%.*s", (int)part[1].via.str.size, part[1].via.str.ptr);
    for (uint32_t i = 0; s && i < part[0].via.array.size; i++)
        if (!set_dim(s, &part[0].via.array.ptr[i]))
            goto done;
    KS_GO(ks_grow(p->n, sizeof *p->chunk, &p->room, &p->chunk));
    p->chunk[p->n++] = (struct chunk){(const unsigned char *)part[2].via.bin.ptr,
                                      part[2].via.bin.size};
    *valid = true;
done:
    msgpack_unpacked_destroy(&tree);
    return status;
}

/* The entry i of a dictionary that stands for a list, or NULL. */
static const msgpack_object *entry(const msgpack_object *map, uint32_t i)
{
    char key[16];

    snprintf(key, sizeof key, "%u", (unsigned)i);
    return find(map, key);
}

static ks_status read_chunks(struct packed *p, const msgpack_object *map, struct ks_stored *s,
                             char type[KS_STORED_TYPE], bool *valid)
{
    const msgpack_object *shape = find(map, "shape"), *chunks = find(map, "chunks"), *one;
    char first[KS_STORED_TYPE] = "";

    *valid = false;
    if (!shape || !chunks || shape->type != MSGPACK_OBJECT_MAP ||
        chunks->type != MSGPACK_OBJECT_MAP || chunks->via.map.size == 0 ||
        chunks->via.map.size > MOST_CHUNKS)
        return KS_OK;
    for (uint32_t i = 0; i < shape->via.map.size; i++)
        if (!set_dim(s, entry(shape, i)))
            return KS_OK;
    for (uint32_t i = 0; i < chunks->via.map.size; i++) {
        one = entry(chunks, i);
        if (!one || one->type != MSGPACK_OBJECT_EXT || one->via.ext.type != ARRAY)
            return KS_OK;
        KS_TRY(read_content(p, one, NULL, type, valid));
        if (i == 0)
            memcpy(first, type, sizeof first);
        *valid = *valid && strcmp(first, type) == 0;
        if (!*valid)
            return KS_OK;
    }
    return KS_OK;
}

static ks_status add_array(struct ks_weights *w, const char *name, const msgpack_object *o)
{
    struct packed *p = w->file;
    struct ks_stored s = {.at = p->n};
    char type[KS_STORED_TYPE] = "";
    uint64_t bytes = 0;
    bool valid;

    if (o->type == MSGPACK_OBJECT_EXT)
        KS_TRY(read_content(p, o, &s, type, &valid));
    else
        KS_TRY(read_chunks(p, o, &s, type, &valid));
    if (!valid)
        return ks_fail(KS_FORMAT,
                       "%s: %s: not an array of Flax: expected a shape of at most %d dimensions, "
                       "a type and bytes",
                       w->path, name, KS_STORED_DIMS);
    ks_stored_set_type(&s, type);
    for (size_t i = s.at; i < p->n; i++)
        bytes += p->chunk[i].size;
    KS_TRY(ks_weights_add(w, name, &s));
    return ks_stored_expect_bytes(w, name, &s, bytes);
}

/* --- the tree --- */

static ks_status add_object(struct ks_weights *w, const char *name, const msgpack_object *o);

static ks_status add_map(struct ks_weights *w, const char *name, const msgpack_object *map)
{
    char inner[KS_STORED_NAME];

    for (uint32_t i = 0; i < map->via.map.size; i++) {
        const msgpack_object *key = &map->via.map.ptr[i].key;
        int length = (int)sizeof inner;

        if (key->type != MSGPACK_OBJECT_STR || memchr(key->via.str.ptr, '\0', key->via.str.size))
            return ks_fail(KS_FORMAT, "%s: %s: expected names, found another key", w->path,
                           *name ? name : "the dictionary");
        if (key->via.str.size < sizeof inner)
            length = snprintf(inner, sizeof inner, "%s%s%.*s", name, *name ? "/" : "",
                              (int)key->via.str.size, key->via.str.ptr);
        if (length < 0 || (size_t)length >= sizeof inner)
            return ks_fail(KS_FORMAT, "%s: %.40s...: expected names of at most %d bytes", w->path,
                           name, KS_STORED_NAME - 1);
        KS_TRY(add_object(w, inner, &map->via.map.ptr[i].val));
    }
    return KS_OK;
}

static ks_status add_object(struct ks_weights *w, const char *name, const msgpack_object *o)
{
    struct ks_stored other = {.n_dims = 0};

    if (o->type == MSGPACK_OBJECT_EXT && (o->via.ext.type == ARRAY || o->via.ext.type == SCALAR))
        return add_array(w, name, o);
    if (o->type == MSGPACK_OBJECT_MAP)
        return find(o, CHUNKED) ? add_array(w, name, o) : add_map(w, name, o);
    ks_stored_set_type(&other, "no array");
    return ks_weights_add(w, name, &other);
}

static bool recognizes(const unsigned char *head, size_t n, uint64_t size)
{
    (void)size; /* it starts with a map that is not empty */
    return n > 1 && ((head[0] > 0x80 && head[0] < 0x90) || head[0] == 0xde || head[0] == 0xdf);
}

static ks_status open_file(struct ks_weights *w)
{
    struct packed *p;

    KS_TRY(ks_alloc(1, sizeof *p, &p));
    msgpack_unpacked_init(&p->tree);
    w->file = p;
    KS_TRY(ks_text_read(w->path, &p->bytes, &p->size));
    if (!unpack(&p->tree, p->bytes, p->size) || p->tree.data.type != MSGPACK_OBJECT_MAP)
        return ks_fail(KS_FORMAT,
                       "%s: not a readable file of Flax: expected one complete dictionary in "
                       "MessagePack",
                       w->path);
    return add_map(w, "", &p->tree.data);
}

static ks_status read_values(const struct ks_weights *w, const struct ks_stored *s, double *values)
{
    const size_t size = ks_real_bytes(s->real), n = ks_stored_count(s);
    const struct packed *p = w->file;
    size_t done = 0;

    for (size_t i = s->at; done < n; i++) {
        const size_t now = p->chunk[i].size / size;

        if (now * size != p->chunk[i].size)
            return ks_fail(KS_FORMAT, "%s: %s: a chunk ends within a number", w->path, s->name);
        ks_real_widen(s, now, p->chunk[i].bytes, values + done);
        done += now;
    }
    return KS_OK;
}

static void close_file(struct ks_weights *w)
{
    struct packed *p = w->file;

    if (!p)
        return;
    msgpack_unpacked_destroy(&p->tree);
    free(p->chunk);
    free(p->bytes);
    free(p);
}

const struct ks_weights_format ks_msgpack_format = {.name = "Flax's msgpack",
                                                    .ending = ".msgpack",
                                                    .recognizes = recognizes,
                                                    .open = open_file,
                                                    .read = read_values,
                                                    .close = close_file};
