#include "core/installed.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/memory.h"

ks_status ks_installed_folder(char **folder)
{
    char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);

    *folder = NULL;
    if (length < 0)
        return ks_fail(KS_IO, "/proc/self/exe: cannot be read: %s", strerror(errno));
    path[length] = '\0';
    *strrchr(path, '/') = '\0';
    return ks_copy_string(path, folder);
}

ks_status ks_installed_find(const char *relative, char **path)
{
    char *folder = NULL;
    ks_status status;

    *path = NULL;
    KS_TRY(ks_installed_folder(&folder));
    status = ks_print_string(path, "%s/%s", folder, relative);
    free(folder);
    if (status == KS_OK && access(*path, F_OK) != 0) {
        free(*path);
        *path = NULL;
    }
    return status;
}
