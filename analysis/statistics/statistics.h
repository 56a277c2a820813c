/* The statistics of a spectrum (kappa, lambda_max, kurtosis, ...), from the Ritz values and the
 * Jacobi matrices of its probes. Their definitions are in analysis/README.md. */
#ifndef KS_STATISTICS_STATISTICS_H
#define KS_STATISTICS_STATISTICS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "document/document.h"
#include "io/spectrum.h"
#include "operators/operator.h"
#include "statistics/catalogue.h"
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

enum { KS_STATISTICS_PREFIX = 30 }; /* statistics are repeated at m = 30, 60, ... */

/* Fills the empty spectrum->statistics from ritz, weight, residual and, unless the spectrum is
 * exact, alpha and beta: for each statistic its NAME; NAME_se, the standard error over two or more
 * probes; NAME_m30, NAME_m60, ... below the order, from the leading blocks of the Jacobi matrices.
 * Fills the band of the cumulative distribution (shares.h) as well. KS_MEMORY; KS_NUMBER if an
 * eigenvalue problem does not converge. */
ks_status ks_statistics(struct ks_spectrum *spectrum, const struct ks_statistics_inputs *inputs);

/* Gives all Ritz values of a probe the same weight. */
void ks_statistics_unweight(struct ks_spectrum *spectrum);

/* Whether the spectrum has the statistic, or one of its ends. */
bool ks_statistic_present(const struct ks_spectrum *spectrum, enum ks_statistic_id id);
/* Prints a statistic with what it is: "at least 422.4" for a bound, rounded so that it stays one;
 * "6083 [2818, 9086]" for an estimate with its interval, "[7.56, 11.2]" for an interval without
 * one; "infinite"; "not resolved" where nothing is known; "no learning rate" for a sharpness_ratio
 * without one. */
enum { KS_STATISTIC_TEXT = 96 };
void ks_statistic_text(const struct ks_spectrum *spectrum, enum ks_statistic_id id,
                       char text[KS_STATISTIC_TEXT]);
/* The same as a cell; "-" if the spectrum does not have the statistic. */
struct ks_cell ks_statistic_cell(const struct ks_spectrum *spectrum, enum ks_statistic_id id);
/* Adds the table of the statistics that are shown to readers: name, value, meaning. */
void ks_statistics_describe(const struct ks_spectrum *spectrum, struct ks_document *document);

/* --- What the probes together establish about the operator, shared by all probes: the range of its
 * eigenvalues, the noise floor, the dimension of its null space, its single outliers. --- */

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

/* --- The statement: what is known of an operator's eigenvalues, in plain words. --- */

/* What the statement needs beside the statistics. */
struct ks_statement_inputs {
    const struct ks_operator_kind *kind; /* NULL: a matrix of the library's caller */
    int critic, layer;                   /* the diagonal block; -1: all     */
    const char *arrays;                  /* of these arrays; NULL: all      */
    bool products_f32;                   /* float32 products                */
    size_t minibatches;                  /* N: the loss is a mean over them; 0: it is not */
    size_t normals; /* how many null directions are normals of spheres, which are not directions
                     * of the manifold and do not make a condition number infinite */
    const struct ks_statistics_inputs *statistics; /* with which the statistics were computed */
};

/* One line for a reader, from a spectrum with its statistics. First what holds for every order and
 * start vector: how many directions have a curvature within a factor of 100 of the largest, the
 * bounds of the condition number, and the 99% quantile of the |eigenvalues|; the paper's kappa
 * comes last. *first: the length of the first sentence. KS_MEMORY. The caller frees *text. */
ks_status ks_statement(const struct ks_spectrum *spectrum, const struct ks_statement_inputs *inputs,
                       char **text, size_t *first);

#endif
