#include "claims/claim_findings.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/number.h"
#include "io/csv.h"
#include "results/aggregate.h"
#include "results/comparison.h"
#include "statistics/statistics.h"

/* --- an interval per checkpoint to one per run --- */

double ks_claim_median(size_t n, double *x)
{
    qsort(x, n, sizeof *x, ks_ascending);
    return ks_quantile(n, x, 0.5);
}

static double limit(double x, double undefined)
{
    enum { MOST_DECADES = 10 };

    return fmax(-MOST_DECADES, fmin(MOST_DECADES, isnan(x) ? undefined : x));
}

struct ks_interval ks_claim_limit(struct ks_interval d)
{
    return (struct ks_interval){limit(d.lower, -INFINITY), limit(d.upper, INFINITY)};
}

/* Of four values or more, the first and the last quarter do not overlap, so each can be sorted
 * where it is. */
static struct ks_interval growth(size_t n, double *low, double *high)
{
    size_t quarter = (n + 3) / 4, last = n - quarter;

    return (struct ks_interval){
        ks_claim_median(quarter, low + last) - ks_claim_median(quarter, high),
        ks_claim_median(quarter, high + last) - ks_claim_median(quarter, low)};
}

static struct ks_interval range(size_t n, const double *low, const double *high)
{
    double max_low = -INFINITY, max_high = -INFINITY, min_low = INFINITY, min_high = INFINITY;
    struct ks_interval span;

    for (size_t i = 0; i < n; i++) {
        max_low = fmax(max_low, low[i]);
        max_high = fmax(max_high, high[i]);
        min_low = fmin(min_low, low[i]);
        min_high = fmin(min_high, high[i]);
    }
    span = (struct ks_interval){max_low - min_high, max_high - min_low};
    if (span.lower < 0)
        span.lower = 0;
    return span;
}

static double mean(size_t n, const double *x)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += x[i];
    return sum / (double)n;
}

struct ks_interval ks_claim_summarize(enum ks_claim_summary summary, size_t n, double *low,
                                      double *high)
{
    assert(n >= KS_CLAIM_VALUES);
    switch (summary) {
    case KS_CLAIM_RANGE:
        return range(n, low, high);
    case KS_CLAIM_GROWTH:
        return growth(n, low, high);
    case KS_CLAIM_MEAN:
        return (struct ks_interval){mean(n, low), mean(n, high)};
    default:
        return (struct ks_interval){ks_iqm(n, low), ks_iqm(n, high)};
    }
}

/* --- statistics of spectra --- */

const struct ks_claim_criterion ks_claim_criteria[KS_CLAIM_NEGATIVE][KS_CLAIM_CONTROL] = {
    [KS_CLAIM_KAPPA] = {{KS_STAT_KAPPA, false, false},
                        {KS_STAT_KAPPA_Q99, true, false},
                        {KS_STAT_DIRECTIONS_1E2, true, true}},
    [KS_CLAIM_LAMBDA_MAX] = {{KS_STAT_LAMBDA_MAX, false, false}, {KS_STAT_LAMBDA_MAX, true, false}},
    [KS_CLAIM_KURTOSIS] = {{KS_STAT_KURTOSIS, false, false},
                           {KS_STAT_KURTOSIS_SPECTRAL, false, false}},
};

/* NaN: the statistic is missing. An upper end that is not resolved is infinite. */
static struct ks_interval find_span(const struct ks_spectrum *s, const struct ks_claim_criterion *m)
{
    struct ks_interval found = {NAN, NAN};

    if (s && m->interval)
        found = ks_statistic_interval(s, m->statistic);
    else if (s)
        found.lower = found.upper = ks_statistic_value(s, m->statistic);
    found = (struct ks_interval){log10(found.lower), log10(found.upper)};
    if (isnan(found.lower))
        return (struct ks_interval){NAN, NAN};
    if (isnan(found.upper))
        found.upper = INFINITY;
    return m->more_is_better ? (struct ks_interval){-found.upper, -found.lower} : found;
}

/* Whether an eigenvalue is negative: every Ritz value is at least the smallest one. NaN: unknown.
 */
static struct ks_interval find_negative(const struct ks_spectrum *s)
{
    double least = s ? ks_statistic_value(s, KS_STAT_LAMBDA_MIN) : NAN;
    double floor = s ? ks_statistic_value(s, KS_STAT_NOISE_FLOOR) : NAN, is = least < -floor;

    if (isnan(least) || isnan(floor))
        is = NAN;
    return (struct ks_interval){is, is};
}

static bool has_setting(const struct ks_study_analysis *a, const char *key, const char *value)
{
    for (size_t i = 0; i < a->n; i++)
        if (strcmp(a->setting[i].key, key) == 0)
            return !value || strcmp(a->setting[i].value, value) == 0;
    return false;
}

static bool is_paper(const struct ks_study_analysis *a)
{
    return strcmp(a->name, "xqc") == 0 && has_setting(a, "compat", "xqc");
}

/* Of the Hessian of all critics and layers, with the choices of this program. */
static bool is_control(const struct ks_study_analysis *a)
{
    return has_setting(a, "batchnorm", "loss") && !has_setting(a, "compat", NULL) &&
           (!has_setting(a, "operator", NULL) || has_setting(a, "operator", "hessian")) &&
           !has_setting(a, "critic", NULL) && !has_setting(a, "layer", NULL) &&
           !has_setting(a, "array", NULL);
}

struct ks_study_analyses ks_claim_analyses(const struct ks_study *study,
                                           enum ks_claim_statistic statistic)
{
    if (statistic == KS_CLAIM_SOUND || statistic == KS_CLAIM_SECOND)
        return (struct ks_study_analyses){.n = 1, .index = {0}};
    for (size_t k = 1; k < study->n_analyses; k++) {
        const struct ks_study_analysis *a = &study->analysis[k];

        if (statistic == KS_CLAIM_CONTROL && is_control(a))
            return (struct ks_study_analyses){.n = 1, .index = {k}};
        if (statistic == KS_CLAIM_PAPER && is_paper(a))
            return (struct ks_study_analyses){.n = 1, .index = {k}};
        if (statistic == KS_CLAIM_REVISED && is_paper(a))
            return ks_study_starts(study, k);
    }
    return (struct ks_study_analyses){.n = 0};
}

/* The number of checkpoints that the study has reached: up to the last one with any spectrum. */
static size_t reached(const struct ks_results *r)
{
    const struct ks_study *s = r->study;
    size_t n = 0;

    for (size_t run = 0; run < r->n_runs; run++)
        for (size_t k = 0; k < s->n_analyses; k++)
            for (size_t i = n; i < s->n_checkpoints; i++)
                if (ks_results_spectrum(r, &r->run[run], k, i))
                    n = i + 1;
    return n;
}

static bool is_used(const struct ks_results *r, size_t checkpoint)
{
    return r->common_checkpoint[checkpoint] &&
           r->study->checkpoint[checkpoint] > r->study->first_update;
}

size_t ks_claim_checkpoints(const struct ks_results *r)
{
    size_t n = 0, end = reached(r);

    for (size_t i = 0; i < end; i++)
        n += is_used(r, i);
    return n;
}

/* Intervals over training, in a run. */
struct course {
    size_t n, all; /* checkpoints or rows that have the value, and all of them */
    double *low, *high;
};

static void course_clear(struct course *c)
{
    free(c->low);
    free(c->high);
}

static void add(struct course *c, struct ks_interval span)
{
    c->all++;
    if (isnan(span.lower) && isnan(span.upper))
        return;
    c->low[c->n] = span.lower;
    c->high[c->n++] = span.upper;
}

static bool has_batchnorm(const struct ks_results *r, const struct ks_result *run)
{
    return strcmp(r->study->architecture[run->architecture].normalization, "bn") == 0;
}

/* The mean over the analyses, which of a single one is its value. */
static struct ks_interval find_mean(const struct ks_results *r, const struct ks_result *run,
                                    const struct ks_claim_source *source, size_t checkpoint)
{
    const struct ks_claim_criterion *m =
        &ks_claim_criteria[source->claim->quantity][ks_claim_statistic_base(source->statistic)];
    const size_t n = source->analyses.n;
    struct ks_interval sum = {0, 0};

    for (size_t k = 0; k < n; k++) {
        const struct ks_interval one = find_span(
            ks_results_spectrum(r, run, source->analyses.index[k], checkpoint), m);

        sum.lower += one.lower;
        sum.upper += one.upper;
    }
    return (struct ks_interval){sum.lower / (double)n, sum.upper / (double)n};
}

static void follow_spectra(const struct ks_results *r, const struct ks_result *run,
                           const struct ks_claim_source *of, struct course *c)
{
    struct ks_claim_source source = *of;
    size_t end = reached(r);

    if (source.statistic == KS_CLAIM_CONTROL && !has_batchnorm(r, run))
        source.analyses = ks_claim_analyses(r->study, KS_CLAIM_SOUND);
    if (source.analyses.n == 0)
        return;
    for (size_t i = 0; i < end; i++)
        if (is_used(r, i) && ks_study_has_any(r->study, run->architecture, i))
            add(c, source.claim->quantity == KS_CLAIM_NEGATIVE
                       ? find_negative(ks_results_spectrum(r, run, source.analyses.index[0], i))
                       : find_mean(r, run, &source, i));
}

/* --- numbers of progress.csv --- */

static const char *const columns[KS_CLAIM_QUANTITIES] = {
    [KS_CLAIM_PARAM_NORM] = "critic_param_norm",
    [KS_CLAIM_GRAD_NORM] = "critic_grad_norm",
    [KS_CLAIM_EFFECTIVE_LR] = "critic_effective_lr",
};

/* The mean return of an architecture's runs before training; NaN without such an evaluation. */
static double find_start(const struct ks_results *r, size_t architecture)
{
    const struct ks_result *run = &r->run[architecture * r->study->n_seeds];
    double sum = 0;
    size_t n = 0;

    for (size_t i = 0; i < r->study->n_seeds && r->study->evaluation[0] == 0; i++)
        if (!isnan(run[i].returns[0])) {
            sum += run[i].returns[0];
            n++;
        }
    return sum / (double)n;
}

/* The step of the first evaluation whose return is more than twice that; 0 if there is none: all
 * rows of a run that does not learn count. */
static double find_learned(const struct ks_results *r, const struct ks_result *run)
{
    const double start = find_start(r, run->architecture);

    for (size_t k = 1; k < r->study->n_evaluations; k++)
        if (ks_has_doubled(start, run->returns[k]))
            return (double)r->study->evaluation[k];
    return 0;
}

/* Drops the values before this place, and the rows before this row, if enough values are left. */
static void drop_first(struct course *c, size_t values, size_t rows)
{
    if (c->n < values + KS_CLAIM_VALUES)
        return;
    c->n -= values;
    c->all -= rows;
    memmove(c->low, c->low + values, c->n * sizeof *c->low);
    memmove(c->high, c->high + values, c->n * sizeof *c->high);
}

/* The rows after the first update and up to the end of the study; without those before step `from`
 * if enough are left. */
static ks_status follow_rows(const struct ks_study *s, const struct ks_csv *csv, const char *column,
                             double from, struct course *c)
{
    size_t step, value, early_values = 0, early_rows = 0;

    KS_TRY(ks_csv_column(csv, "env_step", &step));
    KS_TRY(ks_csv_column(csv, column, &value));
    KS_TRY(ks_alloc(csv->rows, sizeof *c->low, &c->low));
    KS_TRY(ks_alloc(csv->rows, sizeof *c->high, &c->high));
    for (size_t i = 0; i < csv->rows; i++) {
        double at, x;

        KS_TRY(ks_csv_number(csv, i, step, &at));
        if (at <= (double)s->first_update || at > (double)s->end)
            continue;
        KS_TRY(ks_csv_number(csv, i, value, &x));
        x = log10(x);
        add(c, (struct ks_interval){x, x});
        if (at < from)
            early_values = c->n, early_rows = c->all;
    }
    drop_first(c, early_values, early_rows);
    return KS_OK;
}

/* A table that cannot be read has no values. */
static ks_status follow_progress(const struct ks_results *r, const struct ks_result *run,
                                 const struct ks_claim_source *source, struct course *c)
{
    const bool revised = source->statistic == KS_CLAIM_REVISED;
    KS_OWNED_BY(ks_csv_free) struct ks_csv *csv = NULL;
    ks_status status = ks_results_progress(r, run, &csv);

    if (csv)
        status = follow_rows(r->study, csv, columns[source->claim->quantity],
                             revised ? find_learned(r, run) : 0, c);
    if (status != KS_FORMAT)
        return status;
    c->n = 0;
    return KS_OK;
}

/* --- all runs --- */

/* The value of the run of architecture `number` of the KS_JUDGED in a seed. */
static ks_status find_value(struct ks_claim_values *v, const struct ks_claim_source *source,
                            size_t number, size_t seed)
{
    const struct ks_results *r = v->results;
    const struct ks_result *run = &r->run[v->architecture[number] * v->seeds + seed];
    struct ks_interval *value = &v->value[number][seed];
    bool *counts = &v->counts[number][seed];
    KS_CLEARED_BY(course_clear) struct course c = {0};

    if (source->claim->quantity == KS_CLAIM_RETURN) {
        const double last = ks_comparison_last(r, run), x = -log10(last); /* larger is worse */

        *counts = last > 0; /* false for NaN */
        *value = (struct ks_interval){x, x};
        return KS_OK;
    }
    if (ks_claim_is_number(source->claim->quantity)) {
        KS_TRY(follow_progress(r, run, source, &c));
    } else {
        KS_TRY(ks_alloc(r->study->n_checkpoints, sizeof *c.low, &c.low));
        KS_TRY(ks_alloc(r->study->n_checkpoints, sizeof *c.high, &c.high));
        follow_spectra(r, run, source, &c);
    }
    v->most = c.n > v->most ? c.n : v->most;
    *counts = c.n >= KS_CLAIM_VALUES && 2 * c.n >= c.all;
    if (*counts)
        *value = ks_claim_summarize(source->claim->summary, c.n, c.low, c.high);
    return KS_OK;
}

ks_status ks_claim_values_find(const struct ks_results *r, const struct ks_claim_source *source,
                               struct ks_claim_values *v)
{
    *v = (struct ks_claim_values){.results = r, .source = *source, .seeds = r->study->n_seeds};
    ks_twelve_find(r->study, v->architecture);
    for (size_t k = 0; k < KS_JUDGED; k++)
        for (size_t i = 0; i < v->seeds && v->architecture[k] < r->study->n_architectures; i++)
            if (!source->unseen ||
                strcmp(r->run[v->architecture[k] * v->seeds + i].began, ks_claim_revised_from) >= 0)
                KS_TRY(find_value(v, source, k, i));
    return KS_OK;
}
