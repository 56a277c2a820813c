/* NumPy's .npz: a ZIP archive of .npy files, one for each array (numpy.savez, savez_compressed).
 * The format of .npy: numpy/lib/format.py, versions 1.0 to 3.0. */
#include <stdlib.h>
#include <string.h>

#include <zip.h>

#include "core/memory.h"
#include "core/path.h"
#include "import/npy.h"
#include "import/weights.h"

enum { PIECE = 1 << 16 };
/* Deflate expands one byte to at most 1032 bytes (zlib, "Technical Details"). */
static const uint64_t MOST_INFLATED = 1032;

static bool recognizes(const unsigned char *head, size_t n, uint64_t size)
{
    (void)size;
    return n >= 4 && memcmp(head, "PK\3\4", 4) == 0;
}

static ks_status fail(const struct ks_weights *w, const char *name, const char *what)
{
    return ks_fail(KS_FORMAT, "%s: %s: cannot be read: %s", w->path, name, what);
}

/* --- one entry --- */

struct entry {
    const struct ks_weights *w;
    const char *name;
    zip_file_t *file;
};

/* Reads exactly n bytes. */
static ks_status take(const struct entry *e, void *bytes, size_t n)
{
    for (size_t used = 0; used < n;) {
        zip_int64_t got = zip_fread(e->file, (char *)bytes + used, n - used);

        if (got <= 0)
            return fail(e->w, e->name, got == 0 ? "it ends too early" : zip_file_strerror(e->file));
        used += (size_t)got;
    }
    return KS_OK;
}

/* Opens entry `at` of the archive and reads the header of its .npy file. *header is its length in
 * bytes. The caller ends with close_entry, also after a failure. */
static ks_status open_entry(struct entry *e, uint64_t at, struct ks_stored *s, size_t *header)
{
    unsigned char start[KS_NPY_START];
    ks_status status = KS_OK;
    char *text = NULL;
    size_t length;

    e->file = zip_fopen_index(e->w->file, at, 0);
    if (!e->file)
        return fail(e->w, e->name, zip_strerror(e->w->file));
    KS_TRY(take(e, start, sizeof start));
    if (!ks_npy_start(start, &length))
        return fail(e->w, e->name, "expected an .npy file of version 1 to 3");
    *header = sizeof start + length;
    if (start[6] > 1) {
        unsigned char more[2]; /* of the header's length */

        KS_TRY(take(e, more, sizeof more));
        if (more[0] || more[1])
            return fail(e->w, e->name, "its header is longer than 65535 bytes");
        *header += sizeof more;
    }
    KS_TRY(ks_alloc(length + 1, 1, &text));
    KS_GO(take(e, text, length));
    if (strlen(text) != length || !ks_npy_header(text, s))
        status = ks_fail(KS_FORMAT,
                         "%s: %s: expected a header as NumPy writes it, with at most %d dimensions",
                         e->w->path, e->name, KS_STORED_DIMS);
done:
    free(text);
    return status;
}

static void close_entry(const struct entry *e)
{
    if (e->file)
        zip_fclose(e->file);
}

/* --- the archive --- */

/* Fails unless the bytes that the archive has for an entry can expand to the size that it claims.
 */
static ks_status check_size(const struct ks_weights *w, const char *name, const zip_stat_t *info)
{
    const zip_uint64_t needed = ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD;
    const uint64_t expands = info->comp_method == ZIP_CM_STORE ? 1 : MOST_INFLATED;

    if ((info->valid & needed) != needed || info->comp_size > w->size)
        return fail(w, name, "the archive gives it no size, or more bytes than the file has");
    if (info->comp_method != ZIP_CM_STORE && info->comp_method != ZIP_CM_DEFLATE)
        return ks_fail(KS_FORMAT,
                       "%s: %s: expected an array that is stored or deflated, as NumPy writes it, "
                       "found the compression method %u",
                       w->path, name, (unsigned)info->comp_method);
    if (info->size / expands > info->comp_size)
        return ks_fail(
            KS_FORMAT,
            "%s: %s: expected an array that fits into %llu bytes of the archive, found a "
            "claim of %llu bytes",
            w->path, name, (unsigned long long)info->comp_size, (unsigned long long)info->size);
    return KS_OK;
}

static ks_status add_entry(struct ks_weights *w, uint64_t at, const char *file_name)
{
    struct entry e = {.w = w, .name = file_name};
    struct ks_stored s = {.at = at};
    ks_status status = KS_OK;
    char *name = NULL;
    zip_stat_t info;
    size_t header = 0;

    if (zip_stat_index(w->file, at, ZIP_FL_ENC_RAW, &info) != 0)
        return fail(w, file_name, zip_strerror(w->file));
    KS_TRY(check_size(w, file_name, &info));
    KS_GO(open_entry(&e, at, &s, &header));
    if (info.size < header)
        KS_GO(fail(w, file_name, "it ends in its header"));
    KS_GO(ks_copy_string(file_name, &name));
    name[ks_path_stem(name, ".npy")] = '\0';
    KS_GO(ks_weights_add(w, name, &s));
    KS_GO(ks_stored_expect_bytes(w, name, &s, info.size - header));
done:
    free(name);
    close_entry(&e);
    return status;
}

static ks_status open_archive(struct ks_weights *w)
{
    zip_int64_t n;
    int code = 0;

    w->file = zip_open(w->path, ZIP_RDONLY, &code);
    if (!w->file) {
        zip_error_t error;
        ks_status status;

        zip_error_init_with_code(&error, code);
        status = ks_fail(KS_FORMAT, "%s: not a readable ZIP archive (.npz): %s", w->path,
                         zip_error_strerror(&error));
        zip_error_fini(&error);
        return status;
    }
    n = zip_get_num_entries(w->file, 0);
    for (zip_int64_t i = 0; i < n; i++) {
        const char *name = zip_get_name(w->file, (zip_uint64_t)i, ZIP_FL_ENC_RAW);

        if (!name)
            return fail(w, "an entry", zip_strerror(w->file));
        if (ks_path_ends(name, "data.pkl")) /* as torch.save writes it */
            return ks_weights_refuse_pickle(w);
        if (!ks_path_ends(name, ".npy"))
            return ks_fail(KS_FORMAT, "%s: expected only .npy files in it, found %s", w->path,
                           name);
        KS_TRY(add_entry(w, (uint64_t)i, name));
    }
    return KS_OK;
}

/* Fails unless the entry ends here. libzip compares the checksum where an entry ends. */
static ks_status expect_end(const struct entry *e)
{
    char byte;
    const zip_int64_t got = zip_fread(e->file, &byte, 1);

    return got == 0 ? KS_OK
                    : fail(e->w, e->name, got > 0 ? "it is too long" : zip_file_strerror(e->file));
}

static ks_status read_values(const struct ks_weights *w, const struct ks_stored *s, double *values)
{
    const size_t size = ks_real_bytes(s->real), n = ks_stored_count(s), most = PIECE / size;
    struct entry e = {.w = w, .name = s->name};
    struct ks_stored again = {.n_dims = 0};
    unsigned char *piece = NULL;
    ks_status status = KS_OK;
    size_t header;

    KS_TRY(ks_alloc(PIECE, 1, &piece));
    KS_GO(open_entry(&e, s->at, &again, &header));
    for (size_t done = 0; done < n;) {
        const size_t now = n - done < most ? n - done : most;

        KS_GO(take(&e, piece, now * size));
        ks_real_widen(s, now, piece, values + done);
        done += now;
    }
    KS_GO(expect_end(&e));
done:
    free(piece);
    close_entry(&e);
    return status;
}

static void close_archive(struct ks_weights *w)
{
    if (w->file)
        zip_discard(w->file);
}

const struct ks_weights_format ks_npz_format = {.name = "a NumPy archive",
                                                .ending = ".npz",
                                                .recognizes = recognizes,
                                                .open = open_archive,
                                                .read = read_values,
                                                .close = close_archive};
