/* Text files and folders. Whole files are written with ks_file_write. */
#ifndef KS_IO_TEXT_H
#define KS_IO_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "core/error.h"

/* A file's bytes with a 0 behind them in *bytes, which the caller frees; their number in *size (may
 * be NULL). Fails with KS_IO. */
ks_status ks_text_read(const char *path, char **bytes, size_t *size);

/* A file that is written to memory and appears, whole, when it is closed. */
struct ks_text {
    char *path, *bytes; /* owned */
    size_t size;
    FILE *stream; /* print here; errors are found at the end */
};
ks_status ks_text_open(const char *path, struct ks_text *text);
/* Puts the file in its place if `status` is KS_OK, and frees what `text` holds. Returns `status`,
 * or the failure to write. */
ks_status ks_text_close(struct ks_text *text, ks_status status);

bool ks_path_exists(const char *path); /* a file or a folder of that name is there */
/* The folder and those above it. Fails with KS_IO, KS_FULL where the disk is full. */
ks_status ks_folder_make(const char *path);

#endif
