/* dm_control's reward shaping: `tolerance` of utils/rewards.py, with the sigmoids that the tasks
 * use. */
#ifndef KS_ENV_TOLERANCE_H
#define KS_ENV_TOLERANCE_H

#include <stddef.h>

enum ks_sigmoid { KS_GAUSSIAN, KS_LINEAR, KS_QUADRATIC };

struct ks_bounds {
    double lower, upper;
};

/* 1 if lower <= x <= upper. Outside, at a distance of d * margin from the nearer bound: f(d) in
 * [0, 1), where f is the sigmoid with f(1) = v; 0 if margin is 0. v is in (0, 1); the linear and
 * the quadratic sigmoid also allow v = 0. If x is NaN, the result is NaN or 0. */
double ks_tolerance(double x, struct ks_bounds bounds, double margin, enum ks_sigmoid kind,
                    double v);
/* The same with the lower bound `bound` and no upper bound. */
double ks_at_least(double x, double bound, double margin, enum ks_sigmoid kind, double v);
/* A factor that rewards small controls: from 1 if all n controls are 0 to 4/5 if all are +-1. */
double ks_small_control(size_t n, const double *ctrl);

#endif
