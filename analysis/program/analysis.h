/* The analysis of one checkpoint, from its file to a spectrum, a table of its layers, or vectors.
 */
#ifndef KS_PROGRAM_ANALYSIS_H
#define KS_PROGRAM_ANALYSIS_H

#include <stdbool.h>
#include <stddef.h>

#include "io/spectrum.h"
#include "operators/gradient_bounds.h"
#include "operators/null_basis.h"
#include "operators/null_space.h"
#include "operators/selection.h"
#include "program/budget.h"
#include "program/layers.h"
#include "program/monitor.h"
#include "program/options.h"
#include "program/report.h"
#include "program/subject.h"
#include "statistics/certificate.h"

/* The caller sets the first fields, up to `world`; all others are zero before an analysis, which
 * fills them, and freed by ks_analysis_clear. */
struct ks_analysis {
    const struct ks_options *options;
    const char *path;            /* of the checkpoint                              */
    const char *output;          /* of the spectrum; NULL: none is written         */
    bool quiet;                  /* no progress and no warnings on standard error  */
    struct ks_report *report;    /* where rank 0 prints                            */
    const struct ks_team *world; /* all ranks                                      */

    size_t allocated_before; /* ks_alloc_total() at the start, for the budget     */
    struct ks_team team;     /* the ranks that work on the same probes as this one */
    size_t groups;           /* the number of such teams                          */
    struct ks_checkpoint *checkpoint;
    size_t minibatches; /* N, over all ranks                                 */
    int layer;          /* of the operator; -1: all                          */
    struct ks_subject subject;
    struct ks_budget budget;
    char *stem, *fingerprint; /* of the kept basis (lanczos/basis.h); NULL without --keep-basis */

    struct ks_selection *selection; /* the operator's coordinates among all E P    */
    struct ks_operator *full;       /* of all coordinates: it holds the activations */
    struct ks_operator *block;      /* of the selected ones, by products of `full` */
    struct ks_null_space *space;    /* what the architecture says of its null space */
    struct ks_null null;            /* what products say of it                     */
    struct ks_null_basis *basis;    /* of the null space; NULL: none is known      */
    double *gradient;               /* start vector of the last probe; NULL: none  */
    struct ks_spectrum *spectrum;
    struct ks_certificates certificates;
    struct ks_gradient_bounds
        bounds;         /* of a cross-entropy's gradient; without rows: not measured */
    double exact_error; /* norm of the error of --exact's products (statistics.h)  */

    struct ks_monitor monitor;
    size_t n_rows; /* of --layers */
    struct ks_layer_row *rows;
    size_t products_done; /* for the layers before this one                        */
};

/* Stochastic Lanczos quadrature, or with --exact all eigenvalues: writes the spectrum to `output`
 * and adds its statistics to the report. All ranks of `world` call these functions together and
 * fail together; the message names the file that it is about. */
ks_status ks_analyze(struct ks_analysis *analysis);
/* --layers: the same for the diagonal block of every layer, as a table in the report. */
ks_status ks_analyze_layers(struct ks_analysis *analysis);
/* --gradient: writes loss and gradient. --apply: writes products of the operator. */
ks_status ks_analyze_vectors(struct ks_analysis *analysis);

void ks_analysis_clear(struct ks_analysis *analysis);

#endif
