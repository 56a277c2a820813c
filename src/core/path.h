/* Parts of a path, by its letters alone. */
#ifndef KS_CORE_PATH_H
#define KS_CORE_PATH_H

#include <stdbool.h>
#include <stddef.h>

/* What stands behind the last '/'. */
const char *ks_path_base(const char *path);
/* The path has this ending, and something before it. */
bool ks_path_ends(const char *path, const char *ending);
/* The length without the ending, where it has it. */
size_t ks_path_stem(const char *path, const char *ending);

#endif
