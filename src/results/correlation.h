/* Rank correlation over architectures, and permutation tests. */
#ifndef KS_RESULTS_CORRELATION_H
#define KS_RESULTS_CORRELATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "results/aggregate.h"
#include "results/comparison.h"
#include "statistics/catalogue.h"

/* Architectures with their runs: an architecture's point is the IQM of its runs' x, pooled over
 * `width` values per run (a statistic at all checkpoints; NaNs are left out), and the IQM of its
 * runs' y (the last return). */
struct ks_points {
    size_t architectures;
    const size_t *runs; /* [architectures] */
    size_t width;       /* values of x per run */
    const double *x;    /* [runs of all architectures, width] */
    const double *y;    /* [runs of all architectures] */
};

/* Spearman's rank correlation; ties get their average rank. NaN if n < 2 or a list is constant. */
ks_status ks_spearman(size_t n, const double *x, const double *y, double *correlation);

/* Spearman's rank correlation of the points that have both coordinates; NaN with fewer than three
 * points. For the 90% interval the runs of each architecture are resampled, each with its x and y.
 * Architectures are not resampled, so the interval describes these architectures with other seeds.
 * It is undefined if every architecture has one run, or if the correlation of a resample is
 * undefined. */
ks_status ks_spearman_points(const struct ks_points *points, size_t resamples, uint64_t seed,
                             struct ks_estimate *correlation);
/* x, y [architectures]: the points; NaN if an architecture has no value. */
ks_status ks_points_find(const struct ks_points *points, double *x, double *y);

enum { KS_PERMUTATIONS = 99999, KS_EXACT_PERMUTED = 8, KS_EXACT_FLIPPED = 20 };

/* A random permutation of value [n] (Fisher and Yates, as in Knuth, The Art of Computer
 * Programming, 3.4.2, P), by the draws `draw` to `draw` + n - 2 of the generator with that seed. */
void ks_permute_at_random(size_t n, uint64_t seed, uint64_t draw, double *value);

/* Two-sided permutation test of Spearman's correlation of x and y [n]: the probability that |rho|
 * is at least as large if y is permuted at random. n <= KS_EXACT_PERMUTED: all n! permutations, p =
 * hits / n!. Otherwise N = KS_PERMUTATIONS random ones, p = (1 + hits) / (1 + N); permutation b
 * uses the draws b (n - 1), ..., b (n - 1) + n - 2 of the generator with seed 0. NaN if the
 * correlation is. */
ks_status ks_spearman_test(size_t n, const double *x, const double *y, double *p);

/* One-sided sign-flip test of matched differences d [n]: the probability that their sum is at
 * least as large if each sign is kept or flipped at random (Fisher 1935, section 21). n <=
 * KS_EXACT_FLIPPED: all 2^n signs, p = hits / 2^n. Otherwise N = KS_PERMUTATIONS random ones, p =
 * (1
 * + hits) / (1 + N); flip b of difference i is the lowest bit of draw b n + i. NaN for n = 0 or if
 * a difference is not a finite number. */
double ks_sign_flip_test(size_t n, const double *d);

/* Holm's step-down adjustment of p [n] into adjusted [n] (Holm, Scandinavian Journal of Statistics
 * 6, 1979): of m p-values in ascending order, the i-th becomes the largest of min(1, (m - j + 1)
 * p_j) over j <= i. A NaN is not a test: it stays NaN and does not count. */
ks_status ks_holm(size_t n, const double *p, double *adjusted);

enum { KS_RANK_SUM_TERMS = 256 }; /* the largest n of ks_rank_sum_p */

/* The probability that the sum of n independent ranks, each uniform on 1..ranks, is at most `sum`.
 * 1 <= n <= KS_RANK_SUM_TERMS, 1 <= ranks <= 12. */
double ks_rank_sum_p(size_t n, size_t ranks, size_t sum);

/* --- statistics of a study --- */

/* A statistic of the spectra against the last return: a point per architecture, the IQM over its
 * runs and their checkpoints after the first update, and the IQM of its runs' last returns. */
struct ks_correlation {
    size_t analysis; /* of the study: the first one, of several */
    struct ks_statistic_column statistic;
    size_t n; /* architectures that have both coordinates; 0: too few, or not comparable */
    double x[KS_STUDY_ARCHITECTURES], y[KS_STUDY_ARCHITECTURES]; /* NaN where there is no value */
    struct ks_estimate spearman;
    double p; /* of the two-sided permutation test */
};
/* Of several analyses, which ask for the same checkpoints, a spectrum's value is their mean. Ratios
 * are pooled as their log10. An upper end that is not resolved counts as infinite. KS_MEMORY. */
ks_status ks_comparison_correlate(const struct ks_comparison *c,
                                  const struct ks_study_analyses *analyses,
                                  struct ks_statistic_column statistic,
                                  struct ks_correlation *correlation);

/* The correlations of several statistics in each analysis, where there are any. */
struct ks_correlations {
    size_t n, room;
    struct ks_correlation *row; /* [n]; owned */
};
/* Appends to *found, which starts as {0}; the caller frees found->row, also after a failure.
 * KS_MEMORY. */
ks_status ks_correlations_find(const struct ks_comparison *c, struct ks_correlations *found);

#endif
