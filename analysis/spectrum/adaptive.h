/* Lanczos steps and start vectors until the intervals of chosen statistics are tight enough. */
#ifndef KS_SPECTRUM_ADAPTIVE_H
#define KS_SPECTRUM_ADAPTIVE_H

#include "core/error.h"
#include "spectrum/measurement.h"

/* The steps after which the widths are computed for the first time. */
enum { KS_ADAPTIVE_FIRST = 8 };

/* As ks_slq fills the spectrum, for m->tolerances: m->order and m->probes are limits. The first
 * probe takes steps until some number of probes with so many steps would be enough, and until the
 * product of both no longer falls; then the other probes take as many, one by one. Certificates are
 * formed, but not yet computed. All ranks share every probe: m->groups is 0 or 1. Fails as ks_slq
 * does. */
ks_status ks_adaptive_probes(struct ks_measurement *m);

/* The products with single minibatches that this measurement has cost. */
size_t ks_adaptive_spent(const struct ks_measurement *m);

/* Adds what was wanted, what was reached and what was spent: for every tolerance NAME_tolerance and
 * NAME_width to the statistics, and to the attributes `minibatch_products`, the products with
 * single minibatches, m->spent included, and `tolerance`, a sentence. After the statistics.
 * KS_MEMORY. */
ks_status ks_adaptive_report(const struct ks_measurement *m);

#endif
