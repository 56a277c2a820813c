/* What the probes together establish about the operator, shared by all probes: the range of its
 * eigenvalues, the noise floor, the dimension of its null space, its single outliers. */
#ifndef KS_STATISTICS_OPERATOR_FACTS_H
#define KS_STATISTICS_OPERATOR_FACTS_H

#include <stdbool.h>
#include <stddef.h>

struct ks_certificates;
struct ks_probe;
struct ks_statistics_terms;

struct ks_facts {
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

/* Computes the facts from the steps, Ritz values and residuals of the probes. `part` is the index
 * of the leading part, from 0, or SIZE_MAX for the full run. The caller sets the probes' `facts` to
 * the result afterwards. */
struct ks_facts ks_facts_find(const struct ks_statistics_terms *terms, bool exact, size_t n_probes,
                              struct ks_probe *probe, size_t part);

/* kappa_effective_bound: a lower bound of the condition number off the known null space. NaN if the
 * null space is everything or no such bound is available. */
double ks_effective_bound(const struct ks_facts *facts, const struct ks_probe *probe);

#endif
