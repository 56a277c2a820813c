/* The gradient of a cross-entropy against its bounds, and that of a squared error
 * (operators/gradient_bounds.h), as statistics. */
#ifndef KS_PROGRAM_BOUNDS_H
#define KS_PROGRAM_BOUNDS_H

#include "core/error.h"
#include "program/analysis.h"

/* Measures, if all layers are analyzed, not with --compat xqc, and the loss is one of these two.
 * All ranks call it together, and fail together. After ks_analysis_pose. */
ks_status ks_bounds_measure(struct ks_analysis *analysis);

/* Adds the statistics to the spectrum: NaN for another loss; none for a layer and with
 * --compat xqc. Fails with KS_MEMORY. */
ks_status ks_bounds_add(struct ks_analysis *analysis);

#endif
