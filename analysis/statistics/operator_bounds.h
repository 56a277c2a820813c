/* What the probes together establish about the operator, shared by all probes: the range of its
 * eigenvalues, the noise floor, the dimension of its null space, its single outliers. */
#ifndef KS_STATISTICS_OPERATOR_BOUNDS_H
#define KS_STATISTICS_OPERATOR_BOUNDS_H

#include <stdbool.h>
#include <stddef.h>

#include "io/spectrum.h"

struct ks_certificates;
struct ks_probe;
struct ks_statistics_inputs;

struct ks_bounds {
    double minibatches; /* N of all ranks; 0: the operator is not a mean over minibatches       */
    size_t n, probes;   /* dimension of the operator; probes with random start vectors          */
    size_t pretend_probes; /* as if each probe had been run this many times: 1, unless widths of
                            * more probes are wanted */
    bool exact;         /* the Ritz values are all the eigenvalues                               */
    bool published;     /* all Ritz values of a probe have the same weight                       */
    bool certified;     /* abs_max comes from a certificate, computed in float64                 */
    double abs_max;     /* lower bound of lambda_abs_max = max |eigenvalue|                      */
    double outer;       /* upper bound of lambda_abs_max, with 99.5% confidence                  */
    double h;           /* half the noise floor: how far rounding may have moved an eigenvalue   */
    double error;       /* largest measured error of a product, |A32 y - A64 y| / |y|; NaN: none */
    bool unresolved;    /* the products are too inaccurate for any interval                      */
    double noise_floor; /* an |eigenvalue| below it cannot be distinguished from zero          */
    size_t null;        /* dimension of the null space whose directions are known; sigma is computed
                         * with all of them projected out. 0: none is known                    */
    bool null_known;    /* the weight of every probe in that space is known (certificates)     */
    size_t least_nullity; /* a lower bound of the nullity from the rank of the operator, which
                           * gives no directions */
    /* Statistics; NaN if null directions were not computed. */
    double null_dimension, null_residual, dead_dimension;
    const struct ks_certificates *certificates; /* NULL: none were computed */
    size_t part;      /* column of the leading part in certificates->sigma               */
    size_t low, high; /* outliers at the lower and the upper end: the minimum over the probes */
    bool outliers_isolated; /* every outlier is consistent with a single eigenvalue            */
};

/* Computes the bounds from the steps, Ritz values and residuals of the probes. `part` is the index
 * of the leading part, from 0, or SIZE_MAX for the full run. The caller sets the probes' `bounds`
 * to the result afterwards. */
struct ks_bounds ks_bounds_find(const struct ks_statistics_inputs *inputs, bool exact,
                                size_t n_probes, struct ks_probe *probe, size_t part);

/* kappa_effective_bound: a lower bound of the condition number off the known null space. NaN if the
 * null space is everything or no such bound is available. */
double ks_effective_bound(const struct ks_bounds *bounds, const struct ks_probe *probe);

/* What is known about the dimension of an operator's null space. */
struct ks_nullity {
    size_t directions;    /* explicit null directions, which kappa_effective_bound leaves out    */
    size_t architecture;  /* how many of these the architecture implies, with the normals        */
    size_t least_nullity; /* n minus a bound of the rank of the operator; 0: none is known       */
};

struct ks_nullity ks_nullity_find(const struct ks_statistics_inputs *inputs);

/* True if the Ritz values off the known null directions are all the distinct eigenvalues off them:
 * every Krylov space ended (then with probability one it contains a vector of each eigenspace), and
 * every Ritz value except those of the known null directions exceeds ten noise floors. A Ritz value
 * at zero belongs to the known null directions alone if its weight equals theirs. False in doubt.
 *
 * *upper is then an upper bound of the condition number off those directions; kappa_effective_bound
 * is the lower bound. */
bool ks_spectrum_is_complete(const struct ks_spectrum *spectrum,
                             const struct ks_statistics_inputs *inputs, double *upper);

#endif
