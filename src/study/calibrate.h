/* Measures how long the work of a study takes on this machine, in seconds per architecture:
 * environment steps with and without updates, by the training engine itself, and products of a
 * Hessian of this size. Nothing is written. */
#ifndef KS_STUDY_CALIBRATE_H
#define KS_STUDY_CALIBRATE_H

#include "core/error.h"
#include "study/estimate.h"

/* Sets the paces of architecture number `a` that are not known yet. They are seconds of one
 * processor's time, so other processes do not disturb them, with one thread. A spectrum is counted
 * as its Lanczos products; certificates, reading and writing come on top. Fails as a run of
 * kappascope-train would. */
ks_status ks_calibrate(const struct ks_study *study, size_t a, struct ks_paces *paces);

#endif
