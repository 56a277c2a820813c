/* The stages of an analysis, in the order in which analysis_run.c calls them. */
#ifndef KS_PROGRAM_STAGES_H
#define KS_PROGRAM_STAGES_H

#include <stdbool.h>

#include "core/error.h"
#include "program/analysis.h"

typedef ks_status ks_stage(struct ks_analysis *analysis);

/* Rank 0 reads, writes and prints; the others only compute. */
bool ks_is_leader(const struct ks_analysis *analysis);
/* Runs a stage on all ranks. Where it fails on some, all fail like the first of them. Such a stage
 * computes; its messages do not name the checkpoint, so "CHECKPOINT: " is put in front of them. */
ks_status ks_on_all(struct ks_analysis *analysis, ks_stage *stage);
/* Runs a stage on rank 0 alone; where it fails, all fail. Such a stage reads or writes files, and
 * its messages name them. */
ks_status ks_on_leader(struct ks_analysis *analysis, ks_stage *stage);
/* "CHECKPOINT: " in front of the message of a failure; KS_OK stays KS_OK. */
ks_status ks_name_checkpoint(const struct ks_analysis *analysis, ks_status status);

/* All ranks of the world call each of the following together, and fail together. */

/* --- analysis_start.c: from the file to the operator --- */

/* Reads the checkpoint, groups the ranks, and gives each its part of the minibatches. */
ks_status ks_analysis_read(struct ks_analysis *analysis);
/* Poses the problem: the loss L of operators/operator.h, and the coordinates of the operator. */
ks_status ks_analysis_pose(struct ks_analysis *analysis);
/* Refuses an operator that does not fit into --memory. After ks_analysis_pose. */
ks_status ks_analysis_check_memory(struct ks_analysis *analysis);
/* The scale of the products, and what the architecture says of the null space. After
 * ks_analysis_pose; also after the gradient, which has the scale of L. */
ks_status ks_analysis_pose_products(struct ks_analysis *analysis);
/* The operator of the selected coordinates, by products of `full`, which the first call makes. */
ks_status ks_analysis_make_block(struct ks_analysis *analysis);
/* Makes that operator, and keeps as many activations as the memory allows. */
ks_status ks_analysis_make_operator(struct ks_analysis *analysis);

/* --- analysis_growth.c: how many minibatches --- */

/* Begins with few minibatches if the tolerances allow it (ks_first_minibatches). */
void ks_analysis_begin_minibatches(struct ks_analysis *analysis);
/* The minibatches after the analyzed ones that certificates use: as many, if there are. */
size_t ks_analysis_fresh(const struct ks_analysis *analysis);
/* After the certificates: whether more minibatches are needed. Then the measurement is cleared, and
 * the analysis goes on with ks_analysis_pose. */
bool ks_analysis_add_minibatches(struct ks_analysis *analysis);

/* --- analysis_probes.c: from the operator to its spectrum (spectrum/measurement.h) --- */

/* Sets what is measured and how, from the options, the operator and the budget. */
void ks_analysis_set_measurement(struct ks_analysis *analysis);
/* Tests the null directions by products, which also find dead coordinates. */
ks_status ks_analysis_find_null_space(struct ks_analysis *analysis);
/* Lanczos from every start vector, or with --exact LAPACK: fills the spectrum's nodes, weights and
 * residuals. */
ks_status ks_analysis_run_probes(struct ks_analysis *analysis);
/* Float64 products of the vectors behind the bounds; with --exact, the error of its products. */
ks_status ks_analysis_certify(struct ks_analysis *analysis);

/* Warns on standard error where products are wrong by more than 1e-3 of the largest |eigenvalue|,
 * and names the layer in which the error is largest. */
void ks_analysis_warn(const struct ks_analysis *analysis);

/* Frees what belongs to one diagonal block: checkpoint and `full` stay. */
void ks_analysis_clear_block(struct ks_analysis *analysis);

#endif
