/* A study's tables: one row an architecture and analysis, with intervals, and what the figures
 * draw. */
#ifndef KS_TABLES_H
#define KS_TABLES_H

#include <stddef.h>
#include <stdio.h>

#include "ks/error.h"
#include "ks/results.h"
#include "ks/stats.h"

/* Columns of a row. The figures of spectra are IQMs over all checkpoints after the first update and
 * all runs, pooled; KAPPA_GEOMETRIC is 10^IQM(log10 kappa); RETURN is the IQM of the last returns,
 * AREA the area under the IQM of returns / 1000, the most that an episode of dm_control's tasks
 * gives. */
enum {
    KS_KAPPA,
    KS_KAPPA_LOWER_BOUND,
    KS_KAPPA_Q90,
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

struct ks_row {
    size_t architecture, analysis, runs;
    size_t dropped; /* kappas that are NaN, or of failed analyses: left out */
    struct ks_estimate value[KS_COLUMNS];
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

/* Writes checkpoints.csv, returns.csv, summary.csv, and what the figures draw (ritz.csv, kappa.csv,
 * return_curves.csv, density.csv, mass.csv, staircase.csv), into dir/tables. */
ks_status ks_tables_write(const struct ks_results *results, const struct ks_summary_table *table,
                          size_t resamples);

/* For a person: aligned columns, of the standard analysis. */
void ks_summary_print(const struct ks_results *results, const struct ks_summary_table *table,
                      FILE *out);
/* A value in few digits ("1.3e+06", "-" where it is NaN) into text[32]. */
void ks_value_print(double value, char text[32]);

#endif
