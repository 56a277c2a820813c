/* The CSV files of a study, which the plots draw; and what fills them. */
#ifndef KS_REPORT_TABLES_H
#define KS_REPORT_TABLES_H

#include <stddef.h>

#include "core/error.h"
#include "io/table.h"
#include "report/summary_table.h"
#include "results/comparison.h"
#include "results/results.h"

/* Computes what is left of the summary, fills all tables of ks_table_files and writes them into
 * dir/tables. */
ks_status ks_tables_write(const struct ks_results *results, struct ks_summary_table *table,
                          size_t resamples);
void ks_summary_clear(struct ks_summary_table *table);

struct ks_tables {
    const struct ks_results *r;
    const struct ks_summary_table *table;
    const struct ks_comparison *comparison; /* of all architectures of the summary, in its order */
};

/* A table of a study, for the program and for checkpoints/README.md. One of three functions fills
 * it: with all rows, with the rows of one row of the summary, or with the rows of the spectrum that
 * is drawn of an architecture. */
struct ks_table_file {
    const char *name, *row;      /* tables/NAME.csv; what a row stands for                */
    const char *columns, *notes; /* ks_table_columns; "" or what they mean, as Markdown */
    ks_status (*all)(const struct ks_tables *t, struct ks_table *out);
    ks_status (*of_row)(const struct ks_tables *t, size_t row, struct ks_table *out);
    ks_status (*of_spectrum)(const char *architecture, const struct ks_spectrum *spectrum,
                             struct ks_table *out);
};
extern const struct ks_table_file ks_table_files[]; /* a NULL name ends the list */

/* --- for functions that fill tables --- */

/* The architecture of a row of the summary, its complete runs, and the columns architecture* of it.
 */
const struct ks_study_architecture *ks_tables_architecture(const struct ks_tables *t, size_t row);
struct ks_runs ks_tables_runs(const struct ks_tables *t, size_t row);
#define KS_LOOK(a)                                                                                 \
    KS_TEXT((a)->name), KS_TEXT((a)->normalization), KS_COUNT((a)->weight_normalization),          \
        KS_TEXT((a)->loss)

/* The run whose spectra are drawn: the first aggregated one that has its last spectrum, else the
 * first one. And the last spectrum of it in an analysis; NULL if that analysis failed. */
const struct ks_result *ks_tables_run(const struct ks_tables *t, size_t row);
const struct ks_spectrum *ks_tables_spectrum(const struct ks_tables *t, size_t row,
                                             size_t analysis);
/* The first spectrum of an analysis that an architecture has; NULL if there is none. */
const struct ks_spectrum *ks_tables_any_spectrum(const struct ks_tables *t, size_t row,
                                                 size_t analysis);
/* The analysis as in the published code, [analyze xqc], if it has a spectrum; else the standard one
 * (0). For tables over training [analyze xqc] must also have at least two checkpoints, and no later
 * one may be outside of its scope. */
size_t ks_tables_paper(const struct ks_tables *t);
size_t ks_tables_paper_curve(const struct ks_tables *t);

/* A number of every run of an architecture at some steps, and the IQM over the runs. KS_OWNS_POOL.
 */
struct ks_series {
    struct ks_pool pool; /* the arrays. Owned */
    size_t runs, steps;
    double *step, *value;      /* [steps], [runs, steps]; NaN: missing */
    struct ks_estimate *curve; /* [steps] */
};
/* Room for `runs` and `steps`; the caller fills step and value, and may lower `steps`. Then values
 * of ks_series_aggregate go to `curve`. */
ks_status ks_series_new(size_t runs, size_t steps, struct ks_series *series);
ks_status ks_series_aggregate(struct ks_series *series, size_t resamples);

/* curve_tables.c: numbers over training, or at its end, with intervals over seeds. */
ks_status ks_return_curve_fill(const struct ks_tables *t, size_t row, struct ks_table *out);
ks_status ks_kappa_fill(const struct ks_tables *t, struct ks_table *out);
ks_status ks_intervals_fill(const struct ks_tables *t, size_t row, struct ks_table *out);
ks_status ks_sharpness_fill(const struct ks_tables *t, struct ks_table *out);
ks_status ks_layers_fill(const struct ks_tables *t, size_t row, struct ks_table *out);

/* run_tables.c: what runs measured in training; conditioning against the return; last returns of
 * architectures against each other. */
ks_status ks_kappa_return_fill(const struct ks_tables *t, struct ks_table *out);
ks_status ks_preconditioned_return_fill(const struct ks_tables *t, struct ks_table *out);
ks_status ks_norms_fill(const struct ks_tables *t, size_t row, struct ks_table *out);
ks_status ks_efficiency_fill(const struct ks_tables *t, size_t row, struct ks_table *out);
ks_status ks_improvement_fill(const struct ks_tables *t, size_t row, struct ks_table *out);
ks_status ks_profile_fill(const struct ks_tables *t, size_t row, struct ks_table *out);

/* spectrum_tables.c: of probes with random start vectors. The distribution is the spectrum's band
 * (/distribution) as stored, and as numbers of eigenvalues. */
ks_status ks_ritz_fill(const struct ks_tables *t, struct ks_table *out);
ks_status ks_density_fill(const char *name, const struct ks_spectrum *s, struct ks_table *out);
ks_status ks_mass_fill(const char *name, const struct ks_spectrum *s, struct ks_table *out);
ks_status ks_staircase_fill(const char *name, const struct ks_spectrum *s, struct ks_table *out);
ks_status ks_distribution_fill(const char *name, const struct ks_spectrum *s, struct ks_table *out);
#define KS_DISTRIBUTION_COLUMNS                                                                    \
    "architecture,eigenvalue,cumulative_lower,cumulative_upper,beyond_lower,beyond_upper"
ks_status ks_orders_fill(const char *name, const struct ks_spectrum *s, struct ks_table *out);
ks_status ks_operators_fill(const struct ks_tables *t, size_t row, struct ks_table *out);

#endif
