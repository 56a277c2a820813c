/* Files: opening, creating, closing; the image in memory in which a new file is built. */
#include "io/h5.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/memory.h"
#include "core/process.h"
#include "io/file.h"
#include "io/scout.h"

/* Bytes, more than libhdf5 needs to start and to open or create a file: it crashes if an allocation
 * fails there. */
static const size_t ROOM = (size_t)8 << 20;
enum { LONGEST_TAIL = 1 << 20 }; /* most bytes accepted after the end that the superblock names */
/* Larger files are not read into memory, so that the image of a file takes little of it. */
enum { MOST_IMAGE = 256 << 20 };
static const size_t IMAGE_STEP = (size_t)1 << 20; /* bytes by which HDF5 lets a new image grow */

const char *ks_h5_version(void)
{
    static _Thread_local char text[32];
    unsigned major = 0, minor = 0, release = 0;

    H5get_libversion(&major, &minor, &release);
    snprintf(text, sizeof text, "%u.%u.%u", major, minor, release);
    return text;
}

void ks_h5_print_shape(const struct ks_h5_shape *shape, char text[KS_H5_SHAPE_TEXT])
{
    size_t at = (size_t)snprintf(text, KS_H5_SHAPE_TEXT, "[");

    for (size_t i = 0; i < shape->n_dims; i++)
        at += (size_t)snprintf(text + at, KS_H5_SHAPE_TEXT - at, "%s%zu", i > 0 ? ", " : "",
                               shape->dims[i]);
    snprintf(text + at, KS_H5_SHAPE_TEXT - at, "]");
}

/* For H5Ewalk2: copies the innermost message, with which an upward walk starts (number 0). */
static herr_t innermost(unsigned int number, const H5E_error2_t *error, void *text)
{
    if (number == 0)
        snprintf(text, 256, "%s", error->desc ? error->desc : "");
    return 0;
}

ks_status ks_h5_fail(const struct ks_h5 *h5, ks_status status, const char *object, const char *what)
{
    char inner[256] = "";

    if (H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, innermost, inner) < 0)
        inner[0] = 0;
    if (h5->image_failed)
        return ks_fail(KS_MEMORY, "%s: out of memory while writing the file", h5->path);
    return ks_fail(status, "%s: %s%s%s%s%s%s", h5->path, object ? object : "", object ? ": " : "",
                   what, inner[0] ? " (HDF5: " : "", inner, inner[0] ? ")" : "");
}

void ks_h5_release(hid_t id)
{
    if (id >= 0)
        H5Idec_ref(id);
}

/* Prepares libhdf5 and creates a handle with this path, which opens no file yet. Fails with
 * KS_MEMORY or KS_RUN. */
static ks_status new_handle(const char *path, bool writing, struct ks_h5 **out)
{
    void *volatile room = malloc(ROOM); /* `volatile` keeps the compiler from removing this */
    const bool enough = room != NULL;
    KS_OWNED_BY(ks_h5_close) struct ks_h5 *h5 = NULL;

    *out = NULL;
    free(room);
    if (!enough)
        return ks_fail(KS_MEMORY, "%s: out of memory while %s the file", path,
                       writing ? "writing" : "reading");
    if (H5Eset_auto2(H5E_DEFAULT, NULL, NULL) < 0) /* without this HDF5 prints every failure */
        return ks_fail(KS_RUN, "%s: the HDF5 library cannot be used", path);
    KS_TRY(ks_h5_register_lzf());
    KS_TRY(ks_alloc(1, sizeof *h5, &h5));
    h5->id = H5I_INVALID_HID;
    h5->writing = writing;
    h5->file.descriptor = -1;
    KS_TRY(ks_copy_string(path, &h5->path));
    *out = h5, h5 = NULL;
    return KS_OK;
}

/* --- the image of a file in memory ---
 *
 * HDF5's core driver works on it. A file that is read is in memory before HDF5 sees it, so that the
 * scout, this process and the checksum get the same bytes. The callbacks give HDF5 h5->image itself
 * in place of copies. */

/* The image of a new file grows by doubling; HDF5 itself clears the bytes that it adds. */
static void *image_resize(void *old, size_t size, H5FD_file_image_op_t operation, void *self)
{
    struct ks_h5 *h5 = self;
    size_t room = h5->image_size;
    void *grown = NULL;

    (void)old, (void)operation; /* h5->image is the only block, and the file only grows */
    if (h5->image && size <= room)
        return h5->image;
    room = 2 * room > size ? 2 * room : size;
    if (ks_alloc(room, 1, &grown) != KS_OK) {
        h5->image_failed = true;
        return NULL;
    }
    if (h5->image)
        memcpy(grown, h5->image, h5->image_size);
    free(h5->image);
    h5->image = grown;
    h5->image_size = room;
    return grown;
}

static void *image_give(size_t size, H5FD_file_image_op_t operation, void *self)
{
    return image_resize(NULL, size, operation, self);
}

static void *image_is_there(void *to, const void *from, size_t size, H5FD_file_image_op_t operation,
                            void *self)
{
    (void)from, (void)size, (void)operation, (void)self;
    return to;
}

static herr_t image_keep(void *image, H5FD_file_image_op_t operation, void *self)
{
    (void)image, (void)operation, (void)self; /* ks_h5_close frees it */
    return 0;
}

static void *same_self(void *self)
{
    return self;
}

static herr_t keep_self(void *self)
{
    (void)self;
    return 0;
}

/* False if HDF5 fails. */
static bool use_image(struct ks_h5 *h5, hid_t access)
{
    H5FD_file_image_callbacks_t callbacks = {.image_malloc = image_give,
                                             .image_memcpy = image_is_there,
                                             .image_realloc = image_resize,
                                             .image_free = image_keep,
                                             .udata_copy = same_self,
                                             .udata_free = keep_self,
                                             .udata = h5};

    return H5Pset_fapl_core(access, IMAGE_STEP, false) >= 0 &&
           H5Pset_file_image_callbacks(access, &callbacks) >= 0 &&
           (h5->writing || H5Pset_file_image(access, h5->image, h5->image_size) >= 0);
}

/* HDF5 takes files of one name for one file, and first looks for a file of this name on the disk.
 * PATH is no folder, so none has it. */
static ks_status name_image(const struct ks_h5 *h5, char name[KS_PATH])
{
    return ks_path_print(name, "%s/%p", h5->path, (const void *)h5);
}

/* --- reading --- */

ks_status ks_h5_load(const char *path, struct ks_h5 **out)
{
    KS_OWNED_BY(ks_h5_close) struct ks_h5 *h5 = NULL;

    *out = NULL;
    KS_TRY(new_handle(path, false, &h5));
    if (stat(path, &h5->found) != 0 || h5->found.st_size <= MOST_IMAGE)
        KS_TRY(ks_text_read(path, (char **)&h5->image, &h5->image_size));
    *out = h5, h5 = NULL;
    return KS_OK;
}

/* Whether the path still names the file that was opened, with the same bytes. */
static bool is_unchanged(const struct ks_h5 *h5)
{
    const struct stat *then = &h5->found;
    struct stat now;

    return stat(h5->path, &now) == 0 && now.st_dev == then->st_dev && now.st_ino == then->st_ino &&
           now.st_size == then->st_size && now.st_mtim.tv_sec == then->st_mtim.tv_sec &&
           now.st_mtim.tv_nsec == then->st_mtim.tv_nsec;
}

ks_status ks_h5_sha256(const struct ks_h5 *h5, char text[KS_SHA256_TEXT])
{
    unsigned char digest[KS_SHA256_BYTES];

    if (!h5->image) {
        KS_TRY(ks_sha256_file(h5->path, text));
        return is_unchanged(h5) ? KS_OK : ks_fail(KS_IO, "%s: changed while it was read", h5->path);
    }
    KS_TRY(ks_sha256(1, &(struct ks_piece){h5->image, h5->image_size}, digest));
    ks_sha256_print(digest, text);
    return KS_OK;
}

/* Bytes after the end that the superblock names belong to no object. A few are harmless. Many, as
 * in a file that was extended by mistake, would be read and hashed in vain. */
static ks_status check_end(const struct ks_h5 *h5)
{
    const ssize_t end = H5Fget_file_image(h5->id, NULL, 0); /* only its size */
    hsize_t size = 0;

    if (end < 0 || H5Fget_filesize(h5->id, &size) < 0)
        return ks_h5_fail(h5, KS_FORMAT, NULL, "a damaged HDF5 file");
    if (size <= (hsize_t)end || size - (hsize_t)end <= LONGEST_TAIL)
        return KS_OK;
    return ks_fail(KS_FORMAT,
                   "%s: expected a file of %zd bytes, as its HDF5 superblock says, found %llu",
                   h5->path, end, (unsigned long long)size);
}

/* While a file is open for reading, plugins are off, so that no file can make libhdf5 load a filter
 * from HDF5_PLUGIN_PATH. They are on again when the last one is closed, since the setting belongs
 * to the whole process. */
static unsigned plugins;
static size_t without_plugins; /* open files */

static bool forbid_plugins(struct ks_h5 *h5)
{
    if (without_plugins == 0 && H5PLget_loading_state(&plugins) < 0)
        return false;
    h5->forbids_plugins = true;
    without_plugins++;
    return H5PLset_loading_state(0) >= 0;
}

static void allow_plugins(struct ks_h5 *h5)
{
    if (h5->forbids_plugins && --without_plugins == 0)
        H5PLset_loading_state(plugins);
    h5->forbids_plugins = false;
}

ks_status ks_h5_recognize(const char *path, bool *is)
{
    static const char signature[] = "\x89HDF\r\n\x1a\n";
    char start[sizeof signature] = "";
    KS_OWNED_BY(ks_path_close) FILE *file = NULL;

    KS_TRY(ks_path_open(path, &file));
    *is = fread(start, sizeof start - 1, 1, file) == 1 && strcmp(start, signature) == 0;
    return KS_OK;
}

/* No file lock: files are renamed into place when they are complete, and some cluster file systems
 * have no locks. HDF5 before 1.10.7, and 1.12.0, can be told by the environment only. */
static bool forbid_locks(hid_t access)
{
#if H5_VERSION_GE(1, 12, 1) || (H5_VERSION_GE(1, 10, 7) && H5_VERSION_LE(1, 10, 99))
    return H5Pset_file_locking(access, false, true) >= 0;
#else
    (void)access;
    return setenv("HDF5_USE_FILE_LOCKING", "FALSE", 0) == 0;
#endif
}

ks_status ks_h5_start(struct ks_h5 *h5)
{
    const bool in_memory = h5->image_size > 0; /* HDF5 accepts no empty image */
    KS_OWNED_BY(ks_h5_release) hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    char name[KS_PATH];

    KS_TRY(name_image(h5, name));
    if (access < 0 || !forbid_plugins(h5) ||
        !(in_memory ? use_image(h5, access) : forbid_locks(access)))
        return ks_h5_fail(h5, KS_RUN, NULL, "the HDF5 library cannot be used");
    h5->id = H5Fopen(in_memory ? name : h5->path, H5F_ACC_RDONLY, access);
    return h5->id >= 0
               ? check_end(h5)
               : ks_h5_fail(h5, KS_FORMAT, NULL,
                            "expected an HDF5 file, found none, or a damaged or truncated one");
}

/* --- a new file, built in memory ---
 *
 * HDF5's core driver builds the file in memory, and ks_file_commit writes it. If the disk is full,
 * our own write() fails, and not HDF5's cache, which cannot close a file that it fails to write.
 * The bytes are taken when HDF5 closes the file, because the bytes of H5Fget_file_image (1.10.8)
 * have a wrong checksum in the superblock of this format. */

static ks_status create_image(struct ks_h5 *h5)
{
    KS_OWNED_BY(ks_h5_release) hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    KS_OWNED_BY(ks_h5_release) hid_t creation = H5Pcreate(H5P_FILE_CREATE);
    char name[KS_PATH];

    KS_TRY(name_image(h5, name));
    if (access < 0 || creation < 0 || !use_image(h5, access) ||
        H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110) < 0 ||
        H5Pset_obj_track_times(creation, false) < 0)
        return ks_h5_fail(h5, KS_RUN, NULL, "the HDF5 library cannot be used");
    h5->id = H5Fcreate(name, H5F_ACC_TRUNC, creation, access);
    return h5->id >= 0 ? KS_OK : ks_h5_fail(h5, KS_RUN, NULL, "cannot be built");
}

/* --- opening, creating, closing --- */

void ks_h5_close(struct ks_h5 *h5)
{
    if (!h5)
        return;
    if (h5->writing)
        ks_file_close(&h5->file);
    allow_plugins(h5);
    /* If closing fails for lack of memory, HDF5 keeps using the image: it must not be freed. */
    if (h5->id >= 0 && H5Fclose(h5->id) < 0 && h5->image)
        return;
    free(h5->image);
    free(h5->path);
    free(h5);
}

ks_status ks_h5_check_format(const struct ks_h5 *h5, const char *format)
{
    KS_OWNED char *found = NULL;
    bool checkpoint = strcmp(format, "kappascope-checkpoint") == 0;
    int64_t version = 0;
    bool has;

    KS_TRY(ks_h5_has_attribute(h5, "/", "format", &has));
    if (!has)
        return ks_fail(KS_FORMAT,
                       "%s: expected a %s, found an HDF5 file without the root attribute format%s",
                       h5->path, format,
                       checkpoint ? ": weights of another program become a checkpoint by "
                                    "'kappascope import'"
                                  : "");
    KS_TRY(ks_h5_read_string(h5, "/", "format", &found));
    if (strcmp(found, format) != 0)
        return ks_fail(KS_FORMAT, "%s: attribute format: expected \"%s\", found \"%.60s\"",
                       h5->path, format, found);
    KS_TRY(ks_h5_read_integer(h5, "/", "version", INT64_MIN, &version));
    return version == KS_H5_VERSION || (checkpoint && version == KS_H5_CHECKPOINT_VERSION)
               ? KS_OK
               : ks_fail(KS_FORMAT, "%s: attribute version of a %s: expected %s, found %lld",
                         h5->path, format, checkpoint ? "1 or 2" : "1", (long long)version);
}

ks_status ks_h5_open(const char *path, const char *format, struct ks_h5 **out)
{
    KS_OWNED_BY(ks_h5_close) struct ks_h5 *h5 = NULL;

    *out = NULL;
    KS_TRY(ks_h5_load(path, &h5));
    KS_TRY(ks_scout_before_opening(h5));
    KS_TRY(ks_h5_start(h5));
    if (format)
        KS_TRY(ks_h5_check_format(h5, format));
    *out = h5, h5 = NULL;
    return KS_OK;
}

ks_status ks_h5_create(const char *path, const char *format, int64_t version, struct ks_h5 **out)
{
    KS_OWNED_BY(ks_h5_close) struct ks_h5 *h5 = NULL;

    *out = NULL;
    KS_TRY(new_handle(path, true, &h5));
    KS_TRY(ks_file_create(path, &h5->file));
    KS_TRY(create_image(h5));
    ks_h5_write_string(h5, "/", "format", format);
    ks_h5_write_integer(h5, "/", "version", version);
    *out = h5, h5 = NULL;
    return KS_OK;
}

ks_status ks_h5_commit(struct ks_h5 *h5)
{
    ssize_t size = -1;

    KS_TRY(h5->status);
    if (H5Fflush(h5->id, H5F_SCOPE_GLOBAL) >= 0)
        size = H5Fget_file_image(h5->id, NULL, 0); /* only its size */
    if (size < 0)
        return ks_h5_fail(h5, KS_RUN, NULL, "cannot be built");
    if (H5Fclose(h5->id) < 0)
        return ks_h5_fail(h5, KS_RUN, NULL, "cannot be built");
    h5->id = H5I_INVALID_HID;
    return ks_file_commit(&h5->file, h5->image, (size_t)size);
}
