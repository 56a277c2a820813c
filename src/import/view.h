/* A view of an array's values in memory: axes with strides, which are fixed, swapped and copied. */
#ifndef KS_IMPORT_VIEW_H
#define KS_IMPORT_VIEW_H

#include <stddef.h>

#include "import/weights.h"

struct ks_view {
    size_t n_dims, dims[KS_STORED_DIMS], strides[KS_STORED_DIMS]; /* strides in numbers */
    size_t offset;                                                /* of the first one   */
};

/* The view of a whole array, in either order of its axes. */
struct ks_view ks_view_of(const struct ks_stored *s);
/* Leaves out an axis: only entries with this index in it remain. */
void ks_view_fix(struct ks_view *view, size_t axis, size_t index);
/* Swaps two axes. */
void ks_view_swap(struct ks_view *view, size_t a, size_t b);
/* Copies the viewed numbers row-major. */
void ks_view_copy(const struct ks_view *view, const double *values, double *out);

#endif
