/* One probe of a spectrum, and the statistics that follow from a single probe: ks_probe_NAME
 * computes the statistic NAME of analysis/README.md. statistics.c combines the values of several
 * probes into one number. */
#ifndef KS_STATISTICS_PROBE_H
#define KS_STATISTICS_PROBE_H

#include <stdbool.h>
#include <stddef.h>

struct ks_certificates;

/* What the probes together establish about the operator (statistics.h). */
struct ks_bounds {
    double minibatches; /* N; 0: the operator is not a mean over minibatches                    */
    size_t n, probes;   /* dimension of the operator; probes with random start vectors          */
    size_t pretend_probes; /* as if each probe had been run this many times: 1, unless widths of
                            * more probes are wanted */
    double count_above;    /* the size of directions_above; 0: it is not wanted                   */
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
    size_t prefix;    /* column of the prefix in certificates->sigma                     */
    size_t low, high; /* outliers at the lower and the upper end: the minimum over the probes */
    bool outliers_isolated; /* every outlier is consistent with a single eigenvalue            */
};

/* theta_i, w_i, r_i: Ritz values (ascending), weights (sum 1), residual bounds. For an
 * exact spectrum: the eigenvalues, 1/n, 0. */
struct ks_probe {
    const struct ks_bounds *bounds;
    size_t steps;                            /* m                                               */
    const double *theta, *weight, *residual; /* [steps]                                         */
    const double *beta;                      /* [steps] of the Jacobi matrix; NULL: exact       */
    bool ended;      /* the Krylov space ended: no further step is possible                      */
    double smallest; /* smallest singular value of the extended Jacobi matrix; exact: min |theta| */
};

double ks_probe_largest_size(const struct ks_probe *p);  /* max |theta| */
double ks_probe_smallest_size(const struct ks_probe *p); /* min |theta| */

/* One end of the spectrum, sign 1 for lambda_max and -1 for lambda_min: its value, which is on the
 * inner side; its residual, its outer bound and its standard error over minibatches. */
double ks_probe_end(const struct ks_probe *p, int sign);
double ks_probe_end_residual(const struct ks_probe *p, int sign);
double ks_probe_end_bound(const struct ks_probe *p, int sign);
double ks_probe_end_data_se(const struct ks_probe *p, int sign);
/* Bounds of the loss's own lambda_max or lambda_min, from certificates with held-out minibatches.
 */
double ks_probe_loss_inner(const struct ks_probe *p, int sign);
double ks_probe_loss_outer(const struct ks_probe *p, int sign);
double ks_probe_kappa(const struct ks_probe *p);
double ks_probe_kappa_lower_bound(const struct ks_probe *p);

/* Moments. */
double ks_probe_kurtosis(const struct ks_probe *p);
double ks_probe_kurtosis_excess(const struct ks_probe *p);
double ks_probe_kurtosis_spectral(const struct ks_probe *p);
double ks_probe_trace(const struct ks_probe *p);
double ks_probe_trace_square(const struct ks_probe *p);
double ks_probe_stable_rank(const struct ks_probe *p);
/* Half the width of the interval of the trace, which holds with 99%, from probe [bounds->probes]; n
 * h for an exact spectrum or where the Krylov spaces have ended; NaN: not resolved. */
double ks_trace_error(const struct ks_bounds *bounds, const struct ks_probe *probe);

/* The converged ends of the spectrum: the `low` smallest and the `high` largest Ritz
 * values. */
struct ks_ends {
    size_t low, high; /* together at most the steps */
};
struct ks_ends ks_probe_ends(const struct ks_probe *p);
double ks_probe_outliers(const struct ks_probe *p);
double ks_probe_outlier_gap(const struct ks_probe *p);

/* --- Probabilistic bounds of the largest and the smallest eigenvalue, from a Jacobi matrix:
 * van Dorsselaer, Hochstenbach, van der Vorst: Computing probabilistic bounds for extreme
 * eigenvalues of symmetric matrices with the Lanczos method. SIAM J. Matrix Anal. Appl. 22, 2000.
 * ---
 */

/* Returns delta such that a random unit vector of R^n (n >= 1, uniform on the sphere) has a
 * component |gamma| < delta along a given direction with probability `failure`, in (0, 1). */
double ks_extreme_bound_component(size_t n, double failure);

/* Returns the largest distance at which an eigenvalue can lie beyond `edge`, the largest or the
 * smallest of the m Ritz values `ritz`, if the start vector has a component of at least `component`
 * along its eigenvector. That condition does not depend on m, so the bounds for all m hold
 * simultaneously. beta [m] as in jacobi.h. */
double ks_extreme_bound_excess(size_t m, const double *ritz, const double *beta, double edge,
                               double component);

#endif
