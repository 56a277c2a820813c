#include "core/path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config.h"
#include "core/memory.h"

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

ks_status ks_path_open(const char *path, FILE **file)
{
    const int descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    const char *found = NULL;
    struct stat about;

    *file = NULL;
    if (descriptor < 0 || fstat(descriptor, &about) != 0)
        found = strerror(errno);
    else if (!S_ISREG(about.st_mode))
        found = S_ISDIR(about.st_mode) ? "it is a directory" : "it is a special file";
    else if (!(*file = fdopen(descriptor, "rb")))
        found = strerror(errno);
    if (found && descriptor >= 0)
        close(descriptor);
    return found ? ks_fail(KS_IO, "%s: cannot be opened: %s", path, found) : KS_OK;
}

/* --- files that come with the programs --- */

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

/* Relative to PREFIX/bin of an installation, and to build/bin of the build tree. */
static const char *const SHARED[] = {"../share/kappascope", "../.."};

ks_status ks_installed_shared(const char *relative, char **path)
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
    if (access(*path, F_OK) == 0)
        return KS_OK;
    free(*path);
    *path = NULL;
    return ks_fail(KS_MISSING, "%s: not found among the project's files", relative);
}
