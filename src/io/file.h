/* Files and folders: paths, reading, checksums; and atomic writing, by which a file appears
 * complete or not at all. The bytes go to a temporary file in the same folder
 * (".kappascope-HOST-PID-N.tmp", HOST of eight hexadecimal digits), which is flushed with fsync and
 * renamed over the old file; then the folder is flushed. Until the rename the old file is
 * untouched, and a failure removes the temporary file.
 */
#ifndef KS_IO_FILE_H
#define KS_IO_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "core/error.h"

/* --- paths; purely lexical: the file system is not consulted --- */

/* Prints a path. Fails with KS_IO if it is longer than the system's calls accept. */
enum { KS_PATH = 4096 };
ks_status ks_path_print(char path[KS_PATH], const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The path behind its last '/', or all of it. */
const char *ks_path_base(const char *path);
/* Whether the path has this ending and is longer than it. */
bool ks_path_ends(const char *path, const char *ending);
/* The length of the path without the ending, or its full length if it does not have it. */
size_t ks_path_stem(const char *path, const char *ending);

/* --- writing --- */

struct ks_file {
    char path[KS_PATH], folder[KS_PATH];
    char temporary[KS_PATH]; /* the temporary file; empty: none */
    int descriptor;          /* of the temporary file; -1: closed */
};

/* Opens the temporary file, so that a folder without write permission is noticed before any work is
 * done. Fails with KS_IO; refuses a path that exists and is not a regular file. The caller ends
 * with ks_file_close, also after a failure. */
ks_status ks_file_create(const char *path, struct ks_file *file);
/* Writes the bytes and renames the file into place. Fails with KS_FULL (a full disk) or KS_IO. */
ks_status ks_file_commit(struct ks_file *file, const void *bytes, size_t size);
/* Removes the temporary file unless it was committed, and closes it. */
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
 * closes, is open; on a network file system, those of this machine. On a file system without locks
 * it succeeds without locking. Fails with KS_IO if another process holds the lock; *descriptor is
 * -1 if the folder could not be opened. */
ks_status ks_folder_lock(const char *folder, const char *program, int *descriptor);

/* Removes temporary files left in the folder by dead processes on this host, and those with this
 * process's own PID: call it at the start, before creating any. Files with another HOST (another
 * machine, or a container with its own PIDs) stay, since their processes may be alive. */
ks_status ks_folder_sweep(const char *folder);

/* --- text --- */

/* Reads a file's bytes, followed by a zero, into *bytes, which the caller frees; their number into
 * *size. Fails with KS_IO; without `size`, which is for texts, with KS_FORMAT on a zero byte. */
ks_status ks_text_read(const char *path, char **bytes, size_t *size);

/* A file that is printed to memory and appears complete when it is closed. */
struct ks_text {
    char path[KS_PATH];
    char *bytes; /* owned */
    size_t size;
    FILE *stream; /* print here; ks_text_close checks for errors */
};
/* `format` and what follows print the path. After a failure there is nothing to close. */
ks_status ks_text_open(struct ks_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Writes the file if `status` is KS_OK, and frees what `text` holds. Returns `status`, or the
 * failure to write. */
ks_status ks_text_close(struct ks_text *text, ks_status status);

bool ks_path_exists(const char *path);  /* whether a file or folder of that name exists */
bool ks_link_dangles(const char *path); /* whether it is a link to a file that does not exist */
/* Creates the folder whose path these words print, and its missing parents. Fails with KS_IO, or
 * KS_FULL if the disk is full. */
ks_status ks_folder_make(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* --- SHA-256 (FIPS 180-4), by libcrypto --- */

enum { KS_SHA256_BYTES = 32, KS_SHA256_TEXT = 65 };

/* The digest of n pieces of memory, concatenated. Fails with KS_RUN if libcrypto fails. */
struct ks_piece {
    const void *bytes;
    size_t size;
};
ks_status ks_sha256(size_t n, const struct ks_piece *piece, unsigned char digest[KS_SHA256_BYTES]);

/* Prints a digest as 64 lower-case hexadecimal digits and a terminating zero. */
void ks_sha256_print(const unsigned char digest[KS_SHA256_BYTES], char text[KS_SHA256_TEXT]);

/* The printed digest of the file's bytes. Fails with KS_IO. */
ks_status ks_sha256_file(const char *path, char text[KS_SHA256_TEXT]);

#endif
