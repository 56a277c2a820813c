/* Intervals of statistics, and their ratios. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "audit/audit.h"
#include "core/round.h"
#include "io/attribute.h"
#include "statistics/statistics.h"

const char *const ks_audit_compared[] = {"lambda_abs_max", "directions_1e2", "kappa_q99",
                                         "kappa_gradient_90", NULL};

/* From certificates (below) and from the outer bounds of the Jacobi matrices (above). */
static struct ks_interval largest(const struct ks_spectrum *s)
{
    double high = ks_statistic(s, "lambda_max_upper"), low = ks_statistic(s, "lambda_min_lower");

    return (struct ks_interval){
        fmax(fabs(ks_statistic(s, "lambda_max")), fabs(ks_statistic(s, "lambda_min"))),
        isnan(high) || isnan(low) ? NAN : fmax(high, -low)}; /* fmax ignores a NaN */
}

struct ks_interval ks_audit_interval(const struct ks_spectrum *s, const char *name)
{
    char lower[KS_ATTRIBUTE_NAME], upper[KS_ATTRIBUTE_NAME];

    if (strcmp(name, "lambda_abs_max") == 0)
        return largest(s);
    snprintf(lower, sizeof lower, "%s_lower", name);
    snprintf(upper, sizeof upper, "%s_upper", name);
    return (struct ks_interval){ks_statistic(s, lower), ks_statistic(s, upper)};
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

bool ks_intervals_overlap(struct ks_interval a, struct ks_interval b)
{
    return lower_of(a) <= upper_of(b) && lower_of(b) <= upper_of(a);
}

const char *ks_interval_text(struct ks_interval r, char text[KS_INTERVAL_TEXT])
{
    double lower = ks_round_down(r.lower, 3), upper = ks_round_up(r.upper, 3);

    if (isnan(lower) && isnan(upper))
        snprintf(text, KS_INTERVAL_TEXT, "not resolved");
    else if (isnan(lower))
        snprintf(text, KS_INTERVAL_TEXT, "at most %.3g", upper);
    else if (isinf(lower))
        snprintf(text, KS_INTERVAL_TEXT, "infinite");
    else if (!isfinite(upper))
        snprintf(text, KS_INTERVAL_TEXT, "at least %.3g", lower);
    else
        snprintf(text, KS_INTERVAL_TEXT, "[%.3g, %.3g]", lower, upper);
    return text;
}
