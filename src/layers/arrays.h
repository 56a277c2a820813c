/* Helpers for the arrays of a pass, and the matrix products of layers. */
#ifndef KS_LAYERS_ARRAYS_H
#define KS_LAYERS_ARRAYS_H

#include <stddef.h>
#include <string.h>

#include "core/products.h"
#include "core/real.h"

/* An output array from its entry `at` on; NULL stays NULL. */
static inline real *ks_offset(real *output, size_t at)
{
    return output ? output + at : NULL;
}

/* out = in where gate is positive, else 0; arrays [n], out may be in. See ks_pass.gate. */
static inline void ks_gate(size_t n, const real *gate, const real *in, real *out)
{
#pragma omp simd
    for (size_t j = 0; j < n; j++)
        out[j] = gate[j] > 0 ? in[j] : 0;
}

/* Copies columns between row-major matrices of different widths. Each matrix is given by its first
 * entry to copy and by the columns of the whole matrix. */
struct KS(column_copy) {
    size_t rows, columns;
    const real *from; /* NULL counts as a matrix of zeros */
    size_t from_width;
    real *to; /* NULL: nothing is done */
    size_t to_width;
};
static inline void ks_copy_columns(struct KS(column_copy) copy)
{
    size_t bytes = copy.columns * sizeof(real);

    for (size_t i = 0; i < copy.rows && copy.to; i++)
        if (copy.from)
            memcpy(copy.to + i * copy.to_width, copy.from + i * copy.from_width, bytes);
        else
            memset(copy.to + i * copy.to_width, 0, bytes);
}

/* C += op(A) op(B), or with `sets` C = op(A) op(B). Sizes and strides fit an int. */
void KS(multiply)(const struct ks_product *p, const real *a, const real *b, real *c);

#endif
