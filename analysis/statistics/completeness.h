/* Whether a spectrum contains every distinct eigenvalue of the operator, so that the condition
 * number has an upper bound too. */
#ifndef KS_STATISTICS_COMPLETENESS_H
#define KS_STATISTICS_COMPLETENESS_H

#include <stdbool.h>
#include <stddef.h>

#include "io/spectrum.h"
#include "statistics/statistics.h"

/* What is known about the dimension of an operator's null space. */
struct ks_nullity {
    size_t directions;    /* explicit null directions, which kappa_effective_bound leaves out    */
    size_t architecture;  /* how many of these the architecture implies, with the normals        */
    size_t least_nullity; /* n minus a bound of the rank of the operator; 0: none is known       */
};

struct ks_nullity ks_nullity_find(const struct ks_statistics_terms *terms);

/* True if the Ritz values off the known null directions are all the distinct eigenvalues off them:
 * every Krylov space ended (then with probability one it contains a vector of each eigenspace), and
 * every Ritz value except those of the known null directions exceeds ten noise floors. A Ritz value
 * at zero belongs to the known null directions alone if its weight equals theirs. False in doubt.
 *
 * *upper is then an upper bound of the condition number off those directions; kappa_effective_bound
 * is the lower bound. */
bool ks_spectrum_is_complete(const struct ks_spectrum *spectrum,
                             const struct ks_statistics_terms *terms, double *upper);

#endif
