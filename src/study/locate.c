#include "study/locate.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/installed.h"
#include "core/memory.h"

static bool is_program(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 && S_ISREG(info.st_mode) && access(path, X_OK) == 0;
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
    KS_TRY(ks_installed_folder(&folder));
    status = try_program((int)strlen(folder), folder, name, path);
    while (status == KS_OK && !*path && search && *search) {
        size_t length = strcspn(search, ":");

        if (length > 0)
            status = try_program((int)length, search, name, path);
        search += length + (search[length] == ':');
    }
    if (status == KS_OK && !*path)
        status = ks_fail(KS_MISSING, "%s: not found in %s or in PATH", name, folder);
    free(folder);
    return status;
}
