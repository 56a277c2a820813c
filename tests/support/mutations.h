/* Random changes of a file's bytes, and how many of them a test makes. */
#ifndef KS_MUTATIONS_H
#define KS_MUTATIONS_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"

/* $KS_MUTATIONS, or `usual`. */
static inline size_t mutations_asked(size_t usual)
{
    const char *const asked = getenv("KS_MUTATIONS");

    return asked ? strtoul(asked, NULL, 10) : usual;
}

/* Sizes and addresses that a reader may trust. */
static inline uint64_t mutation_number(struct ks_rng *rng)
{
    static const uint64_t numbers[] = {0,
                                       1,
                                       (uint64_t)1 << 31,
                                       (uint64_t)1 << 32,
                                       (uint64_t)1 << 63,
                                       (uint64_t)0 - 16,
                                       (uint64_t)0 - 1};
    const size_t n = sizeof numbers / sizeof *numbers;
    const size_t i = ks_rng_index(rng, n + 1);

    return i < n ? numbers[i] : ks_rng_index(rng, (size_t)1 << 20);
}

/* Mutates the n bytes; returns how many are left. */
static inline size_t mutate(struct ks_rng *rng, unsigned char *bytes, size_t n)
{
    enum { RUN = 64 };
    const size_t at = ks_rng_index(rng, n - RUN), from = ks_rng_index(rng, n - RUN);
    const uint64_t value = mutation_number(rng);

    switch (ks_rng_index(rng, 8)) {
    case 0:
        bytes[at] = (unsigned char)ks_rng_index(rng, 256);
        break;
    case 1:
        bytes[at] ^= (unsigned char)(1u << ks_rng_index(rng, 8));
        break;
    case 2:
    case 3: /* most fields are aligned */
        memcpy(bytes + at / 8 * 8, &value, 8);
        break;
    case 4:
        memcpy(bytes + at, &value, 4);
        break;
    case 5:
        memset(bytes + at, 0, RUN);
        break;
    case 6:
        memmove(bytes + at, bytes + from, RUN);
        break;
    default:
        return at;
    }
    return n;
}

#endif
