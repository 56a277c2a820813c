/* Files that appear whole or not at all.
 *
 * The bytes go to a temporary name in the same folder (".kappascope-HOST-PID-N.tmp", HOST of eight
 * digits), which is flushed with fsync and renamed over the old file; then the folder is flushed.
 * Until the rename the old file is untouched, and a failure removes the temporary file. */
#ifndef KS_IO_FILE_H
#define KS_IO_FILE_H

#include <stddef.h>

#include "core/error.h"

struct ks_file {
    char *path, *folder, *temporary; /* owned */
    int descriptor;                  /* of the temporary file; -1: closed */
};

/* Opens the temporary file, so that a folder that cannot be written is known before the work is
 * done. Fails with KS_IO; refuses a path that is there and no regular file. The caller ends with
 * ks_file_close, whatever happens. */
ks_status ks_file_create(const char *path, struct ks_file *file);
/* Writes the bytes and puts the file in its place. Fails with KS_FULL (a full disk) or KS_IO. */
ks_status ks_file_commit(struct ks_file *file, const void *bytes, size_t size);
/* Removes the temporary file of a file that was not committed; frees what `file` holds. */
void ks_file_close(struct ks_file *file);

/* The three in a row: for files that are ready in memory. */
ks_status ks_file_write(const char *path, const void *bytes, size_t size);

/* For files that grow: writes all bytes to an open descriptor, flushes it with fsync; flushes a
 * folder, so that what was created or removed in it stays so. Folders that cannot be opened or
 * flushed (some network file systems) are left to the system. Fail with KS_FULL or KS_IO, naming
 * the path. */
ks_status ks_file_put(int descriptor, const char *path, const void *bytes, size_t size);
ks_status ks_file_flush(int descriptor, const char *path);
ks_status ks_folder_flush(const char *folder);
/* What an errno of a call that changes a disk means: KS_IO where the place is none to write to (not
 * there, not allowed), else KS_FULL, as of a disk that is full or fails. And the failure's words:
 * "PATH: cannot be WHAT: ...". */
ks_status ks_file_status(int error);
ks_status ks_file_fail(int error, const char *path, const char *what);

/* Keeps other processes of this program out of the folder while *descriptor, which the caller
 * closes, is open. Where the file system knows no locks, that is left to the user. Fails with KS_IO
 * where another is in it; *descriptor is -1 where it could not be opened. */
ks_status ks_folder_lock(const char *folder, const char *program, int *descriptor);

/* Removes the temporary files that processes of this machine which live no more have left in the
 * folder, and those of this process's number: for a start, before any is made. Processes of another
 * machine, or with process numbers of their own as in a container, are not known to have ended:
 * their files have another HOST and stay. */
ks_status ks_folder_sweep(const char *folder);

#endif
