/* Files that come with the programs are found relative to the running program, so that an
 * installation can be moved. */
#ifndef KS_CORE_INSTALLED_H
#define KS_CORE_INSTALLED_H

#include "core/error.h"

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
