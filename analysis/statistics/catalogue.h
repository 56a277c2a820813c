/* The catalogue of statistics: one row says all that the program knows of a statistic. How it is
 * computed is in statistics.c, its names in files and tables, how it is printed, whether
 * --tolerance and --fail-if take it and the table of statistics in analysis/README.md follow from
 * its row. To add a statistic, add it to the enumeration and add a row in catalogue.c. */
#ifndef KS_STATISTICS_CATALOGUE_H
#define KS_STATISTICS_CATALOGUE_H

#include <stdbool.h>

#include "core/interval.h"
#include "io/spectrum.h"

struct ks_probe;

/* In the order in which spectra have them. */
enum ks_statistic_id {
    KS_STAT_LAMBDA_MAX,
    KS_STAT_LAMBDA_MAX_RESIDUAL,
    KS_STAT_LAMBDA_MAX_UPPER,
    KS_STAT_LAMBDA_MAX_DATA_SE,
    KS_STAT_LAMBDA_MIN,
    KS_STAT_LAMBDA_MIN_RESIDUAL,
    KS_STAT_LAMBDA_MIN_LOWER,
    KS_STAT_LAMBDA_MIN_DATA_SE,
    KS_STAT_KAPPA,
    KS_STAT_KAPPA_F64,
    KS_STAT_KAPPA_LOWER_BOUND,
    KS_STAT_KURTOSIS,
    KS_STAT_KURTOSIS_EXCESS,
    KS_STAT_KURTOSIS_SPECTRAL,
    KS_STAT_TRACE,
    KS_STAT_TRACE_SQUARE,
    KS_STAT_STABLE_RANK,
    KS_STAT_OUTLIERS,
    KS_STAT_OUTLIER_GAP,
    KS_STAT_PRODUCT_ERROR,
    KS_STAT_NOISE_FLOOR,
    KS_STAT_NULL_DIMENSION,
    KS_STAT_NULL_RESIDUAL,
    KS_STAT_DEAD_DIMENSION,
    KS_STAT_LAMBDA_MAX_LOSS,
    KS_STAT_LAMBDA_MIN_LOSS,
    KS_STAT_KAPPA_GRADIENT_90,
    KS_STAT_KAPPA_GRADIENT_50,
    KS_STAT_GRADIENT_TOP_SHARE,
    KS_STAT_GRADIENT_CURVATURE,
    KS_STAT_GRADIENT_NORM,
    KS_STAT_DIRECTIONS_1E1, /* one row for each ks_direction_factor of shares.h */
    KS_STAT_DIRECTIONS_1E2,
    KS_STAT_DIRECTIONS_1E3,
    KS_STAT_DIRECTIONS_1E4,
    KS_STAT_DIRECTIONS_ABOVE,
    KS_STAT_KAPPA_Q99, /* one row for each ks_quantile_percent of shares.h */
    KS_STAT_KAPPA_Q90,
    KS_STAT_KAPPA_Q50,
    KS_STAT_ZERO_MASS,
    KS_STAT_NEGATIVE_MASS,
    KS_STAT_KAPPA_EFFECTIVE_BOUND,
    KS_STAT_SHARPNESS_RATIO,
    KS_STAT_LOGIT_GRADIENT_LARGEST,
    KS_STAT_LOGIT_GRADIENT_MEDIAN,
    KS_STAT_MINIBATCH_GRADIENT_LARGEST,
    KS_STAT_MINIBATCH_GRADIENT_MEDIAN,
    KS_STAT_LOGIT_JACOBIAN_LARGEST,
    KS_STAT_LOGIT_JACOBIAN_MEDIAN,
    KS_STAT_LOGIT_JACOBIAN_ROWS,
    KS_STAT_MINIBATCH_GRADIENT_HIDDEN_LARGEST,
    KS_STAT_MINIBATCH_GRADIENT_HIDDEN_MEDIAN,
    KS_STAT_LOGIT_JACOBIAN_HIDDEN_LARGEST,
    KS_STAT_LOGIT_JACOBIAN_HIDDEN_MEDIAN,
    KS_STAT_HIDDEN_NORM,
    KS_STAT_HIDDEN_RADIAL_LARGEST,
    KS_STAT_PREDICTION_ERROR_LARGEST,
    KS_STAT_PREDICTION_ERROR_MEDIAN,
    KS_STAT_GRADIENT_SQUARE,
    KS_STAT_GRADIENT_VARIANCE,
    KS_STAT_NOISE_SCALE,
    KS_STAT_SIGNAL_SHARE,
    KS_STAT_STEP_CURVATURE,
    KS_STAT_STEP_CHANGE,
    KS_STAT_STEP_CHANGE_QUADRATIC,
    KS_STAT_CRITICAL_SHARPNESS,
    KS_STATISTICS
};

/* What a statistic is. A ratio is the largest absolute eigenvalue over another one: it is at least
 * 1 and may be infinite. */
enum ks_statistic_kind {
    KS_IS_NUMBER,   /* a number as it is                                                      */
    KS_IS_WHOLE,    /* counted: printed as a whole number                                      */
    KS_IS_EXTREME,  /* a bound of an eigenvalue, whose other bound is a statistic of its own   */
    KS_IS_ESTIMATE, /* by random vectors, with an interval or without one                     */
    KS_IS_COUNT,    /* an estimate of a number of eigenvalues, with an interval               */
    KS_IS_SHARE,    /* an estimate of a share of the eigenvalues, with an interval            */
    KS_IS_INTERVAL, /* an interval without a value                                            */
    KS_IS_RATIO,    /* an interval of a ratio, without a value                                */
    KS_IS_QUOTIENT, /* a ratio of Ritz values, which is not an estimate                        */
    KS_IS_BOUND     /* a lower bound of a ratio; 1 says nothing                                */
};

/* How the values of several probes become one. OF_END: the value of the probe with the largest
 * lambda_max or the smallest lambda_min, by `end`. SHARED: all probes have the same value. A mean
 * has a standard error, NAME_se. */
enum ks_combination {
    KS_OVER_MEAN,
    KS_OVER_MEDIAN,
    KS_OVER_LARGEST,
    KS_OVER_SMALLEST,
    KS_OVER_OF_END,
    KS_OVER_SHARED
};

/* What --tolerance limits: nothing; upper / lower - 1; upper - lower; upper - lower in units of the
 * largest absolute eigenvalue, as for a tolerance without a name; (upper - lower)/2 in units of the
 * value's size. */
enum ks_width { KS_NO_WIDTH, KS_WIDTH_RATIO, KS_WIDTH, KS_WIDTH_OF_SIZE, KS_WIDTH_OF_VALUE };

struct ks_statistic {
    const char *name;
    enum ks_statistic_kind kind;
    enum ks_width tolerance;
    const char *lower, *upper; /* the columns that are the ends of its interval; NULL: none       */
    const char *words;         /* what it says, in a table of one spectrum; NULL: not in it       */
    const char *unknown;    /* why there is no value; NULL: it is not resolved                  */
    const char *of_spectra; /* what the numbers of several spectra are; NULL: not in tables    */
    const char *pooled;     /* what their IQM is, in the report; NULL: not in it               */
    const char *definition; /* Markdown for analysis/README.md; NULL: as the row before */
    const char *paper; /* where the XQC paper defines or bounds it; NULL: it does not         */

    /* Of statistics that are computed from single probes: */
    double (*value)(const struct ks_probe *probe); /* both NULL: it is computed otherwise        */
    double (*of_end)(const struct ks_probe *probe, int sign);
    int end; /* the sign for of_end: 1 lambda_max, -1 lambda_min */
    enum ks_combination over;
    bool is_lower_bound; /* --fail-if takes NAME itself, not only its ends */
    bool every_prefix;   /* it depends on the steps: repeated for the first 30, 60, ... of them */
    /* Not valid for the Lanczos iteration of the published code. Its uniform weights do not
     * represent all n eigenvalues; and its vectors lose orthogonality once the Krylov space has
     * ended, so that bounds are none (test_no_bounds). */
    bool not_published;
};

extern const struct ks_statistic ks_catalogue[KS_STATISTICS];

/* The statistics with `words` in the order of their reliability: bounds and intervals first, the
 * paper's kappa last. Ends with KS_STATISTICS. */
extern const enum ks_statistic_id ks_catalogue_for_readers[];

/* The statistic of this name, and the statistic that a column belongs to: NAME, NAME_lower,
 * NAME_se, NAME_lower_m30. KS_STATISTICS: none. */
enum ks_statistic_id ks_catalogue_find(const char *name);
enum ks_statistic_id ks_catalogue_of_column(const char *column);
bool ks_statistic_is_ratio(enum ks_statistic_id id);

/* The value of a statistic by the name of its column, such as lambda_max_m30; NaN if it is absent.
 */
double ks_statistic(const struct ks_spectrum *spectrum, const char *name);
/* The value and the interval of a statistic; NaN: absent. In a file, an upper end that is not
 * resolved is NaN. */
double ks_statistic_value(const struct ks_spectrum *spectrum, enum ks_statistic_id id);
struct ks_interval ks_statistic_interval(const struct ks_spectrum *spectrum,
                                         enum ks_statistic_id id);
/* A statistic, or an end of its interval: what has a column of its own in tables. */
struct ks_statistic_column {
    enum ks_statistic_id id;
    enum ks_statistic_part { KS_ITSELF, KS_LOWER_END, KS_UPPER_END } part;
};
const char *ks_statistic_column_name(struct ks_statistic_column column);
double ks_statistic_column_value(const struct ks_spectrum *spectrum,
                                 struct ks_statistic_column column);
/* The interval, with both ends NaN if it is of a ratio that is only known to be at least 1. */
struct ks_interval ks_statistic_resolved(enum ks_statistic_id id, struct ks_interval interval);
/* The largest absolute eigenvalue that was found. */
double ks_statistic_abs_max(const struct ks_spectrum *spectrum);

/* Add a statistic, and the two ends of its interval, with a suffix behind their names. */
void ks_statistic_add(struct ks_spectrum *spectrum, enum ks_statistic_id id, const char *suffix,
                      double value);
void ks_statistic_add_interval(struct ks_spectrum *spectrum, enum ks_statistic_id id,
                               const char *suffix, struct ks_interval interval);

#endif
