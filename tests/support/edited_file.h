/* A good checkpoint that a test edits, one edit at a time. */
#ifndef KS_TEST_EDITED_FILE_H
#define KS_TEST_EDITED_FILE_H

#include "io/checkpoint.h"
#include "scratch.h"
#include "test.h"

/* The unedited file. */
struct original {
    const char *path;
    unsigned char *bytes;
    size_t n;
};

static inline struct original keep(const char *path)
{
    struct original o = {.path = path};

    o.bytes = read_bytes(path, &o.n);
    return o;
}

/* The edited file is refused with this message; then restores the unedited file. */
static inline void refused(const struct original *o, const char *words)
{
    struct ks_checkpoint *c;

    assert_fails(ks_checkpoint_read(o->path, &c), KS_FORMAT, words);
    assert_null(c);
    assert_one_line(o->path);
    write_bytes(o->path, o->bytes, o->n);
}

#endif
