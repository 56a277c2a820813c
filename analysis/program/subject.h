/* What one analysis computes: the operator of one checkpoint, before a spectrum or a product. The
 * attributes of output files (provenance.h) follow from it and the options. */
#ifndef KS_PROGRAM_SUBJECT_H
#define KS_PROGRAM_SUBJECT_H

#include <stdbool.h>
#include <stddef.h>

#include "io/sha256.h"
#include "operators/operator.h"

struct ks_budget;

struct ks_subject {
    const char *path;            /* of the checkpoint                                  */
    char digest[KS_SHA256_TEXT]; /* the SHA-256 of that file                           */
    bool raw;                    /* the targets are /batch/target_raw                  */
    struct ks_problem problem;   /* the loss, and the critic and layer of the operator */
    size_t dimension;            /* of the operator                                    */
    size_t normals;              /* normals of spheres in its null space               */
    size_t vectors;              /* factors of --apply                                 */
    int processes;               /* MPI ranks that share a product                     */
    const struct ks_budget *budget;
};

#endif
