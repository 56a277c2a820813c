/* The gradient of a cross-entropy against its bounds (operators/gradient_bounds.h), as statistics.
 */
#ifndef KS_PROGRAM_BOUNDS_H
#define KS_PROGRAM_BOUNDS_H

#include "core/error.h"
#include "program/analysis.h"

/* Measures, if the loss is a cross-entropy, all layers are analyzed, and not with --compat xqc. All
 * ranks call it together, and fail together. After ks_analysis_pose. */
ks_status ks_bounds_measure(struct ks_analysis *analysis);

/* Adds the statistics to the spectrum's summary; nothing if nothing was measured. Reorders what was
 * measured. Fails with KS_MEMORY. */
ks_status ks_bounds_add(struct ks_gradient_bounds *bounds, struct ks_spectrum *spectrum);

#endif
