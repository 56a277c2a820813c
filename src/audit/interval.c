/* Intervals of statistics, and their ratios. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "audit/audit.h"
#include "io/attribute.h"
#include "report/tables.h"
#include "statistics/statistics.h"

/* From certificates (below) and from the outer bounds of the Jacobi matrices (above). */
static struct ks_interval largest(const struct ks_spectrum *s)
{
    double high = ks_statistic(s, "lambda_max_upper"), low = ks_statistic(s, "lambda_min_lower");

    return (struct ks_interval){
        fmax(fabs(ks_statistic(s, "lambda_max")), fabs(ks_statistic(s, "lambda_min"))),
        isnan(high) || isnan(low) ? NAN : fmax(high, 0 - low)}; /* fmax ignores a NaN; not -0 */
}

struct ks_interval ks_interval_of(const char *name, double lower, double upper)
{
    const bool ratio = strncmp(name, "kappa", strlen("kappa")) == 0;

    return (struct ks_interval){ratio && isnan(upper) && !(lower > 1) ? NAN : lower, upper};
}

struct ks_interval ks_audit_interval(const struct ks_spectrum *s, const char *name)
{
    char lower[KS_ATTRIBUTE_NAME], upper[KS_ATTRIBUTE_NAME];

    if (strcmp(name, "lambda_abs_max") == 0)
        return largest(s);
    snprintf(lower, sizeof lower, "%s_lower", name);
    snprintf(upper, sizeof upper, "%s_upper", name);
    return ks_interval_of(name, ks_statistic(s, lower), ks_statistic(s, upper));
}

bool ks_audit_is_zero(const struct ks_spectrum *s)
{
    return largest(s).upper == 0;
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

const char *ks_interval_text(struct ks_interval r, char text[KS_INTERVAL_TEXT])
{
    char lower[KS_RANGE_END], upper[KS_RANGE_END];

    ks_range_print_end(r.lower, KS_RANGE_LOWER, lower);
    ks_range_print_end(r.upper, KS_RANGE_UPPER, upper);
    if (isnan(r.lower) && isnan(r.upper))
        snprintf(text, KS_INTERVAL_TEXT, "not resolved");
    else if (isnan(r.lower))
        snprintf(text, KS_INTERVAL_TEXT, "at most %s", upper);
    else if (isinf(r.lower))
        snprintf(text, KS_INTERVAL_TEXT, "infinite");
    else if (!isfinite(r.upper))
        snprintf(text, KS_INTERVAL_TEXT, "at least %s", lower);
    else
        snprintf(text, KS_INTERVAL_TEXT, "[%s, %s]", lower, upper);
    return text;
}
