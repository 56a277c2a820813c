/* How an analysis spends its memory. */
#ifndef KS_PROGRAM_BUDGET_H
#define KS_PROGRAM_BUDGET_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "operators/team.h"
#include "program/options.h"
#include "program/subject.h"

/* In bytes. */
struct ks_budget {
    size_t fixed;      /* checkpoint, and the operator with nothing kept */
    size_t held;       /* the Lanczos vectors, the dense matrix, or the vectors of --apply */
    size_t kept;       /* activations kept between products: the limit before prepare, the bytes
                        * used after */
    bool single_basis; /* the Lanczos basis is in float32 */
    bool squeezed;     /* and the reason is that it does not fit in float64 */
};

/* What a process, which already has `fixed`, may take in all. */
double ks_budget_room(const struct ks_options *analysis, const struct ks_team *world, size_t fixed);
/* Before anything is read: KS_MEMORY where the arrays of the checkpoint, `bytes` in all, are more
 * than this process may take. */
ks_status ks_budget_check(const struct ks_options *analysis, const struct ks_team *world,
                          const char *path, double bytes);
/* Given `fixed`, divides what --memory (or the machine) leaves. The vectors of this process in
 * `team` come first: in float64 if they fit on all processes of the world, otherwise (and always
 * with --compat) in float32.
 * The rest is for activations. KS_MEMORY, on all processes, where that is too little; the message
 * has the sizes. */
ks_status ks_budget_divide(const struct ks_options *analysis, const struct ks_team *world,
                           const struct ks_team *team, const struct ks_subject *subject,
                           struct ks_budget *budget);

#endif
