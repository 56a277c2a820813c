#include "study/locate.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/installed.h"
#include "core/memory.h"
#include "io/text.h"

#ifndef KS_SHARE_DIR
#define KS_SHARE_DIR "." /* the Makefile sets it to the folder of the sources */
#endif

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

/* Relative to PREFIX/bin of an installation, and to build/bin of the build tree. */
static const char *const SHARED[] = {"../share/kappascope", "../.."};

ks_status ks_locate_shared(const char *relative, char **path)
{
    *path = NULL;
    for (size_t i = 0; i < sizeof SHARED / sizeof *SHARED && !*path; i++) {
        char *beside = NULL;
        ks_status status;

        KS_TRY(ks_print_string(&beside, "%s/%s", SHARED[i], relative));
        status = ks_installed_find(beside, path);
        free(beside);
        KS_TRY(status);
    }
    if (*path)
        return KS_OK;
    KS_TRY(ks_print_string(path, "%s/%s", KS_SHARE_DIR, relative));
    if (ks_path_exists(*path))
        return KS_OK;
    free(*path);
    *path = NULL;
    return ks_fail(KS_MISSING, "%s: not found among the project's files", relative);
}
