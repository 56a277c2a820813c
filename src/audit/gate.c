#include "audit/gate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/number.h"
#include "core/path.h"
#include "statistics/statistic_text.h"
#include "statistics/statistics.h"

/* Lower bounds whose names do not end in _lower. lambda_max is a Rayleigh quotient, so the largest
 * eigenvalue is at least that, and sharpness_ratio is proportional to it. */
static const char *const lower_bounds[] = {"kappa_effective_bound", "kappa_lower_bound",
                                           "lambda_max", "sharpness_ratio", NULL};

/* Whether NAME_lower or NAME_upper can be a statistic: if NAME is one. */
static bool is_end(const char *name, const char *end)
{
    const size_t length = ks_path_stem(name, end);

    for (const struct ks_statistic_row *row = ks_statistic_rows; name[length] && row->name; row++)
        if (strlen(row->name) == length && strncmp(row->name, name, length) == 0)
            return true;
    return false;
}

static bool is_lower_bound(const char *name)
{
    for (const char *const *l = lower_bounds; *l; l++)
        if (strcmp(name, *l) == 0)
            return true;
    return is_end(name, "_lower");
}

static ks_status refuse(const char *expression, const char *name)
{
    if (strcmp(name, "kappa") == 0)
        return ks_fail(KS_USAGE,
                       "--fail-if '%s': kappa is a ratio of Ritz values that changes manyfold with "
                       "the start vector and the number of steps: expected a bound, such as "
                       "kappa_effective_bound",
                       expression);
    return ks_fail(KS_USAGE,
                   "--fail-if '%s': expected a bound (kappa_effective_bound, kappa_lower_bound, "
                   "lambda_max, sharpness_ratio, or a statistic's NAME_lower or NAME_upper), found "
                   "'%s'",
                   expression, name);
}

static ks_status malformed(const char *expression)
{
    return ks_fail(KS_USAGE,
                   "--fail-if: expected NAME>NUMBER (or >=, <, <=), such as "
                   "kappa_effective_bound>1e4, found '%s'",
                   expression);
}

ks_status ks_gate_read(const char *expression, struct ks_gate *g)
{
    static const char LETTERS[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    const char *start = expression + strspn(expression, " "), *next;
    const size_t length = strspn(start, LETTERS);

    *g = (struct ks_gate){.above = true};
    if (length == 0 || length >= sizeof g->name)
        return malformed(expression);
    memcpy(g->name, start, length);
    next = start + length;
    next += strspn(next, " ");
    if (*next != '>' && *next != '<')
        return malformed(expression);
    g->above = *next++ == '>';
    g->equal = *next == '=';
    next += g->equal;
    next += strspn(next, " ");
    if (!ks_parse_number(next, -1e300, 1e300, &g->limit))
        return malformed(expression);
    g->upper = is_end(g->name, "_upper");
    return g->upper || is_lower_bound(g->name) ? KS_OK : refuse(expression, g->name);
}

static bool is_met(const struct ks_gate *g, double value)
{
    if (isnan(value)) /* it is not resolved */
        value = g->upper ? INFINITY : -INFINITY;
    if (g->equal && value == g->limit)
        return true;
    return g->above ? value > g->limit : value < g->limit;
}

/* A lower bound above the limit proves that the number is above it; one below the limit proves
 * nothing. For an upper bound it is the other way round. */
static const char *meaning(const struct ks_gate *g, bool met)
{
    const bool proves = g->above ? met != g->upper : met == g->upper;

    if (met)
        return proves ? "met: shown by a bound" : "met: the bound does not exclude it";
    return proves ? "not met, and shown not to be" : "not met: not shown to be worse";
}

ks_status ks_gate_judge(const struct ks_gate *g, const char *path, const struct ks_spectrum *s,
                        bool *met, struct ks_document *d)
{
    const char *operation = g->above ? (g->equal ? ">=" : ">") : g->equal ? "<=" : "<";
    double value;
    char found[32] = "not resolved";

    if (!ks_attribute_find(&s->statistics, g->name))
        return ks_fail(KS_USAGE, "%s: --fail-if: expected a statistic of analyze, found '%s'", path,
                       g->name);
    value = ks_statistic(s, g->name);
    if (isnan(value) && strcmp(g->name, "sharpness_ratio") == 0)
        return ks_fail(
            KS_USAGE,
            "%s: --fail-if: sharpness_ratio: expected the attribute learning_rate, found "
            "none",
            path);
    *met = is_met(g, value);
    if (!isnan(value))
        snprintf(found, sizeof found, "%.10g", value);
    ks_document_add(d, KS_BLOCK_ITEM, "%s %s %.10g, found %s: %s.", g->name, operation, g->limit,
                    found, meaning(g, *met));
    return KS_OK;
}
