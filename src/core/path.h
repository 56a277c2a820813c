/* Parts of a path. Purely lexical: the file system is not consulted. */
#ifndef KS_CORE_PATH_H
#define KS_CORE_PATH_H

#include <stdbool.h>
#include <stddef.h>

/* The part after the last '/', or all of it. */
const char *ks_path_base(const char *path);
/* Whether the path has this ending and is longer than it. */
bool ks_path_ends(const char *path, const char *ending);
/* The length of the path without the ending, or its full length if it does not have it. */
size_t ks_path_stem(const char *path, const char *ending);

#endif
