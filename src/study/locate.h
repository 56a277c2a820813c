/* Finds the project's programs, installed or in the build tree. */
#ifndef KS_STUDY_LOCATE_H
#define KS_STUDY_LOCATE_H

#include "core/error.h"

/* *path = the program of that name in the folder of the running program, else in PATH. The caller
 * frees it. KS_MISSING if it is in neither. */
ks_status ks_locate_program(const char *name, char **path);

#endif
