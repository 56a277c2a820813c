/* The summary of a study: one row per architecture and analysis, with intervals. */
#ifndef KS_REPORT_SUMMARY_TABLE_H
#define KS_REPORT_SUMMARY_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "claims/claims.h"
#include "claims/prediction.h"
#include "core/error.h"
#include "core/interval.h"
#include "io/table.h"
#include "results/aggregate.h"
#include "results/correlation.h"
#include "results/results.h"
#include "statistics/catalogue.h"

/* Columns of a row. Statistics of spectra are IQMs, pooled over all runs and all checkpoints after
 * the first update. The IQM is increasing in each value, so the IQM of lower bounds is a lower
 * bound of the IQM of the bounded values. KAPPA_GEOMETRIC is 10^IQM(log10 kappa), RETURN the IQM of
 * the last returns, AREA the area under the curve of normalized IQM(returns), see
 * results/scores.h: divided by 1000 for dm_control's tasks; NaN for tasks without scores. */
enum {
    KS_KAPPA,
    KS_KAPPA_LOWER_BOUND,
    KS_KAPPA_EFFECTIVE_BOUND,
    KS_LAMBDA_MAX,
    KS_KURTOSIS,
    KS_POOLED, /* the number of pooled statistics above */
    KS_KAPPA_GEOMETRIC = KS_POOLED,
    KS_RETURN,
    KS_AREA,
    KS_COLUMNS
};

/* The statistics of a spectrum that are pooled, and the name of every column in summary.csv. */
extern const enum ks_statistic_id ks_pooled[KS_POOLED];
const char *ks_column_name(size_t column);

/* Statistics that are only known as intervals. In a row: at the last checkpoint that is aggregated.
 */
enum { KS_RANGE_DIRECTIONS, KS_RANGE_Q99, KS_RANGE_GRADIENT, KS_RANGE_NOISE, KS_RANGES };

extern const enum ks_statistic_id ks_ranges[KS_RANGES];

/* The 99% intervals of an architecture's runs, combined. With one run, `median` is its interval.
 * With several, it has the medians of the lower and of the upper ends, which enclose the median of
 * the true values if every interval contains its true value: with a probability of at least 1 -
 * n/100. The upper end is infinite if it is not resolved, or if the lower end is infinite. */
struct ks_seed_range {
    size_t n;                       /* runs that have the interval; if 0, all ends are NaN   */
    struct ks_interval median, all; /* all: the smallest lower end, the largest upper end    */
};

/* What is known of kappa's error: the IQM of ks_noise_limit; the share of spectra whose kappa is
 * above their limit, NaN without a noise floor; and of those spectra that store `kappa_f64`, the
 * share in which it differs from kappa by more than a tenth, NaN if none does. */
struct ks_noise {
    double limit, beyond, moved;
};

struct ks_row {
    size_t architecture, analysis, runs;
    bool asked;            /* whether the study asks for this analysis of this architecture */
    size_t dropped;        /* values of kappa left out: NaN, or of failed analyses */
    struct ks_noise noise; /* of the pooled spectra */
    struct ks_estimate value[KS_COLUMNS];
    struct ks_seed_range range[KS_RANGES];
};

enum { KS_PLOTS = 18 };

struct ks_summary_table {
    size_t n_rows; /* architectures */
    size_t n_analyses;
    struct ks_row *row; /* [n_analyses, n_rows] the standard analysis first, architectures in the
                         * order of ks_results_order; owned */
    size_t ranked;      /* rows of the standard analysis whose KAPPA_GEOMETRIC is not NaN */
    double spearman;    /* rank correlation of KAPPA_GEOMETRIC and RETURN over these rows; NaN if
                         * undefined or with fewer than three rows */
    struct ks_claims claims; /* set by the caller; none: not judged */
    /* Set by ks_tables_write: */
    struct ks_correlations correlations; /* the rows are owned */
    struct ks_prediction prediction;
    struct ks_theorems theorems; /* the rows are owned */
    bool drawn[KS_PLOTS];        /* whether the tables have the data of each of ks_plots */
};

/* Computes the table with `resamples` bootstrap resamples. The caller ends with ks_summary_clear.
 */
ks_status ks_summary_table(const struct ks_results *results, size_t resamples,
                           struct ks_summary_table *table);

/* The largest kappa that our bound of the errors certifies: the largest absolute eigenvalue of a
 * spectrum over its noise floor. A larger kappa may still be accurate. NaN if `s` is NULL or has no
 * noise floor. */
double ks_noise_limit(const struct ks_spectrum *s);
/* Of spectrum [n], of which those that are NULL say nothing. limit [n]: scratch. */
struct ks_noise ks_noise_find(size_t n, const struct ks_spectrum *const *spectrum, double *limit);

/* Combines the intervals of the runs of one architecture at one checkpoint in one analysis. */
void ks_range_find(const struct ks_results *results, size_t analysis, size_t checkpoint,
                   const struct ks_runs *runs, struct ks_seed_range range[KS_RANGES]);

/* Adds the four ends of all ranges, in the form that spectra use: NaN for an upper end that is not
 * resolved, infinite if the statistic itself is infinite. */
void ks_range_add_ends(const struct ks_seed_range range[KS_RANGES], struct ks_table *out);

/* Prints the standard analysis in aligned columns. KS_MEMORY. */
ks_status ks_summary_print(const struct ks_results *results, const struct ks_summary_table *table,
                           FILE *out);
/* A value in few digits ("1.30e+06"; "-" for NaN) in text[32]. */
const char *ks_value_text(double value, char text[32]);
/* A lower bound, from 1, rounded downwards to as many digits. */
const char *ks_bound_text(double bound, char text[32]);

#endif
