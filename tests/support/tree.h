/* A temporary folder with subfolders, for tests. */
#ifndef KS_TREE_H
#define KS_TREE_H

#define _XOPEN_SOURCE 700 /* nftw, mkdtemp */
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test.h"

static char tree[64];

static inline int tree_make(void **state)
{
    (void)state;
    snprintf(tree, sizeof tree, "/tmp/kappascope-tree-XXXXXX");
    return mkdtemp(tree) ? 0 : -1;
}

static inline int tree_remove_one(const char *path, const struct stat *there, int type,
                                  struct FTW *walk)
{
    (void)there;
    (void)type;
    (void)walk;
    return remove(path);
}

static inline int tree_remove(void **state)
{
    (void)state;
    return nftw(tree, tree_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* The path of `name` in the folder, in one of eight buffers used in turn. */
static inline const char *tree_path(const char *name)
{
    static char paths[8][512];
    static int turn;
    char *path = paths[turn++ % 8];

    snprintf(path, sizeof paths[0], "%s/%s", tree, name);
    return path;
}

static inline bool tree_has(const char *name)
{
    return access(tree_path(name), F_OK) == 0;
}

/* Writes a file and creates its parent folders. */
static inline void tree_write(const char *name, const char *text)
{
    char path[512];
    FILE *file;

    snprintf(path, sizeof path, "%s", tree_path(name));
    for (char *slash = path + strlen(tree) + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = '\0';
        mkdir(path, 0777);
    }
    file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* A file's text in a static buffer, truncated to its size. */
static inline const char *tree_text(const char *name)
{
    static char text[1 << 16];
    FILE *file = fopen(tree_path(name), "r");

    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

#endif
