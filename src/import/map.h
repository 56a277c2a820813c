/* A map (`*.map`): which array of a file is which array of a critic. One line each; '#' starts a
 * comment:
 *
 *   layout = torch                            kernels are [out, in] and are transposed; or flax:
 *                                             [in, out]. Required
 *   00_dense/kernel = critic.net.0.weight     an array of the critic, and the name of its source
 *   02_dense/kernel = critics.*.net.2.weight  with wildcards (glob.h): one critic per match
 *   ignore actor.**                           what is deliberately left out */
#ifndef KS_IMPORT_MAP_H
#define KS_IMPORT_MAP_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"

struct ks_map_line {
    size_t number; /* in the file, from 1                            */
    char *object;  /* "00_dense/kernel"; NULL: `ignore`. Owned       */
    char *glob;    /* owned                                          */
};

struct ks_map {
    char *path;               /* owned */
    bool torch;               /* layout=torch; else layout=flax */
    struct ks_map_line *line; /* [n]; owned */
    size_t n, room;
};

/* Fails with KS_IO or KS_FORMAT. The caller ends with ks_map_clear, also after a failure. */
ks_status ks_map_read(const char *path, struct ks_map *map);
void ks_map_clear(struct ks_map *map);

/* The line of this object, or NULL. */
const struct ks_map_line *ks_map_find(const struct ks_map *map, const char *object);

#endif
