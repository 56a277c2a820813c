/* p-values of rank sums, and the adjustment of p-values for the number of tests. */
#ifndef KS_RESULTS_P_VALUES_H
#define KS_RESULTS_P_VALUES_H

#include <stddef.h>

#include "core/error.h"

/* Holm's step-down adjustment of p [n] into adjusted [n] (Holm, Scandinavian Journal of Statistics
 * 6, 1979): of m p-values in ascending order, the i-th becomes the largest of min(1, (m - j + 1)
 * p_j) over j <= i. A NaN is not a test: it stays NaN and does not count. */
ks_status ks_holm(size_t n, const double *p, double *adjusted);

enum { KS_RANK_SUM_TERMS = 256 }; /* the largest n of ks_rank_sum_p */

/* The probability that the sum of n independent ranks, each uniform on 1..ranks, is at most `sum`.
 * 1 <= n <= KS_RANK_SUM_TERMS, 1 <= ranks <= 12. */
double ks_rank_sum_p(size_t n, size_t ranks, size_t sum);

#endif
