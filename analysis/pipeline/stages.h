/* Stages of the pipeline, between its own files. */
#ifndef KS_PIPELINE_STAGES_H
#define KS_PIPELINE_STAGES_H

#include "pipeline/pipeline.h"

/* --- pipeline.c --- */

/* "CHECKPOINT: " in front of the message of a failure; KS_OK stays KS_OK. */
ks_status ks_pipeline_name(const struct ks_pipeline *p, ks_status status);
/* The status of the first rank on which a stage failed, and its message with "CHECKPOINT: " in
 * front. */
ks_status ks_pipeline_agree(const struct ks_pipeline *p, ks_status status);
/* Rank 0 reads, writes and prints; the others only compute. */
bool ks_pipeline_leads(const struct ks_pipeline *p);
/* The null space, nodes and weights, and products in float64, from the operator p->a on. */
ks_status ks_pipeline_from_operator(struct ks_pipeline *p);
/* Adds the statistics to the spectrum. KS_MEMORY, KS_NUMBER. */
ks_status ks_pipeline_statistics(struct ks_pipeline *p);
/* Warns where products are wrong by more than 1e-3 of the largest |eigenvalue|, and names the layer
 * in which the error is largest. */
void ks_pipeline_warn(const struct ks_pipeline *p);
/* Whether vectors are formed to be certified: only Lanczos vectors that are orthonormal can give
 * certificates, and the published code's are not. */
bool ks_pipeline_has_certificates(const struct ks_pipeline *p);
/* Whether the early error has shown too few minibatches for the tolerances. */
bool ks_pipeline_is_short(const struct ks_pipeline *p);
/* What the statistics need besides the spectrum; it points into `p`. */
struct ks_statistics_inputs ks_pipeline_terms(const struct ks_pipeline *p);

/* --- problem.c --- */

/* The problem of one layer (-1: all); then its products. */
ks_status ks_pipeline_pose_loss(struct ks_pipeline *p, int layer);
ks_status ks_pipeline_pose_products(struct ks_pipeline *p);
/* Refuses an operator that does not fit into --memory. */
ks_status ks_pipeline_check_memory(struct ks_pipeline *p);
/* The operator of the selected coordinates, by products of `full`, which the first call makes. */
ks_status ks_pipeline_make_block(struct ks_pipeline *p);
/* Makes the operator of the analysis, and keeps as many activations as the memory allows. */
ks_status ks_pipeline_make_operator(struct ks_pipeline *p);

/* The gradient as the start vector of a probe. The weights of its Ritz values then show how the
 * squared norm of the gradient is distributed over the eigenvalues, which decides the next steps of
 * gradient descent.
 *
 * *start [n of the problem's selection] = the gradient g of the loss in the operator's coordinates:
 * D^-1/2 g for `preconditioned`, the tangential component of g for `manifold`, otherwise g; NULL if
 * it is zero. The caller frees it. All ranks of the team call it and get the same bits. Fails as
 * ks_gradient does; KS_NUMBER if the gradient is not finite. */
ks_status ks_gradient_start(const struct ks_problem *problem, const struct ks_team *team,
                            double **start);

/* --- reading.c --- */

/* Reads the file on rank 0, and gives every rank its share. */
ks_status ks_pipeline_read(struct ks_pipeline *p);

/* --- memory.c --- */

/* The total bytes that a rank which has already allocated `fixed` may use: --memory, but not more
 * than is free; without it half of what was free before `fixed` bytes were allocated. The ranks on
 * one machine share its free memory. */
double ks_budget_limit(const struct ks_pipeline *p, size_t fixed);
/* Before the checkpoint is read: KS_MEMORY if its arrays, `bytes` in total, need more. */
ks_status ks_budget_check(const struct ks_pipeline *p, double bytes);
/* Given `dimension`, `vectors` and `fixed` of the budget, divides what --memory or the machine
 * leaves. The vectors of this rank come first: in float64 if they fit on all ranks, otherwise, and
 * always for the published code, in float32. The rest is for activations. Collective: if any rank
 * has too little, all fail with KS_MEMORY and a message with the sizes. */
ks_status ks_budget_divide(struct ks_pipeline *p);

/* The monitor of one spectrum. */
void ks_monitor_set(struct ks_pipeline *p);
/* Starts the clock. KS_MEMORY. */
ks_status ks_monitor_start(struct ks_monitor *monitor);
/* Ends the progress, if it was started, and frees `work`. */
void ks_monitor_end(struct ks_monitor *monitor);
/* After each Lanczos step; after each other product, of which `products` were computed for this
 * spectrum (`monitor` is a struct ks_monitor); and after `vectors` random vectors for the trace
 * were multiplied, each by a minibatch. */
void ks_monitor_step(struct ks_monitor *monitor, const struct ks_lanczos *lanczos);
void ks_monitor_product(void *monitor, size_t products);
void ks_monitor_sample(struct ks_monitor *monitor, size_t vectors);

/* --- probes.c --- */

/* Lanczos from every start vector: makes the spectrum with its nodes, weights and residuals. With
 * tolerances, order and probes are limits: the first probe takes steps until some number of probes
 * with its steps would be enough, and until the product of both no longer falls; then each other
 * probe takes the same number of steps. Ends early, without a spectrum, if ks_pipeline_is_short.
 * KS_NUMBER (Lanczos, LAPACK), KS_MEMORY, or as the operator fails. */
ks_status ks_probes_run(struct ks_pipeline *p);
/* Makes an empty spectrum and, for probes of `order` steps, certificates. KS_MEMORY. */
ks_status ks_probes_allocate(struct ks_pipeline *p, size_t order);
/* Begins with few minibatches if the tolerances allow it. */
void ks_minibatches_begin(struct ks_pipeline *p);
/* After the certificates: whether more minibatches are needed; then p->minibatches is their number.
 */
bool ks_minibatches_grow(struct ks_pipeline *p);

/* --- minibatch_samples.c --- */

/* Let A = (A_1 + ... + A_N)/N and y the Ritz vector of lambda_max, or of lambda_min, as far as the
 * Lanczos steps have got. The error is the standard error of the N quotients y'A_i y/y'y, in units
 * of the largest absolute Ritz value, as lambda_max_data_se is for the final vector. It is computed
 * for each end that the tolerances name. For a checkpoint's operator on a single rank, N > 1. Fails
 * as the operator does; KS_MEMORY, KS_NUMBER. */
ks_status ks_early_error(struct ks_pipeline *p, const struct ks_lanczos *lanczos);
/* Draws vectors for the trace until its error is at most `tolerance` times |trace|, but at most
 * `most` >= 2 for each minibatch. `lanczos` holds Lanczos vectors of the operator. For a
 * checkpoint's operator on a single rank. Fails as the operator does; KS_NUMBER if a product is not
 * finite; KS_MEMORY. */
ks_status ks_trace_sample(struct ks_pipeline *p, const struct ks_lanczos *lanczos, double tolerance,
                          size_t most);
/* Replaces `trace`, `trace_lower`, `trace_upper` and, if it is there, `trace_se` in the statistics;
 * does nothing if no vectors were drawn. */
void ks_trace_store(const struct ks_trace_samples *samples, struct ks_spectrum *spectrum);

/* --- attributes.c --- */

/* Adds to the spectrum, which has its statistics, sharpness_ratio (1), what tolerances reached and
 * cost, and all attributes. KS_MEMORY.
 *
 * (1) lambda_max over ks_stability_threshold: of Adam for `preconditioned`, of gradient descent for
 * the other operators. The checkpoint's learning rate is used if the option is NaN; if it has none
 * either, the ratio is NaN. Root attributes record the learning rate and, for `preconditioned`,
 * Adam's constants. Not added for `residual`, which is not the curvature of any step, nor for the
 * published code, whose operator is scaled by 1/N. */
ks_status ks_attributes_sharpness(struct ks_pipeline *p);
ks_status ks_attributes_tolerances(struct ks_pipeline *p);
ks_status ks_attributes_probes(struct ks_pipeline *p);
ks_status ks_attributes_spectrum(struct ks_pipeline *p, const struct ks_statistics_inputs *inputs);
/* The attributes of a file of products, or, if `loss` is not NULL, of a gradient. The caller clears
 * the list, also after a failure. */
ks_status ks_attributes_vectors(const struct ks_pipeline *p, const double *loss,
                                struct ks_attributes *list);
/* The products with single minibatches that the present minibatches have cost. */
size_t ks_products_spent(const struct ks_pipeline *p);

#endif
