/* A map (`*.map`) says which array of a file is which array of a critic. It has these lines; '#'
 * starts a comment:
 *
 *   layout = torch                            required. Kernels are [out, in] and are transposed.
 *                                             With `layout = flax` they are [in, out]
 *   00_dense/kernel = critic.net.0.weight     an array of the critic, and the name of its source
 *   02_dense/kernel = critics.*.net.2.weight  with wildcards (glob.h) each match is another critic
 *   ignore actor.**                           these arrays are not used */
#ifndef KS_IMPORT_MAP_H
#define KS_IMPORT_MAP_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"

struct ks_map_line {
    size_t number; /* in the file, from 1                            */
    char *object;  /* "00_dense/kernel", or NULL for `ignore`; owned */
    char *glob;    /* the name of the source; owned                  */
};

struct ks_map {
    char *path;               /* owned */
    bool torch;               /* the layout is torch; else it is flax */
    struct ks_map_line *line; /* [n]; owned */
    size_t n, room;
};

/* Fails with KS_IO or KS_FORMAT. The caller ends with ks_map_clear, also after a failure. */
ks_status ks_map_read(const char *path, struct ks_map *map);
void ks_map_clear(struct ks_map *map);

/* The line of this object, or NULL. */
const struct ks_map_line *ks_map_find(const struct ks_map *map, const char *object);

#endif
