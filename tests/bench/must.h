/* A benchmark ends at the first call that fails. */
#ifndef KS_BENCH_MUST_H
#define KS_BENCH_MUST_H

#include <stdio.h>
#include <stdlib.h>

#include "core/error.h"

static inline void must(ks_status status)
{
    if (status == KS_OK)
        return;
    fprintf(stderr, "benchmark: %s\n", ks_error_text());
    exit(1);
}

#endif
