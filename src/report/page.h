/* The report: plots/report.html, a template, and what fills its marks. Its style and script, the
 * tables and the plots are printed into one file, so that it opens without network. */
#ifndef KS_REPORT_PAGE_H
#define KS_REPORT_PAGE_H

#include <stdbool.h>
#include <stdio.h>

#include "core/error.h"
#include "io/csv.h"
#include "report/tables.h"
#include "results/results.h"

enum { KS_PAGE_PLOTS = 64 };

struct ks_page {
    const struct ks_results *results;
    const struct ks_summary_table *table;
    char *scripts;              /* the folder of the template and of gnuplot's scripts; owned */
    bool shown[KS_PAGE_PLOTS];  /* the plots of ks_plots that the template has named so far   */
    struct ks_csv *claims;      /* tables/claims.csv; NULL: there is none. Owned              */
    struct ks_csv *correlation; /* tables/correlation.csv; NULL: there is none. Owned        */
    struct ks_csv *theorems;    /* tables/theorems.csv; NULL: there is none. Owned           */
};

/* Writes dir/report.html from the results, and from the tables and plots that dir holds. Fails with
 * KS_MISSING without the template, KS_FORMAT if the template, a table or a plot is malformed. */
ks_status ks_page_write(const struct ks_results *results, const struct ks_summary_table *table);

/* The functions below print sections of the page, in HTML. */

/* The answer in a sentence; how far it goes: seeds, steps; the numbers behind it. */
ks_status ks_page_headline(const struct ks_page *page, FILE *out);
ks_status ks_page_limits(const struct ks_page *page, FILE *out);
ks_status ks_page_evidence(const struct ks_page *page, FILE *out);
/* The paper's claims with a verdict by each statistic, grouped by the date of their rules. */
ks_status ks_page_verdicts(const struct ks_page *page, FILE *out);
/* The paper's proved bounds and the largest measurements of each architecture. */
ks_status ks_page_theorems(const struct ks_page *page, FILE *out);
/* The table of architectures, with the kind of every number; tables of further analyses. */
ks_status ks_page_architectures(const struct ks_page *page, FILE *out);
ks_status ks_page_analyses(const struct ks_page *page, FILE *out);
/* The plot of that name; all plots that have not been named. In place of a plot that has not been
 * drawn, why it has not. Fails with KS_FORMAT if no plot has that name or the file is not SVG. */
ks_status ks_page_plot(struct ks_page *page, const char *name, FILE *out);
ks_status ks_page_other_plots(struct ks_page *page, FILE *out);
/* Rank correlations of statistics with the return. */
ks_status ks_page_correlations(const struct ks_page *page, FILE *out);
/* What the analyzer states about the last checkpoint of each architecture's first run, and whether
 * it states anything. */
bool ks_page_has_statements(const struct ks_page *page);
ks_status ks_page_statements(const struct ks_page *page, FILE *out);
/* Settings of training and analyses; versions and machines of all runs and spectra. */
ks_status ks_page_settings(const struct ks_page *page, FILE *out);
ks_status ks_page_versions(const struct ks_page *page, FILE *out);
/* Links to the CSV files in dir/tables. */
ks_status ks_page_files(const struct ks_page *page, FILE *out);

#endif
