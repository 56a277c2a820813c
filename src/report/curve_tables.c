/* Tables over training, and what functions that fill tables share. */
#include "report/tables.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "claims/claim_findings.h"
#include "core/memory.h"

const struct ks_study_architecture *ks_tables_architecture(const struct ks_tables *t, size_t row)
{
    return &t->r->study->architecture[t->table->row[row].architecture];
}

struct ks_runs ks_tables_runs(const struct ks_tables *t, size_t row)
{
    return ks_results_runs(t->r, t->table->row[row].architecture);
}

const struct ks_result *ks_tables_run(const struct ks_tables *t, size_t row)
{
    const struct ks_runs runs = ks_tables_runs(t, row);
    const size_t last = ks_study_last_checkpoint(t->r->study, runs.run[0]->architecture);

    for (size_t i = 0; i < runs.n; i++)
        if (runs.run[i]->spectrum[last])
            return runs.run[i];
    return runs.run[0];
}

const struct ks_spectrum *ks_tables_spectrum(const struct ks_tables *t, size_t row, size_t analysis)
{
    return ks_results_spectrum(
        t->r, ks_tables_run(t, row), analysis,
        ks_study_last_checkpoint(t->r->study, t->table->row[row].architecture));
}

const struct ks_spectrum *ks_tables_any_spectrum(const struct ks_tables *t, size_t row,
                                                 size_t analysis)
{
    const struct ks_study *study = t->r->study;
    size_t first = t->table->row[row].architecture * study->n_seeds;

    for (size_t i = 0; i < study->n_seeds; i++)
        for (size_t k = 0; k < study->n_checkpoints; k++) {
            const struct ks_spectrum *s = ks_results_spectrum(t->r, &t->r->run[first + i], analysis,
                                                              k);

            if (s)
                return s;
        }
    return NULL;
}

size_t ks_tables_paper(const struct ks_tables *t)
{
    const struct ks_study_analyses found = ks_claim_analyses(t->r->study, KS_CLAIM_PAPER);
    size_t paper = found.n > 0 ? found.index[0] : t->r->study->n_analyses;

    for (size_t i = 0; paper < t->r->study->n_analyses && i < t->table->n_rows; i++)
        if (ks_tables_any_spectrum(t, i, paper))
            return paper;
    return 0;
}

size_t ks_tables_paper_curve(const struct ks_tables *t)
{
    const struct ks_study *study = t->r->study;
    size_t paper = ks_tables_paper(t), asked = 0;

    for (size_t k = 0; k < study->n_checkpoints; k++)
        if (ks_study_asks_checkpoint(study, paper, k))
            asked++;
        else if (asked > 0 || study->checkpoint[k] > study->first_update)
            return 0;
    return asked > 1 ? paper : 0;
}

ks_status ks_series_new(size_t runs, size_t steps, struct ks_series *s)
{
    *s = (struct ks_series){.runs = runs, .steps = steps};
    KS_TRY(ks_pool_alloc(&s->pool, steps, sizeof *s->step, &s->step));
    KS_TRY(ks_pool_alloc(&s->pool, runs * steps, sizeof *s->value, &s->value));
    return ks_pool_alloc(&s->pool, steps, sizeof *s->curve, &s->curve);
}

ks_status ks_series_aggregate(struct ks_series *s, size_t resamples)
{
    struct ks_scores scores = {1, &s->runs, s->steps, s->step, s->value};

    return ks_iqm_curve(&scores, resamples, 0, s->curve, NULL);
}

/* Whether a curve of an architecture has a checkpoint or, with `returns`, an evaluation. */
static bool is_in_curve(const struct ks_tables *t, size_t row, bool returns, size_t k)
{
    const size_t architecture = t->table->row[row].architecture;

    return returns ? ks_results_has_return(t->r, architecture, k)
                   : ks_results_has(t->r, architecture, k);
}

/* Fills a series at the aggregated checkpoints with a statistic of an analysis or, if it is none,
 * at the aggregated evaluations with the returns. */
static ks_status read_series(const struct ks_tables *t, size_t row, size_t analysis,
                             enum ks_statistic_id statistic, struct ks_series *s)
{
    const struct ks_study *study = t->r->study;
    const bool returns = statistic == KS_STATISTICS;
    const size_t *step = returns ? study->evaluation : study->checkpoint;
    const size_t n = returns ? study->n_evaluations : study->n_checkpoints;
    const struct ks_runs runs = ks_tables_runs(t, row);
    size_t at = 0;

    KS_TRY(ks_series_new(runs.n, n, s));
    s->steps = 0;
    for (size_t k = 0; k < n; k++)
        if (is_in_curve(t, row, returns, k))
            s->step[s->steps++] = (double)step[k];
    for (size_t i = 0; i < s->runs; i++)
        for (size_t k = 0; k < n; k++)
            if (is_in_curve(t, row, returns, k))
                s->value[at++] = returns ? runs.run[i]->returns[k]
                                         : ks_results_statistic(t->r, runs.run[i], analysis, k,
                                                                statistic);
    return ks_series_aggregate(s, t->comparison->resamples);
}

ks_status ks_return_curve_fill(const struct ks_tables *t, size_t row, struct ks_table *out)
{
    KS_OWNS_POOL struct ks_series s = {0};

    KS_TRY(read_series(t, row, 0, KS_STATISTICS, &s));
    for (size_t k = 0; k < s.steps; k++)
        ks_table_cells(out, KS_LOOK(ks_tables_architecture(t, row)), KS_COUNT(s.step[k]),
                       KS_ESTIMATE(s.curve[k]));
    return KS_OK;
}

ks_status ks_intervals_fill(const struct ks_tables *t, size_t row, struct ks_table *out)
{
    const struct ks_runs runs = ks_tables_runs(t, row);

    for (size_t k = 0; k < t->r->study->n_checkpoints; k++) {
        struct ks_seed_range range[KS_RANGES];

        if (!ks_results_has(t->r, t->table->row[row].architecture, k))
            continue;
        ks_range_find(t->r, 0, k, &runs, range);
        ks_table_cells(out, KS_LOOK(ks_tables_architecture(t, row)),
                       KS_COUNT(t->r->study->checkpoint[k]));
        ks_range_add_ends(range, out);
    }
    return KS_OK;
}

static struct ks_noise find_noise(const struct ks_tables *t, size_t row, size_t analysis,
                                  size_t checkpoint)
{
    const struct ks_runs runs = ks_tables_runs(t, row);
    const struct ks_spectrum *spectrum[KS_STUDY_SEEDS];
    double limit[KS_STUDY_SEEDS];

    for (size_t i = 0; i < runs.n; i++)
        spectrum[i] = ks_results_spectrum(t->r, runs.run[i], analysis, checkpoint);
    return ks_noise_find(runs.n, spectrum, limit);
}

static ks_status fill_kappa(const struct ks_tables *t, size_t row, size_t analysis,
                            struct ks_table *out)
{
    const struct ks_study *study = t->r->study;
    KS_OWNS_POOL struct ks_series s = {0};

    KS_TRY(read_series(t, row, analysis, KS_STAT_KAPPA, &s));
    for (size_t k = 0, used = 0; k < study->n_checkpoints; k++) {
        const struct ks_noise noise = find_noise(t, row, analysis, k);

        if (is_in_curve(t, row, false, k) &&
            ks_study_asks(study, analysis, t->table->row[row].architecture, k))
            ks_table_cells(out, KS_LOOK(ks_tables_architecture(t, row)),
                           KS_TEXT(study->analysis[analysis].name), KS_COUNT(study->checkpoint[k]),
                           KS_ESTIMATE(s.curve[used]), KS_NUMBER(noise.limit),
                           KS_NUMBER(noise.beyond), KS_NUMBER(noise.moved));
        used += is_in_curve(t, row, false, k);
    }
    return KS_OK;
}

/* Of the standard analysis and of ks_tables_paper_curve. */
ks_status ks_kappa_fill(const struct ks_tables *t, struct ks_table *out)
{
    const size_t paper = ks_tables_paper_curve(t);

    for (size_t i = 0; i < t->table->n_rows; i++)
        KS_TRY(fill_kappa(t, i, 0, out));
    for (size_t i = 0; paper > 0 && i < t->table->n_rows; i++)
        KS_TRY(fill_kappa(t, i, paper, out));
    return KS_OK;
}

static ks_status fill_sharpness(const struct ks_tables *t, size_t row, size_t analysis,
                                struct ks_table *out)
{
    const struct ks_spectrum *s = ks_tables_any_spectrum(t, row, analysis);
    const char *operator= s ? ks_results_operator(s) : NULL;
    KS_OWNS_POOL struct ks_series ratio = {0}, largest = {0};

    if (!operator)
        return KS_OK;
    KS_TRY(read_series(t, row, analysis, KS_STAT_SHARPNESS_RATIO, &ratio));
    KS_TRY(read_series(t, row, analysis, KS_STAT_LAMBDA_MAX, &largest));
    for (size_t k = 0; k < ratio.steps; k++)
        if (!isnan(ratio.curve[k].value))
            ks_table_cells(out, KS_LOOK(ks_tables_architecture(t, row)),
                           KS_TEXT(t->r->study->analysis[analysis].name), KS_TEXT(operator),
                           KS_COUNT(ratio.step[k]), KS_ESTIMATE(ratio.curve[k]),
                           KS_ESTIMATE(largest.curve[k]));
    return KS_OK;
}

ks_status ks_sharpness_fill(const struct ks_tables *t, struct ks_table *out)
{
    for (size_t k = 0; k < t->r->study->n_analyses; k++)
        for (size_t i = 0; i < t->table->n_rows; i++)
            KS_TRY(fill_sharpness(t, i, k, out));
    return KS_OK;
}

/* A row for the last checkpoint. */
static ks_status fill_layer(const struct ks_tables *t, size_t row, size_t analysis, double layer,
                            struct ks_table *out)
{
    static const enum ks_statistic_id names[] = {KS_STAT_LAMBDA_MAX, KS_STAT_KAPPA, KS_STAT_TRACE};
    enum { NAMES = sizeof names / sizeof *names };

    for (size_t k = 0; k < NAMES; k++) {
        KS_OWNS_POOL struct ks_series s = {0};

        KS_TRY(read_series(t, row, analysis, names[k], &s));
        if (s.steps == 0)
            return KS_OK;
        if (k == 0)
            ks_table_cells(out, KS_LOOK(ks_tables_architecture(t, row)),
                           KS_TEXT(t->r->study->analysis[analysis].name), KS_COUNT(layer),
                           KS_COUNT(s.step[s.steps - 1]));
        ks_table_cells(out, KS_ESTIMATE(s.curve[s.steps - 1]));
    }
    return KS_OK;
}

ks_status ks_layers_fill(const struct ks_tables *t, size_t row, struct ks_table *out)
{
    for (size_t k = 0; k < t->r->study->n_analyses; k++) {
        const struct ks_spectrum *s = ks_tables_any_spectrum(t, row, k);
        const char *operator= s ? ks_attribute_text(&s->attributes, "operator") : NULL;
        const double layer = s ? ks_attribute_number(&s->attributes, "layer") : NAN;

        if (layer >= 0 && !(ks_attribute_number(&s->attributes, "critic") >= 0) &&
                          operator&& strcmp(operator, "hessian") == 0)
            KS_TRY(fill_layer(t, row, k, layer, out));
    }
    return KS_OK;
}
