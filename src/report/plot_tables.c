#include "report/plot_tables.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "claims/claim_values.h"
#include "core/interval.h"
#include "core/memory.h"
#include "core/number.h"

const struct ks_study_architecture *ks_table_architecture(const struct ks_tables *t, size_t row)
{
    return &t->r->study->architecture[t->table->row[row].architecture];
}

void ks_table_look(const struct ks_tables *t, size_t row, FILE *out)
{
    const struct ks_study_architecture *a = ks_table_architecture(t, row);

    fprintf(out, "%s,%s,%d,%s", a->name, a->normalization, a->weight_normalization, a->loss);
}

const struct ks_result *ks_table_run(const struct ks_tables *t, size_t row)
{
    const struct ks_result *run[KS_STUDY_SEEDS];
    size_t n = ks_results_runs(t->r, t->table->row[row].architecture, run);

    for (size_t i = 0; i < n; i++)
        if (run[i]->spectrum[t->r->study->n_checkpoints - 1])
            return run[i];
    return run[0];
}

const struct ks_spectrum *ks_table_spectrum(const struct ks_tables *t, size_t row, size_t analysis)
{
    return ks_results_spectrum(t->r, ks_table_run(t, row), analysis,
                               t->r->study->n_checkpoints - 1);
}

const struct ks_spectrum *ks_table_any_spectrum(const struct ks_tables *t, size_t row,
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

size_t ks_table_paper(const struct ks_tables *t)
{
    size_t paper = ks_claim_analysis(t->r->study, KS_CLAIM_PAPER);

    for (size_t i = 0; paper < t->r->study->n_analyses && i < t->table->n_rows; i++)
        if (ks_table_any_spectrum(t, i, paper))
            return paper;
    return 0;
}

size_t ks_table_paper_curve(const struct ks_tables *t)
{
    const struct ks_study *study = t->r->study;
    size_t paper = ks_table_paper(t), asked = 0;

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
    KS_TRY(ks_alloc(steps, sizeof *s->step, &s->step));
    KS_TRY(ks_alloc(runs * steps, sizeof *s->value, &s->value));
    return ks_alloc(steps, sizeof *s->curve, &s->curve);
}

ks_status ks_series_aggregate(struct ks_series *s, size_t resamples)
{
    struct ks_scores scores = {1, &s->runs, s->steps, s->step, s->value};

    return ks_iqm_curve(&scores, resamples, 0, s->curve, NULL);
}

void ks_series_free(struct ks_series *s)
{
    free(s->step);
    free(s->value);
    free(s->curve);
}

/* --- intervals over the runs of an architecture --- */

/* An interval of the mean would need every end of every run, and one unresolved end would make it
 * infinite. So medians are used: if l_i <= x_i <= u_i for every run i, then
 * median(l) <= median(x) <= median(u), and the median stays finite while fewer than half of the
 * runs have an unresolved end. */
const enum ks_statistic_id ks_ranges[KS_RANGES] = {KS_STAT_DIRECTIONS_1E2, KS_STAT_KAPPA_Q99,
                                                   KS_STAT_KAPPA_GRADIENT_90};

void ks_range_find(const struct ks_range_place *place, size_t n, const struct ks_result *const *run,
                   struct ks_seed_range range[KS_RANGES])
{
    assert(n <= KS_STUDY_SEEDS);
    for (size_t k = 0; k < KS_RANGES; k++) {
        double lower[KS_STUDY_SEEDS], upper[KS_STUDY_SEEDS];
        size_t found = 0;

        for (size_t i = 0; i < n; i++) {
            const struct ks_spectrum *spectrum = ks_results_spectrum(
                place->results, run[i], place->analysis, place->checkpoint);
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

void ks_range_print_ends(const struct ks_seed_range range[KS_RANGES], FILE *out)
{
    for (size_t k = 0; k < KS_RANGES; k++) {
        const struct ks_interval *r = &range[k].median, *all = &range[k].all;

        ks_table_number(out, r->lower);
        ks_table_number(out, isinf(r->upper) && !isinf(r->lower) ? NAN : r->upper);
        ks_table_number(out, all->lower);
        ks_table_number(out, isinf(all->upper) && !isinf(r->lower) ? NAN : all->upper);
    }
    putc('\n', out);
}

/* --- tables of statistics of analyses, over the seeds of an architecture --- */

ks_status ks_intervals_write(const struct ks_tables *t, FILE *out)
{
    const struct ks_study *study = t->r->study;

    for (size_t i = 0; i < t->table->n_rows; i++) {
        const struct ks_result *run[KS_STUDY_SEEDS];
        size_t n = ks_results_runs(t->r, t->table->row[i].architecture, run);

        for (size_t k = 0; k < study->n_checkpoints; k++) {
            struct ks_seed_range range[KS_RANGES];

            if (!t->r->common_checkpoint[k])
                continue;
            ks_range_find(&(struct ks_range_place){t->r, 0, k}, n, run, range);
            ks_table_look(t, i, out);
            fprintf(out, ",%zu", study->checkpoint[k]);
            ks_range_print_ends(range, out);
        }
    }
    return KS_OK;
}

/* Fills a series with a statistic of an analysis at the aggregated checkpoints. */
static ks_status read_series(const struct ks_tables *t, size_t row, size_t analysis,
                             enum ks_statistic_id statistic, struct ks_series *s)
{
    const struct ks_study *study = t->r->study;
    const struct ks_result *run[KS_STUDY_SEEDS];
    size_t n = ks_results_runs(t->r, t->table->row[row].architecture, run);

    KS_TRY(ks_series_new(n, study->n_checkpoints, s));
    s->steps = 0;
    for (size_t k = 0; k < study->n_checkpoints; k++)
        if (t->r->common_checkpoint[k])
            s->step[s->steps++] = (double)study->checkpoint[k];
    for (size_t i = 0; i < n; i++) {
        size_t used = 0;

        for (size_t k = 0; k < study->n_checkpoints; k++)
            if (t->r->common_checkpoint[k])
                s->value[i * s->steps + used++] = ks_results_statistic(t->r, run[i], analysis, k,
                                                                       statistic);
    }
    return ks_series_aggregate(s, t->resamples);
}

/* The IQM over the runs of ks_noise_limit, and the share of the runs whose kappa is above theirs.
 */
static void find_noise(const struct ks_tables *t, size_t row, size_t analysis, size_t checkpoint,
                       double noise[2])
{
    const struct ks_result *run[KS_STUDY_SEEDS];
    size_t n = ks_results_runs(t->r, t->table->row[row].architecture, run), known = 0, beyond = 0;
    double limit[KS_STUDY_SEEDS];

    for (size_t i = 0; i < n; i++) {
        double kappa = ks_results_statistic(t->r, run[i], analysis, checkpoint, KS_STAT_KAPPA);

        limit[i] = ks_noise_limit(ks_results_spectrum(t->r, run[i], analysis, checkpoint));
        known += !isnan(limit[i]) && !isnan(kappa);
        beyond += kappa > limit[i];
    }
    noise[0] = ks_iqm_drop(n, limit, NULL);
    noise[1] = known > 0 ? (double)beyond / (double)known : NAN;
}

static ks_status write_kappa(const struct ks_tables *t, size_t row, size_t analysis, FILE *out)
{
    const struct ks_study *study = t->r->study;
    struct ks_series s = {0};
    size_t used = 0;
    ks_status status = KS_OK;

    KS_GO(read_series(t, row, analysis, KS_STAT_KAPPA, &s));
    for (size_t k = 0; k < study->n_checkpoints; k++) {
        double noise[2];

        if (!t->r->common_checkpoint[k])
            continue;
        if (ks_study_asks(study, analysis, t->table->row[row].architecture, k)) {
            ks_table_look(t, row, out);
            fprintf(out, ",%s,%zu", study->analysis[analysis].name, study->checkpoint[k]);
            ks_table_estimate(out, &s.curve[used]);
            find_noise(t, row, analysis, k, noise);
            ks_table_number(out, noise[0]);
            ks_table_number(out, noise[1]);
            putc('\n', out);
        }
        used++;
    }
done:
    ks_series_free(&s);
    return status;
}

ks_status ks_kappa_write(const struct ks_tables *t, FILE *out)
{
    size_t paper = ks_table_paper_curve(t);

    for (size_t i = 0; i < t->table->n_rows; i++)
        KS_TRY(write_kappa(t, i, 0, out));
    for (size_t i = 0; paper > 0 && i < t->table->n_rows; i++)
        KS_TRY(write_kappa(t, i, paper, out));
    return KS_OK;
}

static const char *operator_of(const struct ks_spectrum *s)
{
    const struct ks_attribute *a = ks_attribute_find(&s->attributes, "operator");

    return a && a->type == KS_ATTRIBUTE_STRING ? a->string : "-";
}

static bool is_block(const struct ks_spectrum *s, const char *kind)
{
    return ks_attribute_number(&s->attributes, kind) >= 0;
}

static ks_status write_sharpness(const struct ks_tables *t, size_t row, size_t analysis,
                                 const char *operator, FILE * out)
{
    struct ks_series ratio = {0}, largest = {0};
    ks_status status = KS_OK;

    KS_GO(read_series(t, row, analysis, KS_STAT_SHARPNESS_RATIO, &ratio));
    KS_GO(read_series(t, row, analysis, KS_STAT_LAMBDA_MAX, &largest));
    for (size_t k = 0; k < ratio.steps; k++) {
        if (isnan(ratio.curve[k].value))
            continue;
        ks_table_look(t, row, out);
        fprintf(out, ",%s,%s,%.0f", t->r->study->analysis[analysis].name, operator, ratio.step[k]);
        ks_table_estimate(out, &ratio.curve[k]);
        ks_table_estimate(out, &largest.curve[k]);
        putc('\n', out);
    }
done:
    ks_series_free(&ratio);
    ks_series_free(&largest);
    return status;
}

ks_status ks_sharpness_write(const struct ks_tables *t, FILE *out)
{
    for (size_t k = 0; k < t->r->study->n_analyses; k++)
        for (size_t i = 0; i < t->table->n_rows; i++) {
            const struct ks_spectrum *s = ks_table_any_spectrum(t, i, k);
            const char *operator= s ? ks_results_operator(s) : NULL;

            if (operator)
                KS_TRY(write_sharpness(t, i, k, operator, out));
        }
    return KS_OK;
}

/* A row for the last checkpoint. */
static ks_status write_layer(const struct ks_tables *t, size_t row, size_t analysis, double layer,
                             FILE *out)
{
    static const enum ks_statistic_id names[] = {KS_STAT_LAMBDA_MAX, KS_STAT_KAPPA, KS_STAT_TRACE};
    enum { NAMES = sizeof names / sizeof *names };
    struct ks_series series[NAMES] = {{0}};
    ks_status status = KS_OK;
    size_t last;

    for (size_t k = 0; k < NAMES; k++)
        KS_GO(read_series(t, row, analysis, names[k], &series[k]));
    last = series[0].steps - 1;
    ks_table_look(t, row, out);
    fprintf(out, ",%s,%.0f,%.0f", t->r->study->analysis[analysis].name, layer,
            series[0].step[last]);
    for (size_t k = 0; k < NAMES; k++)
        ks_table_estimate(out, &series[k].curve[last]);
    putc('\n', out);
done:
    for (size_t k = 0; k < NAMES; k++)
        ks_series_free(&series[k]);
    return status;
}

ks_status ks_layers_write(const struct ks_tables *t, FILE *out)
{
    for (size_t i = 0; i < t->table->n_rows; i++)
        for (size_t k = 0; k < t->r->study->n_analyses; k++) {
            const struct ks_spectrum *s = ks_table_any_spectrum(t, i, k);

            if (s && is_block(s, "layer") && !is_block(s, "critic") &&
                strcmp(operator_of(s), "hessian") == 0)
                KS_TRY(write_layer(t, i, k, ks_attribute_number(&s->attributes, "layer"), out));
        }
    return KS_OK;
}
