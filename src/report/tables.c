/* The CSV files of a study, for other programs and for the plots: gnuplot draws them and computes
 * nothing. */
#include "report/tables.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "io/text.h"
#include "report/plot_tables.h"
#include "results/comparison_tables.h"
#include "statistics/statistics.h"

/* --- checkpoints.csv: a row per spectrum; returns.csv: a row per return --- */

static bool has_name(char *const *list, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i], name) == 0)
            return true;
    return false;
}

/* The names of all statistics that any spectrum has, in the order of their first occurrence. The
 * caller frees the list; the strings belong to the spectra. */
static ks_status find_statistics(const struct ks_results *r, size_t *n, char ***names)
{
    size_t room = 0;

    *n = 0;
    for (size_t run = 0; run < r->n_runs; run++)
        for (size_t i = 0; i < r->study->n_analyses * r->study->n_checkpoints; i++) {
            const struct ks_spectrum *s = r->run[run].spectrum[i];

            for (size_t k = 0; s && k < s->statistics.n; k++) {
                if (has_name(*names, *n, s->statistics.list[k].name))
                    continue;
                KS_TRY(ks_grow(*n, sizeof **names, &room, names));
                (*names)[(*n)++] = s->statistics.list[k].name;
            }
        }
    return KS_OK;
}

static void print_run(FILE *out, const struct ks_results *r, const struct ks_result *run,
                      size_t env_step)
{
    fprintf(out, "%s,%s,%zu,%zu", r->study->env, r->study->architecture[run->architecture].name,
            r->study->seed[run->seed], env_step);
}

/* The loss, and the BLAS that computed a spectrum: "ce,OpenBLAS 0.3.21,SkylakeX"; empty cells if
 * they are unknown. */
static void print_origin(FILE *out, const struct ks_spectrum *s)
{
    static const char *const names[] = {"loss_kind", "blas_version", "blas_kernel"};

    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        const struct ks_attribute *a = ks_attribute_find(&s->attributes, names[k]);

        fprintf(out, ",%s", a && a->type == KS_ATTRIBUTE_STRING ? a->string : "");
    }
}

/* The rest of a row: attributes of the checkpoint, the loss, the BLAS, and the statistics of these
 * names. */
static void print_spectrum(FILE *out, const struct ks_spectrum *s, size_t n, char *const *names)
{
    ks_table_number(out, ks_attribute_number(&s->attributes, "update"));
    ks_table_number(out, ks_attribute_number(&s->attributes, "return_mean"));
    print_origin(out, s);
    for (size_t k = 0; k < n; k++)
        ks_table_number(out, ks_statistic(s, names[k]));
    putc('\n', out);
}

static ks_status write_checkpoints(const struct ks_tables *c, FILE *out)
{
    const struct ks_results *r = c->r;
    char **names = NULL;
    size_t n = 0;
    ks_status status = find_statistics(r, &n, &names);

    fprintf(out, "env,architecture,seed,env_step,analysis,update,return_mean,loss,blas_version,"
                 "blas_kernel");
    for (size_t k = 0; k < n; k++)
        fprintf(out, ",%s", names[k]);
    putc('\n', out);
    for (size_t run = 0; run < r->n_runs; run++)
        for (size_t i = 0; i < r->study->n_checkpoints; i++)
            for (size_t a = 0; a < r->study->n_analyses; a++) {
                const struct ks_spectrum *s = ks_results_spectrum(r, &r->run[run], a, i);

                if (!s)
                    continue;
                print_run(out, r, &r->run[run], r->study->checkpoint[i]);
                fprintf(out, ",%s", r->study->analysis[a].name);
                print_spectrum(out, s, n, names);
            }
    free(names);
    return status;
}

static ks_status write_returns(const struct ks_tables *c, FILE *out)
{
    const struct ks_results *r = c->r;

    fprintf(out, "env,architecture,seed,env_step,return_mean\n");
    for (size_t run = 0; run < r->n_runs; run++)
        for (size_t k = 0; k < r->study->n_evaluations; k++)
            if (!isnan(r->run[run].returns[k])) {
                print_run(out, r, &r->run[run], r->study->evaluation[k]);
                ks_table_number(out, r->run[run].returns[k]);
                putc('\n', out);
            }
    return KS_OK;
}

/* --- summary.csv: a row per architecture and analysis --- */

static ks_status write_summary(const struct ks_tables *c, FILE *out)
{
    fprintf(out, "architecture,normalization,weight_normalization,loss,analysis,runs,dropped");
    for (size_t k = 0; k < KS_COLUMNS; k++)
        fprintf(out, ",%s,%s_low,%s_high", ks_column_names[k], ks_column_names[k],
                ks_column_names[k]);
    ks_range_print_header(out);
    for (size_t i = 0; i < c->table->n_analyses * c->table->n_rows; i++) {
        const struct ks_study_architecture *a = ks_table_architecture(c, i);
        const struct ks_row *row = &c->table->row[i];

        if (!row->asked)
            continue;
        fprintf(out, "%s,%s,%d,%s,%s,%zu,%zu", a->name, a->normalization, a->weight_normalization,
                a->loss, c->r->study->analysis[row->analysis].name, row->runs, row->dropped);
        for (size_t k = 0; k < KS_COLUMNS; k++) {
            ks_table_number(out, row->value[k].value);
            ks_table_number(out, row->value[k].low);
            ks_table_number(out, row->value[k].high);
        }
        ks_range_print_ends(row->range, out);
    }
    return KS_OK;
}

/* --- return_curves.csv --- */

static ks_status write_curve(const struct ks_tables *c, size_t row, FILE *out)
{
    const struct ks_results *r = c->r;
    const struct ks_result *run[KS_STUDY_SEEDS];
    struct ks_series s = {.runs = ks_results_runs(r, c->table->row[row].architecture, run)};
    ks_status status = KS_OK;

    KS_GO(ks_series_new(s.runs, r->study->n_evaluations, &s));
    s.steps = 0;
    for (size_t t = 0; t < r->study->n_evaluations; t++)
        if (r->common_evaluation[t])
            s.step[s.steps++] = (double)r->study->evaluation[t];
    for (size_t n = 0; n < s.runs; n++) {
        size_t k = 0;

        for (size_t t = 0; t < r->study->n_evaluations; t++)
            if (r->common_evaluation[t])
                s.value[n * s.steps + k++] = run[n]->returns[t];
    }
    KS_GO(ks_series_aggregate(&s, c->resamples));
    for (size_t t = 0; t < s.steps; t++) {
        ks_table_look(c, row, out);
        fprintf(out, ",%.0f", s.step[t]);
        ks_table_estimate(out, &s.curve[t]);
        putc('\n', out);
    }
done:
    ks_series_free(&s);
    return status;
}

static ks_status write_return_curves(const struct ks_tables *c, FILE *out)
{
    fprintf(out, KS_TABLE_LOOK ",env_step,return,return_low,return_high\n");
    for (size_t i = 0; i < c->table->n_rows; i++)
        KS_TRY(write_curve(c, i, out));
    return KS_OK;
}

/* --- architectures against each other --- */

static ks_status write_comparison(const struct ks_tables *c,
                                  ks_status (*write)(const struct ks_comparison *, FILE *),
                                  FILE *out)
{
    struct ks_comparison comparison;
    ks_status status = ks_comparison_new(c->r, c->resamples, &comparison);

    if (status == KS_OK)
        status = write(&comparison, out);
    ks_comparison_free(&comparison);
    return status;
}

static ks_status write_improvement(const struct ks_tables *c, FILE *out)
{
    return write_comparison(c, ks_comparison_write_improvement, out);
}

static ks_status write_profile(const struct ks_tables *c, FILE *out)
{
    return write_comparison(c, ks_comparison_write_profile, out);
}

static ks_status write_correlation(const struct ks_tables *c, FILE *out)
{
    return write_comparison(c, ks_comparison_write_correlation, out);
}

static const struct {
    const char *name;
    ks_status (*write)(const struct ks_tables *c, FILE *out);
} files[] = {
    {"checkpoints", write_checkpoints},
    {"returns", write_returns},
    {"summary", write_summary},
    {"kappa_return", ks_kappa_return_write},
    {"preconditioned_return", ks_preconditioned_return_write},
    {"kappa", ks_kappa_write},
    {"return_curves", write_return_curves},
    {"ritz", ks_ritz_write},
    {"density", ks_density_write},
    {"mass", ks_mass_write},
    {"staircase", ks_staircase_write},
    {"distribution", ks_distribution_write},
    {"orders", ks_orders_write},
    {"operators", ks_operators_write},
    {"layers", ks_layers_write},
    {"intervals", ks_intervals_write},
    {"sharpness", ks_sharpness_write},
    {"norms", ks_norms_write},
    {"efficiency", ks_efficiency_write},
    {"quadratics", ks_quadratics_write},
    {"variants", ks_variants_write},
    {"improvement", write_improvement},
    {"profile", write_profile},
    {"correlation", write_correlation},
};

static ks_status write_file(const struct ks_tables *c, size_t file)
{
    struct ks_text text = {0};
    char *path = NULL;
    ks_status status;

    KS_TRY(ks_print_string(&path, "%s/tables/%s.csv", c->r->dir, files[file].name));
    status = ks_text_open(path, &text);
    if (status == KS_OK)
        status = files[file].write(c, text.stream);
    free(path);
    return ks_text_close(&text, status);
}

ks_status ks_tables_write(const struct ks_results *results, const struct ks_summary_table *table,
                          size_t resamples)
{
    struct ks_tables tables = {results, table, resamples};

    KS_TRY(ks_folder_make_in(results->dir, "tables"));
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        KS_TRY(write_file(&tables, i));
    return KS_OK;
}
