/* A map applied to a file: the sources of each array of the critic, and the arrays that are left.
 */
#ifndef KS_IMPORT_MATCH_H
#define KS_IMPORT_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "core/error.h"
#include "import/glob.h"
#include "import/map.h"
#include "import/objects.h"
#include "import/weights.h"

struct ks_source {
    const struct ks_stored *stored;
    struct ks_glob_parts parts; /* of its name */
};

/* The sources of one array: one for each critic, in the order of their names. */
struct ks_found {
    const struct ks_object *object;
    const struct ks_map_line *line; /* NULL if the map has none for it  */
    struct ks_source *list;         /* [n], with room for more; owned   */
    size_t n, room;
};

struct ks_match {
    const struct ks_map *map;
    const struct ks_weights *weights;
    struct ks_found
        *found; /* [n], one for each array of the critic that the file must have; owned */
    size_t n;
    bool states; /* running statistics are among them */
    /* [weights->n], owned: the first two lines of the map that match each array of the file. NULL
     * if there is no such line. */
    struct ks_matching_lines {
        const struct ks_map_line *first, *second;
    } * uses;
};

/* Finds the sources. The file must have running statistics if the map has a line for one of them,
 * or if a layer needs them in training mode. Fails with KS_FORMAT if the map names an array that
 * the description does not have. The caller ends with ks_match_clear, also after a failure. Until
 * then map, file and objects must exist. */
ks_status ks_match_make(const struct ks_map *map, const struct ks_weights *weights,
                        const struct ks_objects *objects, struct ks_match *match);
void ks_match_clear(struct ks_match *match);

/* How often a listing found each of these, and the first line about any of them. */
struct ks_problems {
    size_t unused, missing, ambiguous;
    char first[512];
};
/* Prints a line for everything that is taken, ignored, unused, ambiguous or missing to `out`,
 * unless that is NULL, and adds to *problems. */
void ks_match_list(const struct ks_match *match, FILE *out, struct ks_problems *problems);

#endif
