/* The largest eigenvalue compared with the largest at which the optimizer's steps are stable. */
#ifndef KS_SPECTRUM_STABILITY_H
#define KS_SPECTRUM_STABILITY_H

#include "core/error.h"
#include "io/spectrum.h"
#include "operators/analyzed.h"

/* The largest eigenvalue of a quadratic on which steps with learning rate eta are stable: 2 / eta
 * for gradient descent; 2 (1 + beta1) / ((1 - beta1) eta) for Adam with a fixed preconditioner
 * (Cohen et al., arXiv 2207.14484, 2022: 38 / eta at beta1 = 0.9). */
double ks_stability_threshold(bool adam, double beta1, double learning_rate);

/* Adds the statistic `sharpness_ratio`, lambda_max over that threshold: of Adam for
 * `preconditioned`, of gradient descent for the other operators. The checkpoint's learning rate
 * is used if `learning_rate` is NaN; if it has none either, the ratio is NaN. Root attributes
 * record the learning rate and, for `preconditioned`, Adam's constants. Not added for `residual`,
 * which is not the curvature of any step, nor with --compat xqc, whose operator is scaled by 1/N.
 * Fails with KS_MEMORY. */
ks_status ks_stability_add(const struct ks_analyzed *analyzed, double learning_rate,
                           struct ks_spectrum *spectrum);

#endif
