#include "net/loss.h"

#include <math.h>

#ifdef KS_SINGLE
#define EXP expf
#else
#define EXP exp
#endif

/* glibc declares the vector variants of exp and expf to the compiler only with -ffast-math, which
 * would also change other arithmetic. */
#if defined __x86_64__ && defined __GLIBC__ && defined __GNUC__ && !defined __clang__
#pragma omp declare simd notinbranch
extern real EXP(real x);
#endif

void KS(exp_block)(const real x[KS_EXP_BLOCK], real y[KS_EXP_BLOCK])
{
#pragma omp simd
    for (int i = 0; i < KS_EXP_BLOCK; i++)
        y[i] = EXP(x[i]);
}
