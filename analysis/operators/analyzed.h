/* What is analyzed: an operator of a checkpoint. The attributes of output files follow from it. */
#ifndef KS_OPERATORS_ANALYZED_H
#define KS_OPERATORS_ANALYZED_H

#include <stdbool.h>
#include <stddef.h>

#include "io/sha256.h"
#include "operators/null_space.h"
#include "operators/operator.h"
#include "operators/operator_kinds.h"
#include "operators/selection.h"

struct ks_analyzed {
    struct ks_problem problem;           /* the loss, and the critic and layer of the operator */
    const struct ks_operator_kind *kind; /* which curvature of the loss. NULL: the caller of the
                                          * library has its own matrix, and all else is zero   */
    struct ks_selection *selection;      /* the operator's coordinates among all E P. Owned    */
    struct ks_null_space *space;         /* what the architecture says of its null space; owned */
    bool single;                         /* products are in float32                            */
    bool published;   /* --compat xqc: products, Lanczos and statistics of the published code    */
    int ranks;        /* MPI ranks that share a product                                          */
    const char *path; /* the checkpoint's file                                      */
    char digest[KS_SHA256_TEXT]; /* the SHA-256 of that file; "" if there is no file           */
    bool raw;                    /* the targets are /batch/target_raw                          */
};

/* *wide = the operator in float64 on the selected coordinates, summed over the team, which keeps at
 * most `memory` bytes of activations. KS_MEMORY; fails as the operator does. */
ks_status ks_analyzed_wide(const struct ks_analyzed *analyzed, const struct ks_team *team,
                           size_t memory, struct ks_operator **wide);

/* Frees the selection and the null space, and sets both to NULL. */
void ks_analyzed_clear(struct ks_analyzed *analyzed);

#endif
