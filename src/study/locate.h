/* Finds the project's programs and shipped files, installed or in the build tree. */
#ifndef KS_STUDY_LOCATE_H
#define KS_STUDY_LOCATE_H

#include "core/error.h"

/* *path = the program of that name in the folder of the running program, else in PATH. The caller
 * frees it. KS_MISSING if it is in neither. */
ks_status ks_locate_program(const char *name, char **path);
/* *path = a shipped file or folder ("configs/quick.study"). The first of these folders that has it
 * is used, FOLDER being the folder of the running program: FOLDER/../share/kappascope (installed),
 * FOLDER/../.. (in build/bin), the folder in which the project was built. The caller frees it.
 * KS_MISSING. */
ks_status ks_locate_shared(const char *relative, char **path);

#endif
