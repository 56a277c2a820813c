/* Random numbers: a counter-based generator keyed by (seed, stream).
 *
 * Threefry-2x64 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3",
 * SC 2011), from the library Random123. Draw number k of a stream depends only on (seed, stream,
 * k). So the state is these three integers, streams are independent, and a run can be split or
 * resumed. Every function below uses exactly one draw per number returned. */
#ifndef KS_CORE_RNG_H
#define KS_CORE_RNG_H

#include <stddef.h>
#include <stdint.h>

struct ks_rng {
    uint64_t seed, stream;
    uint64_t drawn; /* number of draws so far */
};

/* The stream before its first draw. */
struct ks_rng ks_rng_start(uint64_t seed, uint64_t stream);
double ks_rng_uniform(struct ks_rng *rng, double low, double high); /* in [low, high) */
double ks_rng_normal(struct ks_rng *rng);                           /* mean 0, variance 1 */
uint64_t ks_rng_bits(struct ks_rng *rng);                           /* any 64 bits */
size_t ks_rng_index(struct ks_rng *rng, size_t n);                  /* in 0 .. n-1 */

#endif
