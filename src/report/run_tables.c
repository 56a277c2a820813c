/* Tables of what runs measured in training: norms.csv (Figure 8 of the XQC paper), efficiency.csv,
 * kappa_return.csv (Figure 4) and preconditioned_return.csv; of their last returns: improvement.csv
 * and profile.csv. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "core/line.h"
#include "core/memory.h"
#include "env/env.h"
#include "io/csv.h"
#include "net/arch.h"
#include "report/tables.h"
#include "results/scores.h"
#include "train/architecture.h"

/* --- progress.csv of a run --- */

struct run_log {
    struct ks_pool pool; /* the arrays. Owned */
    size_t steps, columns;
    double *step;  /* [steps] environment steps, ascending                                */
    double *value; /* [columns, steps]; NaN: not measured, or the file has no such column */
};

/* The index of a step among those read so far; `steps` if it is new. */
static size_t find_step(const struct run_log *p, double step)
{
    size_t i = 0;

    while (i < p->steps && p->step[i] != step)
        i++;
    return i;
}

/* Rows are written in the order of their steps. */
static ks_status take_columns(const struct ks_csv *csv, size_t last, const char *const *name,
                              struct run_log *p)
{
    const size_t columns = p->columns;

    KS_TRY(ks_pool_alloc(&p->pool, csv->rows, sizeof *p->step, &p->step));
    for (size_t i = 0; i < csv->rows; i++) {
        double step = ks_csv_value(csv, i, "env_step");

        if (step <= (double)last && find_step(p, step) == p->steps)
            p->step[p->steps++] = step;
    }
    KS_TRY(ks_pool_alloc(&p->pool, columns * p->steps, sizeof *p->value, &p->value));
    for (size_t i = 0; i < columns * p->steps; i++)
        p->value[i] = NAN;
    for (size_t i = 0; i < csv->rows; i++) {
        size_t at = find_step(p, ks_csv_value(csv, i, "env_step"));

        for (size_t k = 0; k < columns && at < p->steps; k++)
            if (!isfinite(p->value[k * p->steps + at]))
                p->value[k * p->steps + at] = ks_csv_value(csv, i, name[k]);
    }
    return KS_OK;
}

static bool has_column(const struct ks_csv *csv, size_t columns, const char *const *name)
{
    for (size_t i = 0; i < csv->columns; i++)
        if (ks_word_index(csv->name[i], columns, name) < columns)
            return true;
    return false;
}

/* Reads columns name [columns] up to the study's last step. If a step has several rows (a
 * checkpoint and an evaluation), the first finite number counts. A file that is missing or is not a
 * table gives no steps. The caller clears p, also after a failure. */
static ks_status log_read(const struct ks_results *r, const struct ks_result *run, size_t columns,
                          const char *const *name, struct run_log *p)
{
    KS_OWNED_BY(ks_csv_free) struct ks_csv *csv = NULL;

    *p = (struct run_log){.columns = columns};
    KS_TRY(ks_results_progress(r, run, &csv));
    return csv && (!r->study->architecture[run->architecture].elsewhere ||
                   has_column(csv, columns, name))
               ? take_columns(csv, r->study->end, name, p)
               : KS_OK;
}

/* --- norms.csv --- */

enum { PARAM_NORM, GRAD_NORM, EFFECTIVE_LR, DEFINITION_1_LR, NORMS };
static const char *const norm_columns[NORMS] = {"critic_param_norm", "critic_grad_norm",
                                                "critic_effective_lr", "critic_definition_1_lr"};

/* Fills the series of all norms with one run; the first run decides about the steps. */
static ks_status add_run(const struct ks_tables *t, const struct ks_result *run, size_t at,
                         size_t runs, struct ks_series series[NORMS])
{
    KS_OWNS_POOL struct run_log progress = {0};

    KS_TRY(log_read(t->r, run, NORMS, norm_columns, &progress));
    for (size_t k = 0; k < NORMS; k++) {
        if (at == 0) {
            KS_TRY(ks_series_new(runs, progress.steps, &series[k]));
            if (progress.steps > 0)
                memcpy(series[k].step, progress.step, progress.steps * sizeof *progress.step);
        }
        for (size_t j = 0; j < series[k].steps; j++) {
            const size_t i = find_step(&progress, series[k].step[j]);

            series[k].value[at * series[k].steps + j] = i < progress.steps
                                                            ? progress.value[k * progress.steps + i]
                                                            : NAN;
        }
    }
    return KS_OK;
}

static void norms_clear(struct ks_series (*series)[NORMS])
{
    for (size_t k = 0; k < NORMS; k++)
        ks_pool_free(&(*series)[k].pool);
}

ks_status ks_norms_fill(const struct ks_tables *t, size_t row, struct ks_table *out)
{
    const struct ks_runs runs = ks_tables_runs(t, row);
    KS_CLEARED_BY(norms_clear) struct ks_series series[NORMS] = {{.runs = 0}};

    for (size_t i = 0; i < runs.n; i++)
        KS_TRY(add_run(t, runs.run[i], i, runs.n, series));
    for (size_t k = 0; k < NORMS; k++)
        KS_TRY(ks_series_aggregate(&series[k], t->comparison->resamples));
    for (size_t j = 0; j < series[0].steps; j++) {
        ks_table_cells(out, KS_LOOK(ks_tables_architecture(t, row)), KS_COUNT(series[0].step[j]));
        for (size_t k = 0; k < NORMS; k++)
            ks_table_cells(out, KS_ESTIMATE(series[k].curve[j]));
    }
    return KS_OK;
}

/* --- efficiency.csv --- */

/* What an update costs, and the last return.
 *
 * The arithmetic is that of the matrix products in one forward and one backward pass of all
 * critics, and of the actor, over a minibatch: for a kernel with k numbers and R rows, 2 k R
 * operations each for the output, for the gradient of the kernel and, except in the first layer,
 * for the gradient of its input. R is `batch`, or for critics with batch normalization 2 `batch`,
 * as these see this and the next transition in one batch. */

/* Of one network, the arithmetic for one row; or of all critics, for a minibatch. NaN: unknown. */
struct cost {
    double parameters, flops;
    bool joint;
};
struct costs {
    struct cost critics, actor;
};

static struct cost cost_of(const struct KS(arch) *arch)
{
    double sum = 0;
    bool first = true;

    for (size_t i = 0; i < arch->n_layers; i++)
        for (size_t k = 0; k < KS_LAYER_ARRAYS; k++) {
            const struct ks_array *a = &arch->layer[i].param[k];

            if (a->rows == 0)
                continue;
            sum += (first ? 4 : 6) * (double)KS(array_size)(a);
            first = false;
        }
    return (struct cost){(double)arch->parameters, sum, arch->joint};
}

/* The cost of the network that run.json describes under this name. */
static ks_status read_network(const json_t *json, const char *name, const char *path, size_t width,
                              struct cost *cost)
{
    const char *text = json_string_value(json_object_get(json, name));
    struct KS(arch) *arch;

    if (!text)
        return KS_OK;
    KS_TRY(KS(arch_parse)(text, path, width, &arch));
    *cost = cost_of(arch);
    KS(arch_free)(arch);
    return KS_OK;
}

/* The costs of a run's networks, by the descriptions in its run.json and the task's widths. */
static ks_status read_costs(const struct ks_results *r, const struct ks_result *run,
                            struct costs *costs)
{
    const struct ks_study_architecture *of = &r->study->architecture[run->architecture];
    const double critics = (double)of->settings.critics, batch = (double)of->settings.batch;
    struct ks_env_about about;
    struct ks_widths widths;
    char *text[KS_TEXTS];
    KS_OWNED char *path = NULL;
    json_auto_t *json = NULL;
    ks_status status;

    *costs = (struct costs){{NAN, NAN, false}, {NAN, NAN, false}};
    if (of->elsewhere || !ks_env_about_task(r->study->env, &about))
        return KS_OK;
    status = ks_architecture(of->argument, &of->settings, about.actions, text);
    if (status == KS_IO)
        return KS_OK; /* a system's file is not where the study had it: the cost is unknown */
    KS_TRY(status);
    status = ks_architecture_widths(text, about.observations, about.actions, &widths);
    ks_texts_free(text);
    KS_TRY(status);
    KS_TRY(ks_results_path(r, run, "run.json", &path));
    json = json_load_file(path, 0, NULL);
    KS_TRY(read_network(json, "critic", path, widths.critic, &costs->critics));
    KS_TRY(read_network(json, "actor", path, widths.actor, &costs->actor));
    costs->critics.parameters *= critics;
    costs->critics.flops *= critics * batch * (costs->critics.joint ? 2 : 1);
    costs->actor.flops *= batch;
    return KS_OK;
}

/* The updates over the time in updates, up to the last step of the study. A row's time is the
 * number of its updates over its rate. */
static ks_status read_speed(const struct ks_results *r, const struct ks_result *run, double *speed)
{
    static const char *const columns[] = {"update", "updates_per_second"};
    KS_OWNS_POOL struct run_log progress = {0};
    double updates = 0, seconds = 0, before = 0;

    KS_TRY(log_read(r, run, 2, columns, &progress));
    for (size_t j = 0; j < progress.steps; j++) {
        double update = progress.value[j], rate = progress.value[progress.steps + j];

        if (update > before && rate > 0) {
            updates += update - before;
            seconds += (update - before) / rate;
        }
        before = update;
    }
    *speed = seconds > 0 ? updates / seconds : NAN;
    return KS_OK;
}

ks_status ks_efficiency_fill(const struct ks_tables *t, size_t row, struct ks_table *out)
{
    const struct ks_runs runs = ks_tables_runs(t, row);
    KS_OWNS_POOL struct ks_series speed = {0};
    struct costs costs;

    KS_TRY(read_costs(t->r, runs.run[0], &costs));
    KS_TRY(ks_series_new(runs.n, 1, &speed));
    for (size_t i = 0; i < runs.n; i++)
        KS_TRY(read_speed(t->r, runs.run[i], &speed.value[i]));
    KS_TRY(ks_series_aggregate(&speed, t->comparison->resamples));
    ks_table_cells(out, KS_LOOK(ks_tables_architecture(t, row)),
                   KS_NUMBER(costs.critics.parameters), KS_NUMBER(costs.critics.flops),
                   KS_NUMBER(costs.actor.parameters), KS_NUMBER(costs.actor.flops),
                   KS_ESTIMATE(speed.curve[0]), KS_ESTIMATE(t->table->row[row].value[KS_RETURN]));
    return KS_OK;
}

/* --- kappa_return.csv, preconditioned_return.csv: conditioning against the return, a row per
 * architecture --- */

static const struct ks_row *row_of(const struct ks_tables *t, size_t row, size_t analysis)
{
    return &t->table->row[analysis * t->table->n_rows + row];
}

/* Adds over how many start vectors kappa is known, with its smallest and its largest value. */
static void add_starts(const struct ks_tables *t, size_t row, size_t analysis, struct ks_table *out)
{
    const struct ks_study_analyses starts = ks_study_starts(t->r->study, analysis);
    double least = INFINITY, most = 0;
    size_t n = 0;

    for (size_t k = 0; k < starts.n; k++) {
        const double kappa = row_of(t, row, starts.index[k])->value[KS_KAPPA].value;

        if (isnan(kappa))
            continue;
        least = fmin(least, kappa);
        most = fmax(most, kappa);
        n++;
    }
    ks_table_cells(out, KS_COUNT(n), KS_NUMBER(n > 1 ? least : NAN), KS_NUMBER(n > 1 ? most : NAN));
}

static void add_rows(const struct ks_tables *t, size_t analysis, struct ks_table *out)
{
    const struct ks_study *s = t->r->study;
    const bool has_first = s->n_evaluations > 0 && s->evaluation[0] == 0;

    for (size_t i = 0; i < t->table->n_rows; i++) {
        const struct ks_row *row = row_of(t, i, analysis);

        if (!row->asked)
            continue;
        ks_table_cells(
            out, KS_LOOK(ks_tables_architecture(t, i)), KS_TEXT(s->analysis[analysis].name),
            KS_ESTIMATE(row->value[KS_KAPPA]), KS_ESTIMATE(row->value[KS_LAMBDA_MAX]),
            KS_ESTIMATE(row->value[KS_KURTOSIS]), KS_ESTIMATE(row->value[KS_RETURN]),
            KS_NUMBER(has_first ? ks_comparison_return(t->r, row->architecture, 0) : NAN),
            KS_NUMBER(row->noise.limit), KS_NUMBER(row->noise.beyond), KS_NUMBER(row->noise.moved));
        add_starts(t, i, analysis, out);
    }
}

ks_status ks_kappa_return_fill(const struct ks_tables *t, struct ks_table *out)
{
    add_rows(t, ks_tables_paper(t), out);
    return KS_OK;
}

/* Of the preconditioned Hessian of all critics and layers. */
static bool is_preconditioned(const struct ks_tables *t, size_t analysis)
{
    for (size_t i = 0; i < t->table->n_rows; i++) {
        const struct ks_spectrum *s = ks_tables_any_spectrum(t, i, analysis);
        const char *operator= s ? ks_results_operator(s) : NULL;

        if (operator)
            return strcmp(operator, "preconditioned") == 0;
    }
    return false;
}

ks_status ks_preconditioned_return_fill(const struct ks_tables *t, struct ks_table *out)
{
    for (size_t k = 0; k < t->r->study->n_analyses; k++)
        if (is_preconditioned(t, k)) {
            add_rows(t, k, out);
            break;
        }
    return KS_OK;
}

/* --- architectures against each other --- */

/* The probability that a run of the first has a higher last return than a run of the second.
 * P(y > x) = 1 - P(x > y), with the interval mirrored. */
ks_status ks_improvement_fill(const struct ks_tables *t, size_t i, struct ks_table *out)
{
    for (size_t j = 0; j < t->table->n_rows; j++) {
        const struct ks_sample x = ks_comparison_sample(t->comparison, i < j ? i : j),
                               y = ks_comparison_sample(t->comparison, i < j ? j : i);
        struct ks_estimate p;

        if (i == j)
            continue;
        KS_TRY(ks_improvement(&x, &y, t->comparison->resamples, 0, &p));
        if (i > j)
            p = (struct ks_estimate){1 - p.value, {1 - p.in.upper, 1 - p.in.lower}};
        ks_table_cells(out, KS_TEXT(ks_tables_architecture(t, i)->name),
                       KS_TEXT(ks_tables_architecture(t, j)->name), KS_ESTIMATE(p));
    }
    return KS_OK;
}

enum { TAUS = 51 }; /* 0, 0.02, ..., 1 */

/* The fraction of runs whose normalized last return is above each threshold. No rows if the task
 * has no random and target return (scores.h). */
ks_status ks_profile_fill(const struct ks_tables *t, size_t i, struct ks_table *out)
{
    const struct ks_sample last = ks_comparison_sample(t->comparison, i);
    const size_t most = KS_PROFILE_RESAMPLES, resamples = t->comparison->resamples;
    double tau[TAUS], score[KS_STUDY_SEEDS];
    const struct ks_profile profile = {
        {last.runs, score}, TAUS, tau, resamples < most ? resamples : most, 0};
    struct ks_estimate fraction[TAUS];
    const struct ks_score_range *range = ks_score_range_of_returns(t->r->study->env);

    if (!range)
        return KS_OK;
    for (size_t k = 0; k < last.runs; k++)
        score[k] = ks_score_normalize(range, last.value[k]);
    for (size_t k = 0; k < TAUS; k++)
        tau[k] = (double)k / (TAUS - 1);
    KS_TRY(ks_profile(&profile, fraction));
    for (size_t k = 0; k < TAUS; k++)
        ks_table_cells(out, KS_TEXT(ks_tables_architecture(t, i)->name), KS_NUMBER(tau[k]),
                       KS_ESTIMATE(fraction[k]));
    return KS_OK;
}
