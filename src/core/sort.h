/* The order of numbers. */
#ifndef KS_CORE_SORT_H
#define KS_CORE_SORT_H

/* For qsort: doubles, or structs that begin with one, in ascending order, NaN last. */
int ks_ascending(const void *a, const void *b);

#endif
