/* Where the largest eigenvalue lies against the threshold beyond which the optimizer's steps are
 * unstable. */
#ifndef KS_PROGRAM_STABILITY_H
#define KS_PROGRAM_STABILITY_H

#include "core/error.h"
#include "io/spectrum.h"
#include "program/options.h"
#include "program/subject.h"

/* The largest stable eigenvalue on a quadratic, for the learning rate eta: of gradient descent
 * 2 / eta; of Adam with its preconditioner frozen, 2 (1 + beta1) / ((1 - beta1) eta) (Cohen et al.,
 * arXiv 2207.14484, 2022: 38 / eta at beta1 = 0.9). */
double ks_stability_threshold(bool adam, double beta1, double learning_rate);

/* Adds `sharpness_ratio` to the summary, lambda_max over that threshold: of Adam for
 * `preconditioned`, of gradient descent for other operators. NaN where no learning rate is known:
 * that of --learning-rate, else the checkpoint's. Root attributes say which was used, and of
 * `preconditioned` the constants of Adam. Adds nothing for `residual`, which no step follows, and
 * with --compat xqc, where the operator is not the loss's. Fails with KS_MEMORY. */
ks_status ks_stability_add(const struct ks_options *analysis, const struct ks_subject *subject,
                           struct ks_spectrum *spectrum);

#endif
