#include "core/path.h"

#include <string.h>

const char *ks_path_base(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

bool ks_path_ends(const char *path, const char *ending)
{
    return ks_path_stem(path, ending) < strlen(path);
}

size_t ks_path_stem(const char *path, const char *ending)
{
    size_t length = strlen(path), end = strlen(ending);
    bool has = length > end && strcmp(path + length - end, ending) == 0;

    return has ? length - end : length;
}
