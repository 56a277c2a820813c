/* Numbers: parsing decimal ones, where the text must be exactly one number without spaces around
 * it, and sorting. */
#ifndef KS_CORE_NUMBER_H
#define KS_CORE_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

/* An integer in low..high, written 1000000 or, up to 2^53, 1e6. On failure returns false and leaves
 * *value unchanged. */
bool ks_parse_integer(const char *text, uint64_t low, uint64_t high, uint64_t *value);
/* A finite number in [low, high]; fails as ks_parse_integer does. */
bool ks_parse_number(const char *text, double low, double high, double *value);

/* A qsort comparator for doubles, or for structs that begin with one: ascending, NaN last. */
int ks_ascending(const void *a, const void *b);

/* The same for numbers of the type size_t, or for structs that begin with one. */
int ks_ascending_sizes(const void *a, const void *b);

/* The median of n >= 1 numbers, which it sorts. */
double ks_median(size_t n, double *values);

#endif
