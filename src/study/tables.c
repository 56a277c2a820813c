/* The CSV files of a study, for other programs and for the plots: gnuplot draws them and computes
 * nothing. */
#include "study/tables.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/sort.h"
#include "io/text.h"
#include "lanczos/density.h"
#include "statistics/statistics.h"
#include "study/comparison_tables.h"

struct context {
    const struct ks_results *r;
    const struct ks_summary_table *table;
    size_t resamples;
};

static const struct ks_study_architecture *architecture_of(const struct context *c, size_t row)
{
    return &c->r->study->architecture[c->table->row[row].architecture];
}

static void print_number(FILE *out, double value)
{
    if (isnan(value))
        fputs(",-", out);
    else
        fprintf(out, ",%.10g", value);
}

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

/* The BLAS that computed a spectrum: "OpenBLAS 0.3.21,SkylakeX"; empty cells if it is unknown. */
static void print_blas(FILE *out, const struct ks_spectrum *s)
{
    static const char *const names[] = {"blas_version", "blas_kernel"};

    for (size_t k = 0; k < 2; k++) {
        const struct ks_attribute *a = ks_attribute_find(&s->attributes, names[k]);

        fprintf(out, ",%s", a && a->type == KS_ATTRIBUTE_STRING ? a->string : "");
    }
}

/* The rest of a row: attributes of the checkpoint, the BLAS, and the statistics of these names. */
static void print_spectrum(FILE *out, const struct ks_spectrum *s, size_t n, char *const *names)
{
    print_number(out, ks_attribute_number(&s->attributes, "update"));
    print_number(out, ks_attribute_number(&s->attributes, "return_mean"));
    print_blas(out, s);
    for (size_t k = 0; k < n; k++)
        print_number(out, ks_statistic(s, names[k]));
    putc('\n', out);
}

static ks_status write_checkpoints(const struct context *c, FILE *out)
{
    const struct ks_results *r = c->r;
    char **names = NULL;
    size_t n = 0;
    ks_status status = find_statistics(r, &n, &names);

    fprintf(out,
            "env,architecture,seed,env_step,analysis,update,return_mean,blas_version,blas_kernel");
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

static ks_status write_returns(const struct context *c, FILE *out)
{
    const struct ks_results *r = c->r;

    fprintf(out, "env,architecture,seed,env_step,return_mean\n");
    for (size_t run = 0; run < r->n_runs; run++)
        for (size_t k = 0; k < r->study->n_evaluations; k++)
            if (!isnan(r->run[run].returns[k])) {
                print_run(out, r, &r->run[run], r->study->evaluation[k]);
                print_number(out, r->run[run].returns[k]);
                putc('\n', out);
            }
    return KS_OK;
}

/* --- summary.csv: a row per architecture and analysis --- */

/* The four ends, in the form that spectra use: '-' for an upper end that is not resolved, 'inf' if
 * the statistic itself is infinite. */
static void print_range(FILE *out, const struct ks_range *range)
{
    print_number(out, range->lower);
    print_number(out, isinf(range->upper) && !isinf(range->lower) ? NAN : range->upper);
    print_number(out, range->least);
    print_number(out, isinf(range->most) && !isinf(range->lower) ? NAN : range->most);
}

static ks_status write_summary(const struct context *c, FILE *out)
{
    fprintf(out, "architecture,normalization,weight_normalization,loss,analysis,runs,dropped");
    for (size_t k = 0; k < KS_COLUMNS; k++)
        fprintf(out, ",%s,%s_low,%s_high", ks_column_names[k], ks_column_names[k],
                ks_column_names[k]);
    for (size_t k = 0; k < KS_RANGES; k++)
        fprintf(out, ",%s_lower,%s_upper,%s_least,%s_most", ks_range_names[k], ks_range_names[k],
                ks_range_names[k], ks_range_names[k]);
    putc('\n', out);
    for (size_t i = 0; i < c->table->n_analyses * c->table->n_rows; i++) {
        const struct ks_study_architecture *a = architecture_of(c, i);
        const struct ks_row *row = &c->table->row[i];

        fprintf(out, "%s,%s,%d,%s,%s,%zu,%zu", a->name, a->normalization, a->weight_normalization,
                a->loss, c->r->study->analysis[row->analysis].name, row->runs, row->dropped);
        for (size_t k = 0; k < KS_COLUMNS; k++) {
            print_number(out, row->value[k].value);
            print_number(out, row->value[k].low);
            print_number(out, row->value[k].high);
        }
        for (size_t k = 0; k < KS_RANGES; k++)
            print_range(out, &row->range[k]);
        putc('\n', out);
    }
    return KS_OK;
}

/* --- kappa.csv, return_curves.csv: curves over training --- */

/* The values of one architecture, and their curve of IQMs. */
struct series {
    size_t runs, steps;
    double *step, *value; /* [steps], [runs, steps]; owned */
    struct ks_estimate *curve;
};

static ks_status print_curve(const struct context *c, size_t row, struct series *s, FILE *out)
{
    const struct ks_study_architecture *a = architecture_of(c, row);
    struct ks_scores scores = {1, &s->runs, s->steps, s->step, s->value};

    KS_TRY(ks_alloc(s->steps, sizeof *s->curve, &s->curve));
    KS_TRY(ks_iqm_curve(&scores, c->resamples, 0, s->curve, NULL));
    for (size_t t = 0; t < s->steps; t++) {
        fprintf(out, "%s,%s,%d,%s,%.0f", a->name, a->normalization, a->weight_normalization,
                a->loss, s->step[t]);
        print_number(out, s->curve[t].value);
        print_number(out, s->curve[t].low);
        print_number(out, s->curve[t].high);
        putc('\n', out);
    }
    return KS_OK;
}

static ks_status write_curve(const struct context *c, size_t row, bool kappa, FILE *out)
{
    const struct ks_results *r = c->r;
    const struct ks_result *run[KS_STUDY_SEEDS];
    size_t all = kappa ? r->study->n_checkpoints : r->study->n_evaluations;
    const size_t *step = kappa ? r->study->checkpoint : r->study->evaluation;
    const bool *used = kappa ? r->common_checkpoint : r->common_evaluation;
    struct series s = {.runs = ks_results_runs(r, c->table->row[row].architecture, run)};
    ks_status status = KS_OK;

    KS_GO(ks_alloc(all, sizeof *s.step, &s.step));
    KS_GO(ks_alloc(s.runs * all, sizeof *s.value, &s.value));
    for (size_t t = 0; t < all; t++)
        if (used[t])
            s.step[s.steps++] = (double)step[t];
    for (size_t n = 0; n < s.runs; n++) {
        size_t k = 0;

        for (size_t t = 0; t < all; t++)
            if (used[t])
                s.value[n * s.steps + k++] = kappa ? ks_results_statistic(r, run[n], 0, t, "kappa")
                                                   : run[n]->returns[t];
    }
    KS_GO(print_curve(c, row, &s, out));
done:
    free(s.step);
    free(s.value);
    free(s.curve);
    return status;
}

static ks_status write_curves(const struct context *c, bool kappa, FILE *out)
{
    const char *name = kappa ? "kappa" : "return";

    fprintf(out,
            "architecture,normalization,weight_normalization,loss,env_step,%s,%s_low,%s_high\n",
            name, name, name);
    for (size_t i = 0; i < c->table->n_rows; i++)
        KS_TRY(write_curve(c, i, kappa, out));
    return KS_OK;
}

static ks_status write_kappa(const struct context *c, FILE *out)
{
    return write_curves(c, true, out);
}

static ks_status write_return_curves(const struct context *c, FILE *out)
{
    return write_curves(c, false, out);
}

/* --- ritz.csv, density.csv, mass.csv, staircase.csv: spectra of the standard analysis, of one run
 * per architecture, and of its probes with random start vectors --- */

/* The first aggregated run that has its last spectrum, else the first one. */
static const struct ks_result *first_run(const struct context *c, size_t row)
{
    const struct ks_result *run[KS_STUDY_SEEDS];
    size_t n = ks_results_runs(c->r, c->table->row[row].architecture, run);

    for (size_t i = 0; i < n; i++)
        if (run[i]->spectrum[c->r->study->n_checkpoints - 1])
            return run[i];
    return run[0];
}

/* NULL if the analyses of all last checkpoints failed. */
static const struct ks_spectrum *last_spectrum(const struct context *c, size_t row)
{
    return first_run(c, row)->spectrum[c->r->study->n_checkpoints - 1];
}

static ks_status write_ritz(const struct context *c, FILE *out)
{
    fprintf(out, "architecture,env_step,ritz\n");
    for (size_t i = 0; i < c->table->n_rows; i++)
        for (size_t k = 0; k < c->r->study->n_checkpoints; k++) {
            const struct ks_spectrum *s = first_run(c, i)->spectrum[k];

            for (size_t j = 0; s && j < ks_spectrum_random(s) * s->order; j++)
                if (isfinite(s->ritz[j]))
                    fprintf(out, "%s,%zu,%.10g\n", architecture_of(c, i)->name,
                            c->r->study->checkpoint[k], s->ritz[j]);
        }
    return KS_OK;
}

/* Prints a value, the value minus its standard error but at least 0, and the value plus its error.
 */
static void print_band(FILE *out, double value, double error)
{
    print_number(out, value);
    print_number(out, value < error ? 0 : value - error);
    print_number(out, value + error);
}

/* The density per decade of the symmetric-log axis s = asinh(x / x_0): phi(x) dx/ds, where
 * dx/ds = sqrt(x^2 + x_0^2), times ln 10. The band extends one standard error over the probes to
 * both sides. */
static ks_status print_density(const char *name, const struct ks_spectrum *s, FILE *out)
{
    double unit = ks_density_unit(s), *error = NULL;
    bool several = ks_spectrum_random(s) > 1;
    ks_status status = KS_OK;

    KS_TRY(ks_alloc(s->n_grid, sizeof *error, &error));
    if (several)
        KS_GO(ks_density_error(s, error));
    for (size_t j = 0; j < s->n_grid; j++) {
        double x = s->symlog_grid[j], decade = hypot(x, unit) * log(10);

        fprintf(out, "%s,%.10g,%.10g", name, x, s->symlog_density[j]);
        print_band(out, s->symlog_density[j] * decade, several ? error[j] * decade : NAN);
        putc('\n', out);
    }
done:
    free(error);
    return status;
}

static ks_status write_density(const struct context *c, FILE *out)
{
    fprintf(out, "architecture,eigenvalue,density,density_per_decade,density_per_decade_low,"
                 "density_per_decade_high\n");
    for (size_t i = 0; i < c->table->n_rows; i++)
        if (last_spectrum(c, i))
            KS_TRY(print_density(architecture_of(c, i)->name, last_spectrum(c, i), out));
    return KS_OK;
}

/* Masses at zero and below, which the density plot draws as bars: values and 99% intervals. */
static ks_status write_mass(const struct context *c, FILE *out)
{
    static const char *const names[] = {"zero_mass",           "zero_mass_lower",
                                        "zero_mass_upper",     "negative_mass",
                                        "negative_mass_lower", "negative_mass_upper"};
    enum { NAMES = sizeof names / sizeof *names };

    fprintf(out, "architecture");
    for (size_t k = 0; k < NAMES; k++)
        fprintf(out, ",%s", names[k]);
    putc('\n', out);
    for (size_t i = 0; i < c->table->n_rows; i++) {
        const struct ks_spectrum *s = last_spectrum(c, i);

        if (!s)
            continue;
        fputs(architecture_of(c, i)->name, out);
        for (size_t k = 0; k < NAMES; k++)
            print_number(out, ks_statistic(s, names[k]));
        putc('\n', out);
    }
    return KS_OK;
}

struct node {
    double value, weight; /* sorted by value, the first member */
};

/* The cumulative spectral weight: over the probes, the mean weight of Ritz values up to x. */
static ks_status write_staircase(const struct context *c, FILE *out)
{
    fprintf(out, "architecture,eigenvalue,cumulative\n");
    for (size_t i = 0; i < c->table->n_rows; i++) {
        const struct ks_spectrum *s = last_spectrum(c, i);
        struct node *node = NULL;
        double sum = 0;
        size_t n = 0, probes;

        if (!s)
            continue;
        probes = ks_spectrum_random(s);
        KS_TRY(ks_alloc(probes * s->order, sizeof *node, &node));
        for (size_t j = 0; j < probes * s->order; j++)
            if (isfinite(s->ritz[j]))
                node[n++] = (struct node){s->ritz[j], s->weight[j] / (double)probes};
        qsort(node, n, sizeof *node, ks_ascending);
        for (size_t j = 0; j < n; j++)
            fprintf(out, "%s,%.10g,%.10g\n", architecture_of(c, i)->name, node[j].value,
                    sum += node[j].weight);
        free(node);
    }
    return KS_OK;
}

/* --- architectures against each other --- */

static ks_status write_comparison(const struct context *c,
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

static ks_status write_improvement(const struct context *c, FILE *out)
{
    return write_comparison(c, ks_comparison_write_improvement, out);
}

static ks_status write_profile(const struct context *c, FILE *out)
{
    return write_comparison(c, ks_comparison_write_profile, out);
}

static ks_status write_correlation(const struct context *c, FILE *out)
{
    return write_comparison(c, ks_comparison_write_correlation, out);
}

static const struct {
    const char *name;
    ks_status (*write)(const struct context *c, FILE *out);
} files[] = {
    {"checkpoints", write_checkpoints},
    {"returns", write_returns},
    {"summary", write_summary},
    {"kappa", write_kappa},
    {"return_curves", write_return_curves},
    {"ritz", write_ritz},
    {"density", write_density},
    {"mass", write_mass},
    {"staircase", write_staircase},
    {"improvement", write_improvement},
    {"profile", write_profile},
    {"correlation", write_correlation},
};

static ks_status write_file(const struct context *c, size_t file)
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
    struct context context = {results, table, resamples};
    char *folder = NULL;
    ks_status status;

    KS_TRY(ks_print_string(&folder, "%s/tables", results->dir));
    status = ks_folder_make(folder);
    free(folder);
    for (size_t i = 0; i < sizeof files / sizeof *files && status == KS_OK; i++)
        status = write_file(&context, i);
    return status;
}
