#include "statistics/statistic_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/round.h"
#include "io/attribute.h"
#include "statistics/statistics.h"

enum { INTERVAL = KS_STATISTIC_TEXT / 2 };

const struct ks_statistic_row ks_statistic_rows[] = {
    {"kappa_effective_bound", "condition number off the null space; certain"},
    {"kappa_lower_bound", "condition number of the rounded operator"},
    {"directions_1e1", "eigenvalues above 1/10 of the largest"},
    {"directions_1e2", "eigenvalues above 1/100 of the largest"},
    {"directions_1e3", "eigenvalues above 1/1,000 of the largest"},
    {"directions_1e4", "eigenvalues above 1/10,000 of the largest"},
    {"kappa_q99", "the largest over the 99% quantile of all"},
    {"kappa_q90", "the largest over the 90% quantile of all"},
    {"kappa_q50", "the largest over the median of all"},
    {"kappa_gradient_90", "the same for 90% of the gradient's energy"},
    {"kappa_gradient_50", "the same for 50% of the gradient's energy"},
    {"gradient_norm", "Euclidean norm of the gradient"},
    {"lambda_max", "largest eigenvalue, from both sides"},
    {"lambda_min", "smallest eigenvalue, from both sides"},
    {"zero_mass", "share of eigenvalues not told from zero"},
    {"negative_mass", "share of negative eigenvalues"},
    {"null_dimension", "null directions of the architecture"},
    {"dead_dimension", "further coordinates with products of zero"},
    {"noise_floor", "smaller eigenvalues are not told from zero"},
    {"product_error", "error of products relative to the largest"},
    {"sharpness_ratio", "lambda_max over the limit of stable steps"},
    {"stable_rank", "estimate"},
    {"trace", "estimate"},
    {"kurtosis", "of the Ritz values, as in the paper"},
    {"outliers", "converged Ritz values that stand apart"},
    {"kappa", "the paper's; not a condition number"},
    {NULL, NULL}};

static bool is_one_of(const char *name, const char *const *list)
{
    for (; *list; list++)
        if (strcmp(name, *list) == 0)
            return true;
    return false;
}

static const struct ks_attribute *find(const struct ks_spectrum *s, const char *name,
                                       const char *suffix)
{
    char full[KS_ATTRIBUTE_NAME];

    snprintf(full, sizeof full, "%s%s", name, suffix);
    return ks_attribute_find(&s->statistics, full);
}

static double value_of(const struct ks_spectrum *s, const char *name, const char *suffix)
{
    const struct ks_attribute *a = find(s, name, suffix);

    return a ? a->number : NAN;
}

bool ks_statistic_present(const struct ks_spectrum *s, const char *name)
{
    return find(s, name, "") || find(s, name, "_lower") || find(s, name, "_upper");
}

/* A condition number, or another ratio of the largest to some absolute eigenvalue, is at least 1.
 */
static bool is_ratio(const char *name)
{
    return strncmp(name, "kappa", strlen("kappa")) == 0;
}

/* An interval; its upper end may be unresolved. Nothing is known if its lower end is `least`, the
 * smallest value that the statistic can have. */
static void print_interval(double lower, double upper, double least, char text[INTERVAL])
{
    const size_t size = INTERVAL;

    lower = ks_round_down(lower, 3);
    upper = ks_round_up(upper, 3);
    if (isnan(lower) || (isnan(upper) && !(lower > least)))
        snprintf(text, size, "not resolved");
    else if (isinf(lower))
        snprintf(text, size, "infinite");
    else if (!isfinite(upper))
        snprintf(text, size, "at least %.3g", lower);
    else
        snprintf(text, size, "[%.3g, %.3g]", lower, upper);
}

/* Counts are printed in full. */
static void print_count(double value, double lower, double upper, char text[KS_STATISTIC_TEXT])
{
    snprintf(text, KS_STATISTIC_TEXT, "%.0f [%.0f, %.0f]", value, lower, upper);
}

static void print_value(const char *name, double value, char text[KS_STATISTIC_TEXT])
{
    static const char *const bounds[] = {"kappa_effective_bound", "kappa_lower_bound", NULL};
    static const char *const counts[] = {"null_dimension", "dead_dimension", "outliers", NULL};

    if (isnan(value) && strcmp(name, "sharpness_ratio") == 0)
        snprintf(text, KS_STATISTIC_TEXT, "no learning rate");
    else if (isnan(value) || (is_one_of(name, bounds) && !(value > 1)))
        snprintf(text, KS_STATISTIC_TEXT, "not resolved");
    else if (isinf(value))
        snprintf(text, KS_STATISTIC_TEXT, "infinite");
    else if (is_one_of(name, bounds))
        snprintf(text, KS_STATISTIC_TEXT, "at least %.4g", ks_round_down(value, 4));
    else if (is_one_of(name, counts))
        snprintf(text, KS_STATISTIC_TEXT, "%.0f", value);
    else
        snprintf(text, KS_STATISTIC_TEXT, "%.4g", value);
}

/* The extremes are bounded from one side by a certificate and from the other one by T. Both bounds
 * are rounded so that they stay bounds. */
static bool print_extreme(const struct ks_spectrum *s, const char *name,
                          char text[KS_STATISTIC_TEXT])
{
    const bool largest = strcmp(name, "lambda_max") == 0;
    double value = value_of(s, name, ""), other = value_of(s, name, largest ? "_upper" : "_lower");

    if ((!largest && strcmp(name, "lambda_min") != 0) || !isfinite(value) || !isfinite(other))
        return false;
    if (largest)
        snprintf(text, KS_STATISTIC_TEXT, "%.4g, at most %.4g", ks_round_down(value, 4),
                 ks_round_up(other, 4));
    else
        snprintf(text, KS_STATISTIC_TEXT, "%.4g, at least %.4g", ks_round_up(value, 4),
                 ks_round_down(other, 4));
    return true;
}

void ks_statistic_text(const struct ks_spectrum *s, const char *name, char text[KS_STATISTIC_TEXT])
{
    double value = value_of(s, name, ""), lower = value_of(s, name, "_lower");
    double upper = value_of(s, name, "_upper");
    char interval[INTERVAL];

    if (print_extreme(s, name, text))
        return;
    if (!find(s, name, "_lower")) {
        print_value(name, value, text);
        return;
    }
    if (find(s, name, "") && strncmp(name, "directions", 10) == 0 && isfinite(lower + upper)) {
        print_count(value, lower, upper, text);
        return;
    }
    print_interval(lower, upper, is_ratio(name) ? 1 : 0, interval);
    if (isfinite(value) && isfinite(lower) && isfinite(upper))
        snprintf(text, KS_STATISTIC_TEXT, "%.3g [%.3g, %.3g]", value, ks_round_down(lower, 3),
                 ks_round_up(upper, 3));
    else
        snprintf(text, KS_STATISTIC_TEXT, "%s", interval);
}
