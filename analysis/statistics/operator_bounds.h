/* What the probes together establish about the operator, shared by all probes: the range of its
 * eigenvalues, the noise floor, the dimension of its null space, its single outliers. */
#ifndef KS_STATISTICS_OPERATOR_BOUNDS_H
#define KS_STATISTICS_OPERATOR_BOUNDS_H

#include <stdbool.h>
#include <stddef.h>

#include "io/spectrum.h"
#include "statistics/probe.h"

struct ks_certificates;
struct ks_null;

/* The trace from random vectors of its own (pipeline/minibatch_samples.c). */
struct ks_trace_samples {
    size_t rounds; /* vectors of each minibatch; 0: none were drawn */
    double value;  /* the trace                                     */
    double se;     /* its standard error                            */
    double error;  /* half of the 99% interval around `value`       */
};

/* What the statistics need besides the spectrum. */
struct ks_statistics_inputs {
    size_t n;             /* dimension of the operator                                        */
    double minibatches;   /* N; 0: not a mean over minibatches                                */
    double epsilon;       /* machine epsilon of the products                                    */
    double basis_epsilon; /* machine epsilon of the Lanczos vectors, or of LAPACK if exact      */
    double shift;         /* A u = shift u for null directions u of the loss: weight decay      */
    const struct ks_null *null; /* tested null directions; NULL: not computed                   */
    size_t operator_rank; /* an upper bound of the rank of the operator; 0: none is known       */
    double exact_error;   /* for an exact spectrum: the measured error of its products; 0 in f64  */
    bool gradient; /* a probe at the gradient was requested; it does not exist if that is zero  */
    const struct ks_certificates *certificates; /* NULL: none were computed                     */
    const struct ks_trace_samples *trace;       /* NULL: the trace follows from the spectrum    */
    /* The Lanczos iteration of the published code: the Ritz values of prefixes get uniform weights,
     * the caller has already given the full run uniform weights (ks_statistics_unweight), and
     * statistics that need weights or an orthonormal basis are left out. */
    bool published;
    size_t pretend_probes; /* intervals as if each probe had been run this many times
                            * (share_bounds.h); 0 counts as 1 */
    double count_above;    /* the size of directions_above; 0: it is not wanted */
    bool draft; /* only the statistics of the full run: no prefixes of its steps, no band, no probe
                 * at the gradient */
};

/* Computes the bounds from the steps, Ritz values and residuals of the probes. `prefix` is the
 * index of the prefix of steps, from 0, or SIZE_MAX for the full run. The caller sets the probes'
 * `bounds` to the result afterwards. */
struct ks_bounds ks_bounds_find(const struct ks_statistics_inputs *inputs, bool exact,
                                size_t n_probes, struct ks_probe *probe, size_t prefix);

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
 * every Ritz value that does not belong to the known null directions exceeds ten noise floors. A
 * Ritz value at zero belongs to the known null directions alone if its weight equals theirs. False
 * in doubt.
 *
 * *upper is then an upper bound of the condition number off those directions; kappa_effective_bound
 * is the lower bound. */
bool ks_spectrum_is_complete(const struct ks_spectrum *spectrum,
                             const struct ks_statistics_inputs *inputs, double *upper);

#endif
