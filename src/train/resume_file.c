#include "train/resume_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "io/text.h"

static const char MAGIC[24] = "kappascope-point";

static const uint64_t VERSION = 3;

size_t ks_resume_file_state_offset(size_t description_size)
{
    return sizeof(struct ks_resume_header) + description_size;
}

size_t ks_resume_file_size(size_t description_size, size_t state_size)
{
    return ks_resume_file_state_offset(description_size) + state_size + KS_SHA256_BYTES;
}

ks_status ks_resume_file_fill(struct ks_resume_header *h, const char *description,
                              unsigned char *bytes)
{
    size_t content = ks_resume_file_size(h->description_size, h->state_size) - KS_SHA256_BYTES;

    memcpy(h->magic, MAGIC, sizeof h->magic);
    h->version = VERSION;
    memcpy(bytes, h, sizeof *h);
    memcpy(bytes + sizeof *h, description, h->description_size);
    return ks_sha256(1, &(struct ks_piece){bytes, content}, bytes + content);
}

static ks_status check(struct ks_resume_file *f, size_t size)
{
    unsigned char digest[KS_SHA256_BYTES];
    struct ks_resume_header *h = &f->header;
    size_t content = size - KS_SHA256_BYTES;

    if (size < sizeof *h + KS_SHA256_BYTES)
        return ks_fail(KS_FORMAT, "%s: damaged: only %zu bytes", f->path, size);
    memcpy(h, f->bytes, sizeof *h);
    if (memcmp(h->magic, MAGIC, sizeof h->magic) != 0)
        return ks_fail(KS_FORMAT, "%s: not a resume point", f->path);
    if (h->version != VERSION)
        return ks_fail(KS_FORMAT, "%s: expected version %d, found %llu", f->path, (int)VERSION,
                       (unsigned long long)h->version);
    KS_TRY(ks_sha256(1, &(struct ks_piece){f->bytes, content}, digest));
    if (memcmp(digest, f->bytes + content, sizeof digest) != 0 || h->description_size > content ||
        h->state_size > content || sizeof *h + h->description_size + h->state_size != content)
        return ks_fail(KS_FORMAT, "%s: damaged: checksum mismatch", f->path);
    return KS_OK;
}

ks_status ks_resume_file_read(struct ks_resume_file *f)
{
    ks_status status;
    size_t size;

    if (!ks_path_exists(f->path))
        return KS_OK;
    KS_TRY(ks_text_read(f->path, &f->bytes, &size));
    status = check(f, size);
    if (status == KS_OK)
        return KS_OK;
    free(f->bytes);
    f->bytes = NULL;
    return status;
}

bool ks_resume_file_header(const char *path, struct ks_resume_header *h)
{
    FILE *file = fopen(path, "rb");
    bool found = file && fread(h, sizeof *h, 1, file) == 1 &&
                 memcmp(h->magic, MAGIC, sizeof h->magic) == 0 && h->version == VERSION;

    if (file)
        fclose(file);
    return found;
}

struct ks_saved_state ks_resume_file_state(const struct ks_resume_file *f)
{
    const struct ks_resume_header *h = &f->header;
    size_t offset = ks_resume_file_state_offset(h->description_size);

    return (struct ks_saved_state){(unsigned char *)f->bytes + offset, h->state_size};
}

json_t *ks_resume_file_description(const struct ks_resume_file *f)
{
    return json_loadb(f->bytes + sizeof f->header, f->header.description_size, 0, NULL);
}

void ks_resume_file_free(struct ks_resume_file *f)
{
    free(f->path);
    free(f->bytes);
}
