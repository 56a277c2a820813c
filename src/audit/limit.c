/* --fail-if. */
#include "audit/audit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/number.h"
#include "io/file.h"
#include "statistics/catalogue.h"
#include "statistics/statistics.h"

/* Whether this is the upper, or the lower, end of a statistic that is shown to readers, and not the
 * statistic itself, which is one end of lambda_min's interval. */
static bool is_end(const char *name, bool upper)
{
    for (const enum ks_statistic_id *id = ks_catalogue_for_readers; *id < KS_STATISTICS; id++) {
        const char *end = upper ? ks_catalogue[*id].upper : ks_catalogue[*id].lower;

        if (end && strcmp(end, name) == 0 && strcmp(end, ks_catalogue[*id].name) != 0)
            return true;
    }
    return false;
}

static bool is_lower_bound(const char *name)
{
    const enum ks_statistic_id id = ks_catalogue_find(name);

    return (id < KS_STATISTICS && ks_catalogue[id].is_lower_bound) || is_end(name, false);
}

static ks_status refuse(const char *expression, const char *name)
{
    const char *example = ks_catalogue[KS_STAT_KAPPA_EFFECTIVE_BOUND].name;
    char list[256] = "";
    size_t used = 0;

    if (ks_catalogue_find(name) == KS_STAT_KAPPA)
        return ks_fail(KS_USAGE,
                       "--fail-if '%s': %s is a ratio of Ritz values that changes manyfold with "
                       "the start vector and the number of steps: expected a bound, such as %s",
                       expression, name, example);
    for (const enum ks_statistic_id *id = ks_catalogue_for_readers; *id < KS_STATISTICS; id++)
        if (ks_catalogue[*id].is_lower_bound && used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s, ",
                                     ks_catalogue[*id].name);
    return ks_fail(KS_USAGE,
                   "--fail-if '%s': expected a bound (%sor a statistic's NAME_lower or "
                   "NAME_upper), found '%s'",
                   expression, list, name);
}

static ks_status malformed(const char *expression)
{
    return ks_fail(KS_USAGE,
                   "--fail-if: expected NAME>NUMBER (or >=, <, <=), such as %s>1e4, found '%s'",
                   ks_catalogue[KS_STAT_KAPPA_EFFECTIVE_BOUND].name, expression);
}

ks_status ks_limit_read(const char *expression, double count_above, struct ks_limit *l)
{
    static const char LETTERS[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    const char *start = expression + strspn(expression, " "), *next;
    const size_t length = strspn(start, LETTERS);

    *l = (struct ks_limit){.above = true};
    if (length == 0 || length >= sizeof l->name)
        return malformed(expression);
    memcpy(l->name, start, length);
    next = start + length;
    next += strspn(next, " ");
    if (*next != '>' && *next != '<')
        return malformed(expression);
    l->above = *next++ == '>';
    l->equal = *next == '=';
    next += l->equal;
    next += strspn(next, " ");
    if (!ks_parse_number(next, -1e300, 1e300, &l->value))
        return malformed(expression);
    l->upper = is_end(l->name, true);
    if (!l->upper && !is_lower_bound(l->name))
        return refuse(expression, l->name);
    return count_above > 0 || ks_catalogue_of_column(l->name) != KS_STAT_DIRECTIONS_ABOVE
               ? KS_OK
               : ks_fail(KS_USAGE, "--fail-if: %s: expected a size, --count-above X, found none",
                         l->name);
}

static bool is_met(const struct ks_limit *l, double value)
{
    if (isnan(value)) /* it is not resolved */
        value = l->upper ? INFINITY : -INFINITY;
    if (l->equal && value == l->value)
        return true;
    return l->above ? value > l->value : value < l->value;
}

/* A lower bound above the limit proves that the number is above it; one below the limit proves
 * nothing. For an upper bound it is the other way round. */
static const char *meaning(const struct ks_limit *l, bool met)
{
    const bool proves = l->above ? met != l->upper : met == l->upper;

    if (met)
        return proves ? "met: shown by a bound" : "met: the bound does not exclude it";
    return proves ? "not met, and shown not to be" : "not met: not shown to be worse";
}

ks_status ks_limit_judge(const struct ks_limit *l, const char *path, const struct ks_spectrum *s,
                         bool *met, struct ks_document *d)
{
    const char *operation = l->above ? (l->equal ? ">=" : ">") : l->equal ? "<=" : "<";
    double value;
    char found[32] = "not resolved";

    if (!ks_attribute_find(&s->statistics, l->name))
        return ks_fail(KS_USAGE, "%s: --fail-if: expected a statistic of analyze, found '%s'", path,
                       l->name);
    value = ks_statistic(s, l->name);
    if (isnan(value) && ks_catalogue_find(l->name) == KS_STAT_SHARPNESS_RATIO)
        return ks_fail(KS_USAGE,
                       "%s: --fail-if: %s: expected the attribute learning_rate, found "
                       "none",
                       path, l->name);
    *met = is_met(l, value);
    if (!isnan(value))
        snprintf(found, sizeof found, "%.10g", value);
    ks_document_add(d, KS_BLOCK_ITEM, "%s %s %.10g, found %s: %s.", l->name, operation, l->value,
                    found, meaning(l, *met));
    return KS_OK;
}
