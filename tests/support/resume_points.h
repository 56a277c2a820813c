/* Reads resume points, changes them, and writes them with the right checksum: as another version of
 * the program or another machine would have written them. */
#ifndef KS_POINTS_H
#define KS_POINTS_H

#include "resuming.h"

#include "io/sha256.h"

/* Offsets in a point's header, which is followed by description, state and checksum. */
enum {
    AT_VERSION = 24,
    AT_DESCRIPTION_SIZE = 40,
    AT_STATE_SIZE = 48,
    AT_PROGRESS_SIZE = 56,
    AT_PROGRESS = 104,
    HEADER = 136
};

struct image {
    unsigned char header[HEADER];
    json_t *description;  /* owned */
    unsigned char *state; /* owned */
    size_t state_size;
};

static inline uint64_t header_number(const struct image *p, size_t at)
{
    uint64_t number;

    memcpy(&number, p->header + at, sizeof number);
    return number;
}

static inline void set_header_number(struct image *p, size_t at, uint64_t number)
{
    memcpy(p->header + at, &number, sizeof number);
}

static inline struct image read_point(const char *path)
{
    struct image p;
    size_t size, description_size;
    unsigned char *bytes = read_bytes(path, &size);

    memcpy(p.header, bytes, HEADER);
    description_size = header_number(&p, AT_DESCRIPTION_SIZE);
    p.state_size = header_number(&p, AT_STATE_SIZE);
    assert_int_equal(size, HEADER + description_size + p.state_size + KS_SHA256_BYTES);
    p.description = json_loadb((char *)bytes + HEADER, description_size, 0, NULL);
    assert_non_null(p.description);
    p.state = malloc(p.state_size);
    assert_non_null(p.state);
    memcpy(p.state, bytes + HEADER + description_size, p.state_size);
    free(bytes);
    return p;
}

/* Frees what the image holds. */
static inline void write_point(const char *path, struct image *p)
{
    char *description = json_dumps(p->description, JSON_REAL_PRECISION(15));
    size_t description_size = strlen(description),
           content = HEADER + description_size + p->state_size;
    unsigned char *bytes = malloc(content + KS_SHA256_BYTES);

    assert_non_null(bytes);
    set_header_number(p, AT_DESCRIPTION_SIZE, description_size);
    set_header_number(p, AT_STATE_SIZE, p->state_size);
    memcpy(bytes, p->header, HEADER);
    memcpy(bytes + HEADER, description, description_size);
    memcpy(bytes + HEADER + description_size, p->state, p->state_size);
    assert_ok(ks_sha256(1, &(struct ks_piece){bytes, content}, bytes + content));
    write_bytes(path, bytes, content + KS_SHA256_BYTES);
    json_decref(p->description);
    free(p->state);
    free(description);
    free(bytes);
}

/* The state's sections: a name, the value's size, the value. */
enum { SECTION_NAME = 40, SECTION = SECTION_NAME + 8 };

static inline uint64_t section_size(const struct image *p, size_t at)
{
    uint64_t size;

    memcpy(&size, p->state + at + SECTION_NAME, sizeof size);
    return size;
}

/* The offset of the section of that name in the state. */
static inline size_t section(const struct image *p, const char *name)
{
    size_t at = 0;

    while (at < p->state_size && strcmp((char *)p->state + at, name) != 0)
        at += SECTION + section_size(p, at);
    if (at >= p->state_size)
        fail_msg("no section '%s'", name);
    return at;
}

#endif
