#include "statistics/tolerance.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/number.h"

static bool is_tolerable(size_t id)
{
    return ks_catalogue[id].tolerance != KS_NO_WIDTH;
}

/* --- reading --- */

static ks_status refuse_name(const char *name)
{
    const enum ks_statistic_id id = ks_catalogue_find(name);
    char list[512] = "";
    size_t used = 0;

    if (id < KS_STATISTICS && ks_catalogue[id].kind == KS_IS_BOUND)
        return ks_fail(KS_USAGE,
                       "--tolerance: %s is a lower bound, which grows with the number of Lanczos "
                       "steps: it has no width and so no tolerance",
                       name);
    for (size_t i = 0; i < KS_STATISTICS && used < sizeof list; i++)
        if (is_tolerable(i))
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", used > 0 ? ", " : "",
                                     ks_catalogue[i].name);
    return ks_fail(KS_USAGE, "--tolerance: expected one of %s; found '%s'", list, name);
}

static ks_status add(size_t id, double most, struct ks_tolerances *t)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->list[i].statistic == id)
            return ks_fail(KS_USAGE, "--tolerance: expected %s once, found it twice",
                           ks_catalogue[id].name);
    assert(t->n < KS_TOLERANCES);
    t->list[t->n++] = (struct ks_tolerance){(enum ks_statistic_id)id, most};
    return KS_OK;
}

/* "0.05" or "lambda_max=0.01"; `word` is changed. */
static ks_status read_word(char *word, struct ks_tolerances *t)
{
    char *number = strchr(word, '=');
    double most;
    size_t id;

    if (number)
        *number++ = '\0';
    if (!ks_parse_number(number ? number : word, 0, 1e6, &most) || most == 0)
        return ks_fail(KS_USAGE,
                       "--tolerance: expected a number above 0, or NAME=NUMBER, found '%s'",
                       number ? number : word);
    if (number) {
        id = ks_catalogue_find(word);
        return id < KS_STATISTICS && is_tolerable(id) ? add(id, most, t) : refuse_name(word);
    }
    for (id = 0; id < KS_STATISTICS; id++)
        if (ks_catalogue[id].tolerance == KS_WIDTH_OF_SIZE)
            KS_TRY(add(id, most, t));
    return KS_OK;
}

ks_status ks_tolerances_read(const char *text, struct ks_tolerances *t)
{
    KS_OWNED char *words = NULL;

    *t = (struct ks_tolerances){.n = 0};
    KS_TRY(ks_copy_string(text, &words));
    for (char *word = words, *next; word; word = next) {
        next = strchr(word, ',');
        if (next)
            *next++ = '\0';
        KS_TRY(read_word(word, t));
    }
    return KS_OK;
}

/* --- the widths --- */

double ks_tolerance_width(const struct ks_tolerance *t, const struct ks_spectrum *s)
{
    const struct ks_interval i = ks_statistic_interval(s, t->statistic);

    if (i.lower == i.upper) /* 0 of a size of 0, if H is zero */
        return 0;
    switch (ks_catalogue[t->statistic].tolerance) {
    case KS_WIDTH_RATIO:
        return isinf(i.lower) && isinf(i.upper) ? 0 : i.upper / i.lower - 1;
    case KS_WIDTH:
        return i.upper - i.lower;
    case KS_WIDTH_OF_SIZE:
        return (i.upper - i.lower) / ks_statistic_abs_max(s);
    case KS_WIDTH_OF_VALUE:
        return (i.upper - i.lower) / 2 / fabs(ks_statistic_value(s, t->statistic));
    case KS_NO_WIDTH:
        break;
    }
    return NAN;
}

int ks_tolerance_end(const struct ks_tolerance *t)
{
    return t->statistic == KS_STAT_LAMBDA_MAX ? 1 : t->statistic == KS_STAT_LAMBDA_MIN ? -1 : 0;
}

double ks_tolerance_data_error(const struct ks_tolerance *t, const struct ks_spectrum *s)
{
    const int end = ks_tolerance_end(t);
    const enum ks_statistic_id id = end > 0 ? KS_STAT_LAMBDA_MAX_DATA_SE
                                            : KS_STAT_LAMBDA_MIN_DATA_SE;

    return end ? ks_statistic_value(s, id) / ks_statistic_abs_max(s) : NAN;
}

const char *ks_tolerance_name(const struct ks_tolerance *t)
{
    return ks_catalogue[t->statistic].name;
}
