/* improvement.csv, profile.csv and correlation.csv. */
#include "study/comparison_tables.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "core/memory.h"
#include "statistics/statistics.h"
#include "study/comparisons.h"
#include "study/correlation.h"
#include "study/score_ranges.h"

static const char *name_of(const struct ks_comparison *c, size_t i)
{
    return c->results->study->architecture[c->architecture[i]].name;
}

static void print_number(FILE *out, double value)
{
    if (isnan(value))
        fputs(",-", out);
    else
        fprintf(out, ",%.10g", value);
}

static void print_estimate(FILE *out, struct ks_estimate e)
{
    print_number(out, e.value);
    print_number(out, e.low);
    print_number(out, e.high);
}

/* The index in c->last of the first run of architecture `i`. */
static size_t first_run(const struct ks_comparison *c, size_t i)
{
    size_t first = 0;

    while (i-- > 0)
        first += c->runs[i];
    return first;
}

static size_t last_evaluation(const struct ks_results *r)
{
    size_t k = r->study->n_evaluations - 1;

    while (k > 0 && !r->common_evaluation[k])
        k--;
    return k;
}

ks_status ks_comparison_new(const struct ks_results *r, size_t resamples, struct ks_comparison *c)
{
    size_t all = r->study->n_architectures, last = last_evaluation(r), n = 0;

    *c = (struct ks_comparison){.results = r, .resamples = resamples};
    KS_TRY(ks_alloc(all, sizeof *c->architecture, &c->architecture));
    KS_TRY(ks_alloc(all, sizeof *c->runs, &c->runs));
    KS_TRY(ks_alloc(r->n_runs, sizeof *c->last, &c->last));
    c->n = ks_results_order(r, c->architecture);
    for (size_t i = 0; i < c->n; i++) {
        const struct ks_result *run[KS_STUDY_SEEDS];

        c->runs[i] = ks_results_runs(r, c->architecture[i], run);
        for (size_t k = 0; k < c->runs[i]; k++)
            c->last[n++] = run[k]->returns[last];
    }
    return KS_OK;
}

void ks_comparison_free(struct ks_comparison *c)
{
    free(c->architecture);
    free(c->runs);
    free(c->last);
}

/* --- improvement.csv --- */

static ks_status compare(const struct ks_comparison *c, size_t i, size_t j,
                         struct ks_estimate *probability)
{
    const struct ks_sample x = {1, &c->runs[i], c->last + first_run(c, i)},
                           y = {1, &c->runs[j], c->last + first_run(c, j)};

    return ks_improvement(&x, &y, c->resamples, 0, probability);
}

/* P(y > x) = 1 - P(x > y), with the interval mirrored, so each pair is resampled only once, in the
 * order of the table. */
ks_status ks_comparison_write_improvement(const struct ks_comparison *c, FILE *out)
{
    fprintf(out, "architecture,other,probability,probability_low,probability_high\n");
    for (size_t i = 0; i < c->n; i++)
        for (size_t j = 0; j < c->n; j++) {
            struct ks_estimate p;

            if (i == j)
                continue;
            KS_TRY(compare(c, i < j ? i : j, i < j ? j : i, &p));
            if (i > j)
                p = (struct ks_estimate){1 - p.value, 1 - p.high, 1 - p.low};
            fprintf(out, "%s,%s", name_of(c, i), name_of(c, j));
            print_estimate(out, p);
            putc('\n', out);
        }
    return KS_OK;
}

/* --- profile.csv --- */

enum { TAUS = 51 }; /* 0, 0.02, ..., 1 */

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* score [seeds]: scratch. */
static ks_status write_one_profile(const struct ks_comparison *c, size_t i,
                                   const struct ks_score_range *range, double *score, FILE *out)
{
    double tau[TAUS];
    const struct ks_profile profile = {
        {1, &c->runs[i], score}, TAUS, tau, smaller(c->resamples, KS_PROFILE_RESAMPLES), 0};
    struct ks_estimate fraction[TAUS];

    for (size_t k = 0; k < c->runs[i]; k++)
        KS_TRY(ks_score_normalize(range, c->last[first_run(c, i) + k], &score[k]));
    for (size_t k = 0; k < TAUS; k++)
        tau[k] = (double)k / (TAUS - 1);
    KS_TRY(ks_profile(&profile, fraction, NULL));
    for (size_t k = 0; k < TAUS; k++) {
        fprintf(out, "%s,%.10g", name_of(c, i), tau[k]);
        print_estimate(out, fraction[k]);
        putc('\n', out);
    }
    return KS_OK;
}

ks_status ks_comparison_write_profile(const struct ks_comparison *c, FILE *out)
{
    const struct ks_score_range *range;
    double *score = NULL;
    ks_status status = KS_OK;

    fprintf(out, "architecture,tau,fraction,fraction_low,fraction_high\n");
    if (ks_score_range_find(c->results->study->env, &range) != KS_OK)
        return KS_OK;
    KS_GO(ks_alloc(c->results->study->n_seeds, sizeof *score, &score));
    for (size_t i = 0; i < c->n; i++)
        KS_GO(write_one_profile(c, i, range, score, out));
done:
    free(score);
    return status;
}

/* --- correlation.csv --- */

/* Statistics of spectra, and whether they are pooled on a logarithmic axis. `lower`, for the upper
 * end of an interval: the name of its lower end. If a spectrum has only the lower end, the upper
 * end is not resolved and counts as infinite. */
static const struct statistic {
    const char *name;
    bool logarithm;
    const char *lower;
} statistics[] = {
    {"kappa", true, NULL},
    {"kappa_effective_bound", true, NULL},
    {"kappa_q99_lower", true, NULL},
    {"kappa_q99_upper", true, "kappa_q99_lower"},
    {"directions_1e2_lower", false, NULL},
    {"directions_1e2_upper", false, "directions_1e2_lower"},
    {"lambda_max", false, NULL},
    {"kurtosis", false, NULL},
};

static double value_of(const struct ks_spectrum *spectrum, const struct statistic *statistic)
{
    double value;

    if (!spectrum)
        return NAN;
    value = ks_statistic(spectrum, statistic->name);
    if (isnan(value) && statistic->lower && !isnan(ks_statistic(spectrum, statistic->lower)))
        value = INFINITY;
    return statistic->logarithm ? log10(value) : value;
}

/* Values of the statistic at the checkpoints after the first update, run by run, into x; returns
 * the number of values per run. */
static size_t fill_values(const struct ks_comparison *c, size_t analysis,
                          const struct statistic *statistic, double *x)
{
    const struct ks_results *r = c->results;
    size_t width = 0;

    for (size_t i = 0; i < c->n; i++) {
        const struct ks_result *run[KS_STUDY_SEEDS];
        size_t runs = ks_results_runs(r, c->architecture[i], run);

        for (size_t k = 0; k < runs; k++) {
            width = 0;
            for (size_t t = 0; t < r->study->n_checkpoints; t++) {
                if (!r->common_checkpoint[t] || r->study->checkpoint[t] <= r->study->first_update)
                    continue;
                *x++ = value_of(ks_results_spectrum(r, run[k], analysis, t), statistic);
                width++;
            }
        }
    }
    return width;
}

/* Moves the points that have both coordinates to the front of at_x, at_y [n]; returns their number.
 */
static size_t keep_points(size_t n, double *at_x, double *at_y)
{
    size_t kept = 0;

    for (size_t i = 0; i < n; i++)
        if (!isnan(at_x[i]) && !isnan(at_y[i])) {
            at_x[kept] = at_x[i];
            at_y[kept++] = at_y[i];
        }
    return kept;
}

struct correlation {
    size_t architectures; /* that have both coordinates */
    struct ks_estimate spearman;
    struct ks_p_value p;
};

/* at [2, architectures]: scratch for the coordinates of the points. */
static ks_status correlate(const struct ks_comparison *c, const struct ks_points *points,
                           double *at, struct correlation *found)
{
    size_t resamples = smaller(c->resamples, KS_PROFILE_RESAMPLES);
    struct ks_pairs pairs = {.x = at, .y = at + c->n};

    KS_TRY(ks_points_find(points, at, at + c->n));
    pairs.n = found->architectures = keep_points(c->n, at, at + c->n);
    if (pairs.n == 0)
        return KS_OK;
    KS_TRY(ks_spearman_points(points, resamples, 0, &found->spearman));
    return ks_spearman_test(&pairs, KS_PERMUTATIONS, 0, &found->p);
}

static void print_correlation(FILE *out, const char *analysis, const struct statistic *statistic,
                              const struct correlation *found)
{
    fprintf(out, "%s,%s,%s,%zu", analysis, statistic->name, statistic->logarithm ? "log" : "linear",
            found->architectures);
    print_estimate(out, found->spearman);
    print_number(out, found->p.p);
    putc('\n', out);
}

ks_status ks_comparison_write_correlation(const struct ks_comparison *c, FILE *out)
{
    const struct ks_study *s = c->results->study;
    double *x = NULL, *at = NULL;
    ks_status status = KS_OK;

    fprintf(out, "analysis,statistic,scale,architectures,spearman,spearman_low,spearman_high,p\n");
    KS_GO(ks_alloc(c->results->n_runs * s->n_checkpoints, sizeof *x, &x));
    KS_GO(ks_alloc(2 * c->n, sizeof *at, &at));
    for (size_t a = 0; a < s->n_analyses; a++)
        for (size_t k = 0; k < sizeof statistics / sizeof *statistics; k++) {
            size_t width = fill_values(c, a, &statistics[k], x);
            const struct ks_points points = {c->n, c->runs, width, x, c->last};
            struct correlation found;

            KS_GO(correlate(c, &points, at, &found));
            if (found.architectures > 0)
                print_correlation(out, s->analysis[a].name, &statistics[k], &found);
        }
done:
    free(x);
    free(at);
    return status;
}
