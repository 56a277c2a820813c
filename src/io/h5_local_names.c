/* Names of objects and of attributes. */
#include <stdio.h>
#include <string.h>

#include "core/memory.h"
#include "io/h5_local.h"

/* What the iterations fill; a failure of add ends them and is kept here. */
struct listing {
    struct ks_h5_names *names;
    ks_status status;
};

static herr_t add(struct listing *l, const char *name)
{
    struct ks_h5_names *names = l->names;

    if (names->n == KS_H5_NAMES)
        return 1; /* ends the iteration */
    l->status = ks_grow(names->n, sizeof *names->name, &names->room, &names->name);
    if (l->status != KS_OK)
        return -1;
    memset(names->name[names->n], 0, sizeof *names->name); /* all of it is sent to the program */
    snprintf(names->name[names->n++], sizeof *names->name, "%s", name);
    return 0;
}

static herr_t add_object(hid_t group, const char *name, const H5L_info_t *info, void *data)
{
    (void)group, (void)info;
    return add(data, name);
}

static herr_t add_attribute(hid_t object, const char *name, const H5A_info_t *info, void *data)
{
    (void)object, (void)info;
    return add(data, name);
}

ks_status ks_h5_local_names(const struct ks_h5 *h5, const char *object, bool attributes,
                            struct ks_h5_names *names)
{
    struct listing l = {.names = names, .status = KS_OK};
    hsize_t position = 0;
    herr_t result = attributes ? H5Aiterate_by_name(h5->id, object, H5_INDEX_NAME, H5_ITER_INC,
                                                    &position, add_attribute, &l, H5P_DEFAULT)
                               : H5Literate_by_name(h5->id, object, H5_INDEX_NAME, H5_ITER_INC,
                                                    &position, add_object, &l, H5P_DEFAULT);

    if (result < 0)
        return l.status != KS_OK ? l.status
                                 : ks_h5_fail(h5, KS_IO, object, "its contents cannot be listed");
    return KS_OK;
}
