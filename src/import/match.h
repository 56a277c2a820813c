/* What a map makes of a file: the sources of each array of the critic, and what is left over. */
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
    const struct ks_map_line *line; /* NULL: the map has none     */
    struct ks_source *list;         /* [n], with room for more; owned */
    size_t n, room;
};

struct ks_match {
    const struct ks_map *map;
    const struct ks_weights *weights;
    struct ks_found *found; /* [n], one for each object that the file must have; owned */
    size_t n;
    bool states; /* running statistics are among them */
    /* [weights->n] the first two lines of the map that match; NULL: none. Owned. */
    struct ks_matching_lines {
        const struct ks_map_line *first, *second;
    } * uses;
};

/* Running statistics must be in the file if the map has a line for one of them. Fails with
 * KS_FORMAT if the map names an array that the description does not have. The caller ends with
 * ks_match_clear, also after a failure; map, file and objects must live as long. */
ks_status ks_match_make(const struct ks_map *map, const struct ks_weights *weights,
                        const struct ks_objects *objects, struct ks_match *match);
void ks_match_clear(struct ks_match *match);

/* How often a listing found each of these, and the first line about any of them. */
struct ks_problems {
    size_t unused, missing, ambiguous;
    char first[512];
};
/* Prints what is taken, ignored, unused, ambiguous and missing, one line each, to `out` (NULL:
 * nothing is printed), and adds to *problems. */
void ks_match_list(const struct ks_match *match, FILE *out, struct ks_problems *problems);

#endif
