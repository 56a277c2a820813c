/* A study's tables: one row an architecture and analysis, with intervals, and what the figures
 * draw. */
#ifndef KS_STUDY_TABLES_H
#define KS_STUDY_TABLES_H

#include <stddef.h>
#include <stdio.h>

#include "core/error.h"
#include "study/aggregate.h"
#include "study/results.h"

/* Columns of a row. The figures of spectra are IQMs over all checkpoints after the first update and
 * all runs, pooled; an IQM of lower bounds is a lower bound of the IQM of what they bound, since it
 * grows with each of its numbers. KAPPA_GEOMETRIC is 10^IQM(log10 kappa); RETURN is the IQM of the
 * last returns, AREA the area under the IQM of returns / 1000, the most that an episode of
 * dm_control's tasks gives. */
enum {
    KS_KAPPA,
    KS_KAPPA_LOWER_BOUND,
    KS_KAPPA_EFFECTIVE_BOUND,
    KS_LAMBDA_MAX,
    KS_KURTOSIS,
    KS_POOLED, /* those above are pooled figures of spectra */
    KS_KAPPA_GEOMETRIC = KS_POOLED,
    KS_RETURN,
    KS_AREA,
    KS_COLUMNS
};

/* "kappa", "kappa_lower_bound", ...: the name in summary.csv, and of the figure in a spectrum. */
extern const char *const ks_column_names[KS_COLUMNS];

/* Statistics that are intervals and have no value of their own, at the last checkpoint that is
 * used. */
enum { KS_RANGE_DIRECTIONS, KS_RANGE_Q99, KS_RANGE_GRADIENT, KS_RANGES };

/* "directions_1e2", ...: with `_lower` and `_upper`, the names of the ends in a spectrum. */
extern const char *const ks_range_names[KS_RANGES];

/* The 99% intervals of an architecture's runs. With one run, lower and upper are its own. With
 * several they are the median of the lower ends and that of the upper ends, which enclose the
 * median of the true values where each interval holds its own; all n hold with a probability of at
 * least 1 - n/100. */
struct ks_range {
    size_t n;            /* runs that have the interval; with none, all below is NaN         */
    double lower, upper; /* upper is infinite where it is not resolved, or where lower is, too */
    double least, most;  /* the smallest lower end, the largest upper end                    */
};

struct ks_row {
    size_t architecture, analysis, runs;
    size_t dropped; /* kappas that are NaN, or of failed analyses: left out */
    struct ks_estimate value[KS_COLUMNS];
    struct ks_range range[KS_RANGES];
};

struct ks_summary_table {
    size_t n_rows; /* architectures */
    size_t n_analyses;
    struct ks_row *row; /* [n_analyses, n_rows] the standard analysis first, architectures in the
                         * order of ks_results_order; owned */
    size_t ranked;      /* rows of the standard analysis whose KAPPA_GEOMETRIC is a number */
    double spearman;    /* of KAPPA_GEOMETRIC and RETURN over those; NaN: undefined, or fewer than
                         * three of them */
};

/* The caller frees table->row. */
ks_status ks_summary_table(const struct ks_results *results, size_t resamples,
                           struct ks_summary_table *table);

/* The intervals of these runs of one architecture in one analysis. */
void ks_range_find(const struct ks_results *results, size_t analysis, size_t n,
                   const struct ks_result *const *run, struct ks_range range[KS_RANGES]);

enum { KS_RANGE_TEXT = 64 };
/* "209 to 367", "4.1 or more", "infinite", "-" where there is none. Ends that are no integers are
 * rounded outwards to three digits, so that the text is true where the interval is. */
void ks_range_print(const struct ks_range *range, char text[KS_RANGE_TEXT]);

/* Writes checkpoints.csv, returns.csv, summary.csv, what the figures draw (ritz.csv, kappa.csv,
 * return_curves.csv, density.csv, mass.csv, staircase.csv), and the comparisons of architectures
 * (improvement.csv, profile.csv, correlation.csv), into dir/tables. */
ks_status ks_tables_write(const struct ks_results *results, const struct ks_summary_table *table,
                          size_t resamples);

/* For a person: aligned columns, of the standard analysis. */
void ks_summary_print(const struct ks_results *results, const struct ks_summary_table *table,
                      FILE *out);
/* A value in few digits ("1.3e+06", "-" where it is NaN) into text[32]. */
void ks_value_print(double value, char text[32]);

#endif
