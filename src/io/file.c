#include "ks/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ks/memory.h"

enum { NAMES = 1000, MODE = 0666 }; /* names to try; the mode, which the umask narrows */

static atomic_uint counter; /* two threads never share a temporary name */

/* A disk that is full, over quota or at a limit, or that fails, is a failure half-way. */
static ks_status disk_failed(const struct ks_file *file, const char *what)
{
    int error = errno;
    ks_status status = error == EACCES || error == EPERM || error == EROFS ? KS_IO : KS_FULL;

    return ks_fail(status, "%s: cannot be %s: %s", file->path, what, strerror(error));
}

/* The folder of a path, "." where it names none; the caller frees. */
static ks_status folder_of(const char *path, char **folder)
{
    const char *slash = strrchr(path, '/');

    if (!slash)
        return ks_copy_string(".", folder);
    return ks_print_string(folder, "%.*s", (int)(slash == path ? 1 : slash - path), path);
}

static ks_status open_temporary(struct ks_file *file)
{
    int error = EEXIST; /* one that an earlier process of this number has left behind */

    for (int i = 0; i < NAMES && error == EEXIST; i++) {
        KS_TRY(ks_print_string(&file->temporary, "%s/.kappascope-%ld-%u.tmp", file->folder,
                               (long)getpid(), atomic_fetch_add(&counter, 1)));
        file->descriptor = open(file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, MODE);
        if (file->descriptor >= 0)
            return KS_OK;
        error = errno;
        free(file->temporary);
        file->temporary = NULL;
    }
    return ks_fail(error == ENOSPC || error == EDQUOT ? KS_FULL : KS_IO,
                   "%s: cannot be created: %s", file->path, strerror(error));
}

ks_status ks_file_create(const char *path, struct ks_file *file)
{
    struct stat there;

    *file = (struct ks_file){.descriptor = -1};
    KS_TRY(ks_copy_string(path, &file->path));
    KS_TRY(folder_of(path, &file->folder)); /* now: what follows the rename must not fail */
    if (stat(path, &there) == 0 && !S_ISREG(there.st_mode))
        return ks_fail(KS_IO, "%s: cannot be created: it is there and %s", path,
                       S_ISDIR(there.st_mode) ? "a folder" : "no regular file");
    return open_temporary(file);
}

/* A rename is only safe once the folder that records it is on the disk. Folders that cannot be
 * opened or flushed (some network file systems) are left to the system. */
static ks_status flush_folder(const struct ks_file *file)
{
    int descriptor = open(file->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ks_status status = KS_OK;

    if (descriptor >= 0 && fsync(descriptor) != 0 && errno != EINVAL && errno != ENOTSUP)
        status = disk_failed(file, "flushed");
    if (descriptor >= 0)
        close(descriptor);
    return status;
}

ks_status ks_file_commit(struct ks_file *file, const void *bytes, size_t size)
{
    const char *next = bytes;
    int closed;

    while (size > 0) {
        ssize_t written = write(file->descriptor, next, size);

        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return disk_failed(file, "written");
        next += written;
        size -= (size_t)written;
    }
    if (fsync(file->descriptor) != 0 && errno != EINVAL)
        return disk_failed(file, "flushed");
    closed = close(file->descriptor);
    file->descriptor = -1;
    if (closed != 0)
        return disk_failed(file, "closed");
    if (rename(file->temporary, file->path) != 0)
        return ks_fail(KS_IO, "%s: cannot be put in its place: %s", file->path, strerror(errno));
    free(file->temporary);
    file->temporary = NULL;
    return flush_folder(file);
}

void ks_file_close(struct ks_file *file)
{
    if (file->descriptor >= 0)
        close(file->descriptor);
    if (file->temporary)
        unlink(file->temporary);
    free(file->temporary);
    free(file->folder);
    free(file->path);
    *file = (struct ks_file){.descriptor = -1};
}

ks_status ks_file_write(const char *path, const void *bytes, size_t size)
{
    struct ks_file file;
    ks_status status = ks_file_create(path, &file);

    if (status == KS_OK)
        status = ks_file_commit(&file, bytes, size);
    ks_file_close(&file);
    return status;
}
