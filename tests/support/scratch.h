/* A temporary folder for a test program's files, and helpers that read and write files. */
#ifndef KS_SCRATCH_H
#define KS_SCRATCH_H

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test.h"

static char scratch_folder[] = "/tmp/kappascope-test-XXXXXX";

/* Setup and teardown of a group of tests: cmocka_run_group_tests(tests, scratch_make,
 * scratch_remove). */
static inline int scratch_make(void **state)
{
    (void)state;
    return mkdtemp(scratch_folder) ? 0 : -1;
}

/* The number of files in the folder, including hidden ones; removes them if `clean`. */
static inline size_t scratch_files(bool clean)
{
    DIR *folder = opendir(scratch_folder);
    struct dirent *entry;
    char path[512];
    size_t n = 0;

    assert_non_null(folder);
    while ((entry = readdir(folder))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", scratch_folder, entry->d_name);
        if (clean)
            remove(path);
        n++;
    }
    closedir(folder);
    return n;
}

static inline int scratch_clean(void **state)
{
    (void)state;
    scratch_files(true);
    return 0;
}

static inline int scratch_remove(void **state)
{
    scratch_clean(state);
    return rmdir(scratch_folder);
}

/* The path of `name` in the folder, in one of four buffers used in turn. */
static inline const char *scratch(const char *name)
{
    static char paths[4][512];
    static int turn;
    char *path = paths[turn++ % 4];

    snprintf(path, sizeof paths[0], "%s/%s", scratch_folder, name);
    return path;
}

/* A file's bytes; the caller frees. */
static inline unsigned char *read_bytes(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    unsigned char *bytes;
    struct stat stat;

    assert_non_null(file);
    assert_int_equal(fstat(fileno(file), &stat), 0);
    *size = (size_t)stat.st_size;
    bytes = malloc(*size + 1);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *size, file), *size);
    fclose(file);
    return bytes;
}

static inline void write_bytes(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* Writes the file `name` in the folder. */
static inline void write_text(const char *name, const char *text)
{
    write_bytes(scratch(name), text, strlen(text));
}

/* Both files have the same bytes. */
static inline void assert_same_files(const char *found, const char *expected)
{
    size_t n, m;
    unsigned char *a = read_bytes(found, &n), *b = read_bytes(expected, &m);

    assert_int_equal(n, m);
    assert_memory_equal(a, b, m);
    free(a);
    free(b);
}

/* The last error message is one line and names the file. */
static inline void assert_one_line(const char *path)
{
    if (!strstr(ks_error_text(), path) || strchr(ks_error_text(), '\n'))
        fail_msg("'%s' is not one line that names %s", ks_error_text(), path);
}

#endif
