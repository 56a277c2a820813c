/* `real`, the working precision of the code that is compiled twice, for float32 (-DKS_SINGLE) and
 * float64: layers, networks, losses, the agent's update and the operators' products. KS(dense) is
 * ks_dense_f32 or ks_dense_f64; KS_BLAS(gemm) is cblas_sgemm or cblas_dgemm. All other code uses
 * double and the f64 names. */
#ifndef KS_CORE_REAL_H
#define KS_CORE_REAL_H

#include <float.h>

#ifdef KS_SINGLE
typedef float real;
#define KS_NAME(name) ks_##name##_f32
#define KS_BLAS(name) cblas_s##name
#define KS_EPSILON    ((real)FLT_EPSILON)
#define KS_PRECISION  "f32"
#else
typedef double real;
#define KS_NAME(name) ks_##name##_f64
#define KS_BLAS(name) cblas_d##name
#define KS_EPSILON    ((real)DBL_EPSILON)
#define KS_PRECISION  "f64"
#endif

#define KS(name) KS_NAME(name)

#endif
