#include "io/h5_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "core/memory.h"

/* Bytes, more than libhdf5 needs to start and to open or create a file: it crashes if an allocation
 * fails there. */
static const size_t ROOM = (size_t)8 << 20;
enum { LONGEST_TAIL = 1 << 20 }; /* most bytes accepted after the end that the superblock names */

const char *ks_h5_version(void)
{
    static _Thread_local char text[32];
    unsigned major = 0, minor = 0, release = 0;

    H5get_libversion(&major, &minor, &release);
    snprintf(text, sizeof text, "%u.%u.%u", major, minor, release);
    return text;
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

/* Tries an allocation and frees it. `volatile` keeps the compiler from removing both. */
static ks_status expect_room(const char *path, bool writing)
{
    void *volatile room = malloc(ROOM);
    const bool enough = room != NULL;

    free(room);
    return enough ? KS_OK
                  : ks_fail(KS_MEMORY, "%s: out of memory while %s the file", path,
                            writing ? "writing" : "reading");
}

ks_status ks_h5_file_new(const char *path, bool writing, struct ks_h5 **out)
{
    ks_status status;
    struct ks_h5 *h5;

    *out = NULL;
    KS_TRY(expect_room(path, writing));
    if (H5Eset_auto2(H5E_DEFAULT, NULL, NULL) < 0) /* without this HDF5 prints every failure */
        return ks_fail(KS_RUN, "%s: the HDF5 library cannot be used", path);
    KS_TRY(ks_alloc(1, sizeof *h5, &h5));
    h5->id = H5I_INVALID_HID;
    h5->writing = writing;
    h5->file.descriptor = -1;
    status = ks_copy_string(path, &h5->path);
    if (status != KS_OK) {
        ks_h5_file_free(h5);
        return status;
    }
    *out = h5;
    return KS_OK;
}

void ks_h5_file_free(struct ks_h5 *h5)
{
    /* If closing fails for lack of memory, HDF5 keeps using the image: it must not be freed. */
    if (h5->id >= 0 && H5Fclose(h5->id) < 0 && h5->writing)
        return;
    free(h5->image);
    free(h5->path);
    free(h5);
}

/* Bytes after the end that the superblock names belong to no object. A few are harmless. Many, as
 * in a file that was extended by mistake, would be read and hashed in vain. */
static ks_status check_end(const struct ks_h5 *h5)
{
    haddr_t end = 0;
    struct stat found;

    if (H5Fget_eoa(h5->id, &end) < 0 || stat(h5->path, &found) != 0)
        return ks_h5_fail(h5, KS_FORMAT, NULL, "a damaged HDF5 file");
    if ((haddr_t)found.st_size <= end || (haddr_t)found.st_size - end <= LONGEST_TAIL)
        return KS_OK;
    return ks_fail(KS_FORMAT,
                   "%s: expected a file of %llu bytes, as its HDF5 superblock says, found %llu",
                   h5->path, (unsigned long long)end, (unsigned long long)found.st_size);
}

/* No file lock: files are renamed into place when they are complete, and some cluster file systems
 * have no locks. Without the link class for external links, libhdf5 cannot follow one wherever it
 * meets it. Plugins are off, so no file can make libhdf5 load a filter from HDF5_PLUGIN_PATH. */
ks_status ks_h5_file_open(struct ks_h5 *h5)
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
        status = ks_fail(KS_FORMAT, "%s: expected an HDF5 file, found no HDF5 signature", h5->path);
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

void ks_h5_print_shape(const struct ks_h5_shape *shape, char text[KS_H5_SHAPE_TEXT])
{
    size_t at = (size_t)snprintf(text, KS_H5_SHAPE_TEXT, "[");

    for (size_t i = 0; i < shape->n_dims; i++)
        at += (size_t)snprintf(text + at, KS_H5_SHAPE_TEXT - at, "%s%zu", i > 0 ? ", " : "",
                               shape->dims[i]);
    snprintf(text + at, KS_H5_SHAPE_TEXT - at, "]");
}
