/* Atomic writing: a file appears complete or not at all.
 *
 * The bytes go to a temporary file in the same folder (".kappascope-HOST-PID-N.tmp", HOST of eight
 * hexadecimal digits), which is flushed with fsync and renamed over the old file; then the folder
 * is flushed. Until the rename the old file is untouched, and a failure removes the temporary file.
 */
#ifndef KS_IO_FILE_H
#define KS_IO_FILE_H

#include <stddef.h>

#include "core/error.h"

struct ks_file {
    char *path, *folder, *temporary; /* owned */
    int descriptor;                  /* of the temporary file; -1: closed */
};

/* Opens the temporary file, so that a folder without write permission is noticed before any work is
 * done. Fails with KS_IO; refuses a path that exists and is not a regular file. The caller ends
 * with ks_file_close, also after a failure. */
ks_status ks_file_create(const char *path, struct ks_file *file);
/* Writes the bytes and renames the file into place. Fails with KS_FULL (a full disk) or KS_IO. */
ks_status ks_file_commit(struct ks_file *file, const void *bytes, size_t size);
/* Removes the temporary file unless it was committed; frees what `file` holds. */
void ks_file_close(struct ks_file *file);

/* Create, commit and close: for bytes that are in memory already. */
ks_status ks_file_write(const char *path, const void *bytes, size_t size);

/* For files that grow. ks_file_put writes all bytes to an open descriptor; ks_file_flush calls
 * fsync; ks_folder_flush makes what was created or removed in a folder survive a crash, where the
 * file system can open and flush folders (some network file systems cannot). Fail with KS_FULL or
 * KS_IO, naming the path. */
ks_status ks_file_put(int descriptor, const char *path, const void *bytes, size_t size);
ks_status ks_file_flush(int descriptor, const char *path);
ks_status ks_folder_flush(const char *folder);
/* The status for the errno of a call that changes a disk: KS_IO for path and permission errors,
 * KS_FULL for everything else (ENOSPC, EIO, ...). */
ks_status ks_file_status(int error);
/* Records "PATH: cannot be WHAT: ..." and returns that status. */
ks_status ks_file_fail(int error, const char *path, const char *what);

/* Locks the folder against other processes of this program while *descriptor, which the caller
 * closes, is open. On a file system without locks it succeeds without locking. Fails with KS_IO if
 * another process holds the lock; *descriptor is -1 if the folder could not be opened. */
ks_status ks_folder_lock(const char *folder, const char *program, int *descriptor);

/* Removes temporary files left in the folder by dead processes on this host, and those with this
 * process's own PID: call it at the start, before creating any. Files with another HOST (another
 * machine, or a container with its own PIDs) stay, since their processes may be alive. */
ks_status ks_folder_sweep(const char *folder);

#endif
