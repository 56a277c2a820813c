/* Does a statistic of the loss's curvature tell more about the return than the architecture's
 * factors do? A regression over the twelve architectures. */
#ifndef KS_CLAIMS_PREDICTION_H
#define KS_CLAIMS_PREDICTION_H

#include "core/error.h"
#include "results/results.h"
#include "statistics/catalogue.h"

/* How much of y the columns of a fit explain: of the architectures that were fitted, and of each by
 * the fit to the others. */
struct ks_explained {
    double r2, q2;
};

struct ks_prediction_row {
    struct ks_statistic_column statistic;
    const char *analysis; /* "xqc", or the operator */
    struct ks_explained with;
    double partial, p, p_family; /* NaN, as `with`: not resolved */
};

enum { KS_PREDICTORS = 27 };
struct ks_prediction {
    struct ks_explained factors; /* by the factors alone */
    size_t n;                    /* 0: the study lacks what is needed */
    struct ks_prediction_row row[KS_PREDICTORS];
};

/* Finds what each statistic that the study has adds; nothing (n is 0) if the study lacks one of the
 * twelve architectures or a last return above 0.
 *
 * Let y be log10 of an architecture's last return (IQM over its seeds), Z its factors (a constant,
 * BN, LN, WN, CE), x the IQM over seeds and pooled checkpoints of log10 of a statistic, or of an
 * end of its interval; of the paper's statistics, of the mean of log10 over all start vectors. Each
 * row has, of the least-squares fit of y by Z and x,
 *
 *   r2 = 1 - sum e_i^2 / sum (y_i - mean)^2
 *   q2 = 1 - sum (e_i / (1 - h_i))^2 / sum ((y_i - mean) n / (n - 1))^2
 *
 * where e_i / (1 - h_i) is the residual of architecture i from the fit to the others (Allen,
 * Technometrics 16, 1974); and the partial correlation of x and y given Z with its two-sided p.
 * That test permutes the residuals of y given Z over the architectures (Freedman and Lane, Journal
 * of Business and Economic Statistics 1, 1983), KS_PERMUTATIONS times. `p_family` compares with the
 * largest absolute partial correlation of any row in the same permutation (Westfall and Young,
 * 1993). A statistic that not every pooled spectrum of the twelve has gets no numbers. KS_MEMORY.
 */
ks_status ks_prediction_find(const struct ks_results *results, struct ks_prediction *prediction);

#endif
