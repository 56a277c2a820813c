#include "core/exponential.h"

#include <math.h>

/* glibc declares the vector variants of exp to the compiler only with -ffast-math, which would
 * also change other arithmetic. */
#if defined __x86_64__ && defined __GLIBC__ && defined __GNUC__ && !defined __clang__
#pragma omp declare simd notinbranch
extern double exp(double x);
#endif

void ks_exp_block(const double x[KS_EXP_BLOCK], double y[KS_EXP_BLOCK])
{
#pragma omp simd
    for (int i = 0; i < KS_EXP_BLOCK; i++)
        y[i] = exp(x[i]);
}
