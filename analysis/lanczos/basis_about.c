#include "lanczos/basis_about.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "io/sha256.h"
#include "operators/team.h"

static const char MAGIC[] = "kappascope-basis";
enum {
    MAGIC_BYTES = sizeof MAGIC - 1,
    START_BYTES = MAGIC_BYTES + sizeof(uint64_t),
    VERSION = 1,
    LONGEST = 1 << 16, /* bytes of a fingerprint, as in basis.c                */
    NUMBERS = 24       /* step, alpha and beta, in front of the vector         */
};

struct reading {
    FILE *file;
    const char *path;
    unsigned char header[KS_SHA256_BYTES]; /* the digest of the header, in that of every step */
};

static bool read_bytes(struct reading *r, void *bytes, size_t size)
{
    return fread(bytes, 1, size, r->file) == size;
}

static ks_status damaged(const struct reading *r)
{
    return ks_fail(KS_FORMAT, "%s: expected a Lanczos basis file, found a damaged header", r->path);
}

static ks_status read_header(struct reading *r, struct ks_basis_about *about)
{
    unsigned char start[START_BYTES], stored[KS_SHA256_BYTES];
    uint64_t length;

    if (!read_bytes(r, start, sizeof start) || memcmp(start, MAGIC, MAGIC_BYTES) != 0)
        return ks_fail(KS_FORMAT, "%s: not a Lanczos basis file", r->path);
    memcpy(&length, start + MAGIC_BYTES, sizeof length);
    if (length > LONGEST)
        return damaged(r);
    KS_TRY(ks_alloc(length + 1, 1, &about->fingerprint));
    if (!read_bytes(r, about->fingerprint, length) || !read_bytes(r, stored, sizeof stored))
        return damaged(r);
    KS_TRY(ks_sha256(2, (struct ks_piece[]){{start, START_BYTES}, {about->fingerprint, length}},
                     r->header));
    return memcmp(stored, r->header, sizeof stored) == 0 ? KS_OK : damaged(r);
}

/* The value of a line "NAME VALUE" of the fingerprint; "" if there is none. */
static const char *value_of(const char *fingerprint, const char *name)
{
    const size_t length = strlen(name);

    for (const char *line = fingerprint; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, length) == 0 && line[length] == ' ')
            return line + length + 1;
    }
    return "";
}

/* The numbers of a vector in this file follow from the dimension and the rank. */
static ks_status find_sizes(const struct reading *r, struct ks_basis_about *about)
{
    struct ks_team team = {.rank = 0, .size = 1};
    size_t n = 0, first;
    int version = 0;

    if (sscanf(value_of(about->fingerprint, "format"), "%d", &version) != 1 || version != VERSION)
        return ks_fail(KS_FORMAT, "%s: expected format %d, found %d", r->path, VERSION, version);
    if (sscanf(value_of(about->fingerprint, "dimension"), "%zu", &n) != 1 || n == 0 ||
        n > INT32_MAX)
        return damaged(r);
    if (sscanf(value_of(about->fingerprint, "process"), "%d of %d", &team.rank, &team.size) != 2 ||
        team.rank < 1 || team.rank > team.size)
        return damaged(r);
    team.rank--;
    ks_team_slice(&team, n, &first, &about->length);
    about->number_bytes = strncmp(value_of(about->fingerprint, "basis_precision"), "f32", 3) == 0
                              ? 4
                              : 8;
    return KS_OK;
}

/* Reads the next step into `record`; *valid: whether it is complete and undamaged. */
static ks_status read_step(struct reading *r, size_t size, size_t step, unsigned char *record,
                           bool *valid)
{
    unsigned char digest[KS_SHA256_BYTES];
    uint64_t number;

    *valid = false;
    if (!read_bytes(r, record, size + KS_SHA256_BYTES))
        return KS_OK;
    memcpy(&number, record, sizeof number);
    KS_TRY(
        ks_sha256(2, (struct ks_piece[]){{r->header, sizeof r->header}, {record, size}}, digest));
    *valid = number == step && memcmp(digest, record + size, sizeof digest) == 0;
    return KS_OK;
}

static ks_status count_steps(struct reading *r, struct ks_basis_about *about)
{
    const size_t size = NUMBERS + about->length * about->number_bytes;
    long at = ftell(r->file), end;
    unsigned char *record = NULL;
    ks_status status = KS_OK;
    bool valid = true;

    if (at < 0 || fseek(r->file, 0, SEEK_END) != 0 || (end = ftell(r->file)) < 0 ||
        fseek(r->file, at, SEEK_SET) != 0)
        return ks_fail(KS_IO, "%s: %s", r->path, strerror(errno));
    about->extra = (size_t)(end - at);
    if (about->extra >= size + KS_SHA256_BYTES) /* so a small file cannot claim a huge vector */
        KS_TRY(ks_alloc(size + KS_SHA256_BYTES, 1, &record));
    while (status == KS_OK && valid && about->extra >= size + KS_SHA256_BYTES) {
        status = read_step(r, size, about->steps, record, &valid);
        if (valid) {
            about->steps++;
            about->extra -= size + KS_SHA256_BYTES;
        }
    }
    free(record);
    return status;
}

ks_status ks_basis_look(const char *path, struct ks_basis_about *about)
{
    struct reading r = {.path = path};
    ks_status status;

    *about = (struct ks_basis_about){.steps = 0};
    r.file = fopen(path, "rb");
    if (!r.file)
        return ks_fail(KS_IO, "%s: %s", path, strerror(errno));
    status = read_header(&r, about);
    if (status == KS_OK)
        status = find_sizes(&r, about);
    if (status == KS_OK)
        status = count_steps(&r, about);
    fclose(r.file);
    if (status != KS_OK) {
        free(about->fingerprint);
        about->fingerprint = NULL;
    }
    return status;
}
