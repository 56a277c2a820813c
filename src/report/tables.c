/* The CSV files of a study, for other programs and for the plots: gnuplot draws them and computes
 * nothing. */
#include "report/tables.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "claims/claims.h"
#include "claims/prediction.h"
#include "core/line.h"
#include "core/memory.h"
#include "io/file.h"
#include "report/plots.h"
#include "results/correlation.h"

/* --- quadratics.csv --- */

/* Why a condition number matters (after Figure 2 of the XQC paper). Gradient descent on
 * f(x) = (x_1^2 + kappa x_2^2) / 2 from x = (1, 1/kappa), where both coordinates have the same
 * gradient, with the step length 2 / (1 + kappa), which is the best constant one (Nesterov,
 * Introductory lectures on convex optimization, 2004, theorem 2.1.15): every step then multiplies
 * |x| by (kappa - 1) / (kappa + 1). */
enum { STEPS = 100 };
static const double kappas[] = {1, 3, 10, 30, 100, 1000};

static ks_status fill_quadratics(const struct ks_tables *t, struct ks_table *out)
{
    (void)t;
    for (size_t i = 0; i < sizeof kappas / sizeof *kappas; i++) {
        const double kappa = kappas[i], rate = 2 / (1 + kappa), start = hypot(1, 1 / kappa);
        double x[2] = {1, 1 / kappa};

        for (int step = 0; step <= STEPS; step++) {
            ks_table_cells(out, KS_NUMBER(kappa), KS_COUNT(step), KS_NUMBER(x[0]), KS_NUMBER(x[1]),
                           KS_NUMBER((x[0] * x[0] + kappa * x[1] * x[1]) / 2),
                           KS_NUMBER(hypot(x[0], x[1]) / start));
            x[0] -= rate * x[0];
            x[1] -= rate * kappa * x[1];
        }
    }
    return KS_OK;
}

/* --- variants.csv --- */

/* The row of an architecture in the standard analysis, NULL if it is left out. */
static const struct ks_row *find_row(const struct ks_tables *t, size_t architecture)
{
    for (size_t i = 0; i < t->table->n_rows; i++)
        if (t->table->row[i].architecture == architecture)
            return &t->table->row[i];
    return NULL;
}

/* The settings that a variant changes: "layers = 2; width = 8". The caller frees *text. */
static ks_status list_changes(const struct ks_study_architecture *a, char **text)
{
    size_t size;
    FILE *out = open_memstream(text, &size);

    for (size_t i = 0; i < a->n_own && out; i++)
        fprintf(out, "%s%s = %s", i ? "; " : "", a->own[i].key, a->own[i].value);
    return ks_stream_close(out);
}

static ks_status fill_variants(const struct ks_tables *t, size_t i, struct ks_table *out)
{
    static const int columns[] = {KS_RETURN, KS_KAPPA, KS_LAMBDA_MAX};
    const struct ks_row *row = &t->table->row[i],
                        *base = find_row(t, ks_study_base(t->r->study, row->architecture));
    const struct ks_study_architecture *a = ks_tables_architecture(t, i);
    KS_OWNED char *changes = NULL;

    if (!base)
        return KS_OK;
    KS_TRY(list_changes(a, &changes));
    ks_table_cells(out, KS_TEXT(a->name),
                   KS_TEXT(t->r->study->architecture[base->architecture].name), KS_TEXT(changes));
    for (size_t k = 0; k < sizeof columns / sizeof *columns; k++)
        ks_table_cells(out, KS_NUMBER(row->value[columns[k]].value),
                       KS_NUMBER(base->value[columns[k]].value));
    return KS_OK;
}

/* --- checkpoints.csv: a row per spectrum; returns.csv: a row per return --- */

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
                if (ks_word_index(s->statistics.list[k].name, *n, (const char *const *)*names) < *n)
                    continue;
                KS_TRY(ks_grow(*n, sizeof **names, &room, names));
                (*names)[(*n)++] = s->statistics.list[k].name;
            }
        }
    return KS_OK;
}

#define RUN(r, of, step)                                                                           \
    KS_TEXT((r)->study->env), KS_TEXT((r)->study->architecture[(of)->architecture].name),          \
        KS_COUNT((r)->study->seed[(of)->seed]), KS_COUNT(step)

/* The return at a checkpoint: as the checkpoint says, or of a run from elsewhere its table. */
static double return_at(const struct ks_results *r, const struct ks_result *run, size_t checkpoint,
                        const struct ks_spectrum *s)
{
    const struct ks_study *study = r->study;

    if (!study->architecture[run->architecture].elsewhere)
        return ks_attribute_number(&s->attributes, "return_mean");
    for (size_t k = 0; k < study->n_evaluations; k++)
        if (study->evaluation[k] == study->checkpoint[checkpoint])
            return run->returns[k];
    return NAN;
}

/* The rest of a row of checkpoints.csv: the loss, the BLAS (empty if they are unknown), and the
 * statistics of these names. */
static void add_spectrum(const struct ks_spectrum *s, size_t n, char *const *names,
                         struct ks_table *out)
{
    static const char *const origin[] = {"loss_kind", "blas_version", "blas_kernel", "products"};

    for (size_t k = 0; k < sizeof origin / sizeof *origin; k++) {
        const char *text = ks_attribute_text(&s->attributes, origin[k]);

        ks_table_cells(out, KS_TEXT(text ? text : ""));
    }
    for (size_t k = 0; k < n; k++)
        ks_table_cells(out, KS_NUMBER(ks_statistic(s, names[k])));
}

static ks_status fill_checkpoints(const struct ks_tables *t, struct ks_table *out)
{
    const struct ks_results *r = t->r;
    KS_OWNED char **names = NULL;
    size_t n = 0;

    KS_TRY(find_statistics(r, &n, &names));
    for (size_t k = 0; k < n; k++)
        ks_table_column(out, names[k]);
    for (size_t run = 0; run < r->n_runs; run++)
        for (size_t i = 0; i < r->study->n_checkpoints; i++)
            for (size_t a = 0; a < r->study->n_analyses; a++) {
                const struct ks_spectrum *s = ks_results_spectrum(r, &r->run[run], a, i);

                if (!s)
                    continue;
                ks_table_cells(out, RUN(r, &r->run[run], r->study->checkpoint[i]),
                               KS_TEXT(r->study->analysis[a].name),
                               KS_NUMBER(ks_attribute_number(&s->attributes, "update")),
                               KS_NUMBER(return_at(r, &r->run[run], i, s)));
                add_spectrum(s, n, names, out);
            }
    return KS_OK;
}

static ks_status fill_returns(const struct ks_tables *t, struct ks_table *out)
{
    const struct ks_results *r = t->r;

    for (size_t i = 0; i < r->n_runs; i++)
        for (size_t k = 0; k < r->study->n_evaluations; k++)
            if (!isnan(r->run[i].returns[k]))
                ks_table_cells(out, RUN(r, &r->run[i], r->study->evaluation[k]),
                               KS_NUMBER(r->run[i].returns[k]));
    return KS_OK;
}

/* --- summary.csv: a row per architecture and analysis --- */

static ks_status fill_summary(const struct ks_tables *t, struct ks_table *out)
{
    for (size_t i = 0; i < t->table->n_analyses * t->table->n_rows; i++) {
        const struct ks_row *row = &t->table->row[i];

        if (!row->asked)
            continue;
        ks_table_cells(out, KS_LOOK(ks_tables_architecture(t, i)),
                       KS_TEXT(t->r->study->analysis[row->analysis].name), KS_COUNT(row->runs),
                       KS_COUNT(row->dropped));
        for (size_t k = 0; k < KS_COLUMNS; k++)
            ks_table_cells(out, KS_ESTIMATE(row->value[k]));
        ks_range_add_ends(row->range, out);
    }
    return KS_OK;
}

/* --- correlation.csv --- */

static ks_status fill_correlation(const struct ks_tables *t, struct ks_table *out)
{
    for (size_t i = 0; i < t->table->correlations.n; i++) {
        const struct ks_correlation *row = &t->table->correlations.row[i];

        ks_table_cells(out, KS_TEXT(t->r->study->analysis[row->analysis].name),
                       KS_TEXT(ks_statistic_column_name(row->statistic)),
                       KS_TEXT(ks_statistic_is_ratio(row->statistic.id) ? "log" : "linear"),
                       KS_COUNT(row->n), KS_ESTIMATE(row->spearman), KS_NUMBER(row->p));
    }
    return KS_OK;
}

/* --- what the paper says --- */

/* A row per claim and statistic. */
static ks_status fill_claims(const struct ks_tables *t, struct ks_table *out)
{
    const struct ks_claims *claims = &t->table->claims;

    for (size_t i = 0; i < claims->n; i++) {
        const struct ks_claim_row *row = &claims->row[i];
        const struct ks_finding *f = &row->found;
        const bool starts = row->starts.n > 0;
        char plot[KS_CLAIM_REASON], reason[KS_CLAIM_REASON], words[KS_CLAIM_STARTS_TEXT];

        ks_claims_plot(row->claim, plot);
        ks_claims_reason(claims, row, reason);
        ks_claims_starts(row, words);
        ks_table_cells(
            out, KS_TEXT(row->claim->name), KS_TEXT(ks_claim_statistic_names[row->statistic]),
            KS_COUNT(f->seeds), KS_COUNT(f->units), KS_NUMBER(f->effect_low),
            KS_NUMBER(f->effect_high), KS_NUMBER(f->theta), KS_NUMBER(f->p), KS_NUMBER(row->p_holm),
            KS_TEXT(ks_verdict_names[row->verdict]), KS_TEXT(plot), KS_NUMBER(f->within),
            KS_TEXT(ks_claims_survival(claims, row->claim)),
            KS_TEXT(row->statistic == KS_CLAIM_REVISED ? ks_claim_revised_date
                                                       : ks_claim_family_dates[row->claim->family]),
            KS_TEXT(*reason ? reason : "-"), KS_COUNT(row->starts.n), KS_TEXT(starts ? words : "-"),
            KS_NUMBER(starts ? row->starts.effect_least : NAN),
            KS_NUMBER(starts ? row->starts.effect_most : NAN));
    }
    return KS_OK;
}

static ks_status fill_theorems(const struct ks_tables *t, struct ks_table *out)
{
    const struct ks_study *study = t->r->study;

    for (size_t i = 0; i < t->table->theorems.n; i++) {
        const struct ks_theorem_row *row = &t->table->theorems.row[i];

        ks_table_cells(out, KS_TEXT(study->architecture[row->architecture].name),
                       KS_COUNT(study->seed[row->seed]),
                       KS_COUNT(study->checkpoint[row->checkpoint]));
        for (size_t k = 0; k < KS_THEOREM_NUMBERS; k++)
            ks_table_cells(out, KS_NUMBER(row->value[k]));
    }
    return KS_OK;
}

/* "factors", then each statistic. */
static ks_status fill_prediction(const struct ks_tables *t, struct ks_table *out)
{
    const struct ks_prediction *found = &t->table->prediction;

    if (found->n > 0)
        ks_table_cells(out, KS_TEXT("factors"), KS_TEXT("-"), KS_NUMBER(found->factors.r2),
                       KS_NUMBER(found->factors.q2), KS_NUMBER(NAN), KS_NUMBER(NAN),
                       KS_NUMBER(NAN));
    for (size_t k = 0; k < found->n; k++) {
        const struct ks_prediction_row *row = &found->row[k];

        ks_table_cells(out, KS_TEXT(ks_statistic_column_name(row->statistic)),
                       KS_TEXT(row->analysis), KS_NUMBER(row->with.r2), KS_NUMBER(row->with.q2),
                       KS_NUMBER(row->partial), KS_NUMBER(row->p), KS_NUMBER(row->p_family));
    }
    return KS_OK;
}

static ks_status fill_conditions(const struct ks_tables *t, size_t row, struct ks_table *out)
{
    const size_t architecture = t->table->row[row].architecture;
    const struct ks_comparability *of = &t->r->conditions[architecture];
    KS_OWNED char *differs = NULL;

    KS_TRY(ks_conditions_print(t->r, architecture, t->r->study->n_architectures, &differs));
    ks_table_cells(out, KS_TEXT(t->r->study->architecture[architecture].name),
                   KS_TEXT(ks_tables_architecture(t, row)->elsewhere ? "elsewhere" : "here"),
                   of->group > 0 ? KS_COUNT(of->group) : KS_NUMBER(NAN),
                   KS_TEXT(*differs ? differs : "-"));
    for (enum ks_condition c = 0; c < KS_CONDITION_PARAMETERS; c++) {
        KS_OWNED char *text = NULL;

        KS_TRY(ks_condition_print(of, c, &text));
        ks_table_cells(out, KS_TEXT(text));
    }
    return KS_OK;
}

/* --- all tables --- */

#define LOOK "architecture*"
#define KAPPA_RETURN                                                                               \
    LOOK ",analysis,kappa~,lambda_max~,kurtosis~,return~,first_return,noise_limit,beyond_noise,"   \
         "moved_by_rounding,kappa_starts,kappa_starts_least,kappa_starts_most"
const struct ks_table_file ks_table_files[] = {
    {"checkpoints", "checkpoint and analysis",
     "env,architecture,seed,env_step,analysis,update,return_mean,loss,blas_version,blas_kernel,"
     "products,...",
     "then all statistics. `loss`: `loss_kind` of the spectrum, empty if an older version made it",
     .all = fill_checkpoints},
    {"returns", "evaluation", "env,architecture,seed,env_step,return_mean", "",
     .all = fill_returns},
    {"summary", "architecture and analysis",
     LOOK ",analysis,runs,dropped,kappa~,kappa_lower_bound~,kappa_effective_bound~,lambda_max~,"
          "kurtosis~,kappa_geometric~,return~,area~,directions_1e2%,kappa_q99%,kappa_gradient_90%,"
          "noise_scale%",
     "[below](#summarycsv)", .all = fill_summary},
    {"kappa_return", "architecture", KAPPA_RETURN,
     "[below](#kappa_returncsv-preconditioned_returncsv)", .all = ks_kappa_return_fill},
    {"preconditioned_return", "architecture", KAPPA_RETURN,
     "[the same](#kappa_returncsv-preconditioned_returncsv) of the preconditioned Hessian",
     .all = ks_preconditioned_return_fill},
    {"kappa", "analysis, architecture and checkpoint",
     LOOK ",analysis,env_step,kappa~,noise_limit,beyond_noise,moved_by_rounding",
     "means; the last three as in `kappa_return.csv`, over the seeds", .all = ks_kappa_fill},
    {"return_curves", "architecture and evaluation", LOOK ",env_step,return~", "means",
     .of_row = ks_return_curve_fill},
    {"ritz", "Ritz value", "architecture,analysis,env_step,ritz", "", .all = ks_ritz_fill},
    {"density", "cell of a histogram", "architecture,lower,upper,density_per_decade~",
     "[below](#densitycsv)", .of_spectrum = ks_density_fill},
    {"mass", "architecture", "architecture,zero_mass|,negative_mass|,noise_floor", "",
     .of_spectrum = ks_mass_fill},
    {"staircase", "Ritz value", "architecture,eigenvalue,cumulative", "the weight up to this value",
     .of_spectrum = ks_staircase_fill},
    {"distribution", "point of the band", KS_DISTRIBUTION_COLUMNS,
     "the band in spectra; the same as numbers of eigenvalues, up to x for a negative x, above x "
     "for a positive x",
     .of_spectrum = ks_distribution_fill},
    {"orders", "architecture and number of Lanczos steps",
     "architecture,order,kappa,kappa_lower_bound,kappa_effective_bound,noise_limit",
     "from the leading block of the Jacobi matrices; `kappa_effective_bound` is certified at the "
     "full order only; `noise_limit` (largest absolute eigenvalue over noise floor) is of the full "
     "order",
     .of_spectrum = ks_orders_fill},
    {"operators", "Ritz value", "architecture,operator,ritz,weight",
     "of the Hessian and of the first analyses of `ggn` and `residual` without `compat = xqc`, if "
     "an architecture has one of them",
     .of_row = ks_operators_fill},
    {"layers", "architecture and analysis of one layer over all critics",
     LOOK ",analysis,layer,env_step,lambda_max~,kappa~,trace~", "means at the last checkpoint",
     .of_row = ks_layers_fill},
    {"intervals", "architecture and checkpoint",
     LOOK ",env_step,directions_1e2%,kappa_q99%,kappa_gradient_90%,noise_scale%",
     "as in `summary.csv`", .of_row = ks_intervals_fill},
    {"sharpness", "analysis, architecture and checkpoint",
     LOOK ",analysis,operator,env_step,sharpness_ratio~,lambda_max~",
     "means, where the ratio is defined; not for analyses of one critic or layer",
     .all = ks_sharpness_fill},
    {"norms", "architecture and row of `progress.csv`",
     LOOK ",env_step,param_norm~,grad_norm~,effective_lr~,definition_1_lr~",
     "means of the critics' metrics", .of_row = ks_norms_fill},
    {"efficiency", "architecture",
     LOOK ",parameters,flops,actor_parameters,actor_flops,updates_per_second~,return~",
     "[below](#efficiencycsv)", .of_row = ks_efficiency_fill},
    {"quadratics", "condition number and step", "kappa,step,x1,x2,value,distance",
     "gradient descent on (x1^2 + kappa x2^2)/2 with the best constant step; `distance` relative "
     "to step 0. The same for all studies",
     .all = fill_quadratics},
    {"conditions", "architecture",
     "architecture,trained,group,differs,minibatches,rows,order,operator,discount,reward_scale,"
     "loss,minibatch_kind",
     "[below](#conditionscsv)", .of_row = fill_conditions},
    {"variants", "variant of an architecture of the study",
     "architecture,base,changes,return,base_return,kappa,base_kappa,lambda_max,base_lambda_max",
     "beside the architecture that it changes; as in `summary.csv`", .of_row = fill_variants},
    {"improvement", "ordered pair of architectures", "architecture,other,probability~",
     "[below](#improvementcsv-profilecsv-correlationcsv)", .of_row = ks_improvement_fill},
    {"profile", "architecture and threshold", "architecture,tau,fraction~", "",
     .of_row = ks_profile_fill},
    {"correlation", "analysis and statistic", "analysis,statistic,scale,architectures,spearman~,p",
     "", .all = fill_correlation},
    {"prediction", "statistic", "statistic,analysis,r2,q2,partial,p,p_family",
     "[below](#predictioncsv)", .all = fill_prediction},
    {"claims", "claim and statistic",
     "claim,statistic,seeds,units,effect_low,effect_high,theta,p,p_holm,verdict,plot,"
     "within,survives,rules,reason,starts,by_start,effect_least,effect_most",
     "[below](#claimscsv)", .all = fill_claims},
    {"theorems", "checkpoint of the standard analysis",
     "architecture,seed,env_step,proposition_1_largest,proposition_1_median,"
     "proposition_2_largest,proposition_2_median,lemma_1,lemma_1_median,jacobian_rows,"
     "theorem_1,hidden_norm,hidden_radial,effective_update,effective_update_bound,"
     "weight_decay,weight_decay_needed",
     "[below](#theoremscsv)", .all = fill_theorems},
    {NULL, NULL, NULL, NULL, NULL, NULL, NULL},
};

static ks_status fill(const struct ks_tables *t, const struct ks_table_file *file,
                      struct ks_table *out)
{
    ks_table_columns(out, file->columns);
    if (file->all)
        return file->all(t, out);
    for (size_t i = 0; i < t->table->n_rows; i++) {
        const struct ks_spectrum *s = file->of_spectrum ? ks_tables_spectrum(t, i, 0) : NULL;

        if (s)
            KS_TRY(file->of_spectrum(ks_tables_architecture(t, i)->name, s, out));
        if (file->of_row)
            KS_TRY(file->of_row(t, i, out));
    }
    return KS_OK;
}

/* Whether its table has the data of a plot. */
static bool has_data(const struct ks_plot *plot, const struct ks_table *table)
{
    for (const char *const *column = plot->columns; *column; column++)
        if (ks_table_has_number(table, *column))
            return true;
    return false;
}

/* Fills and writes a table, and notes which plots have data in it. */
static ks_status write_file(const struct ks_tables *t, const struct ks_table_file *file,
                            bool drawn[KS_PLOTS])
{
    KS_CLEARED_BY(ks_table_free) struct ks_table table = {0};

    KS_TRY(fill(t, file, &table));
    KS_TRY(ks_table_write(&table, t->r->dir, file->name));
    for (size_t i = 0; i < KS_PLOTS; i++)
        if (strcmp(ks_plots[i].table, file->name) == 0)
            drawn[i] = has_data(&ks_plots[i], &table);
    return KS_OK;
}

ks_status ks_tables_write(const struct ks_results *results, struct ks_summary_table *table,
                          size_t resamples)
{
    KS_OWNS_POOL struct ks_comparison comparison = {.n = 0};
    const struct ks_tables tables = {results, table, &comparison};

    KS_TRY(ks_folder_make("%s/tables", results->dir));
    KS_TRY(ks_comparison_new(results, resamples, &comparison));
    KS_TRY(ks_correlations_find(&comparison, &table->correlations));
    KS_TRY(ks_prediction_find(results, &table->prediction));
    KS_TRY(ks_theorems_find(results, &table->theorems));
    for (const struct ks_table_file *file = ks_table_files; file->name; file++)
        KS_TRY(write_file(&tables, file, table->drawn));
    return KS_OK;
}

void ks_summary_clear(struct ks_summary_table *table)
{
    free(table->correlations.row);
    free(table->theorems.row);
    free(table->row);
    *table = (struct ks_summary_table){.n_rows = 0};
}
