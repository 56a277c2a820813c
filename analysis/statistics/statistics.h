/* The statistics of a spectrum (kappa, lambda_max, kurtosis, ...), from the Ritz values and the
 * Jacobi matrices of its probes. Their definitions are in analysis/README.md. */
#ifndef KS_STATISTICS_STATISTICS_H
#define KS_STATISTICS_STATISTICS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "io/spectrum.h"
#include "statistics/catalogue.h"

struct ks_certificates;
struct ks_null;

enum { KS_STATISTICS_PART = 30 }; /* statistics are repeated at m = 30, 60, ... */

/* What the statistics need besides the spectrum. */
struct ks_statistics_inputs {
    size_t n;             /* dimension of the operator                                        */
    double minibatches;   /* N of all ranks; 0: not a mean over minibatches                   */
    double epsilon;       /* machine epsilon of the products                                    */
    double basis_epsilon; /* machine epsilon of the Lanczos vectors, or of LAPACK if exact      */
    double shift;         /* A u = shift u for null directions u of the loss: weight decay      */
    const struct ks_null *null; /* measured null directions; NULL: not computed                 */
    size_t operator_rank; /* an upper bound of the rank of the operator; 0: none is known       */
    double exact_error;   /* for an exact spectrum: the measured error of its products; 0 in f64  */
    bool gradient; /* a probe at the gradient was requested; it does not exist if that is zero  */
    const struct ks_certificates *certificates; /* NULL: none were computed                     */
    /* The Lanczos iteration of the published code: the Ritz values of leading parts get uniform
     * weights, the caller has already given the full run uniform weights (ks_statistics_unweight),
     * and statistics that need weights or an orthonormal basis are left out. */
    bool published;
    size_t pretend_probes; /* intervals as if each probe had been run this many times
                            * (share_bounds.h); 0 counts as 1 */
    bool draft; /* only the statistics of the full run: neither leading parts nor the band nor those
                 * of the probe at the gradient */
};

/* Fills the empty spectrum->statistics from ritz, weight, residual and, unless the spectrum is
 * exact, alpha and beta: for each statistic its NAME; NAME_se, the standard error over two or more
 * probes; NAME_m30, NAME_m60, ... below the order, from the leading parts of the Jacobi matrices.
 * Fills the band of the cumulative distribution (intervals.h) as well. KS_MEMORY; KS_NUMBER if an
 * eigenvalue problem does not converge. */
ks_status ks_statistics(struct ks_spectrum *spectrum, const struct ks_statistics_inputs *inputs);

/* Gives all Ritz values of a probe the same weight. */
void ks_statistics_unweight(struct ks_spectrum *spectrum);

/* Add NAME and a suffix, and the two ends of a statistic's interval. */
ks_status ks_statistic_add(struct ks_spectrum *spectrum, const char *name, const char *suffix,
                           double value);
ks_status ks_statistic_add_interval(struct ks_spectrum *spectrum, enum ks_statistic_id id,
                                    const char *suffix, struct ks_interval interval);

/* The value of a statistic by the name of its column, such as lambda_max_m30; NaN if it is absent.
 * ks_statistic_value (catalogue.h) is for the statistics themselves. */
double ks_statistic(const struct ks_spectrum *spectrum, const char *name);

/* Whether the spectrum has the statistic, or one of its ends. */
bool ks_statistic_present(const struct ks_spectrum *spectrum, enum ks_statistic_id id);
/* Prints a statistic with what it is: "at least 422.4" for a bound, rounded so that it stays one;
 * "6083 [2818, 9086]" for an estimate with its interval, "[7.56, 11.2]" for an interval without
 * one; "infinite"; "not resolved" where nothing is known; "no learning rate" for a sharpness_ratio
 * without one. */
enum { KS_STATISTIC_TEXT = 96 };
void ks_statistic_text(const struct ks_spectrum *spectrum, enum ks_statistic_id id,
                       char text[KS_STATISTIC_TEXT]);

#endif
