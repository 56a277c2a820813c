#include "io/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/memory.h"

enum { NAMES = 1000, MODE = 0666 }; /* temporary names to try; a file's mode before umask */

static atomic_uint counter; /* part of the temporary name, which is thus unique among threads */

ks_status ks_file_status(int error)
{
    static const int path_errors[] = {EACCES, EPERM,  EROFS, ENOENT,       ENOTDIR,
                                      EISDIR, EEXIST, ELOOP, ENAMETOOLONG, ENOTEMPTY};

    for (size_t i = 0; i < sizeof path_errors / sizeof *path_errors; i++)
        if (error == path_errors[i])
            return KS_IO;
    return KS_FULL;
}

ks_status ks_file_fail(int error, const char *path, const char *what)
{
    return ks_fail(ks_file_status(error), "%s: cannot be %s: %s", path, what, strerror(error));
}

ks_status ks_file_put(int descriptor, const char *path, const void *bytes, size_t size)
{
    const char *next = bytes;

    while (size > 0) {
        ssize_t written = write(descriptor, next, size);

        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return ks_file_fail(errno, path, "written");
        next += written;
        size -= (size_t)written;
    }
    return KS_OK;
}

ks_status ks_file_flush(int descriptor, const char *path)
{
    return fsync(descriptor) != 0 && errno != EINVAL ? ks_file_fail(errno, path, "flushed") : KS_OK;
}

/* The folder of a path, "." if it has none; the caller frees. */
static ks_status folder_of(const char *path, char **folder)
{
    const char *slash = strrchr(path, '/');

    if (!slash)
        return ks_copy_string(".", folder);
    return ks_print_string(folder, "%.*s", (int)(slash == path ? 1 : slash - path), path);
}

static uint32_t add_to_hash(uint32_t hash, const void *bytes, size_t size)
{
    for (const unsigned char *byte = bytes; size > 0; size--)
        hash = (hash ^ *byte++) * 16777619U; /* FNV-1a */
    return hash;
}

/* A hash of the host name and the PID namespace: processes with the same hash see each other's
 * PIDs, so kill() tells whether one of them is alive. */
static uint32_t hash_host(void)
{
    char name[256] = "";
    uint32_t hash = 2166136261U;
    struct stat space;

    if (gethostname(name, sizeof name - 1) == 0)
        hash = add_to_hash(hash, name, strlen(name));
    if (stat("/proc/self/ns/pid", &space) == 0)
        hash = add_to_hash(hash, &space.st_ino, sizeof space.st_ino);
    return hash;
}

static ks_status open_temporary(struct ks_file *file)
{
    int error = EEXIST; /* an earlier process with this PID may have left one */

    for (int i = 0; i < NAMES && error == EEXIST; i++) {
        KS_TRY(ks_print_string(&file->temporary, "%s/.kappascope-%08x-%ld-%u.tmp", file->folder,
                               (unsigned)hash_host(), (long)getpid(),
                               atomic_fetch_add(&counter, 1)));
        file->descriptor = open(file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, MODE);
        if (file->descriptor >= 0)
            return KS_OK;
        error = errno;
        free(file->temporary);
        file->temporary = NULL;
    }
    return ks_file_fail(error, file->path, "created");
}

ks_status ks_file_create(const char *path, struct ks_file *file)
{
    struct stat found;

    *file = (struct ks_file){.descriptor = -1};
    KS_TRY(ks_copy_string(path, &file->path));
    KS_TRY(folder_of(path, &file->folder)); /* now, because nothing after the rename may fail */
    if (stat(path, &found) != 0 && errno == ENAMETOOLONG) /* the temporary name may be shorter */
        return ks_file_fail(ENAMETOOLONG, path, "created");
    if (stat(path, &found) == 0 && !S_ISREG(found.st_mode))
        return ks_fail(KS_IO, "%s: cannot be created: it exists and is %s", path,
                       S_ISDIR(found.st_mode) ? "a directory" : "a special file");
    return open_temporary(file);
}

ks_status ks_folder_flush(const char *folder)
{
    int descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ks_status status = KS_OK;

    if (descriptor >= 0 && fsync(descriptor) != 0 && errno != EINVAL && errno != ENOTSUP)
        status = ks_file_fail(errno, folder, "flushed");
    if (descriptor >= 0)
        close(descriptor);
    return status;
}

/* The rename survives a crash only after the folder is flushed. */
ks_status ks_file_commit(struct ks_file *file, const void *bytes, size_t size)
{
    int closed;

    KS_TRY(ks_file_put(file->descriptor, file->path, bytes, size));
    KS_TRY(ks_file_flush(file->descriptor, file->path));
    closed = close(file->descriptor);
    file->descriptor = -1;
    if (closed != 0)
        return ks_file_fail(errno, file->path, "closed");
    if (rename(file->temporary, file->path) != 0)
        return ks_file_fail(errno, file->path, "renamed into place");
    free(file->temporary);
    file->temporary = NULL;
    return ks_folder_flush(file->folder);
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

ks_status ks_folder_lock(const char *folder, const char *program, int *descriptor)
{
    *descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*descriptor < 0)
        return ks_file_fail(errno, folder, "opened");
    if (flock(*descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return ks_fail(KS_IO, "%s: in use by another %s", folder, program);
    return KS_OK;
}

/* Whether a file is a temporary one whose process on this host is dead. Names without HOST, of the
 * first versions of this program, count as files of this host. */
static bool is_abandoned(const char *name, unsigned host)
{
    unsigned found = host;
    long number = 0;
    int length = 0;

    if (sscanf(name, ".kappascope-%8x-%ld-%*u.tmp%n", &found, &number, &length) != 2 ||
        length == 0) {
        found = host;
        sscanf(name, ".kappascope-%ld-%*u.tmp%n", &number, &length);
    }
    if (length == 0 || name[length] || number <= 0 || found != host)
        return false;
    return number == (long)getpid() || (kill((pid_t)number, 0) != 0 && errno == ESRCH);
}

ks_status ks_folder_sweep(const char *folder)
{
    DIR *list = opendir(folder);
    const unsigned host = hash_host();
    struct dirent *entry;

    if (!list)
        return ks_file_fail(errno, folder, "opened");
    while ((entry = readdir(list)))
        if (is_abandoned(entry->d_name, host))
            unlinkat(dirfd(list), entry->d_name, 0); /* a failure does not matter */
    closedir(list);
    return KS_OK;
}
