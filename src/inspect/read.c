#include "inspect/read.h"

#include <math.h>

#include "core/memory.h"

ks_status ks_inspect_expect_memory(const char *path, const char *what, double bytes)
{
    const double most = (double)ks_memory_available("", 1) / 2;

    if (most > 0 && bytes > most)
        return ks_fail(KS_MEMORY,
                       "%s: %s take %.0fK, expected at most half of the free memory, %.0fK", path,
                       what, ceil(bytes / 1024), floor(most / 1024));
    return KS_OK;
}

ks_status ks_inspect_read(const char *path, struct ks_checkpoint **checkpoint)
{
    double bytes;

    KS_TRY(ks_checkpoint_bytes(path, &bytes));
    KS_TRY(ks_inspect_expect_memory(path, "its arrays", bytes));
    return ks_checkpoint_read_loss(path, checkpoint);
}
