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
#include "results/correlation.h"
#include "statistics/statistics.h"

/* --- quadratics.csv --- */

/* Why a condition number matters (after Figure 2 of the XQC paper). Gradient descent on
 * f(x) = (x_1^2 + kappa x_2^2) / 2 from x = (1, 1/kappa), where both coordinates have the same
 * gradient, with the step length 2 / (1 + kappa), which is the best constant one (Nesterov,
 * Introductory lectures on convex optimization, 2004, theorem 2.1.15): every step then multiplies
 * |x| by (kappa - 1) / (kappa + 1). */
enum { STEPS = 100 };
static const double kappas[] = {1, 3, 10, 30, 100, 1000};

static void descend(double kappa, FILE *out)
{
    const double rate = 2 / (1 + kappa), start = hypot(1, 1 / kappa);
    double x[2] = {1, 1 / kappa};

    for (int step = 0; step <= STEPS; step++) {
        fprintf(out, "%g,%d", kappa, step);
        ks_table_number(out, x[0]);
        ks_table_number(out, x[1]);
        ks_table_number(out, (x[0] * x[0] + kappa * x[1] * x[1]) / 2);
        ks_table_number(out, hypot(x[0], x[1]) / start);
        putc('\n', out);
        x[0] -= rate * x[0];
        x[1] -= rate * kappa * x[1];
    }
}

static ks_status write_quadratics(const struct ks_tables *t, FILE *out)
{
    (void)t;
    for (size_t i = 0; i < sizeof kappas / sizeof *kappas; i++)
        descend(kappas[i], out);
    return KS_OK;
}

/* --- variants.csv --- */

static const int of_variants[] = {KS_RETURN, KS_KAPPA, KS_LAMBDA_MAX};
enum { OF_VARIANTS = sizeof of_variants / sizeof *of_variants };

/* The row of an architecture in the standard analysis, NULL if it is left out. */
static const struct ks_row *find_row(const struct ks_tables *t, size_t architecture)
{
    for (size_t i = 0; i < t->table->n_rows; i++)
        if (t->table->row[i].architecture == architecture)
            return &t->table->row[i];
    return NULL;
}

static void print_variant(const struct ks_study *study, const struct ks_row *variant,
                          const struct ks_row *base, FILE *out)
{
    const struct ks_study_architecture *a = &study->architecture[variant->architecture];

    fprintf(out, "%s,%s,", a->name, study->architecture[base->architecture].name);
    for (size_t i = 0; i < a->n_own; i++)
        fprintf(out, "%s%s = %s", i ? "; " : "", a->own[i].key, a->own[i].value);
    for (size_t k = 0; k < OF_VARIANTS; k++) {
        ks_table_number(out, variant->value[of_variants[k]].value);
        ks_table_number(out, base->value[of_variants[k]].value);
    }
    putc('\n', out);
}

static ks_status write_variants(const struct ks_tables *t, FILE *out)
{
    for (size_t i = 0; i < t->table->n_rows; i++) {
        const struct ks_row *variant = &t->table->row[i];
        const struct ks_row *base = find_row(t, ks_study_base(t->r->study, variant->architecture));

        if (base)
            print_variant(t->r->study, variant, base, out);
    }
    return KS_OK;
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
    for (size_t i = 0; i < c->table->n_analyses * c->table->n_rows; i++) {
        const struct ks_study_architecture *a = ks_table_architecture(c, i);
        const struct ks_row *row = &c->table->row[i];

        if (!row->asked)
            continue;
        fprintf(out, "%s,%s,%d,%s,%s,%zu,%zu", a->name, a->normalization, a->weight_normalization,
                a->loss, c->r->study->analysis[row->analysis].name, row->runs, row->dropped);
        for (size_t k = 0; k < KS_COLUMNS; k++) {
            ks_table_number(out, row->value[k].value);
            ks_table_number(out, row->value[k].in.lower);
            ks_table_number(out, row->value[k].in.upper);
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

#define LOOK "architecture*"
const struct ks_table_file ks_table_files[] = {
    {"checkpoints", "checkpoint and analysis", write_checkpoints,
     "env,architecture,seed,env_step,analysis,update,return_mean,loss,blas_version,blas_kernel,...",
     "then all statistics. `loss`: `loss_kind` of the spectrum, empty if an older version made it"},
    {"returns", "evaluation", write_returns, "env,architecture,seed,env_step,return_mean", ""},
    {"summary", "architecture and analysis", write_summary,
     LOOK ",analysis,runs,dropped,kappa~,kappa_lower_bound~,kappa_effective_bound~,lambda_max~,"
          "kurtosis~,kappa_geometric~,return~,area~,directions_1e2%,kappa_q99%,kappa_gradient_90%",
     "[below](#summarycsv)"},
    {"kappa_return", "architecture", ks_kappa_return_write, KS_KAPPA_RETURN_COLUMNS,
     "[below](#kappa_returncsv-preconditioned_returncsv)"},
    {"preconditioned_return", "architecture", ks_preconditioned_return_write,
     KS_KAPPA_RETURN_COLUMNS,
     "[the same](#kappa_returncsv-preconditioned_returncsv) of the preconditioned Hessian"},
    {"kappa", "analysis, architecture and checkpoint", ks_kappa_write,
     LOOK ",analysis,env_step,kappa~,noise_limit,beyond_noise",
     "means; the last two as in `kappa_return.csv`, over the seeds"},
    {"return_curves", "architecture and evaluation", write_return_curves, LOOK ",env_step,return~",
     "means"},
    {"ritz", "Ritz value", ks_ritz_write, "architecture,analysis,env_step,ritz", ""},
    {"density", "cell of a histogram", ks_density_write,
     "architecture,lower,upper,density_per_decade~", "[below](#densitycsv)"},
    {"mass", "architecture", ks_mass_write, "architecture,zero_mass|,negative_mass|,noise_floor",
     ""},
    {"staircase", "Ritz value", ks_staircase_write, "architecture,eigenvalue,cumulative",
     "the weight up to this value"},
    {"distribution", "point of the band", ks_distribution_write, KS_DISTRIBUTION_COLUMNS,
     "the band in spectra; the same as numbers of eigenvalues, up to x for a negative x, above x "
     "for a positive x"},
    {"orders", "architecture and number of Lanczos steps", ks_orders_write,
     "architecture,order,kappa,kappa_lower_bound,kappa_effective_bound,noise_limit",
     "from the leading part of the Jacobi matrices; `kappa_effective_bound` is certified at the "
     "full order only; `noise_limit` (largest absolute eigenvalue over noise floor) is of the full "
     "order"},
    {"operators", "Ritz value", ks_operators_write, "architecture,operator,ritz,weight",
     "of the Hessian and of the first analyses of `ggn` and `residual` without `compat = xqc`, if "
     "an architecture has one of them"},
    {"layers", "architecture and analysis of one layer over all critics", ks_layers_write,
     LOOK ",analysis,layer,env_step,lambda_max~,kappa~,trace~", "means at the last checkpoint"},
    {"intervals", "architecture and checkpoint", ks_intervals_write,
     LOOK ",env_step,directions_1e2%,kappa_q99%,kappa_gradient_90%", "as in `summary.csv`"},
    {"sharpness", "analysis, architecture and checkpoint", ks_sharpness_write,
     LOOK ",analysis,operator,env_step,sharpness_ratio~,lambda_max~",
     "means, where the ratio is defined; not for analyses of one critic or layer"},
    {"norms", "architecture and row of `progress.csv`", ks_norms_write,
     LOOK ",env_step,param_norm~,grad_norm~,effective_lr~,definition_1_lr~",
     "means of the critics' metrics"},
    {"efficiency", "architecture", ks_efficiency_write,
     LOOK ",parameters,flops,actor_parameters,actor_flops,updates_per_second~,return~",
     "[below](#efficiencycsv)"},
    {"quadratics", "condition number and step", write_quadratics, "kappa,step,x1,x2,value,distance",
     "gradient descent on (x1^2 + kappa x2^2)/2 with the best constant step; `distance` relative "
     "to step 0. The same for all studies"},
    {"variants", "variant of an architecture of the study", write_variants,
     "architecture,base,changes,return,base_return,kappa,base_kappa,lambda_max,base_lambda_max",
     "beside the architecture that it changes; as in `summary.csv`"},
    {"improvement", "ordered pair of architectures", write_improvement,
     "architecture,other,probability~", "[below](#improvementcsv-profilecsv-correlationcsv)"},
    {"profile", "architecture and threshold", write_profile, "architecture,tau,fraction~", ""},
    {"correlation", "analysis and statistic", write_correlation,
     "analysis,statistic,scale,architectures,spearman~,p", ""},
    {NULL, NULL, NULL, NULL, NULL},
};

/* Prints the columns as a header of CSV, without an end of line. */
static void print_header(const char *columns, FILE *out)
{
    static const struct {
        char mark;
        const char *endings[5]; /* of the columns in place of the marked one */
    } marks[] = {{'*', {"", NULL}},
                 {'~', {"", "_low", "_high", NULL}},
                 {'|', {"", "_lower", "_upper", NULL}},
                 {'%', {"_lower", "_upper", "_least", "_most", NULL}}};
    const char *comma = "";

    for (const char *at = columns; *at && strncmp(at, "...", 3) != 0; at += *at == ',') {
        size_t length = strcspn(at, ",*~|%"), m = sizeof marks / sizeof *marks;

        while (m > 0 && at[length] != marks[m - 1].mark)
            m--;
        for (const char *const *e = marks[m ? m - 1 : 0].endings; *e; e++, comma = ",")
            fprintf(out, "%s%.*s%s", comma, (int)length, at, *e);
        if (m > 0 && at[length] == '*')
            fprintf(out, ",normalization,weight_normalization,loss");
        at += length + (m > 0);
    }
}

static ks_status write_file(const struct ks_tables *c, const struct ks_table_file *file)
{
    struct ks_text text = {0};
    char *path = NULL;
    ks_status status;

    KS_TRY(ks_print_string(&path, "%s/tables/%s.csv", c->r->dir, file->name));
    status = ks_text_open(path, &text);
    if (status == KS_OK) {
        print_header(file->columns, text.stream);
        if (!strstr(file->columns, "..."))
            putc('\n', text.stream);
        status = file->write(c, text.stream);
    }
    free(path);
    return ks_text_close(&text, status);
}

ks_status ks_tables_write(const struct ks_results *results, const struct ks_summary_table *table,
                          size_t resamples)
{
    struct ks_tables tables = {results, table, resamples};

    KS_TRY(ks_folder_make_in(results->dir, "tables"));
    for (const struct ks_table_file *file = ks_table_files; file->name; file++)
        KS_TRY(write_file(&tables, file));
    return KS_OK;
}
