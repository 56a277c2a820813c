/* Conditioning against the return, a row per architecture (Figure 4 of the XQC paper):
 * kappa_return.csv, preconditioned_return.csv. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/plot_tables.h"

static const struct ks_row *row_of(const struct ks_tables *t, size_t row, size_t analysis)
{
    return &t->table->row[analysis * t->table->n_rows + row];
}

static struct ks_study_analysis without_seed(const struct ks_study_analysis *analysis)
{
    struct ks_study_analysis rest = *analysis;

    rest.n = 0;
    for (size_t i = 0; i < analysis->n; i++)
        if (strcmp(analysis->setting[i].key, "seed") != 0)
            rest.setting[rest.n++] = analysis->setting[i];
    return rest;
}

/* Whether two analyses of the same checkpoints have the same settings except for the seed of their
 * start vectors. */
static bool repeats(const struct ks_study *study, size_t one, size_t other)
{
    struct ks_study_analysis a = without_seed(&study->analysis[one]);
    struct ks_study_analysis b = without_seed(&study->analysis[other]);

    return a.scope.checkpoints == b.scope.checkpoints && ks_study_same_analysis(&a, &b);
}

/* Prints over how many start vectors kappa is known, with its smallest and its largest value. */
static void print_starts(const struct ks_tables *t, size_t row, size_t analysis, FILE *out)
{
    double least = INFINITY, most = 0;
    size_t n = 0;

    for (size_t k = 0; k < t->r->study->n_analyses; k++) {
        double kappa = row_of(t, row, k)->value[KS_KAPPA].value;

        if (isnan(kappa) || !repeats(t->r->study, analysis, k))
            continue;
        least = fmin(least, kappa);
        most = fmax(most, kappa);
        n++;
    }
    fprintf(out, ",%zu", n);
    ks_table_number(out, n > 1 ? least : NAN);
    ks_table_number(out, n > 1 ? most : NAN);
}

/* The IQM over the runs of the return at step 0; NaN without such an evaluation. */
static double first_return(const struct ks_tables *t, size_t row)
{
    const struct ks_result *run[KS_STUDY_SEEDS];
    size_t n = ks_results_runs(t->r, t->table->row[row].architecture, run);
    double value[KS_STUDY_SEEDS];

    if (t->r->study->n_evaluations == 0 || t->r->study->evaluation[0] > 0)
        return NAN;
    for (size_t i = 0; i < n; i++)
        value[i] = run[i]->returns[0];
    return ks_iqm_drop(n, value, NULL);
}

static void write_rows(const struct ks_tables *t, size_t analysis, FILE *out)
{
    static const size_t columns[] = {KS_KAPPA, KS_LAMBDA_MAX, KS_KURTOSIS, KS_RETURN};

    for (size_t i = 0; i < t->table->n_rows; i++) {
        const struct ks_row *row = row_of(t, i, analysis);

        if (!row->asked)
            continue;
        ks_table_look(t, i, out);
        fprintf(out, ",%s", t->r->study->analysis[analysis].name);
        for (size_t k = 0; k < sizeof columns / sizeof *columns; k++)
            ks_table_estimate(out, &row->value[columns[k]]);
        ks_table_number(out, first_return(t, i));
        ks_table_number(out, row->noise_limit);
        ks_table_number(out, row->beyond_noise);
        print_starts(t, i, analysis, out);
        putc('\n', out);
    }
}

ks_status ks_kappa_return_write(const struct ks_tables *t, FILE *out)
{
    write_rows(t, ks_table_paper(t), out);
    return KS_OK;
}

/* Of the preconditioned Hessian of all critics and layers. */
static bool is_preconditioned(const struct ks_tables *t, size_t analysis)
{
    for (size_t i = 0; i < t->table->n_rows; i++) {
        const struct ks_spectrum *s = ks_table_any_spectrum(t, i, analysis);
        const char *operator= s ? ks_results_operator(s) : NULL;

        if (operator)
            return strcmp(operator, "preconditioned") == 0;
    }
    return false;
}

ks_status ks_preconditioned_return_write(const struct ks_tables *t, FILE *out)
{
    for (size_t k = 0; k < t->r->study->n_analyses; k++)
        if (is_preconditioned(t, k)) {
            write_rows(t, k, out);
            break;
        }
    return KS_OK;
}

/* quadratics.csv: why a condition number matters (after Figure 2 of the XQC paper). Gradient
 * descent on f(x) = (x_1^2 + kappa x_2^2) / 2 from x = (1, 1/kappa), where both coordinates have
 * the same gradient, with the step length 2 / (1 + kappa), which is the best constant one
 * (Nesterov, Introductory lectures on convex optimization, 2004, theorem 2.1.15): every step then
 * multiplies |x| by (kappa - 1) / (kappa + 1). */

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

ks_status ks_quadratics_write(const struct ks_tables *t, FILE *out)
{
    (void)t;
    for (size_t i = 0; i < sizeof kappas / sizeof *kappas; i++)
        descend(kappas[i], out);
    return KS_OK;
}

/* variants.csv: what the variants of a study change, beside the architectures that they change. */

static const int columns[] = {KS_RETURN, KS_KAPPA, KS_LAMBDA_MAX};
enum { COLUMNS = sizeof columns / sizeof *columns };

/* The row of an architecture in the standard analysis, NULL if it is left out. */
static const struct ks_row *find_row(const struct ks_tables *t, size_t architecture)
{
    for (size_t i = 0; i < t->table->n_rows; i++)
        if (t->table->row[i].architecture == architecture)
            return &t->table->row[i];
    return NULL;
}

static void print_row(const struct ks_study *study, const struct ks_row *variant,
                      const struct ks_row *base, FILE *out)
{
    const struct ks_study_architecture *a = &study->architecture[variant->architecture];

    fprintf(out, "%s,%s,", a->name, study->architecture[base->architecture].name);
    for (size_t i = 0; i < a->n_own; i++)
        fprintf(out, "%s%s = %s", i ? "; " : "", a->own[i].key, a->own[i].value);
    for (size_t k = 0; k < COLUMNS; k++) {
        ks_table_number(out, variant->value[columns[k]].value);
        ks_table_number(out, base->value[columns[k]].value);
    }
    putc('\n', out);
}

ks_status ks_variants_write(const struct ks_tables *t, FILE *out)
{
    for (size_t i = 0; i < t->table->n_rows; i++) {
        const struct ks_row *variant = &t->table->row[i];
        const struct ks_row *base = find_row(t, ks_study_base(t->r->study, variant->architecture));

        if (base)
            print_row(t->r->study, variant, base, out);
    }
    return KS_OK;
}
