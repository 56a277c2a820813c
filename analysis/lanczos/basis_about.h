/* What a file of kept Lanczos steps holds (basis.h), without the analysis that wrote it. */
#ifndef KS_LANCZOS_BASIS_ABOUT_H
#define KS_LANCZOS_BASIS_ABOUT_H

#include <stddef.h>

#include "core/error.h"

struct ks_basis_about {
    char *fingerprint;   /* "NAME VALUE" lines: what the numbers depend on; owned               */
    size_t length;       /* numbers of a vector in this file: those of its MPI rank             */
    size_t number_bytes; /* 8, or 4 in float32                                                  */
    size_t steps;        /* complete, undamaged steps                                           */
    size_t extra;        /* bytes after the last of them: an interrupted or damaged step        */
};

/* Reads the file and verifies the checksum of every step, one at a time. KS_FORMAT if it is not a
 * basis file or its header is damaged, KS_IO. The caller frees about->fingerprint. */
ks_status ks_basis_look(const char *path, struct ks_basis_about *about);

#endif
