/* Intervals of statistics, and their ratios. */
#include <math.h>

#include "audit/audit.h"
#include "statistics/catalogue.h"

/* From certificates (below) and from the outer bounds of the Jacobi matrices (above). */
struct ks_interval ks_audit_abs_max(const struct ks_spectrum *s)
{
    double high = ks_statistic_value(s, KS_STAT_LAMBDA_MAX_UPPER),
           low = ks_statistic_value(s, KS_STAT_LAMBDA_MIN_LOWER);

    return (struct ks_interval){
        ks_statistic_abs_max(s),
        isnan(high) || isnan(low) ? NAN : fmax(high, 0 - low)}; /* fmax ignores a NaN; not -0 */
}

struct ks_interval ks_audit_interval(const struct ks_spectrum *s, enum ks_statistic_id id)
{
    return ks_statistic_resolved(id, ks_statistic_interval(s, id));
}

bool ks_audit_is_zero(const struct ks_spectrum *s)
{
    return ks_audit_abs_max(s).upper == 0;
}

/* An end that is not resolved could be anything. */
static double lower_of(struct ks_interval r)
{
    return isnan(r.lower) ? 0 : r.lower;
}

static double upper_of(struct ks_interval r)
{
    return isnan(r.upper) ? INFINITY : r.upper;
}

struct ks_interval ks_interval_ratio(struct ks_interval a, struct ks_interval b)
{
    double lower = lower_of(a) / upper_of(b), upper = upper_of(a) / lower_of(b);

    return (struct ks_interval){lower > 0 ? lower : NAN, isfinite(upper) ? upper : NAN};
}
