/* correlation.csv: statistics of the spectra against the last return, over the architectures. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "results/comparison_tables.h"
#include "results/comparisons.h"
#include "results/correlation.h"
#include "statistics/statistics.h"

/* Statistics of spectra, and whether they are pooled on a logarithmic axis. */
static const struct statistic {
    enum ks_statistic_id id;
    enum { ITSELF, LOWER, UPPER } end;
    bool logarithm;
} statistics[] = {
    {KS_STAT_KAPPA, ITSELF, true},          {KS_STAT_KAPPA_EFFECTIVE_BOUND, ITSELF, true},
    {KS_STAT_KAPPA_Q99, LOWER, true},       {KS_STAT_KAPPA_Q99, UPPER, true},
    {KS_STAT_DIRECTIONS_1E2, LOWER, false}, {KS_STAT_DIRECTIONS_1E2, UPPER, false},
    {KS_STAT_LAMBDA_MAX, ITSELF, false},    {KS_STAT_KURTOSIS, ITSELF, false},
};
enum { STATISTICS = sizeof statistics / sizeof *statistics };

static const char *name_of(const struct statistic *s)
{
    const struct ks_statistic *row = &ks_catalogue[s->id];

    return s->end == ITSELF ? row->name : s->end == LOWER ? row->lower : row->upper;
}

/* If a spectrum has only the lower end of an interval, the upper end is not resolved and counts as
 * infinite. */
static double value_of(const struct ks_spectrum *spectrum, const struct statistic *s)
{
    struct ks_interval in;
    double value;

    if (!spectrum)
        return NAN;
    in = ks_statistic_interval(spectrum, s->id);
    if (isnan(in.upper) && !isnan(in.lower))
        in.upper = INFINITY;
    value = s->end == ITSELF  ? ks_statistic_value(spectrum, s->id)
            : s->end == LOWER ? in.lower
                              : in.upper;
    return s->logarithm ? log10(value) : value;
}

/* Values of the statistic at the checkpoints after the first update, run by run, into x; returns
 * the number of values per run. */
static size_t fill_values(const struct ks_comparison *c, size_t analysis,
                          const struct statistic *statistic, double *x)
{
    const struct ks_study *s = c->results->study;
    size_t width = 0, runs = 0;

    for (size_t i = 0; i < c->n; i++)
        runs += c->runs[i];
    for (size_t k = 0; k < runs; k++) {
        width = 0;
        for (size_t t = 0; t < s->n_checkpoints; t++) {
            if (!c->results->common_checkpoint[t] || s->checkpoint[t] <= s->first_update ||
                !ks_study_asks_checkpoint(s, analysis, t))
                continue;
            *x++ = value_of(ks_results_spectrum(c->results, c->run[k], analysis, t), statistic);
            width++;
        }
    }
    return width;
}

/* Copies the points that have both coordinates into at_x, at_y [n]; returns their number. */
static size_t keep_points(size_t n, const double *x, const double *y, double *at_x, double *at_y)
{
    size_t kept = 0;

    for (size_t i = 0; i < n; i++)
        if (!isnan(x[i]) && !isnan(y[i])) {
            at_x[kept] = x[i];
            at_y[kept++] = y[i];
        }
    return kept;
}

static const struct statistic *find_statistic(const char *name)
{
    for (size_t k = 0; k < STATISTICS; k++)
        if (strcmp(name_of(&statistics[k]), name) == 0)
            return &statistics[k];
    assert(!"a statistic of correlation.csv");
    return NULL;
}

ks_status ks_comparison_correlate(const struct ks_comparison *c, size_t analysis, const char *name,
                                  struct ks_correlation *out)
{
    const struct statistic *statistic = find_statistic(name);
    size_t resamples = c->resamples < KS_PROFILE_RESAMPLES ? c->resamples : KS_PROFILE_RESAMPLES;
    struct ks_points points = {.architectures = c->n, .runs = c->runs, .y = c->last};
    double *x = NULL, *at = NULL;
    struct ks_pairs pairs = {0};
    struct ks_p_value p;
    ks_status status = KS_OK;

    *out = (struct ks_correlation){statistic->logarithm, 0, NULL, NULL, {NAN, {NAN, NAN}}, NAN};
    KS_GO(ks_alloc(c->n, sizeof *out->x, &out->x));
    KS_GO(ks_alloc(c->n, sizeof *out->y, &out->y));
    KS_GO(ks_alloc(c->results->n_runs * c->results->study->n_checkpoints, sizeof *x, &x));
    KS_GO(ks_alloc(2 * c->n, sizeof *at, &at));
    points.width = fill_values(c, analysis, statistic, x);
    points.x = x;
    KS_GO(ks_points_find(&points, out->x, out->y));
    out->n = keep_points(c->n, out->x, out->y, at, at + c->n);
    if (out->n == 0)
        goto done;
    KS_GO(ks_spearman_points(&points, resamples, 0, &out->spearman));
    pairs = (struct ks_pairs){out->n, at, at + c->n};
    KS_GO(ks_spearman_test(&pairs, KS_PERMUTATIONS, 0, &p));
    out->p = p.p;
done:
    free(x);
    free(at);
    return status;
}

void ks_correlation_free(struct ks_correlation *correlation)
{
    free(correlation->x);
    free(correlation->y);
}

static void print_number(FILE *out, double value)
{
    if (isnan(value))
        fputs(",-", out);
    else
        fprintf(out, ",%.10g", value);
}

static ks_status write_one(const struct ks_comparison *c, size_t analysis, const char *statistic,
                           FILE *out)
{
    struct ks_correlation found = {0};
    ks_status status = ks_comparison_correlate(c, analysis, statistic, &found);

    if (status == KS_OK && found.n > 0) {
        fprintf(out, "%s,%s,%s,%zu", c->results->study->analysis[analysis].name, statistic,
                found.logarithm ? "log" : "linear", found.n);
        print_number(out, found.spearman.value);
        print_number(out, found.spearman.in.lower);
        print_number(out, found.spearman.in.upper);
        print_number(out, found.p);
        putc('\n', out);
    }
    ks_correlation_free(&found);
    return status;
}

ks_status ks_comparison_write_correlation(const struct ks_comparison *c, FILE *out)
{
    for (size_t a = 0; a < c->results->study->n_analyses; a++)
        for (size_t k = 0; k < STATISTICS; k++)
            KS_TRY(write_one(c, a, name_of(&statistics[k]), out));
    return KS_OK;
}
