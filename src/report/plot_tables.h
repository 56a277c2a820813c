/* The tables that the plots draw, and what writers of tables share. A table's
 * columns stand in ks_table_files; its writer prints the rows, which may be none. */
#ifndef KS_REPORT_PLOT_TABLES_H
#define KS_REPORT_PLOT_TABLES_H

#include <stddef.h>
#include <stdio.h>

#include "core/error.h"
#include "report/tables.h"
#include "results/aggregate.h"
#include "results/comparison_tables.h"
#include "results/results.h"

struct ks_tables {
    const struct ks_results *r;
    const struct ks_summary_table *table;
    size_t resamples;
};

/* A table of a study, for the program and for checkpoints/README.md. `columns`: names between
 * commas. NAME~ stands for NAME, NAME_low and NAME_high; NAME| for NAME, NAME_lower and NAME_upper;
 * NAME% for NAME_lower, NAME_upper, NAME_least and NAME_most; architecture* also for normalization,
 * weight_normalization and loss. If "..." ends them, the writer goes on with the header. */
struct ks_table_file {
    const char *name, *row; /* tables/NAME.csv; what a row stands for */
    ks_status (*write)(const struct ks_tables *t, FILE *out);
    const char *columns, *notes; /* notes: "" or what the columns mean, as Markdown */
};
extern const struct ks_table_file ks_table_files[]; /* a NULL name ends the list */

/* --- for writers --- */

/* The architecture of a row of the summary. */
const struct ks_study_architecture *ks_table_architecture(const struct ks_tables *t, size_t row);
/* Prints "NAME,NORMALIZATION,WN,LOSS" of a row: the columns architecture*. */
void ks_table_look(const struct ks_tables *t, size_t row, FILE *out);

/* The run whose spectra are drawn: the first aggregated one that has its last spectrum, else the
 * first one. And the last spectrum of it in an analysis; NULL if that analysis failed. */
const struct ks_result *ks_table_run(const struct ks_tables *t, size_t row);
const struct ks_spectrum *ks_table_spectrum(const struct ks_tables *t, size_t row, size_t analysis);

/* The first spectrum of an analysis that an architecture has; NULL if there is none. */
const struct ks_spectrum *ks_table_any_spectrum(const struct ks_tables *t, size_t row,
                                                size_t analysis);
/* The analysis as in the published code, [analyze xqc], if it has a spectrum; else the standard one
 * (0). For tables over training [analyze xqc] must also have at least two checkpoints, and no later
 * one may be outside of its scope. */
size_t ks_table_paper(const struct ks_tables *t);
size_t ks_table_paper_curve(const struct ks_tables *t);

/* A number of every run of an architecture at some steps, and the IQM over the runs. */
struct ks_series {
    size_t runs, steps;
    double *step, *value;      /* [steps], [runs, steps]; NaN: missing. Owned */
    struct ks_estimate *curve; /* [steps]; owned */
};
/* Room for `runs` and `steps`; the caller fills step and value, and may lower `steps`. Then values
 * of ks_series_aggregate go to `curve`. */
ks_status ks_series_new(size_t runs, size_t steps, struct ks_series *series);
ks_status ks_series_aggregate(struct ks_series *series, size_t resamples);
void ks_series_free(struct ks_series *series);

/* --- writers --- */

/* Conditioning against the return. kappa_return.csv: of ks_table_paper; preconditioned_return.csv:
 * of the first analysis of the preconditioned Hessian. */
#define KS_KAPPA_RETURN_COLUMNS                                                                    \
    "architecture*,analysis,kappa~,lambda_max~,kurtosis~,return~,first_return,noise_limit,"        \
    "beyond_noise,kappa_starts,kappa_starts_least,kappa_starts_most"
ks_status ks_kappa_return_write(const struct ks_tables *t, FILE *out);
ks_status ks_preconditioned_return_write(const struct ks_tables *t, FILE *out);

/* kappa.csv: kappa over training, of the standard analysis and of ks_table_paper_curve. */
ks_status ks_kappa_write(const struct ks_tables *t, FILE *out);

/* Of probes with random start vectors in the run of ks_table_run: ritz.csv at all checkpoints, of
 * the standard analysis and of ks_table_paper_curve; of the standard analysis density.csv,
 * mass.csv, staircase.csv, distribution.csv, orders.csv at the last one. */
ks_status ks_ritz_write(const struct ks_tables *t, FILE *out);
ks_status ks_density_write(const struct ks_tables *t, FILE *out);
ks_status ks_mass_write(const struct ks_tables *t, FILE *out);
ks_status ks_staircase_write(const struct ks_tables *t, FILE *out);
ks_status ks_distribution_write(const struct ks_tables *t, FILE *out);
/* The rows of one spectrum: its band (/distribution) as stored, and as numbers of eigenvalues: up
 * to x for a negative x, above x for a positive one. */
void ks_distribution_print(const char *architecture, const struct ks_spectrum *spectrum, FILE *out);
#define KS_DISTRIBUTION_COLUMNS                                                                    \
    "architecture,eigenvalue,cumulative_lower,cumulative_upper,beyond_lower,beyond_upper"
ks_status ks_orders_write(const struct ks_tables *t, FILE *out);

/* operators.csv: Ritz values of the Hessian and of analyses of `ggn` and `residual`, if there are
 * any; layers.csv: statistics of analyses of one layer. Both at the last checkpoint. */
ks_status ks_operators_write(const struct ks_tables *t, FILE *out);
ks_status ks_layers_write(const struct ks_tables *t, FILE *out);

/* Over training: intervals.csv (99% intervals of the standard analysis), sharpness.csv (the
 * sharpness against the bound of stable steps, of all analyses that have one), norms.csv (metrics
 * of progress.csv). */
ks_status ks_intervals_write(const struct ks_tables *t, FILE *out);
ks_status ks_sharpness_write(const struct ks_tables *t, FILE *out);
ks_status ks_norms_write(const struct ks_tables *t, FILE *out);

/* efficiency.csv: parameters, arithmetic and speed of an update, against the last return. */
ks_status ks_efficiency_write(const struct ks_tables *t, FILE *out);

#endif
