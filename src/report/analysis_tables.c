/* Tables of statistics of analyses, over the seeds of an architecture: kappa.csv, intervals.csv,
 * sharpness.csv, layers.csv. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "report/plot_tables.h"

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
