#include "io/h5_image.h"

#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "core/memory.h"

static const size_t IMAGE_STEP = (size_t)1 << 20; /* bytes by which HDF5 lets the image grow */

/* The callbacks through which HDF5 allocates the image. It grows by doubling; HDF5 itself clears
 * the bytes that it adds. */
static void *image_resize(void *old, size_t size, H5FD_file_image_op_t operation, void *self)
{
    struct ks_h5 *h5 = self;
    size_t room = h5->image_room;
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
    (void)image, (void)operation, (void)self; /* ks_h5_file_free frees it */
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

/* HDF5's core driver reads the whole existing file of the name that it is given. No file has the
 * name "PATH/". */
ks_status ks_h5_image_create(struct ks_h5 *h5)
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

ks_status ks_h5_image_commit(struct ks_h5 *h5)
{
    ssize_t size = -1;

    if (H5Fflush(h5->id, H5F_SCOPE_GLOBAL) >= 0)
        size = H5Fget_file_image(h5->id, NULL, 0); /* only its size */
    if (size < 0)
        return ks_h5_fail(h5, KS_RUN, NULL, "cannot be built");
    if (H5Fclose(h5->id) < 0)
        return ks_h5_fail(h5, KS_RUN, NULL, "cannot be built");
    h5->id = H5I_INVALID_HID;
    return ks_file_commit(&h5->file, h5->image, (size_t)size);
}
