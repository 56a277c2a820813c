/* Eigenvalues, or bounds of some, in the order of their size: from zero outwards. */
#ifndef KS_OUTWARDS_H
#define KS_OUTWARDS_H

#include <stdbool.h>
#include <stddef.h>

#include "ks/probe.h"

/* A walk over n ascending nodes. What was taken is always a range around zero; of its two
 * neighbours the one nearer to zero is next. */
struct ks_outwards {
    size_t n, low, high; /* taken: [low, high) */
    double (*node)(const void *of, size_t i);
    const void *of;
};

struct ks_outwards ks_outwards_start(size_t n, double (*node)(const void *of, size_t i),
                                     const void *of);
/* Over the probe's Ritz values. */
struct ks_outwards ks_outwards_ritz(const struct ks_probe *probe);
bool ks_outwards_end(const struct ks_outwards *walk); /* all are taken */
size_t ks_outwards_take(struct ks_outwards *walk);    /* the next node; there is one */

#endif
