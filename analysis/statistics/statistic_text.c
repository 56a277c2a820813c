#include "statistics/statistic_text.h"

#include <math.h>
#include <stdio.h>

#include "io/attribute.h"

static bool has(const struct ks_spectrum *s, const char *column)
{
    return column && ks_attribute_find(&s->statistics, column);
}

bool ks_statistic_present(const struct ks_spectrum *s, enum ks_statistic_id id)
{
    const struct ks_statistic *row = &ks_catalogue[id];

    return has(s, row->name) || has(s, row->lower) || has(s, row->upper);
}

static void print_value(enum ks_statistic_id id, double value, char text[KS_STATISTIC_TEXT])
{
    const enum ks_statistic_kind kind = ks_catalogue[id].kind;

    if (isnan(value) && id == KS_STAT_SHARPNESS_RATIO)
        snprintf(text, KS_STATISTIC_TEXT, "no learning rate");
    else if (isnan(value) || (kind == KS_IS_BOUND && !(value > 1)))
        snprintf(text, KS_STATISTIC_TEXT, "not resolved");
    else if (isinf(value))
        snprintf(text, KS_STATISTIC_TEXT, "infinite");
    else if (kind == KS_IS_BOUND)
        snprintf(text, KS_STATISTIC_TEXT, "at least %.4g", ks_round_down(value, 4));
    else if (kind == KS_IS_WHOLE)
        snprintf(text, KS_STATISTIC_TEXT, "%.0f", value);
    else
        snprintf(text, KS_STATISTIC_TEXT, "%.4g", value);
}

/* An extreme eigenvalue is bounded from one side by a certificate and from the other one by the
 * Jacobi matrices. Both bounds are rounded so that they stay bounds. */
static void print_extreme(bool largest, struct ks_interval i, char text[KS_STATISTIC_TEXT])
{
    if (largest)
        snprintf(text, KS_STATISTIC_TEXT, "%.4g, at most %.4g", ks_round_down(i.lower, 4),
                 ks_round_up(i.upper, 4));
    else
        snprintf(text, KS_STATISTIC_TEXT, "%.4g, at least %.4g", ks_round_up(i.upper, 4),
                 ks_round_down(i.lower, 4));
}

/* Counts are printed in full. Nothing is known of an interval from its smallest possible number to
 * an upper end that is not resolved. */
static void print_interval(enum ks_statistic_id id, double value, struct ks_interval i,
                           char text[KS_STATISTIC_TEXT])
{
    const double least = ks_statistic_is_ratio(id) ? 1 : 0;
    const bool known = !isnan(i.lower) && !(isnan(i.upper) && !(i.lower > least));
    char interval[KS_INTERVAL_TEXT];

    ks_interval_text(known ? i : (struct ks_interval){NAN, NAN}, KS_BRACKETS, interval);
    if (ks_catalogue[id].kind == KS_IS_COUNT && isfinite(i.lower + i.upper))
        snprintf(text, KS_STATISTIC_TEXT, "%.0f [%.0f, %.0f]", value, i.lower, i.upper);
    else if (isfinite(value) && isfinite(i.lower + i.upper))
        snprintf(text, KS_STATISTIC_TEXT, "%.3g %s", value, interval);
    else
        snprintf(text, KS_STATISTIC_TEXT, "%s", interval);
}

void ks_statistic_text(const struct ks_spectrum *s, enum ks_statistic_id id,
                       char text[KS_STATISTIC_TEXT])
{
    const struct ks_statistic *row = &ks_catalogue[id];
    const struct ks_interval i = ks_statistic_interval(s, id);
    const double value = ks_statistic_value(s, id);

    if (row->kind == KS_IS_EXTREME && isfinite(i.lower) && isfinite(i.upper))
        print_extreme(id == KS_STAT_LAMBDA_MAX, i, text);
    else if (id == KS_STAT_LAMBDA_MAX || !has(s, row->lower))
        print_value(id, value, text);
    else
        print_interval(id, value, i, text);
}
