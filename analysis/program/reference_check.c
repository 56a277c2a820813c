#include "program/reference_check.h"

#include <math.h>

#include "core/memory.h"
#include "core/say.h"
#include "io/reference.h"

/* Refuses before it allocates. */
static ks_status check_memory(const struct ks_analysis *a, double bytes)
{
    const double limit = ks_budget_limit(a->options, a->world, 0);
    double more;

    KS_TRY(ks_references_bytes(a->checkpoint, &a->checkpoint->references, &more));
    if (bytes + more <= limit)
        return KS_OK;
    return ks_fail(KS_MEMORY,
                   "--memory: expected at least %.0fK, found %.0fK: checkpoint and the comparison "
                   "of its outputs take %.0fK",
                   ceil((bytes + more) / 1024), floor(limit / 1024), ceil((bytes + more) / 1024));
}

ks_status ks_reference_check(struct ks_analysis *a, double bytes)
{
    struct ks_references *references = &a->checkpoint->references;
    const size_t before = ks_alloc_total();

    if (!ks_references_exist(references)) {
        if (!a->quiet && !a->says_references)
            ks_say("%s: nothing was compared: the file has no /batch/output, /batch/loss or "
                   "/batch/gradient_norm of the program that made it",
                   a->path);
        return KS_OK;
    }
    KS_TRY(check_memory(a, bytes));
    KS_TRY(ks_references_compare(a->checkpoint, a->path, "/batch/", a->minibatches));
    ks_alloc_freed_since(before);
    ks_references_clear(references);
    return KS_OK;
}
