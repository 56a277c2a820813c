/* The analysis of one checkpoint, from its file to a spectrum, a table of its layers, or vectors.
 */
#ifndef KS_PROGRAM_ANALYSIS_H
#define KS_PROGRAM_ANALYSIS_H

#include <stdbool.h>
#include <stddef.h>

#include "io/spectrum.h"
#include "operators/analyzed.h"
#include "operators/gradient_bounds.h"
#include "program/budget.h"
#include "program/layers.h"
#include "program/monitor.h"
#include "program/options.h"
#include "program/report.h"
#include "spectrum/measurement.h"

/* The caller sets the first fields, up to `world`; all others are zero before an analysis, which
 * fills them, and freed by ks_analysis_clear. */
struct ks_analysis {
    const struct ks_options *options;
    const char *path;            /* the checkpoint's file                          */
    const char *output;          /* the spectrum's file; NULL: none is written     */
    bool quiet;                  /* no progress and no warnings on standard error  */
    bool says_references;        /* the caller says itself if the file has no reference results */
    bool trusts_files;           /* the caller has had the files read by a scout    */
    struct ks_report *report;    /* what rank 0 prints                             */
    const struct ks_team *world; /* all ranks                                      */

    size_t allocated_before; /* ks_alloc_total() at the start, for the budget ... */
    size_t allocated_read;   /* ... and when the checkpoint was read              */
    struct ks_team team;     /* the ranks that work on the same probes as this one */
    size_t groups;           /* the number of such teams                          */
    struct ks_checkpoint *checkpoint;
    size_t minibatches; /* N, over all ranks                                 */
    /* With tolerances that a part of the minibatches may suffice for (analysis_growth.c): the most
     * of them, 0 otherwise; and the products with single minibatches that earlier parts cost. */
    size_t most_minibatches, spent;
    int layer; /* the layer whose block is analyzed; -1: all        */
    struct ks_analyzed analyzed;
    struct ks_budget budget;

    struct ks_operator *full;  /* the operator of all coordinates, with activations  */
    struct ks_operator *block; /* its block on the selected coordinates             */
    struct ks_measurement measurement;
    struct ks_gradient_bounds bounds; /* of a cross-entropy; without rows: not measured */

    struct ks_monitor monitor;
    size_t n_rows; /* the table of --layers */
    struct ks_layer_row *rows;
};

/* Stochastic Lanczos quadrature, or with --exact all eigenvalues: writes the spectrum to `output`
 * and adds its statistics to the report. All ranks of `world` call these functions together and
 * fail together; the message names the file that it is about. */
ks_status ks_analyze(struct ks_analysis *analysis);
/* --layers: the same for the diagonal block of every layer, as a table in the report. */
ks_status ks_analyze_layers(struct ks_analysis *analysis);
/* --gradient: writes loss and gradient. --apply: writes products of the operator. */
ks_status ks_analyze_vectors(struct ks_analysis *analysis);
/* --eigenvectors: writes them, and adds a table of them to the report. */
ks_status ks_analyze_eigenvectors(struct ks_analysis *analysis);

void ks_analysis_clear(struct ks_analysis *analysis);

#endif
