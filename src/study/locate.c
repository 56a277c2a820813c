#include "study/locate.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/memory.h"
#include "io/text.h"

#ifndef KS_SHARE_DIR
#define KS_SHARE_DIR "." /* the build says where the project's folder is */
#endif

ks_status ks_locate_folder(char **folder)
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

static bool is_program(const char *path)
{
    struct stat there;

    return stat(path, &there) == 0 && S_ISREG(there.st_mode) && access(path, X_OK) == 0;
}

/* *path = folder/name if that is a program, else NULL. */
static ks_status try_program(int length, const char *folder, const char *name, char **path)
{
    KS_TRY(ks_print_string(path, "%.*s/%s", length, folder, name));
    if (!is_program(*path)) {
        free(*path);
        *path = NULL;
    }
    return KS_OK;
}

ks_status ks_locate_program(const char *name, char **path)
{
    const char *search = getenv("PATH");
    ks_status status;
    char *folder = NULL;

    *path = NULL;
    KS_TRY(ks_locate_folder(&folder));
    status = try_program((int)strlen(folder), folder, name, path);
    while (status == KS_OK && !*path && search && *search) {
        size_t length = strcspn(search, ":");

        if (length > 0)
            status = try_program((int)length, search, name, path);
        search += length + (search[length] == ':');
    }
    if (status == KS_OK && !*path)
        status = ks_fail(KS_MISSING, "%s: no such program in %s or in PATH", name, folder);
    free(folder);
    return status;
}

ks_status ks_locate_shared(const char *relative, char **path)
{
    char *folder = NULL;
    ks_status status;

    KS_TRY(ks_locate_folder(&folder));
    status = ks_print_string(path, "%s/../../%s", folder, relative);
    free(folder);
    if (status != KS_OK || ks_path_exists(*path))
        return status;
    free(*path);
    KS_TRY(ks_print_string(path, "%s/%s", KS_SHARE_DIR, relative));
    if (ks_path_exists(*path))
        return KS_OK;
    free(*path);
    *path = NULL;
    return ks_fail(KS_MISSING, "%s: not found among the project's files", relative);
}
