/* The report: plots/report.html, a template, and what fills its marks. Its style and script, the
 * tables and the plots are printed into one file, so that it opens without network. */
#ifndef KS_REPORT_PAGE_H
#define KS_REPORT_PAGE_H

#include <stdbool.h>

#include "core/error.h"
#include "document/document.h"
#include "report/tables.h"
#include "results/results.h"

struct ks_page {
    const struct ks_results *results;
    const struct ks_summary_table *table;
    bool shown[KS_PLOTS]; /* the plots of ks_plots that the template has named so far   */
};

/* Writes dir/report.html from the results and their tables, and from the plots that dir holds.
 * Fails with KS_MISSING without the template, KS_FORMAT if the template or a plot is malformed. */
ks_status ks_page_write(const struct ks_results *results, const struct ks_summary_table *table);

/* The functions below add sections of the page to a document; data: a ks_page. */

/* The answer in a sentence; how far it goes: seeds, steps; the numbers behind it. */
void ks_page_headline(void *data, struct ks_document *document);
void ks_page_extent(void *data, struct ks_document *document);
void ks_page_evidence(void *data, struct ks_document *document);
/* The paper's claims with a verdict by each statistic, grouped by the date of their rules. */
void ks_page_verdicts(void *data, struct ks_document *document);
/* The paper's proved bounds and the largest measurements of each architecture. */
void ks_page_theorems(void *data, struct ks_document *document);
/* The table of architectures, with the kind of every number; tables of further analyses. */
void ks_page_architectures(void *data, struct ks_document *document);
void ks_page_analyses(void *data, struct ks_document *document);
/* Rank correlations of statistics with the return. */
void ks_page_correlations(void *data, struct ks_document *document);
/* What a statistic adds to the factors of the twelve architectures. */
void ks_page_prediction(void *data, struct ks_document *document);
/* What the analyzer states about the last checkpoint of each architecture's first run. */
void ks_page_statements(void *data, struct ks_document *document);
/* Settings of training and analyses; versions and machines of all runs and spectra. */
void ks_page_settings(void *data, struct ks_document *document);
void ks_page_versions(void *data, struct ks_document *document);
/* Appends "KEY = VALUE, KEY = VALUE", the settings of an analysis, or that it has none. */
void ks_page_add_settings(const struct ks_study_analysis *analysis, struct ks_document *document);

#endif
