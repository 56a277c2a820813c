/* Text files and folders. To write bytes that are in memory already, use ks_file_write. */
#ifndef KS_IO_TEXT_H
#define KS_IO_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "core/error.h"

/* Reads a file's bytes, followed by a zero, into *bytes, which the caller frees; their number into
 * *size (may be NULL). Fails with KS_IO. */
ks_status ks_text_read(const char *path, char **bytes, size_t *size);

/* A file that is printed to memory and appears complete when it is closed. */
struct ks_text {
    char *path, *bytes; /* owned */
    size_t size;
    FILE *stream; /* print here; ks_text_close checks for errors */
};
ks_status ks_text_open(const char *path, struct ks_text *text);
/* Writes the file if `status` is KS_OK, and frees what `text` holds. Returns `status`, or the
 * failure to write. */
ks_status ks_text_close(struct ks_text *text, ks_status status);

bool ks_path_exists(const char *path); /* whether a file or folder of that name exists */
/* Creates the folder and its missing parents. Fails with KS_IO, or KS_FULL if the disk is full. */
ks_status ks_folder_make(const char *path);
ks_status ks_folder_make_in(const char *dir, const char *name); /* dir/name */

#endif
