/* HDF5: all datasets of a file. The name of an array is its path without the first '/'. As with
 * checkpoints, a separate process reads the file, and links to other files are refused (io/h5.h).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "import/weights.h"
#include "io/h5.h"

/* Links can form circles. The walk ends because the number of its steps and the lengths of paths
 * are limited. */
enum { MOST_STEPS = 1 << 14 };

struct walk {
    struct ks_weights *w;
    const struct ks_h5 *h5;
    size_t steps;
};

static bool recognizes(const unsigned char *head, size_t n, uint64_t size)
{
    (void)size;
    return n >= 8 && memcmp(head, "\x89HDF\r\n\x1a\n", 8) == 0;
}

static ks_status add_dataset(const struct walk *walk, const char *object)
{
    struct ks_stored s = {.n_dims = 0};
    struct ks_h5_shape shape = {.n_dims = 0};
    enum ks_h5_stored stored;
    const ks_status status = ks_h5_shape(walk->h5, object, &shape);

    if (status == KS_FORMAT) { /* such as text, a table, or an array of too many dimensions */
        ks_stored_set_type(&s, "no array");
        return ks_weights_add(walk->w, object + 1, &s);
    }
    KS_TRY(status);
    KS_TRY(ks_h5_stored(walk->h5, object, &stored));
    ks_stored_set_type(&s, stored == KS_H5_INTEGERS ? "integer"
                           : stored == KS_H5_REALS  ? "float32"
                                                    : "float64");
    s.n_dims = shape.n_dims;
    memcpy(s.dims, shape.dims, shape.n_dims * sizeof *s.dims);
    return ks_weights_add(walk->w, object + 1, &s);
}

static ks_status add_group(struct walk *walk, const char *group, const struct ks_h5_names *names);

/* Adds a group, or else a dataset. The names in something that is not a group cannot be read. */
static ks_status add_object(struct walk *walk, const char *object)
{
    struct ks_h5_names names = {.n = 0};
    ks_status status;
    bool found;

    if (++walk->steps > MOST_STEPS)
        return ks_fail(KS_FORMAT, "%s: expected at most %d objects", walk->w->path, MOST_STEPS);
    KS_TRY(ks_h5_has(walk->h5, object, &found)); /* refuses links to other files */
    if (!found)
        return KS_OK;
    status = ks_h5_read_names(walk->h5, object, false, &names);
    if (status == KS_OK)
        status = add_group(walk, object, &names);
    else if (status == KS_IO)
        status = add_dataset(walk, object);
    free(names.name);
    return status;
}

static ks_status add_group(struct walk *walk, const char *group, const struct ks_h5_names *names)
{
    char object[KS_H5_OBJECT];

    for (size_t i = 0; i < names->n; i++) {
        const char *name = names->name[i];
        const int length = snprintf(object, sizeof object, "%s/%s", strcmp(group, "/") ? group : "",
                                    name);

        if (length < 0 || (size_t)length >= sizeof object || strlen(name) + 1 >= KS_H5_NAME ||
            names->n >= KS_H5_NAMES)
            return ks_fail(KS_FORMAT,
                           "%s: %.40s: expected fewer than %d objects in a group, with names of "
                           "fewer than %d bytes and paths of fewer than %d",
                           walk->w->path, object, KS_H5_NAMES, KS_H5_NAME - 1, KS_H5_OBJECT);
        if (!*name || strchr(name, '/') || strcmp(name, ".") == 0) /* "/" and "/." are one group */
            return ks_fail(KS_FORMAT, "%s: %.40s: expected names of objects, found the name '%s'",
                           walk->w->path, group, name);
        KS_TRY(add_object(walk, object));
    }
    return KS_OK;
}

static ks_status open_file(struct ks_weights *w)
{
    struct ks_h5_names names = {.n = 0};
    struct ks_h5 *h5 = NULL;
    struct walk walk = {.w = w};
    ks_status status;

    KS_TRY(ks_h5_open(w->path, NULL, &h5));
    w->file = h5;
    walk.h5 = h5;
    status = ks_h5_read_names(h5, "/", false, &names);
    if (status == KS_OK)
        status = add_group(&walk, "/", &names);
    free(names.name);
    return status;
}

static ks_status read_values(const struct ks_weights *w, const struct ks_stored *s, double *values)
{
    struct ks_h5_shape shape = {.n_dims = s->n_dims};
    char object[KS_H5_OBJECT];

    snprintf(object, sizeof object, "/%s", s->name);
    memcpy(shape.dims, s->dims, s->n_dims * sizeof *s->dims);
    return ks_h5_read(w->file, object, &shape, values);
}

static void close_file(struct ks_weights *w)
{
    ks_h5_close(w->file);
}

const struct ks_weights_format ks_hdf5_format = {.name = "HDF5",
                                                 .ending = ".h5",
                                                 .recognizes = recognizes,
                                                 .open = open_file,
                                                 .read = read_values,
                                                 .close = close_file};
