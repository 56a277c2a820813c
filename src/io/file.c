#include "io/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "core/memory.h"
#include "core/process.h"

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
        KS_TRY(ks_path_print(file->temporary, "%s/.kappascope-%08x-%ld-%u.tmp", file->folder,
                             (unsigned)hash_host(), (long)getpid(), atomic_fetch_add(&counter, 1)));
        file->descriptor = open(file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, MODE);
        if (file->descriptor >= 0)
            return KS_OK;
        error = errno;
        *file->temporary = '\0';
    }
    return ks_file_fail(error, file->path, "created");
}

ks_status ks_file_create(const char *path, struct ks_file *file)
{
    const char *slash = strrchr(path, '/');
    struct stat found;

    *file = (struct ks_file){.descriptor = -1};
    if (stat(path, &found) != 0 && errno == ENAMETOOLONG) /* the temporary name may be shorter */
        return ks_file_fail(ENAMETOOLONG, path, "created");
    if (stat(path, &found) == 0 && !S_ISREG(found.st_mode))
        return ks_fail(KS_IO, "%s: cannot be created: it exists and is %s", path,
                       S_ISDIR(found.st_mode) ? "a directory" : "a special file");
    KS_TRY(ks_path_print(file->path, "%s", path));
    KS_TRY(ks_path_print(file->folder, "%.*s", slash && slash > path ? (int)(slash - path) : 1,
                         slash ? path : "."));
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
    *file->temporary = '\0';
    return ks_folder_flush(file->folder);
}

void ks_file_close(struct ks_file *file)
{
    if (file->descriptor >= 0)
        close(file->descriptor);
    if (*file->temporary)
        unlink(file->temporary);
    *file = (struct ks_file){.descriptor = -1};
}

ks_status ks_file_write(const char *path, const void *bytes, size_t size)
{
    KS_CLEARED_BY(ks_file_close) struct ks_file file = {.descriptor = -1};

    KS_TRY(ks_file_create(path, &file));
    return ks_file_commit(&file, bytes, size);
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

/* --- paths --- */

static ks_status print_path(char path[KS_PATH], const char *format, va_list arguments)
{
    return vsnprintf(path, KS_PATH, format, arguments) < KS_PATH
               ? KS_OK
               : ks_fail(KS_IO, "%.100s...: %s", path, strerror(ENAMETOOLONG));
}

ks_status ks_path_print(char path[KS_PATH], const char *format, ...)
{
    va_list arguments;
    ks_status status;

    va_start(arguments, format);
    status = print_path(path, format, arguments);
    va_end(arguments);
    return status;
}

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

/* --- text --- */

static ks_status read_stream(FILE *file, const char *path, char **bytes, size_t *size)
{
    struct stat about;
    size_t room = fstat(fileno(file), &about) == 0 ? (size_t)about.st_size + 2 : 1 << 16, used = 0;
    KS_OWNED char *text = NULL;

    KS_TRY(ks_alloc(room, 1, &text)); /* zeroed, as what ks_grow adds is */
    while (used += fread(text + used, 1, room - 1 - used, file), used == room - 1)
        KS_TRY(ks_grow(room, 1, &room, &text));
    if (ferror(file))
        return ks_fail(KS_IO, "%s: cannot be read: %s", path, strerror(errno));
    if (!size && strlen(text) != used)
        return ks_fail(KS_FORMAT, "%s: expected text, found a zero byte", path);
    *bytes = text, text = NULL;
    if (size)
        *size = used;
    return KS_OK;
}

ks_status ks_text_read(const char *path, char **bytes, size_t *size)
{
    KS_OWNED_BY(ks_path_close) FILE *file = NULL;

    *bytes = NULL;
    KS_TRY(ks_path_open(path, &file));
    return read_stream(file, path, bytes, size);
}

ks_status ks_text_open(struct ks_text *text, const char *format, ...)
{
    va_list arguments;
    ks_status status;

    *text = (struct ks_text){.stream = NULL};
    va_start(arguments, format);
    status = print_path(text->path, format, arguments);
    va_end(arguments);
    KS_TRY(status);
    text->stream = open_memstream(&text->bytes, &text->size);
    return text->stream ? KS_OK : ks_fail(KS_MEMORY, "%s: out of memory", text->path);
}

ks_status ks_text_close(struct ks_text *text, ks_status status)
{
    bool failed = text->stream && ferror(text->stream) != 0;

    if (text->stream && fclose(text->stream) != 0)
        failed = true;
    if (status == KS_OK && failed)
        status = ks_fail(KS_MEMORY, "%s: out of memory", text->path);
    if (status == KS_OK)
        status = ks_file_write(text->path, text->bytes, text->size);
    free(text->bytes);
    *text = (struct ks_text){.stream = NULL};
    return status;
}

bool ks_path_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

bool ks_link_dangles(const char *path)
{
    struct stat about;

    return lstat(path, &about) == 0 && S_ISLNK(about.st_mode) && !ks_path_exists(path);
}

ks_status ks_folder_make(const char *format, ...)
{
    char path[KS_PATH];
    va_list arguments;
    ks_status status;
    struct stat found;

    va_start(arguments, format);
    status = print_path(path, format, arguments);
    va_end(arguments);
    KS_TRY(status);
    for (char *c = path, end; *c; *c = end) {
        c += 1 + strcspn(c + 1, "/");
        end = *c;
        *c = '\0';
        if (mkdir(path, 0777) != 0 && errno != EEXIST)
            return ks_file_fail(errno, path, "created");
    }
    return stat(path, &found) == 0 && S_ISDIR(found.st_mode)
               ? KS_OK
               : ks_fail(KS_IO, "%s: exists and is not a directory", path);
}

/* --- SHA-256 --- */

enum { BLOCK = 1 << 16 };

void ks_sha256_print(const unsigned char digest[KS_SHA256_BYTES], char text[KS_SHA256_TEXT])
{
    for (size_t i = 0; i < KS_SHA256_BYTES; i++)
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
}

ks_status ks_sha256(size_t n, const struct ks_piece *piece, unsigned char digest[KS_SHA256_BYTES])
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool good = context && EVP_DigestInit_ex(context, EVP_sha256(), NULL) == 1;

    for (size_t i = 0; good && i < n; i++)
        good = EVP_DigestUpdate(context, piece[i].bytes, piece[i].size) == 1;
    good = good && EVP_DigestFinal_ex(context, digest, NULL) == 1;
    EVP_MD_CTX_free(context);
    return good ? KS_OK : ks_fail(KS_RUN, "libcrypto failed to compute SHA-256");
}

ks_status ks_sha256_file(const char *path, char text[KS_SHA256_TEXT])
{
    unsigned char block[BLOCK], digest[KS_SHA256_BYTES];
    EVP_MD_CTX *context = NULL;
    FILE *file;
    bool good;
    size_t n;
    int failure;

    KS_TRY(ks_path_open(path, &file));
    context = EVP_MD_CTX_new();
    good = context && EVP_DigestInit_ex(context, EVP_sha256(), NULL) == 1;
    while (good && (n = fread(block, 1, sizeof block, file)) > 0)
        good = EVP_DigestUpdate(context, block, n) == 1;
    good = good && EVP_DigestFinal_ex(context, digest, NULL) == 1;
    failure = ferror(file) ? errno : 0;
    EVP_MD_CTX_free(context);
    fclose(file);
    if (failure)
        return ks_fail(KS_IO, "%s: cannot be read: %s", path, strerror(failure));
    if (!good)
        return ks_fail(KS_RUN, "%s: libcrypto failed to compute SHA-256", path);
    ks_sha256_print(digest, text);
    return KS_OK;
}
