#include "core/rng.h"

#include <assert.h>
#include <math.h>

#include <Random123/threefry.h>

static const double TWO_PI = 6.283185307179586476925;
static const double TWO_TO_MINUS_53 = 0x1p-53;

struct ks_rng ks_rng_start(uint64_t seed, uint64_t stream)
{
    return (struct ks_rng){.seed = seed, .stream = stream};
}

static threefry2x64_ctr_t draw(struct ks_rng *rng)
{
    threefry2x64_key_t key = {{rng->seed, rng->stream}};
    threefry2x64_ctr_t counter = {{rng->drawn++, 0}};

    return threefry2x64(counter, key);
}

static double unit(uint64_t bits) /* in [0, 1), on the grid of 2^-53 */
{
    return (double)(bits >> 11) * TWO_TO_MINUS_53;
}

uint64_t ks_rng_bits(struct ks_rng *rng)
{
    return draw(rng).v[0];
}

double ks_rng_uniform(struct ks_rng *rng, double low, double high)
{
    return low + (high - low) * unit(draw(rng).v[0]);
}

/* Box and Muller (Ann. Math. Stat. 29, 1958). The second normal number, from the sine, is
 * discarded, so that one draw gives one number. 1 - u lies in (0, 1], where the logarithm is
 * finite. */
double ks_rng_normal(struct ks_rng *rng)
{
    threefry2x64_ctr_t bits = draw(rng);

    return sqrt(-2 * log(1 - unit(bits.v[0]))) * cos(TWO_PI * unit(bits.v[1]));
}

/* floor(u n), where u has 53 bits: the probability of an index differs from 1/n by less than 2^-53.
 */
size_t ks_rng_index(struct ks_rng *rng, size_t n)
{
    size_t index;

    assert(n > 0);
    index = (size_t)(unit(draw(rng).v[0]) * (double)n);
    return index < n ? index : n - 1;
}
