/* Where things are: this program, those beside it, the files that the project ships. */
#ifndef KS_STUDY_LOCATE_H
#define KS_STUDY_LOCATE_H

#include "core/error.h"

/* The program of that name beside the running one, else in PATH; the caller frees *path. Fails with
 * KS_MISSING. */
ks_status ks_locate_program(const char *name, char **path);
/* A shipped file or folder ("configs/quick.study"): in ../share/kappascope beside the running
 * program's folder where it is installed, else two folders above it (the build tree: build/bin),
 * else where the project was built; the caller frees *path. Fails with KS_MISSING. */
ks_status ks_locate_shared(const char *relative, char **path);

#endif
