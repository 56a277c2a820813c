/* The analysis of one checkpoint, from its file to the spectrum: what it works with, and its stages
 * in the order in which analyze.c calls them. All processes of the world call every stage and fail
 * together, but for what is said otherwise. */
#ifndef KS_PROGRAM_ANALYSIS_H
#define KS_PROGRAM_ANALYSIS_H

#include <stdbool.h>
#include <stddef.h>

#include "io/spectrum.h"
#include "operators/null_space.h"
#include "program/budget.h"
#include "program/layers.h"
#include "program/monitor.h"
#include "program/options.h"
#include "program/subject.h"
#include "statistics/certificate.h"
#include "statistics/statistics.h"

/* The caller sets path, output, quiet and world, and ends with ks_analysis_clear. */
struct ks_analysis {
    const char *path;   /* of the checkpoint */
    const char *output; /* of the spectrum   */
    bool quiet;
    const struct ks_team *world; /* all processes                              */
    struct ks_team team;         /* those that work on the same probes */
    size_t groups;               /* how many such teams there are */
    struct ks_checkpoint *checkpoint;
    struct ks_subject subject;
    struct ks_budget budget;
    char *stem, *key; /* of --keep-basis; NULL without it */
    struct ks_selection *selection;
    struct ks_operator *whole; /* of all coordinates: it has what depends on theta alone */
    struct ks_operator *a;     /* of the selected coordinates, by products of `whole` */
    struct ks_null_space *space;
    struct ks_null null;
    struct ks_null_basis *basis; /* of the null space; NULL: nothing of it is known */
    struct ks_certificates certificates;
    double *gradient;   /* the start vector of the last probe; NULL: there is none */
    double exact_error; /* of the products of --exact */
    struct ks_spectrum *spectrum;
    struct ks_monitor watch;
    size_t n_rows, done; /* of --layers: layers; products of those that are done */
    struct ks_layer_row *rows;
};

void ks_analysis_clear(struct ks_analysis *analysis);
/* Frees what belongs to one block of the operator: the checkpoint and `whole` stay. */
void ks_analysis_clear_block(struct ks_analysis *analysis);

/* Process 0 of the world reads and writes; the others compute. */
bool ks_analysis_leads(const struct ks_analysis *analysis);

/* Gives every process its group, and its part of the checkpoint. */
ks_status ks_analysis_read(const struct ks_options *o, struct ks_analysis *analysis);
/* Poses the problem, selects the coordinates and finds what the architecture says of their null
 * space. Each process by itself. */
ks_status ks_analysis_pose(const struct ks_options *o, struct ks_analysis *analysis);
/* The operator of the selected coordinates, from `whole`, which is made where it is not there. Each
 * process by itself. */
ks_status ks_analysis_block(const struct ks_options *o, struct ks_analysis *analysis);
/* That operator, ready for products within what the budget leaves to it. `start`: ks_alloc_total()
 * before the checkpoint was read. */
ks_status ks_analysis_prepare(const struct ks_options *o, size_t start,
                              struct ks_analysis *analysis);
/* For --keep-basis: where the steps are kept, and what they depend on. */
ks_status ks_analysis_name_basis(const struct ks_options *o, struct ks_analysis *analysis);
/* The null space, the probes, and their certificates. */
ks_status ks_analysis_run(const struct ks_options *o, struct ks_analysis *analysis);
/* What the statistics need beside the spectrum. */
struct ks_statistics_terms ks_analysis_terms(const struct ks_options *o,
                                             const struct ks_analysis *analysis);
/* Warns on standard error where products are wrong by more than 1e-3 of lambda_abs_max, with the
 * layer in which the error is largest. */
void ks_analysis_say_error(const struct ks_options *o, const struct ks_analysis *analysis);

#endif
