/* HDF5 files: opening, creating, committing, messages.
 *
 * A new file is built in memory (the core driver) and written by ks_file_commit: a full disk is
 * then met by one write() of ours and not by HDF5's cache, which cannot give up a file that it
 * fails to write back. The bytes are taken when HDF5 closes the file: H5Fget_file_image of 1.10.8
 * leaves a wrong checksum in this format's superblock. */
#include "io/h5.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/memory.h"
#include "io/h5_reader.h"

/* Bytes: more than libhdf5 takes to start, and to open or create a file. It crashes where there are
 * less. */
static const size_t ROOM = (size_t)8 << 20;
static const size_t IMAGE_STEP = (size_t)1 << 20; /* bytes by which HDF5 lets the image grow */
enum { LONGEST_TAIL = 1 << 20 };                  /* bytes that may follow a file's own end */

/* Walking upward starts at the innermost message, number 0. */
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
        return ks_fail(KS_MEMORY, "%s: out of memory while it is written", h5->path);
    return ks_fail(status, "%s: %s%s%s%s%s%s", h5->path, object ? object : "", object ? ": " : "",
                   what, inner[0] ? " (HDF5: " : "", inner, inner[0] ? ")" : "");
}

/* Tries an allocation that is of no other use; volatile, or a compiler may leave it out. */
static ks_status expect_room(const char *path, bool writing)
{
    void *volatile room = malloc(ROOM);
    const bool there = room != NULL;

    free(room);
    return there ? KS_OK
                 : ks_fail(KS_MEMORY, "%s: out of memory while it is %s", path,
                           writing ? "written" : "read");
}

static ks_status new_h5(const char *path, bool writing, struct ks_h5 **out)
{
    ks_status status;
    struct ks_h5 *h5;

    *out = NULL;
    KS_TRY(expect_room(path, writing));
    if (H5Eset_auto2(H5E_DEFAULT, NULL, NULL) < 0) { /* or HDF5 prints a page for each failure */
        ks_fail(KS_RUN, "%s: the HDF5 library cannot be used", path);
        return KS_RUN;
    }
    KS_TRY(ks_alloc(1, sizeof *h5, &h5));
    h5->id = H5I_INVALID_HID;
    h5->writing = writing;
    h5->file.descriptor = -1;
    status = ks_copy_string(path, &h5->path);
    if (status != KS_OK) {
        ks_h5_close(h5);
        return status;
    }
    *out = h5;
    return KS_OK;
}

void ks_h5_close(struct ks_h5 *h5)
{
    if (!h5)
        return;
    ks_h5_reader_end(h5);
    if (h5->writing)
        ks_file_close(&h5->file);
    if (h5->id >= 0 && H5Fclose(h5->id) < 0 && h5->writing)
        return; /* HDF5 goes on using the image, for want of memory: it is not freed */
    free(h5->image);
    free(h5->path);
    free(h5);
}

static ks_status check_format(const struct ks_h5 *h5, const char *format)
{
    ks_status status = KS_OK;
    char *found = NULL;
    int64_t version = 0;

    KS_GO(ks_h5_read_string(h5, "/", "format", &found));
    if (strcmp(found, format) != 0) {
        status = ks_fail(KS_FORMAT, "%s: attribute format: expected \"%s\", found \"%.60s\"",
                         h5->path, format, found);
        goto done;
    }
    KS_GO(ks_h5_read_integer(h5, "/", "version", INT64_MIN, &version));
    if (version != KS_H5_VERSION)
        status = ks_fail(KS_FORMAT, "%s: attribute version of a %s: expected %d, found %lld",
                         h5->path, format, KS_H5_VERSION, (long long)version);
done:
    free(found);
    return status;
}

/* What follows the end that the file itself names belongs to nothing in it. A little of it does no
 * harm; much of it, as of a file that was extended by mistake, would be read and hashed for
 * nothing. */
static ks_status check_end(const struct ks_h5 *h5)
{
    haddr_t end = 0;
    struct stat there;

    if (H5Fget_eoa(h5->id, &end) < 0 || stat(h5->path, &there) != 0)
        return ks_h5_fail(h5, KS_FORMAT, NULL, "a damaged HDF5 file");
    if ((haddr_t)there.st_size <= end || (haddr_t)there.st_size - end <= LONGEST_TAIL)
        return KS_OK;
    return ks_fail(KS_FORMAT,
                   "%s: expected a file of %llu bytes, as its HDF5 superblock says, found %llu",
                   h5->path, (unsigned long long)end, (unsigned long long)there.st_size);
}

/* No lock: files are renamed into their place when they are whole, and some cluster file systems
 * have no locks. Without the class of external links libhdf5 cannot follow one, wherever it meets
 * it; and no file makes it load a filter from the folders of HDF5_PLUGIN_PATH. */
ks_status ks_h5_open_here(struct ks_h5 *h5)
{
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    ks_status status = KS_OK;
    htri_t known;

    KS_GO(expect_room(h5->path, false));
    if (access < 0 || H5Pset_file_locking(access, false, true) < 0 ||
        H5Lunregister(H5L_TYPE_EXTERNAL) < 0 || H5PLset_loading_state(0) < 0) {
        status = ks_h5_fail(h5, KS_RUN, NULL, "the HDF5 library cannot be used");
        goto done;
    }
    known = H5Fis_hdf5(h5->path);
    if (known <= 0) {
        status = ks_fail(KS_FORMAT, "%s: expected an HDF5 file, found no signature of one",
                         h5->path);
        goto done;
    }
    h5->id = H5Fopen(h5->path, H5F_ACC_RDONLY, access);
    if (h5->id < 0)
        status = ks_h5_fail(h5, KS_FORMAT, NULL, "a damaged or truncated HDF5 file");
    else
        status = check_end(h5);
done:
    if (access >= 0)
        H5Pclose(access);
    return status;
}

const char *ks_h5_version(void)
{
    static _Thread_local char text[32];
    unsigned major = 0, minor = 0, release = 0;

    H5get_libversion(&major, &minor, &release);
    snprintf(text, sizeof text, "%u.%u.%u", major, minor, release);
    return text;
}

ks_status ks_h5_open(const char *path, const char *format, struct ks_h5 **out)
{
    ks_status status = KS_OK;
    struct ks_h5 *h5 = NULL;
    struct stat there;

    *out = NULL;
    if (stat(path, &there) != 0 || (S_ISREG(there.st_mode) && access(path, R_OK) != 0))
        return ks_fail(KS_IO, "%s: cannot be opened: %s", path, strerror(errno));
    if (!S_ISREG(there.st_mode))
        return ks_fail(KS_IO, "%s: expected an HDF5 file, found %s", path,
                       S_ISDIR(there.st_mode) ? "a folder" : "no regular file");
    KS_TRY(new_h5(path, false, &h5));
    KS_GO(ks_h5_reader_start(h5));
    if (format)
        KS_GO(check_format(h5, format));
    *out = h5, h5 = NULL;
done:
    ks_h5_close(h5);
    return status;
}

/* The callbacks by which HDF5 asks for the image's memory. It grows by doubling; HDF5 itself clears
 * what it adds. */
static void *image_resize(void *old, size_t size, H5FD_file_image_op_t operation, void *self)
{
    struct ks_h5 *h5 = self;
    size_t room = h5->image_room;
    void *grown = NULL;

    (void)old, (void)operation; /* h5->image is the only block, and files only grow */
    if (h5->image && size <= room)
        return h5->image;
    room = 2 * room > size ? 2 * room : size;
    if (ks_alloc(room, 1, &grown) != KS_OK) {
        h5->image_failed = true;
        return NULL;
    }
    if (h5->image)
        memcpy(grown, h5->image, h5->image_room);
    free(h5->image);
    h5->image = grown;
    h5->image_room = room;
    return grown;
}

static void *image_new(size_t size, H5FD_file_image_op_t operation, void *self)
{
    return image_resize(NULL, size, operation, self);
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

/* The name, of which libhdf5 wants one, is that of no file: the core driver would read a file that
 * is there, all of it. */
static ks_status create_image(struct ks_h5 *h5)
{
    H5FD_file_image_callbacks_t callbacks = {.image_malloc = image_new,
                                             .image_realloc = image_resize,
                                             .image_free = image_keep,
                                             .udata_copy = same_self,
                                             .udata_free = keep_self,
                                             .udata = h5};
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), creation = H5Pcreate(H5P_FILE_CREATE);
    ks_status status = KS_OK;
    char *name = NULL;

    KS_GO(ks_print_string(&name, "%s/", h5->path));
    if (access < 0 || creation < 0 || H5Pset_fapl_core(access, IMAGE_STEP, false) < 0 ||
        H5Pset_file_image_callbacks(access, &callbacks) < 0 ||
        H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110) < 0 ||
        H5Pset_obj_track_times(creation, false) < 0)
        status = ks_h5_fail(h5, KS_RUN, NULL, "the HDF5 library cannot be used");
    else if ((h5->id = H5Fcreate(name, H5F_ACC_TRUNC, creation, access)) < 0)
        status = ks_h5_fail(h5, KS_RUN, NULL, "cannot be built");
done:
    free(name);
    if (access >= 0)
        H5Pclose(access);
    if (creation >= 0)
        H5Pclose(creation);
    return status;
}

ks_status ks_h5_create(const char *path, const char *format, struct ks_h5 **out)
{
    ks_status status = KS_OK;
    struct ks_h5 *h5 = NULL;

    *out = NULL;
    KS_TRY(new_h5(path, true, &h5));
    KS_GO(ks_file_create(path, &h5->file));
    KS_GO(create_image(h5));
    KS_GO(ks_h5_write_string(h5, "/", "format", format));
    KS_GO(ks_h5_write_integer(h5, "/", "version", KS_H5_VERSION));
    *out = h5, h5 = NULL;
done:
    ks_h5_close(h5);
    return status;
}

ks_status ks_h5_commit(struct ks_h5 *h5)
{
    ssize_t size = -1;

    if (H5Fflush(h5->id, H5F_SCOPE_GLOBAL) >= 0)
        size = H5Fget_file_image(h5->id, NULL, 0); /* its size alone */
    if (size < 0)
        return ks_h5_fail(h5, KS_RUN, NULL, "cannot be built");
    if (H5Fclose(h5->id) < 0)
        return ks_h5_fail(h5, KS_RUN, NULL, "cannot be built");
    h5->id = H5I_INVALID_HID;
    return ks_file_commit(&h5->file, h5->image, (size_t)size);
}
