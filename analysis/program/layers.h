/* --layers: a row of statistics for the diagonal block of each layer, and how rows are printed. */
#ifndef KS_PROGRAM_LAYERS_H
#define KS_PROGRAM_LAYERS_H

#include <stddef.h>

#include "core/error.h"
#include "io/spectrum.h"
#include "program/options.h"
#include "program/report.h"

struct ks_layer_row {
    size_t number;    /* the number of the layer, as in --layer             */
    const char *kind; /* the kind of the layer, such as "dense"             */
    size_t dimension; /* dimension of its block: for all critics, or that of --critic */
    size_t steps;     /* the fewest Lanczos steps of a probe                */
    /* Statistics of the block's spectrum; NaN if absent. */
    double lambda_max, lambda_max_data_se, kappa_effective_bound, kurtosis, trace, trace_se;
    double trace_share; /* trace / trace of the full operator, the sum of all rows' traces */
};

/* A row, with its first three fields, for every layer with parameters; if `moving` (selection.h),
 * only for those with parameters that have had a gradient. Together the rows have all coordinates
 * of the operator. KS_USAGE if the critic does not exist, KS_NUMBER if there are no rows. The
 * caller frees *rows. */
ks_status ks_layers_new(const struct ks_problem *problem, bool moving, size_t *n,
                        struct ks_layer_row **rows);
/* Fills the other fields, except trace_share, from the block's spectrum. */
void ks_layers_take(struct ks_layer_row *row, const struct ks_spectrum *spectrum);
/* Fills trace_share of all rows, once they have their traces. */
void ks_layers_share(size_t n, struct ks_layer_row *rows);

/* Prints the rows of a checkpoint: lines of a table, rows of CSV, or in JSON one object on a line,
 * whose `layers` is a list. Numbers that are not finite are printed as by ks_report_add. KS_FULL,
 * KS_MEMORY. */
ks_status ks_layers_report(struct ks_report *report, const char *checkpoint,
                           const struct ks_options *options, size_t n,
                           const struct ks_layer_row *rows);

#endif
