/* The tables of an analysis that is no spectrum. */
#ifndef KS_PIPELINE_TABLES_H
#define KS_PIPELINE_TABLES_H

#include "core/error.h"
#include "pipeline/pipeline.h"
#include "program/report.h"

/* Prints p->rows: lines of a table, rows of CSV, or in JSON one object on a line, whose `layers` is
 * a list. Numbers that are not finite are printed as by ks_report_add. KS_FULL, KS_MEMORY. */
ks_status ks_layers_report(struct ks_report *report, const struct ks_pipeline *p);
/* Prints a row for each eigenvector: lines of a table, with the three layers of largest share; rows
 * of CSV; or in JSON one object on a line. KS_FULL, KS_MEMORY. */
ks_status ks_eigenvectors_report(struct ks_report *report, const struct ks_pipeline *p);

#endif
