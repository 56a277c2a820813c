/* dm_control's shaping function of rewards: utils/rewards.py, `tolerance`, of whose sigmoids these
 * are the ones that the tasks use. */
#ifndef KS_ENV_TOLERANCE_H
#define KS_ENV_TOLERANCE_H

#include <stddef.h>

enum ks_sigmoid { KS_GAUSSIAN, KS_LINEAR, KS_QUADRATIC };

/* 1 within [lower, upper]; outside, at the distance d * margin from the nearer bound, f(d) in [0,
 * 1) with f(1) = v; 0 if margin is 0. v is in (0, 1), and may be 0 for linear and quadratic. A NaN
 * in gives a NaN or 0. */
double ks_tolerance(double x, double lower, double upper, double margin, enum ks_sigmoid kind,
                    double v);
/* The same without an upper bound. */
double ks_at_least(double x, double bound, double margin, enum ks_sigmoid kind, double v);
/* A factor in [4/5, 1] that falls with the n controls: 1 if all are 0, 4/5 if all are +-1. */
double ks_small_control(size_t n, const double *ctrl);

#endif
