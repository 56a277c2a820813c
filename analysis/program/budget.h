/* How an analysis divides its memory. */
#ifndef KS_PROGRAM_BUDGET_H
#define KS_PROGRAM_BUDGET_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "operators/analyzed.h"
#include "operators/team.h"
#include "program/options.h"

struct ks_budget {
    size_t dimension; /* dimension of the operator; with --layers the largest of a layer */
    size_t vectors;   /* the number of vectors in the file of --apply                        */
    /* In bytes. */
    size_t fixed;      /* the checkpoint, and the operator without activations            */
    size_t held;       /* the Lanczos vectors, the dense matrix, or the vectors of --apply */
    size_t kept;       /* activations kept between products: the limit before the operator is
                        * prepared, then the bytes used                                   */
    size_t spare;      /* what the limit leaves then                                      */
    bool single_basis; /* the Lanczos basis is in float32 ...                             */
    bool squeezed;     /* ... because it does not fit in float64                          */
};

/* The total bytes that a rank which has already allocated `fixed` may use. */
double ks_budget_limit(const struct ks_options *options, const struct ks_team *world, size_t fixed);
/* Before the checkpoint is read: KS_MEMORY if its arrays, `bytes` in total, need more than this
 * rank may use. */
ks_status ks_budget_check(const struct ks_options *options, const struct ks_team *world,
                          const char *path, double bytes);
/* Given `dimension`, `vectors` and `fixed`, divides what --memory or the machine leaves. The
 * vectors of this rank in `team` come first: in float64 if they fit on all ranks of the world,
 * otherwise, and always with --compat, in float32. The rest is for activations. Collective: if any
 * rank has too little, all fail with KS_MEMORY and a message with the sizes. */
ks_status ks_budget_divide(const struct ks_options *options, const struct ks_team *world,
                           const struct ks_team *team, const struct ks_analyzed *analyzed,
                           struct ks_budget *budget);

#endif
