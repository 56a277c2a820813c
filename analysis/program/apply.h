/* --apply and --gradient: vectors of a checkpoint instead of a spectrum. All ranks of the world
 * call these functions together, and fail together.
 *
 * Vectors in files have E P numbers. Coordinates that are not selected are ignored in factors and
 * zero in products. */
#ifndef KS_PROGRAM_APPLY_H
#define KS_PROGRAM_APPLY_H

#include "core/error.h"
#include "program/analysis.h"

/* Writes L and its gradient, over all ranks, to --gradient, after ks_analysis_pose. KS_MEMORY if
 * --memory is too small. */
ks_status ks_apply_gradient(struct ks_analysis *analysis);
/* Sets budget.vectors to the number of vectors in --apply, before the operator is made: they count
 * against --memory. */
ks_status ks_apply_count(struct ks_analysis *analysis);
/* Multiplies each vector of --apply by the operator, and writes the products to --output. */
ks_status ks_apply_products(struct ks_analysis *analysis);

#endif
