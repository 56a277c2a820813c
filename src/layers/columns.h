/* Copies columns between row-major matrices of different widths. */
#ifndef KS_LAYERS_COLUMNS_H
#define KS_LAYERS_COLUMNS_H

#include <stddef.h>

#include "core/real.h"

/* Each matrix is given by its first entry to copy and by the columns of the whole matrix. */
struct KS(column_copy) {
    size_t rows, columns;
    const real *from; /* NULL counts as a matrix of zeros */
    size_t from_width;
    real *to; /* NULL: nothing is done */
    size_t to_width;
};
void KS(copy_columns)(const struct KS(column_copy) *copy);

#endif
