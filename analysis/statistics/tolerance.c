#include "statistics/tolerance.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/number.h"
#include "statistics/statistics.h"

struct ks_tolerable {
    const char *name, *lower, *upper; /* the statistic, and the ends of its interval */
    /* RATIO: upper / lower - 1. DIFFERENCE: upper - lower. OF_SIZE: upper - lower in units of the
     * largest absolute eigenvalue. OF_VALUE: half of upper - lower in units of |value|. */
    enum { RATIO, DIFFERENCE, OF_SIZE, OF_VALUE } form;
    bool common; /* a number without a name holds for it */
    int end;     /* 1: lambda_max, -1: lambda_min, 0: neither */
};

#define INTERVAL(name, form)                                                                       \
    {                                                                                              \
        name, name "_lower", name "_upper", form, false, 0                                         \
    }

static const struct ks_tolerable tolerable[] = {
    {"lambda_max", "lambda_max", "lambda_max_upper", OF_SIZE, true, 1},
    {"lambda_min", "lambda_min_lower", "lambda_min", OF_SIZE, true, -1},
    {"trace", "trace_lower", "trace_upper", OF_VALUE, false, 0},
    INTERVAL("directions_1e1", RATIO),
    INTERVAL("directions_1e2", RATIO),
    INTERVAL("directions_1e3", RATIO),
    INTERVAL("directions_1e4", RATIO),
    INTERVAL("kappa_q99", RATIO),
    INTERVAL("kappa_q90", RATIO),
    INTERVAL("kappa_q50", RATIO),
    INTERVAL("zero_mass", DIFFERENCE),
    INTERVAL("negative_mass", DIFFERENCE),
};
enum { TOLERABLE = sizeof tolerable / sizeof tolerable[0] };
static_assert((int)TOLERABLE <= (int)KS_TOLERANCES, "room for a tolerance of every statistic");

/* --- reading --- */

static ks_status refuse_name(const char *name)
{
    char list[512] = "";
    size_t used = 0;

    if (strcmp(name, "kappa_effective_bound") == 0 || strcmp(name, "kappa_lower_bound") == 0)
        return ks_fail(KS_USAGE,
                       "--tolerance: %s is a lower bound, which grows with the number of Lanczos "
                       "steps: it has no width and so no tolerance",
                       name);
    for (size_t i = 0; i < TOLERABLE && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i > 0 ? ", " : "",
                                 tolerable[i].name);
    return ks_fail(KS_USAGE, "--tolerance: expected one of %s; found '%s'", list, name);
}

static ks_status add(const struct ks_tolerable *statistic, double most, struct ks_tolerances *t)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->list[i].statistic == statistic)
            return ks_fail(KS_USAGE, "--tolerance: expected %s once, found it twice",
                           statistic->name);
    t->list[t->n++] = (struct ks_tolerance){statistic, most};
    return KS_OK;
}

static ks_status add_by_name(const char *name, double most, struct ks_tolerances *t)
{
    for (size_t i = 0; i < TOLERABLE; i++)
        if (strcmp(tolerable[i].name, name) == 0)
            return add(&tolerable[i], most, t);
    return refuse_name(name);
}

static ks_status add_common(double most, struct ks_tolerances *t)
{
    for (size_t i = 0; i < TOLERABLE; i++)
        if (tolerable[i].common)
            KS_TRY(add(&tolerable[i], most, t));
    return KS_OK;
}

/* "0.05" or "lambda_max=0.01"; `word` is changed. */
static ks_status read_word(char *word, struct ks_tolerances *t)
{
    char *number = strchr(word, '=');
    double most;

    if (number)
        *number++ = '\0';
    if (!ks_parse_number(number ? number : word, 0, 1e6, &most) || most == 0)
        return ks_fail(KS_USAGE,
                       "--tolerance: expected a number above 0, or NAME=NUMBER, found '%s'",
                       number ? number : word);
    return number ? add_by_name(word, most, t) : add_common(most, t);
}

ks_status ks_tolerances_read(const char *text, struct ks_tolerances *t)
{
    char *words = NULL;
    ks_status status = KS_OK;

    *t = (struct ks_tolerances){.n = 0};
    KS_TRY(ks_copy_string(text, &words));
    for (char *word = words, *next; status == KS_OK && word; word = next) {
        next = strchr(word, ',');
        if (next)
            *next++ = '\0';
        status = read_word(word, t);
    }
    free(words);
    return status;
}

/* --- the widths --- */

static double largest_size(const struct ks_spectrum *s)
{
    return fmax(fabs(ks_statistic(s, "lambda_max")), fabs(ks_statistic(s, "lambda_min")));
}

double ks_tolerance_width(const struct ks_tolerance *t, const struct ks_spectrum *s)
{
    const struct ks_tolerable *of = t->statistic;
    double lower = ks_statistic(s, of->lower), upper = ks_statistic(s, of->upper);

    switch (of->form) {
    case RATIO:
        return isinf(lower) && isinf(upper) ? 0 : upper / lower - 1;
    case DIFFERENCE:
        return upper - lower;
    case OF_SIZE:
        return (upper - lower) / largest_size(s);
    case OF_VALUE:
        return (upper - lower) / 2 / fabs(ks_statistic(s, of->name));
    }
    return NAN;
}

bool ks_tolerance_met(const struct ks_tolerance *t, const struct ks_spectrum *s)
{
    return ks_tolerance_width(t, s) <= t->most; /* not met if it is NaN */
}

bool ks_tolerances_met(const struct ks_tolerances *t, const struct ks_spectrum *s)
{
    for (size_t i = 0; i < t->n; i++)
        if (!ks_tolerance_met(&t->list[i], s))
            return false;
    return true;
}

int ks_tolerance_end(const struct ks_tolerance *t)
{
    return t->statistic->end;
}

double ks_tolerance_data_error(const struct ks_tolerance *t, const struct ks_spectrum *s)
{
    const char *name = t->statistic->end > 0 ? "lambda_max_data_se" : "lambda_min_data_se";

    return t->statistic->end ? ks_statistic(s, name) / largest_size(s) : NAN;
}

const char *ks_tolerance_name(const struct ks_tolerance *t)
{
    return t->statistic->name;
}
