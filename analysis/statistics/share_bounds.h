/* Bounds for the number of eigenvalues in a set, and for the sizes that a given number lies below:
 * what the intervals of shares.h are made of. */
#ifndef KS_STATISTICS_SHARE_BOUNDS_H
#define KS_STATISTICS_SHARE_BOUNDS_H

#include "statistics/radau.h"
#include "statistics/shares.h"

/* Counts are of the n' = n - n_null eigenvalues off the known null space. */
struct ks_share_bounds {
    const struct ks_shares_input *in;
    size_t others;           /* n'                                                              */
    size_t zeros;            /* of these, certain to be zero: by the rank bound                 */
    struct ks_radau **radau; /* [probes]. Owned                                                 */
    double *fraction;        /* [probes]: the probes' parts of a mean, with sum 1. Owned        */
    double null_size; /* square root of the mean ratio of null_weight to what is off Z           */
    size_t sizes;
    double *size; /* [sizes]: all |theta|, ascending. Owned                                     */
    size_t spans;
    struct ks_range *span; /* [spans]: theta +- (r + h), `upper` ascending. Owned               */
};

/* low <= count <= high */
struct ks_count {
    size_t low, high;
};

/* `in` must stay. Fails as ks_shares does. */
ks_status ks_share_bounds_new(const struct ks_shares_input *in, struct ks_share_bounds **bounds);
void ks_share_bounds_free(struct ks_share_bounds *bounds); /* NULL is fine */

/* L' <= the weight of [-x, x] off the known null space, as a share of all weight off it, <= U',
 * both as means over the probes; 0 for x < 0. No allowance for rounding is made in x. */
ks_status ks_share_bounds_within(const struct ks_share_bounds *b, double x, struct ks_range *mu);
/* The same of (-inf, x) from below and (-inf, x] from above. `null`: the known null space is part
 * of what is bounded, and taken out. */
ks_status ks_share_bounds_below(const struct ks_share_bounds *b, double x, bool null,
                                struct ks_range *mu);

/* share_counts.c */

/* Eigenvalues other than known zeros that are certain to lie in [low, high]: the largest number of
 * spans in it of which no two overlap. */
size_t ks_share_bounds_certain(const struct ks_share_bounds *b, double low, double high);

/* Bounds for the number with |lambda| <= x: `low` at x = inner, `high` at x = outer >= inner. L' is
 * taken at inner - h, U' at outer + h. */
ks_status ks_share_bounds_count_within(const struct ks_share_bounds *b, double inner, double outer,
                                       struct ks_count *count);
/* The same for the number of all n with lambda <= x. */
ks_status ks_share_bounds_count_below(const struct ks_share_bounds *b, double x,
                                      struct ks_count *count);

/* Bounds for the size at which the share comes to a level, where all |lambda| are at most `most`:
 * size->upper = inf{x: L' > reached} + h, size->lower = sup{x: U' < missed} - h, in [0, most].
 */
ks_status ks_share_bounds_reach(const struct ks_share_bounds *b, double reached, double missed,
                                double most, struct ks_range *size);

/* Bounds for the k-th smallest |lambda|, zeros < k <= others; 0.25% at each end; `most` as above.
 */
ks_status ks_share_bounds_size(const struct ks_share_bounds *b, size_t k, double most,
                               struct ks_range *size);

#endif
