/* Splitting paths. Purely lexical: the file system is not consulted. */
#ifndef KS_CORE_PATH_H
#define KS_CORE_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "core/error.h"

/* The path behind its last '/', or all of it. */
const char *ks_path_base(const char *path);
/* Whether the path has this ending and is longer than it. */
bool ks_path_ends(const char *path, const char *ending);
/* The length of the path without the ending, or its full length if it does not have it. */
size_t ks_path_stem(const char *path, const char *ending);

/* Opens a regular file for reading; the caller closes it. KS_IO: also for a named pipe or a device,
 * which could block or never end. */
ks_status ks_path_open(const char *path, FILE **file);

/* --- files that come with the programs, which are found relative to the running program, so that
 * an installation can be moved --- */

/* The folder of the running program; the caller frees *folder. KS_IO. */
ks_status ks_installed_folder(char **folder);
/* *path is "FOLDER/relative", or NULL if no such file or folder exists; the caller frees it. KS_IO.
 */
ks_status ks_installed_find(const char *relative, char **path);
/* *path = a shipped file or folder ("configs/quick.study"). The first of these folders that has it
 * is used, FOLDER being the folder of the running program: FOLDER/../share/kappascope (installed),
 * FOLDER/../.. (in build/bin), the folder in which the project was built. The caller frees it.
 * KS_MISSING. */
ks_status ks_installed_shared(const char *relative, char **path);

#endif
