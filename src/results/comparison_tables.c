#include "results/comparison_tables.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "results/scores.h"

/* --- two architectures on some tasks, and the performance profile of one --- */

/* *n = the number of runs of all tasks. */
static ks_status check_sample(const struct ks_sample *sample, size_t *n)
{
    *n = 0;
    if (sample->tasks == 0)
        return ks_fail(KS_FORMAT, "no task to aggregate over");
    for (size_t m = 0; m < sample->tasks; m++) {
        if (sample->runs[m] == 0)
            return ks_fail(KS_FORMAT, "task %zu of %zu has no run", m + 1, sample->tasks);
        *n += sample->runs[m];
    }
    for (size_t i = 0; i < *n; i++)
        if (isnan(sample->value[i]))
            return ks_fail(KS_FORMAT, "score %zu of %zu is NaN", i + 1, *n);
    return KS_OK;
}

/* --- probability of improvement --- */

struct pair {
    size_t tasks;
    const size_t *runs;  /* [2, tasks] of x, then of y           */
    const double *value; /* of all runs of x, then of all runs of y */
};

/* The share of pairs of a run at `x` and a run at `y` (indices of runs) in which x is greater. */
static double share_greater(const double *value, const size_t *x, size_t n_x, const size_t *y,
                            size_t n_y)
{
    double sum = 0;

    for (size_t i = 0; i < n_x; i++)
        for (size_t j = 0; j < n_y; j++) {
            double a = value[x[i]], b = value[y[j]];

            sum += a > b ? 1 : a == b ? 0.5 : 0;
        }
    return sum / ((double)n_x * (double)n_y);
}

static void evaluate_pair(const void *data, const size_t *index, double *work, double *out)
{
    const struct pair *p = data;
    const size_t *x = index, *y = index;
    double sum = 0;

    (void)work;
    for (size_t m = 0; m < p->tasks; m++)
        y += p->runs[m];
    for (size_t m = 0; m < p->tasks; m++) {
        size_t n_x = p->runs[m], n_y = p->runs[p->tasks + m];

        sum += share_greater(p->value, x, n_x, y, n_y);
        x += n_x;
        y += n_y;
    }
    *out = sum / (double)p->tasks;
}

ks_status ks_improvement(const struct ks_sample *x, const struct ks_sample *y, size_t resamples,
                         uint64_t seed, struct ks_estimate *probability)
{
    size_t tasks = x->tasks, n_x, n_y, *runs = NULL;
    double *value = NULL;
    struct pair pair;
    struct ks_bootstrap bootstrap;
    const struct ks_estimator statistic = {1, 0, &pair, evaluate_pair};
    ks_status status = KS_OK;

    assert(x->tasks == y->tasks);
    KS_TRY(check_sample(x, &n_x));
    KS_TRY(check_sample(y, &n_y));
    KS_GO(ks_alloc(2 * tasks, sizeof *runs, &runs));
    KS_GO(ks_alloc(n_x + n_y, sizeof *value, &value));
    memcpy(runs, x->runs, tasks * sizeof *runs);
    memcpy(runs + tasks, y->runs, tasks * sizeof *runs);
    memcpy(value, x->value, n_x * sizeof *value);
    memcpy(value + n_x, y->value, n_y * sizeof *value);
    pair = (struct pair){tasks, runs, value};
    bootstrap = (struct ks_bootstrap){resamples, seed, KS_BOOTSTRAP_LEVEL, 2 * tasks, runs};
    KS_GO(ks_bootstrap_run(&bootstrap, &statistic, probability));
done:
    free(runs);
    free(value);
    return status;
}

/* --- profiles --- */

/* out [2, n]: fractions of runs, then fractions of tasks. */
static void evaluate_profile(const void *data, const size_t *index, double *work, double *out)
{
    const struct ks_profile *p = data;
    size_t runs = 0;

    (void)work;
    memset(out, 0, 2 * p->n * sizeof *out);
    for (size_t m = 0; m < p->scores.tasks; m++) {
        double sum = 0;

        for (size_t i = 0; i < p->scores.runs[m]; i++, runs++) {
            double value = p->scores.value[index[runs]];

            sum += value;
            for (size_t k = 0; k < p->n; k++)
                out[k] += value > p->tau[k];
        }
        for (size_t k = 0; k < p->n; k++)
            out[p->n + k] += sum / (double)p->scores.runs[m] > p->tau[k];
    }
    for (size_t k = 0; k < p->n; k++) {
        out[k] /= (double)runs;
        out[p->n + k] /= (double)p->scores.tasks;
    }
}

ks_status ks_profile(const struct ks_profile *p, struct ks_estimate *runs,
                     struct ks_estimate *means)
{
    const struct ks_bootstrap bootstrap = {p->resamples, p->seed, KS_BOOTSTRAP_LEVEL,
                                           p->scores.tasks, p->scores.runs};
    const struct ks_estimator statistic = {2 * p->n, 0, p, evaluate_profile};
    struct ks_estimate *both = NULL;
    ks_status status = KS_OK;
    size_t n;

    KS_TRY(check_sample(&p->scores, &n));
    KS_GO(ks_alloc(2 * p->n, sizeof *both, &both));
    KS_GO(ks_bootstrap_run(&bootstrap, &statistic, both));
    memcpy(runs, both, p->n * sizeof *runs);
    if (means)
        memcpy(means, both + p->n, p->n * sizeof *means);
done:
    free(both);
    return status;
}

/* --- the runs that are compared --- */

static const char *name_of(const struct ks_comparison *c, size_t i)
{
    return c->results->study->architecture[c->architecture[i]].name;
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

/* The index in c->last of the first run of architecture `i`. */
static size_t first_run(const struct ks_comparison *c, size_t i)
{
    size_t first = 0;

    while (i-- > 0)
        first += c->runs[i];
    return first;
}

static size_t last_evaluation(const struct ks_results *r)
{
    size_t k = r->study->n_evaluations - 1;

    while (k > 0 && !r->common_evaluation[k])
        k--;
    return k;
}

double ks_comparison_last(const struct ks_results *r, const struct ks_result *run)
{
    return run->returns[last_evaluation(r)];
}

ks_status ks_comparison_begin(const struct ks_results *r, size_t resamples, struct ks_comparison *c)
{
    size_t all = r->study->n_architectures;

    *c = (struct ks_comparison){.results = r, .resamples = resamples};
    KS_TRY(ks_alloc(all, sizeof *c->architecture, &c->architecture));
    KS_TRY(ks_alloc(all, sizeof *c->runs, &c->runs));
    KS_TRY(ks_alloc(r->n_runs, sizeof(const struct ks_result *), &c->run));
    return ks_alloc(r->n_runs, sizeof *c->last, &c->last);
}

void ks_comparison_add(struct ks_comparison *c, size_t architecture, size_t n,
                       const struct ks_result *const *run)
{
    size_t before = first_run(c, c->n);

    c->architecture[c->n] = architecture;
    c->runs[c->n++] = n;
    for (size_t k = 0; k < n; k++) {
        c->run[before + k] = run[k];
        c->last[before + k] = ks_comparison_last(c->results, run[k]);
    }
}

ks_status ks_comparison_new(const struct ks_results *r, size_t resamples, struct ks_comparison *c)
{
    size_t order[KS_STUDY_ARCHITECTURES], n = ks_results_order(r, order);

    KS_TRY(ks_comparison_begin(r, resamples, c));
    for (size_t i = 0; i < n; i++) {
        const struct ks_result *run[KS_STUDY_SEEDS];
        size_t runs = ks_results_runs(r, order[i], run);

        ks_comparison_add(c, order[i], runs, run);
    }
    return KS_OK;
}

void ks_comparison_free(struct ks_comparison *c)
{
    free(c->architecture);
    free(c->runs);
    free(c->run);
    free(c->last);
}

/* --- improvement.csv --- */

static ks_status compare(const struct ks_comparison *c, size_t i, size_t j,
                         struct ks_estimate *probability)
{
    const struct ks_sample x = {1, &c->runs[i], c->last + first_run(c, i)},
                           y = {1, &c->runs[j], c->last + first_run(c, j)};

    return ks_improvement(&x, &y, c->resamples, 0, probability);
}

/* P(y > x) = 1 - P(x > y), with the interval mirrored, so each pair is resampled only once, in the
 * order of the table. */
ks_status ks_comparison_write_improvement(const struct ks_comparison *c, FILE *out)
{
    for (size_t i = 0; i < c->n; i++)
        for (size_t j = 0; j < c->n; j++) {
            struct ks_estimate p;

            if (i == j)
                continue;
            KS_TRY(compare(c, i < j ? i : j, i < j ? j : i, &p));
            if (i > j)
                p = (struct ks_estimate){1 - p.value, {1 - p.in.upper, 1 - p.in.lower}};
            fprintf(out, "%s,%s", name_of(c, i), name_of(c, j));
            ks_table_estimate(out, &p);
            putc('\n', out);
        }
    return KS_OK;
}

/* --- profile.csv --- */

enum { TAUS = 51 }; /* 0, 0.02, ..., 1 */

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* score [seeds]: scratch. */
static ks_status write_one_profile(const struct ks_comparison *c, size_t i,
                                   const struct ks_score_range *range, double *score, FILE *out)
{
    double tau[TAUS];
    const struct ks_profile profile = {
        {1, &c->runs[i], score}, TAUS, tau, smaller(c->resamples, KS_PROFILE_RESAMPLES), 0};
    struct ks_estimate fraction[TAUS];

    for (size_t k = 0; k < c->runs[i]; k++)
        KS_TRY(ks_score_normalize(range, c->last[first_run(c, i) + k], &score[k]));
    for (size_t k = 0; k < TAUS; k++)
        tau[k] = (double)k / (TAUS - 1);
    KS_TRY(ks_profile(&profile, fraction, NULL));
    for (size_t k = 0; k < TAUS; k++) {
        fprintf(out, "%s,%.10g", name_of(c, i), tau[k]);
        ks_table_estimate(out, &fraction[k]);
        putc('\n', out);
    }
    return KS_OK;
}

ks_status ks_comparison_write_profile(const struct ks_comparison *c, FILE *out)
{
    const struct ks_score_range *range;
    double *score = NULL, any;
    ks_status status = KS_OK;

    if (ks_score_range_of_returns(c->results->study->env, &range) != KS_OK ||
        ks_score_normalize(range, 0, &any) != KS_OK)
        return KS_OK;
    KS_GO(ks_alloc(c->results->study->n_seeds, sizeof *score, &score));
    for (size_t i = 0; i < c->n; i++)
        KS_GO(write_one_profile(c, i, range, score, out));
done:
    free(score);
    return status;
}
