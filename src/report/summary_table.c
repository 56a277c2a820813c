/* The summary table: pooled statistics and their intervals, a row per architecture and analysis.
 *
 * Figure 4 of the XQC paper has one point per architecture; pooling over seeds and checkpoints is
 * our reading of "over the entire course of training and seeds". The bootstrap resamples
 * seeds, each with all its checkpoints and returns, and all columns use the same draws. */
#include "report/summary_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/number.h"
#include "document/document.h"
#include "results/comparison.h"
#include "results/correlation.h"
#include "results/scores.h"
#include "statistics/statistics.h"

const enum ks_statistic_id ks_pooled[KS_POOLED] = {
    [KS_KAPPA] = KS_STAT_KAPPA,
    [KS_KAPPA_LOWER_BOUND] = KS_STAT_KAPPA_LOWER_BOUND,
    [KS_KAPPA_EFFECTIVE_BOUND] = KS_STAT_KAPPA_EFFECTIVE_BOUND,
    [KS_LAMBDA_MAX] = KS_STAT_LAMBDA_MAX,
    [KS_KURTOSIS] = KS_STAT_KURTOSIS,
};

const char *ks_column_name(size_t column)
{
    static const char *const others[KS_COLUMNS - KS_POOLED] = {"kappa_geometric", "return", "area"};

    return column < KS_POOLED ? ks_catalogue[ks_pooled[column]].name : others[column - KS_POOLED];
}

/* --- intervals over the runs of an architecture --- */

/* An interval of the mean would need every end of every run, and one unresolved end would make it
 * infinite. So medians are used: if l_i <= x_i <= u_i for every run i, then
 * median(l) <= median(x) <= median(u), and the median stays finite while fewer than half of the
 * runs have an unresolved end. */
const enum ks_statistic_id ks_ranges[KS_RANGES] = {KS_STAT_DIRECTIONS_1E2, KS_STAT_KAPPA_Q99,
                                                   KS_STAT_KAPPA_GRADIENT_90, KS_STAT_NOISE_SCALE};

void ks_range_find(const struct ks_results *r, size_t analysis, size_t checkpoint,
                   const struct ks_runs *runs, struct ks_seed_range range[KS_RANGES])
{
    for (size_t k = 0; k < KS_RANGES; k++) {
        double lower[KS_STUDY_SEEDS], upper[KS_STUDY_SEEDS];
        size_t found = 0;

        for (size_t i = 0; i < runs->n; i++) {
            const struct ks_spectrum *spectrum = ks_results_spectrum(r, runs->run[i], analysis,
                                                                     checkpoint);
            const struct ks_interval in = spectrum ? ks_statistic_interval(spectrum, ks_ranges[k])
                                                   : (struct ks_interval){NAN, NAN};

            if (isnan(in.lower))
                continue;
            lower[found] = in.lower;
            upper[found++] = isnan(in.upper) ? INFINITY : in.upper; /* NaN: not resolved */
        }
        range[k] = (struct ks_seed_range){found, {NAN, NAN}, {NAN, NAN}};
        if (found == 0)
            continue;
        qsort(lower, found, sizeof *lower, ks_ascending);
        qsort(upper, found, sizeof *upper, ks_ascending);
        range[k] = (struct ks_seed_range){
            found,
            {ks_quantile(found, lower, 0.5), ks_quantile(found, upper, 0.5)},
            {lower[0], upper[found - 1]}};
    }
}

void ks_range_add_ends(const struct ks_seed_range range[KS_RANGES], struct ks_table *out)
{
    for (size_t k = 0; k < KS_RANGES; k++) {
        const struct ks_interval *r = &range[k].median, *all = &range[k].all;

        ks_table_cells(out, KS_NUMBER(r->lower),
                       KS_NUMBER(isinf(r->upper) && !isinf(r->lower) ? NAN : r->upper),
                       KS_NUMBER(all->lower),
                       KS_NUMBER(isinf(all->upper) && !isinf(r->lower) ? NAN : all->upper));
    }
}

/* --- the table --- */

enum { LEAST_RANKS = 3 }; /* with fewer rows a rank correlation says nothing */

/* The values of one architecture. */
struct pool {
    struct ks_pool *arrays;
    size_t runs, checkpoints, evaluations;
    double *statistic[KS_POOLED];        /* [runs, checkpoints] */
    const struct ks_spectrum **spectrum; /* [runs, checkpoints] */
    double *limit;                       /* [runs, checkpoints] scratch */
    double *returns;                     /* [runs, evaluations] */
    double *last;                        /* [runs] the return at the end of each */
    size_t dropped;                      /* values of kappa that are NaN         */
    const struct ks_score_range *range;  /* of the task; NULL: it has no scores */
    double *step;                        /* [evaluations] */
};

static ks_status pool_new(const struct ks_results *r, size_t analysis, size_t architecture,
                          struct pool *p)
{
    const struct ks_study *s = r->study;

    p->range = ks_score_range_of_returns(s->env);
    for (size_t i = 0; i < s->n_checkpoints; i++)
        p->checkpoints += ks_results_is_pooled(r, analysis, i);
    for (size_t k = 0; k < s->n_evaluations; k++)
        p->evaluations += ks_results_has_return(r, architecture, k);
    for (size_t f = 0; f < KS_POOLED; f++)
        KS_TRY(ks_pool_alloc(p->arrays, s->n_seeds * p->checkpoints, sizeof(double),
                             &p->statistic[f]));
    KS_TRY(ks_pool_alloc(p->arrays, s->n_seeds * p->checkpoints, sizeof(double), &p->limit));
    KS_TRY(ks_pool_alloc(p->arrays, s->n_seeds * p->checkpoints, sizeof(struct ks_spectrum *),
                         &p->spectrum));
    KS_TRY(ks_pool_alloc(p->arrays, s->n_seeds * p->evaluations, sizeof(double), &p->returns));
    KS_TRY(ks_pool_alloc(p->arrays, s->n_seeds, sizeof(double), &p->last));
    return ks_pool_alloc(p->arrays, p->evaluations, sizeof(double), &p->step);
}

static void pool_fill(const struct ks_results *r, size_t analysis,
                      const struct ks_result *const *run, struct pool *p)
{
    const struct ks_study *s = r->study;

    for (size_t n = 0; n < p->runs; n++) {
        size_t used = 0;

        p->last[n] = ks_comparison_last(r, run[n]);
        for (size_t i = 0; i < s->n_checkpoints; i++)
            if (ks_results_is_pooled(r, analysis, i)) {
                for (size_t f = 0; f < KS_POOLED; f++)
                    p->statistic[f][n * p->checkpoints + used] = ks_results_statistic(
                        r, run[n], analysis, i, ks_pooled[f]);
                p->dropped += isnan(p->statistic[KS_KAPPA][n * p->checkpoints + used]) &&
                              ks_study_asks(s, analysis, run[n]->architecture, i) &&
                              ks_study_has_checkpoint(
                                  s,
                                  (struct ks_study_place){run[n]->architecture, run[n]->seed, i});
                p->spectrum[n * p->checkpoints + used++] = ks_results_spectrum(r, run[n], analysis,
                                                                               i);
            }
        used = 0;
        for (size_t k = 0; k < s->n_evaluations; k++)
            if (ks_results_has_return(r, run[n]->architecture, k)) {
                p->step[used] = (double)s->evaluation[k];
                p->returns[n * p->evaluations + used++] = run[n]->returns[k];
            }
    }
}

static double pooled_iqm(const struct pool *p, const double *values, const size_t *index,
                         double *work)
{
    for (size_t n = 0; n < p->runs; n++)
        memcpy(work + n * p->checkpoints, values + index[n] * p->checkpoints,
               p->checkpoints * sizeof *work);
    return ks_iqm_drop(p->runs * p->checkpoints, work);
}

static double iqm_at(const struct pool *p, size_t k, const size_t *index, double *work)
{
    for (size_t n = 0; n < p->runs; n++)
        work[n] = p->returns[index[n] * p->evaluations + k];
    return ks_iqm(p->runs, work);
}

static void evaluate(const void *data, const size_t *index, double *work, double *out)
{
    const struct pool *p = data;
    size_t n = p->runs * p->checkpoints;
    double *curve = work + n + p->runs; /* after the scratch of pooled_iqm and iqm_at */

    for (size_t f = 0; f < KS_POOLED; f++)
        out[f] = pooled_iqm(p, p->statistic[f], index, work);
    for (size_t i = 0; i < p->runs; i++)
        for (size_t j = 0; j < p->checkpoints; j++)
            work[i * p->checkpoints + j] = log10(
                p->statistic[KS_KAPPA][index[i] * p->checkpoints + j]);
    out[KS_KAPPA_GEOMETRIC] = pow(10, ks_iqm_drop(n, work));
    for (size_t k = 0; k < p->evaluations; k++)
        curve[k] = p->range ? ks_score_normalize(p->range, iqm_at(p, k, index, work)) : NAN;
    for (size_t i = 0; i < p->runs; i++)
        work[i] = p->last[index[i]];
    out[KS_RETURN] = ks_iqm(p->runs, work);
    out[KS_AREA] = p->evaluations > 1 ? ks_curve_area(p->evaluations, p->step, curve) : NAN;
}

double ks_noise_limit(const struct ks_spectrum *s)
{
    return s ? fmax(ks_statistic_value(s, KS_STAT_LAMBDA_MAX),
                    -ks_statistic_value(s, KS_STAT_LAMBDA_MIN)) /
                   ks_statistic_value(s, KS_STAT_NOISE_FLOOR)
             : NAN;
}

struct ks_noise ks_noise_find(size_t n, const struct ks_spectrum *const *spectrum, double *limit)
{
    static const double MOVED = 1.1;
    size_t known = 0, beyond = 0, measured = 0, moved = 0;

    for (size_t i = 0; i < n; i++) {
        const struct ks_spectrum *s = spectrum[i];
        const double kappa = s ? ks_statistic_value(s, KS_STAT_KAPPA) : NAN,
                     kappa_f64 = s ? ks_statistic_value(s, KS_STAT_KAPPA_F64) : NAN;

        limit[i] = ks_noise_limit(s);
        known += !isnan(limit[i]) && !isnan(kappa);
        beyond += kappa > limit[i];
        measured += !isnan(kappa_f64) && !isnan(kappa);
        moved += kappa > MOVED * kappa_f64 || kappa_f64 > MOVED * kappa;
    }
    return (struct ks_noise){.beyond = known > 0 ? (double)beyond / (double)known : NAN,
                             .moved = measured > 0 ? (double)moved / (double)measured : NAN,
                             .limit = ks_iqm_drop(n, limit)};
}

static ks_status fill_row(const struct ks_results *r, size_t resamples, struct ks_row *row)
{
    const struct ks_runs runs = ks_results_runs(r, row->architecture);
    KS_CLEARED_BY(ks_pool_free) struct ks_pool arrays = {.n = 0};
    struct pool pool = {.arrays = &arrays, .runs = runs.n};
    struct ks_bootstrap bootstrap = {resamples, 0, 1, &pool.runs};
    struct ks_estimator estimator = {KS_COLUMNS, 0, &pool, evaluate};

    row->runs = runs.n;
    KS_TRY(pool_new(r, row->analysis, row->architecture, &pool));
    pool_fill(r, row->analysis, runs.run, &pool);
    ks_range_find(r, row->analysis, ks_results_last(r, row->architecture), &runs, row->range);
    row->dropped = pool.dropped;
    row->noise = ks_noise_find(pool.runs * pool.checkpoints, pool.spectrum, pool.limit);
    estimator.work = pool.runs * pool.checkpoints + pool.runs + pool.evaluations;
    return ks_bootstrap_run(&bootstrap, &estimator, row->value);
}

static ks_status correlate(size_t n_groups, struct ks_summary_table *table)
{
    KS_OWNED double *values = NULL;
    size_t n = 0;

    if (n_groups > 1)
        return KS_OK;
    KS_TRY(ks_alloc(2 * table->n_rows, sizeof *values, &values));
    for (size_t i = 0; i < table->n_rows; i++) {
        const struct ks_estimate *value = table->row[i].value;

        if (isnan(value[KS_KAPPA_GEOMETRIC].value))
            continue;
        values[n] = value[KS_KAPPA_GEOMETRIC].value;
        values[table->n_rows + n++] = value[KS_RETURN].value;
    }
    table->ranked = n;
    return n < LEAST_RANKS ? KS_OK
                           : ks_spearman(n, values, values + table->n_rows, &table->spearman);
}

ks_status ks_summary_table(const struct ks_results *r, size_t resamples,
                           struct ks_summary_table *table)
{
    size_t order[KS_STUDY_ARCHITECTURES], n = ks_results_order(r, order);

    *table = (struct ks_summary_table){
        .n_rows = n, .n_analyses = r->study->n_analyses, .spearman = NAN};
    KS_TRY(ks_alloc(table->n_analyses * n, sizeof *table->row, &table->row));
    for (size_t k = 0; k < table->n_analyses; k++)
        for (size_t i = 0; i < n; i++) {
            struct ks_row *row = &table->row[k * n + i];

            row->architecture = order[i];
            row->analysis = k;
            row->asked = r->study->analysis[k].scope.of[order[i]];
            KS_TRY(fill_row(r, resamples, row));
        }
    return correlate(r->n_groups, table);
}

const char *ks_value_text(double value, char text[32])
{
    double size = fabs(value);

    if (isnan(value))
        snprintf(text, 32, "-");
    else if (isinf(value) || (size != 0 && (size < 0.01 || size >= 1e5)))
        snprintf(text, 32, "%.2e", value);
    else
        snprintf(text, 32, size < 10 ? "%.3f" : size < 1000 ? "%.1f" : "%.0f", value);
    return text;
}

const char *ks_bound_text(double bound, char text[32])
{
    const double unit = bound < 10 ? 1e-3 : bound < 1000 ? 0.1 : 1;

    if (isfinite(bound))
        bound = bound >= 1e5 ? ks_round_down(bound, 3) : floor(bound / unit) * unit;
    return ks_value_text(bound, text);
}

/* The columns of the printed table: of values, or of ranges. */
static const struct {
    bool range;
    size_t index;
} printed[] = {{false, KS_KAPPA},           {false, KS_KAPPA_EFFECTIVE_BOUND},
               {true, KS_RANGE_DIRECTIONS}, {true, KS_RANGE_Q99},
               {true, KS_RANGE_GRADIENT},   {false, KS_LAMBDA_MAX},
               {false, KS_KURTOSIS},        {false, KS_RETURN}};
enum { PRINTED = sizeof printed / sizeof *printed };

/* Beside runs that are trained here, those from elsewhere say so. */
static void add_row(const struct ks_study *s, const struct ks_row *row, struct ks_document *d)
{
    const struct ks_study_architecture *a = &s->architecture[row->architecture];
    const bool elsewhere = a->elsewhere && ks_study_trains(s);

    ks_document_cells(d, ks_cell_note(ks_cell_name(a->name), elsewhere ? "elsewhere" : NULL));
    for (size_t c = 0; c < PRINTED; c++) {
        const size_t i = printed[c].index;
        const double value = row->value[i].value;
        char text[32];

        if (!printed[c].range)
            (i == KS_KAPPA_EFFECTIVE_BOUND ? ks_bound_text : ks_value_text)(value, text);
        ks_document_cell(d, printed[c].range ? ks_cell_interval(row->range[i].median, KS_IN_WORDS)
                                             : ks_cell_printed(text, value));
    }
}

ks_status ks_summary_print(const struct ks_results *r, const struct ks_summary_table *table,
                           FILE *out)
{
    KS_CLEARED_BY(ks_document_clear) struct ks_document d = {.n = 0};

    ks_document_table(&d, "", KS_CELLS(ks_cell_name("architecture")));
    for (size_t c = 0; c < PRINTED; c++)
        ks_document_cell(&d, ks_cell_heading(printed[c].range
                                                 ? ks_catalogue[ks_ranges[printed[c].index]].name
                                                 : ks_column_name(printed[c].index)));
    for (size_t i = 0; i < table->n_rows; i++)
        add_row(r->study, &table->row[i], &d);
    return ks_document_print(&d, KS_DOCUMENT_WIDTH, out);
}
