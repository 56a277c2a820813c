/* Comparison of numbers for qsort. */
#ifndef KS_CORE_SORT_H
#define KS_CORE_SORT_H

/* A qsort comparator for doubles, or for structs that begin with one: ascending, NaN last. */
int ks_ascending(const void *a, const void *b);

#endif
