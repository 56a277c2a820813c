/* What is known of a spectrum beside its probes: the same for all of them. */
#ifndef KS_STATISTICS_OPERATOR_FACTS_H
#define KS_STATISTICS_OPERATOR_FACTS_H

#include <stdbool.h>
#include <stddef.h>

struct ks_certificates;
struct ks_probe;
struct ks_statistics_terms;

struct ks_facts {
    size_t n, probes; /* dimension of the operator; probes with random start vectors          */
    bool exact;       /* the Ritz values are all eigenvalues                                  */
    bool unweighted;  /* all Ritz values of a probe count alike                               */
    bool certified;   /* abs_max is a certificate's, computed in float64                      */
    double abs_max;   /* lambda_abs_max: the largest |eigenvalue| is at least that            */
    double outer;     /* and at most that, with 99.5% confidence                              */
    double h;         /* half the noise floor: what rounding may have moved an eigenvalue by  */
    double error;     /* largest error of a product found, |A32 y - A64 y| / |y|; NaN: not looked */
    bool unresolved;  /* the products are so wrong that no interval can be given              */
    double noise_floor; /* an |eigenvalue| below it cannot be told from zero                    */
    size_t null;        /* d: dimension of the explicit null space, all of it projected out of
                         * sigma; 0: none is known                                              */
    bool null_known;    /* each probe's share in that space is known (certificates)             */
    size_t rank_null;   /* dimension of the null space by a bound of the rank; no directions    */
    /* Statistics; NaN where nobody looked for null directions. */
    double null_dimension, null_residual, dead_dimension;
    const struct ks_certificates *certificates; /* NULL: there are none */
    size_t part;      /* index of the leading part that this is about (certificate.h)        */
    size_t low, high; /* outliers from below and from above: the least over the probes       */
    bool single;      /* each of them may be a single eigenvalue                             */
};

/* From the probes' steps, Ritz values and residuals; `part`: the number of the leading part, 0 for
 * the first; SIZE_MAX for the whole. The probes' `known` must point to the result afterwards. */
struct ks_facts ks_facts_find(const struct ks_statistics_terms *terms, bool exact, size_t n_probes,
                              struct ks_probe *probe, size_t part);

/* kappa_effective_bound: the condition number off the known null space is at least that. NaN where
 * nothing is left off it, or no such bound can be given. */
double ks_effective_bound(const struct ks_facts *facts, const struct ks_probe *probe);

#endif
