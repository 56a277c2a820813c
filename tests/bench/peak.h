/* The processor's peak rate of fused multiply-adds in float32 with one thread: an upper bound for
 * matrix products. */
#ifndef KS_BENCH_PEAK_H
#define KS_BENCH_PEAK_H

#include "core/progress.h"

#if defined(__AVX512F__)
typedef float ks_vector __attribute__((vector_size(64)));
#else
typedef float ks_vector __attribute__((vector_size(32)));
#endif

/* Operations per second of independent chains, enough to hide the latency. *sink receives a result
 * that depends on all chains, so that the compiler cannot remove any. */
static double peak_rate(float *sink)
{
    enum { CHAINS = 12, ROUNDS = 2000000 };
    ks_vector chain[CHAINS], factor = {0}, term = {0};
    double start, seconds;

    for (size_t k = 0; k < CHAINS; k++) /* all different, or the compiler would compute only one */
        chain[k] = (ks_vector){(float)k + *sink};

    for (size_t k = 0; k < sizeof factor / sizeof factor[0]; k++)
        factor[k] = 0.999F + 1e-9F * *sink, term[k] = 1e-3F;
    start = ks_seconds();
    for (size_t i = 0; i < ROUNDS; i++)
#pragma GCC unroll 12
        for (size_t k = 0; k < CHAINS; k++)
            chain[k] = chain[k] * factor + term;
    seconds = ks_seconds() - start;
    for (size_t k = 0; k < CHAINS; k++)
        *sink += chain[k][0];
    return 2.0 * CHAINS * ROUNDS * (double)(sizeof factor / sizeof factor[0]) / seconds;
}

#endif
