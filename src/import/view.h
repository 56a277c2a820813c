/* A view of an array's values in memory, which has axes with strides. */
#ifndef KS_IMPORT_VIEW_H
#define KS_IMPORT_VIEW_H

#include <stddef.h>

#include "import/weights.h"

struct ks_view {
    size_t n_dims, dims[KS_STORED_DIMS], strides[KS_STORED_DIMS]; /* strides in numbers */
    size_t offset;                                                /* of the first one   */
};

/* The view of a whole array, whichever axis is the fastest in memory. */
struct ks_view ks_view_of(const struct ks_stored *s);
/* Removes an axis: only the entries with this index in it remain. */
void ks_view_fix(struct ks_view *view, size_t axis, size_t index);
/* Removes axes of length 1, which changes neither the numbers nor their order, until the view has
 * n_dims axes or no other axis of length 1. */
void ks_view_squeeze(struct ks_view *view, size_t n_dims);
/* Swaps two axes. */
void ks_view_swap(struct ks_view *view, size_t a, size_t b);
/* Copies the numbers of the view to `out` in row-major order. */
void ks_view_copy(const struct ks_view *view, const double *values, double *out);

#endif
