/* All layers of a critic, one diagonal block each (--layers): what is said of them, and how it is
 * printed. */
#ifndef KS_PROGRAM_LAYERS_H
#define KS_PROGRAM_LAYERS_H

#include <stddef.h>

#include "core/error.h"
#include "io/spectrum.h"
#include "program/options.h"
#include "program/report.h"

struct ks_layer_row {
    size_t number;    /* of the layer, as --layer has it                                  */
    const char *kind; /* its kind                                                         */
    size_t dimension; /* of its block, over all critics or that of --critic               */
    size_t steps;     /* the fewest Lanczos steps of a probe                              */
    /* Of the block's spectrum, as in its summary; NaN where it is not there. */
    double lambda_max, lambda_max_data_se, kappa_effective_bound, kurtosis, trace, trace_se;
    double trace_share; /* trace over the sum of all rows' traces, which is the whole's     */
};

/* A row for every layer that has coordinates, with the first three fields: the layers with
 * parameters, and if `moving` (selection.h) of these the ones that have had a gradient. Together
 * they have all coordinates of the operator. KS_USAGE where there is no such critic; KS_NUMBER
 * where there is no row. The caller frees the rows. */
ks_status ks_layers_new(const struct ks_problem *problem, bool moving, size_t *n,
                        struct ks_layer_row **rows);
/* The other fields but the last, from the block's spectrum. */
void ks_layers_take(struct ks_layer_row *row, const struct ks_spectrum *spectrum);
/* The shares, once all rows have been taken. */
void ks_layers_share(size_t n, struct ks_layer_row *rows);

/* Prints the rows of a checkpoint: lines of a table, rows of CSV, or in JSON one object on a line
 * whose `layers` is a list. Numbers that are not finite as ks_report_add has them. KS_FULL,
 * KS_MEMORY. */
ks_status ks_layers_report(struct ks_report *report, const char *checkpoint,
                           const struct ks_options *analysis, size_t n,
                           const struct ks_layer_row *rows);

#endif
