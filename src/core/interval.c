#include "core/interval.h"

#include <math.h>
#include <stdio.h>

/* Tolerance in units of the last digit: rounding 1.9999999999999996 down gives 2, not 1.9. */
static const double ROUNDING = 1e-9;

double ks_round_down(double x, int digits)
{
    double unit;

    if (!isfinite(x) || x == 0)
        return x;
    unit = pow(10, floor(log10(fabs(x))) - (digits - 1));
    return floor(x / unit + ROUNDING) * unit;
}

double ks_round_up(double x, int digits)
{
    return -ks_round_down(-x, digits);
}

double ks_min_known(double x, double y)
{
    return isnan(x) || isnan(y) ? NAN : fmin(x, y);
}

double ks_max_known(double x, double y)
{
    return isnan(x) || isnan(y) ? NAN : fmax(x, y);
}

const char *ks_end_text(double end, enum ks_side side, bool whole, char text[KS_END_TEXT])
{
    double rounded = side == KS_LOWER ? ks_round_down(end, 3) : ks_round_up(end, 3);

    if (!whole)
        snprintf(text, KS_END_TEXT, "%.3g", rounded);
    else if (end == floor(end) && fabs(end) < 1e6)
        snprintf(text, KS_END_TEXT, "%.0f", end);
    else
        snprintf(text, KS_END_TEXT, fabs(rounded) < 0.01 || fabs(rounded) >= 1e5 ? "%.2e" : "%.4g",
                 rounded);
    return text;
}

static const struct style {
    bool whole;
    const char *none, *before, *after; /* no interval; around a lower end without an upper one */
    const char *open, *between, *close;
} styles[] = {
    [KS_BRACKETS] = {false, "not resolved", "at least ", "", "[", ", ", "]"},
    [KS_BRACKETS_WHOLE] = {true, "not resolved", "at least ", "", "[", ", ", "]"},
    [KS_IN_WORDS] = {true, "-", "", " or more", "", " to ", ""},
};

const char *ks_interval_text(struct ks_interval i, enum ks_interval_style style,
                             char text[KS_INTERVAL_TEXT])
{
    const struct style *s = &styles[style];
    const size_t size = KS_INTERVAL_TEXT;
    char lower[KS_END_TEXT], upper[KS_END_TEXT];

    ks_end_text(i.lower, KS_LOWER, s->whole, lower);
    ks_end_text(i.upper, KS_UPPER, s->whole, upper);
    if (isnan(i.lower) && isnan(i.upper))
        snprintf(text, size, "%s", s->none);
    else if (isnan(i.lower))
        snprintf(text, size, "at most %s", upper);
    else if (isinf(i.lower))
        snprintf(text, size, "infinite");
    else if (!isfinite(i.upper))
        snprintf(text, size, "%s%s%s", s->before, lower, s->after);
    else if (style == KS_IN_WORDS && i.lower == i.upper && i.lower == floor(i.lower))
        snprintf(text, size, "%s", lower);
    else
        snprintf(text, size, "%s%s%s%s%s", s->open, lower, s->between, upper, s->close);
    return text;
}
