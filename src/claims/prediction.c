#include "claims/prediction.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "claims/claim_findings.h"
#include "core/memory.h"
#include "results/aggregate.h"
#include "results/comparison.h"
#include "results/correlation.h"

enum { FACTORS = 5, MOST = FACTORS + 1 }; /* a constant and four factors; and a statistic */
static const double SINGULAR = 1e-9;      /* a column is in the span of the others: of its norm */

/* --- least squares --- */

/* Orthonormal columns. */
struct basis {
    size_t n;
    double q[MOST][KS_TWELVE];
};

static double dot(const double *x, const double *y)
{
    double sum = 0;

    for (size_t i = 0; i < KS_TWELVE; i++)
        sum += x[i] * y[i];
    return sum;
}

/* v -= Q Q'v, twice, so that rounding leaves nothing. */
static void take_out(const struct basis *b, double *v)
{
    for (size_t pass = 0; pass < 2; pass++)
        for (size_t k = 0; k < b->n; k++) {
            const double c = dot(b->q[k], v);

            for (size_t i = 0; i < KS_TWELVE; i++)
                v[i] -= c * b->q[k][i];
        }
}

/* False, and nothing is added, if v is in the span. */
static bool add_column(struct basis *b, const double *v)
{
    double *q = b->q[b->n], norm;

    memcpy(q, v, KS_TWELVE * sizeof *q);
    take_out(b, q);
    norm = sqrt(dot(q, q));
    if (!(norm > SINGULAR * sqrt(dot(v, v))))
        return false;
    for (size_t i = 0; i < KS_TWELVE; i++)
        q[i] /= norm;
    b->n++;
    return true;
}

static struct ks_explained explain(const struct basis *b, const double *y)
{
    double e[KS_TWELVE], mean = 0, left = 0, left_out = 0, all = 0;

    memcpy(e, y, sizeof e);
    take_out(b, e);
    for (size_t i = 0; i < KS_TWELVE; i++)
        mean += y[i] / KS_TWELVE;
    for (size_t i = 0; i < KS_TWELVE; i++) {
        double leverage = 0;

        for (size_t k = 0; k < b->n; k++)
            leverage += b->q[k][i] * b->q[k][i];
        left += e[i] * e[i];
        left_out += pow(e[i] / (1 - leverage), 2);
        all += pow(y[i] - mean, 2);
    }
    return (struct ks_explained){1 - left / all,
                                 1 - left_out / (all * pow(KS_TWELVE / (KS_TWELVE - 1.), 2))};
}

/* --- the statistics --- */

/* Of the first analysis of an operator; `published`: of the paper's. */
static const struct predictor {
    const char *operator;
    bool published;
    struct ks_statistic_column statistic;
} predictors[KS_PREDICTORS] = {
    {"hessian", true, {KS_STAT_KAPPA, KS_ITSELF}},
    {"hessian", true, {KS_STAT_LAMBDA_MAX, KS_ITSELF}},
    {"hessian", true, {KS_STAT_KURTOSIS, KS_ITSELF}},
    {"hessian", false, {KS_STAT_LAMBDA_MAX, KS_ITSELF}},
    {"hessian", false, {KS_STAT_KAPPA_EFFECTIVE_BOUND, KS_ITSELF}},
    {"hessian", false, {KS_STAT_KAPPA_Q99, KS_LOWER_END}},
    {"hessian", false, {KS_STAT_KAPPA_Q99, KS_UPPER_END}},
    {"hessian", false, {KS_STAT_DIRECTIONS_1E2, KS_LOWER_END}},
    {"hessian", false, {KS_STAT_DIRECTIONS_1E2, KS_UPPER_END}},
    {"ggn", false, {KS_STAT_KAPPA_Q99, KS_LOWER_END}},
    {"ggn", false, {KS_STAT_KAPPA_Q99, KS_UPPER_END}},
    {"ggn", false, {KS_STAT_DIRECTIONS_1E2, KS_LOWER_END}},
    {"ggn", false, {KS_STAT_DIRECTIONS_1E2, KS_UPPER_END}},
    {"residual", false, {KS_STAT_KAPPA_Q99, KS_LOWER_END}},
    {"residual", false, {KS_STAT_KAPPA_Q99, KS_UPPER_END}},
    {"residual", false, {KS_STAT_DIRECTIONS_1E2, KS_LOWER_END}},
    {"residual", false, {KS_STAT_DIRECTIONS_1E2, KS_UPPER_END}},
    {"preconditioned", false, {KS_STAT_LAMBDA_MAX, KS_ITSELF}},
    {"hessian", false, {KS_STAT_NOISE_SCALE, KS_LOWER_END}},
    {"ntk", false, {KS_STAT_KAPPA_Q99, KS_LOWER_END}},
    {"ntk", false, {KS_STAT_KAPPA_Q99, KS_UPPER_END}},
    {"ntk", false, {KS_STAT_DIRECTIONS_1E2, KS_LOWER_END}},
    {"ntk", false, {KS_STAT_DIRECTIONS_1E2, KS_UPPER_END}},
    {"fisher", false, {KS_STAT_KAPPA_Q99, KS_LOWER_END}},
    {"fisher", false, {KS_STAT_KAPPA_Q99, KS_UPPER_END}},
    {"fisher", false, {KS_STAT_DIRECTIONS_1E2, KS_LOWER_END}},
    {"fisher", false, {KS_STAT_DIRECTIONS_1E2, KS_UPPER_END}},
};

/* Whether an analysis is of this operator, of all critics and layers, with our choices. */
static bool is_of(const struct ks_results *r, size_t analysis, const char *operator)
{
    for (size_t run = 0; run < r->n_runs; run++)
        for (size_t i = 0; i < r->study->n_checkpoints; i++) {
            const struct ks_spectrum *s = ks_results_spectrum(r, &r->run[run], analysis, i);
            const char *found = s ? ks_results_operator(s) : NULL;

            if (s)
                return found && strcmp(found, operator) == 0 &&
                       !ks_attribute_find(&s->attributes, "compat");
        }
    return false;
}

static struct ks_study_analyses find_analyses(const struct ks_results *r, const struct predictor *p)
{
    if (p->published)
        return ks_claim_analyses(r->study, KS_CLAIM_REVISED);
    if (strcmp(p->operator, "hessian") == 0)
        return (struct ks_study_analyses){.n = 1, .index = {0}};
    for (size_t k = 1; k < r->study->n_analyses; k++)
        if (is_of(r, k, p->operator))
            return (struct ks_study_analyses){.n = 1, .index = {k}};
    return (struct ks_study_analyses){.n = 0};
}

/* The mean over the analyses of log10 of the statistic. */
static double value_of(const struct ks_results *r, const struct ks_result *run, size_t checkpoint,
                       const struct predictor *p, const struct ks_study_analyses *analyses)
{
    double sum = 0;

    for (size_t k = 0; k < analyses->n; k++) {
        const struct ks_spectrum *s = ks_results_spectrum(r, run, analyses->index[k], checkpoint);

        sum += s ? log10(ks_statistic_column_value(s, p->statistic)) : NAN;
    }
    return sum / (double)analyses->n;
}

/* x [KS_TWELVE]; false if a value is missing or not finite. */
static ks_status find_x(const struct ks_results *r, const struct predictor *p, double *x,
                        bool *found)
{
    const struct ks_study_analyses analyses = find_analyses(r, p);
    size_t architecture[KS_JUDGED];
    KS_OWNED double *values = NULL;

    *found = analyses.n > 0;
    ks_twelve_find(r->study, architecture);
    KS_TRY(ks_alloc(r->study->n_seeds * r->study->n_checkpoints, sizeof *values, &values));
    for (size_t k = 0; k < KS_TWELVE && *found; k++) {
        const struct ks_runs runs = ks_results_runs(r, architecture[k]);
        size_t n = 0;

        for (size_t i = 0; i < runs.n; i++)
            for (size_t t = 0; t < r->study->n_checkpoints; t++)
                if (ks_results_is_pooled(r, analyses.index[0], t) &&
                    ks_study_asks(r->study, analyses.index[0], architecture[k], t)) {
                    values[n] = value_of(r, runs.run[i], t, p, &analyses);
                    *found = *found && isfinite(values[n++]);
                }
        *found = *found && n > 0;
        x[k] = n > 0 ? ks_iqm(n, values) : NAN;
    }
    return KS_OK;
}

/* y [KS_TWELVE]; false if a return is missing or not above 0. */
static bool find_y(const struct ks_results *r, double *y)
{
    size_t architecture[KS_JUDGED];

    if (ks_twelve_find(r->study, architecture) < KS_TWELVE)
        return false;
    for (size_t k = 0; k < KS_TWELVE; k++) {
        const struct ks_runs runs = ks_results_runs(r, architecture[k]);
        double last[KS_STUDY_SEEDS];

        for (size_t i = 0; i < runs.n; i++)
            last[i] = ks_comparison_last(r, runs.run[i]);
        y[k] = runs.n > 0 ? log10(ks_iqm(runs.n, last)) : NAN;
        if (!isfinite(y[k]) || !ks_results_comparable(r, architecture[0], architecture[k]))
            return false;
    }
    return true;
}

/* --- the fits --- */

struct prediction {
    struct basis factors;
    double y[KS_TWELVE], e[KS_TWELVE]; /* e: the residuals of y given the factors */
    bool found[KS_PREDICTORS];
    struct ks_explained with[KS_PREDICTORS];
    double x[KS_PREDICTORS][KS_TWELVE]; /* residuals given the factors, of norm 1 */
    double partial[KS_PREDICTORS];
    size_t hits[KS_PREDICTORS], family_hits[KS_PREDICTORS];
};

static void fill_factors(struct basis *b)
{
    static const struct {
        enum ks_claim_factor factor;
        size_t level;
    } of[FACTORS - 1] = {{KS_FACTOR_NORMALIZATION, KS_BN},
                         {KS_FACTOR_NORMALIZATION, KS_LN},
                         {KS_FACTOR_WEIGHT_NORMALIZATION, 1},
                         {KS_FACTOR_LOSS, KS_CE}};
    double column[KS_TWELVE];

    for (size_t k = 0; k < FACTORS; k++) {
        for (size_t i = 0; i < KS_TWELVE; i++) {
            const size_t level[] = {i / 4, i / 2 % 2, i % 2};

            column[i] = k == 0 || level[of[k - 1].factor] == of[k - 1].level;
        }
        (void)add_column(b, column);
    }
}

static ks_status find_statistic(const struct ks_results *r, size_t k, struct prediction *f)
{
    struct basis with = f->factors;
    double x[KS_TWELVE];

    KS_TRY(find_x(r, &predictors[k], x, &f->found[k]));
    f->found[k] = f->found[k] && add_column(&with, x);
    if (!f->found[k])
        return KS_OK;
    f->with[k] = explain(&with, f->y);
    memcpy(f->x[k], with.q[FACTORS], sizeof f->x[k]);
    f->partial[k] = dot(f->x[k], f->e) / sqrt(dot(f->e, f->e));
    return KS_OK;
}

/* Counts the permutations whose partial correlation is at least as large. */
static void permute(struct prediction *f)
{
    static const double TIE = 1e-12;

    for (uint64_t trial = 0; trial < KS_PERMUTATIONS; trial++) {
        double e[KS_TWELVE], size, largest = 0, partial[KS_PREDICTORS] = {0};

        memcpy(e, f->e, sizeof e);
        ks_permute_at_random(KS_TWELVE, 0, trial * (KS_TWELVE - 1), e);
        take_out(&f->factors, e);
        size = sqrt(dot(e, e));
        for (size_t k = 0; k < KS_PREDICTORS; k++)
            if (f->found[k]) {
                partial[k] = fabs(dot(f->x[k], e)) / size;
                largest = fmax(largest, partial[k]);
            }
        for (size_t k = 0; k < KS_PREDICTORS; k++) {
            f->hits[k] += partial[k] >= fabs(f->partial[k]) - TIE;
            f->family_hits[k] += largest >= fabs(f->partial[k]) - TIE;
        }
    }
}

static double p_of(size_t hits)
{
    return (double)(hits + 1) / (KS_PERMUTATIONS + 1);
}

/* Adds a row for each statistic that the study has. */
static void add_rows(const struct ks_results *r, const struct prediction *f,
                     struct ks_prediction *out)
{
    for (size_t k = 0; k < KS_PREDICTORS; k++) {
        const struct predictor *p = &predictors[k];
        struct ks_prediction_row *row = &out->row[out->n];

        if (find_analyses(r, p).n == 0)
            continue;
        out->n++;
        *row = (struct ks_prediction_row){p->statistic, p->published ? "xqc" : p->operator,
                                          {NAN, NAN}, NAN, NAN, NAN};
        if (!f->found[k])
            continue;
        row->with = f->with[k];
        row->partial = f->partial[k];
        row->p = p_of(f->hits[k]);
        row->p_family = p_of(f->family_hits[k]);
    }
}

ks_status ks_prediction_find(const struct ks_results *r, struct ks_prediction *out)
{
    struct prediction f = {.factors = {.n = 0}};

    *out = (struct ks_prediction){.n = 0};
    if (!find_y(r, f.y))
        return KS_OK;
    fill_factors(&f.factors);
    memcpy(f.e, f.y, sizeof f.e);
    take_out(&f.factors, f.e);
    for (size_t k = 0; k < KS_PREDICTORS; k++)
        KS_TRY(find_statistic(r, k, &f));
    permute(&f);
    out->factors = explain(&f.factors, f.y);
    add_rows(r, &f, out);
    return KS_OK;
}
