/* Whether a spectrum shows every distinct eigenvalue of the operator, so that the condition number
 * is known from both sides. */
#ifndef KS_STATISTICS_COMPLETENESS_H
#define KS_STATISTICS_COMPLETENESS_H

#include <stdbool.h>
#include <stddef.h>

#include "io/spectrum.h"
#include "statistics/statistics.h"

/* What is known of an operator's null space. */
struct ks_nullity {
    size_t directions;   /* explicit null directions: all of them are off the effective bound   */
    size_t architecture; /* of these the ones that the architecture implies, normals too        */
    size_t rank;         /* n - rank bound: the null space has at least this dimension; or 0    */
};

struct ks_nullity ks_nullity_find(const struct ks_statistics_terms *terms);

/* True where the Ritz values off the known null directions are all the eigenvalues there: every
 * Krylov space ended, so that with probability one its start vector has seen each distinct
 * eigenvalue, and every Ritz value but those of the known null directions exceeds ten noise floors.
 * A Ritz value at zero belongs to the known null directions alone where its weight is theirs.
 *
 * *upper: the condition number off those directions is at most that. kappa_effective_bound is the
 * bound from below. False in doubt. */
bool ks_spectrum_is_complete(const struct ks_spectrum *spectrum,
                             const struct ks_statistics_terms *terms, double *upper);

#endif
