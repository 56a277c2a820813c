/* Helpers for the arrays of a pass. */
#ifndef KS_LAYERS_ARRAYS_H
#define KS_LAYERS_ARRAYS_H

#include <stddef.h>

#include "core/real.h"

/* An output array from its entry `at` on; NULL stays NULL. */
static inline real *ks_part(real *output, size_t at)
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

#endif
