#include "report/plot_tables.h"

#include <math.h>
#include <stdlib.h>

#include "claims/claim_values.h"
#include "core/memory.h"

const struct ks_study_architecture *ks_table_architecture(const struct ks_tables *t, size_t row)
{
    return &t->r->study->architecture[t->table->row[row].architecture];
}

void ks_table_number(FILE *out, double value)
{
    if (isnan(value))
        fputs(",-", out);
    else
        fprintf(out, ",%.10g", value);
}

void ks_table_estimate(FILE *out, const struct ks_estimate *estimate)
{
    ks_table_number(out, estimate->value);
    ks_table_number(out, estimate->in.lower);
    ks_table_number(out, estimate->in.upper);
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
