#include "results/comparison.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"

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
    const struct ks_sample *x, *y;
    size_t n_x; /* runs of x; those of y follow in an index */
};

static void evaluate_pair(const void *data, const size_t *index, double *work, double *out)
{
    const struct pair *p = data;
    const size_t *x = index, *y = index + p->n_x;
    double mean = 0;

    (void)work;
    for (size_t m = 0; m < p->x->tasks; m++) {
        const size_t n_x = p->x->runs[m], n_y = p->y->runs[m];
        double sum = 0;

        for (size_t i = 0; i < n_x; i++)
            for (size_t j = 0; j < n_y; j++) {
                double a = p->x->value[x[i]], b = p->y->value[y[j] - p->n_x];

                sum += a > b ? 1 : a == b ? 0.5 : 0;
            }
        mean += sum / ((double)n_x * (double)n_y);
        x += n_x;
        y += n_y;
    }
    *out = mean / (double)p->x->tasks;
}

ks_status ks_improvement(const struct ks_sample *x, const struct ks_sample *y, size_t resamples,
                         uint64_t seed, struct ks_estimate *probability)
{
    struct pair pair = {x, y, 0};
    struct ks_bootstrap bootstrap = {resamples, seed, 2 * x->tasks, NULL};
    const struct ks_estimator statistic = {1, 0, &pair, evaluate_pair};
    KS_OWNED size_t *runs = NULL;
    size_t n_y;

    assert(x->tasks == y->tasks);
    KS_TRY(check_sample(x, &pair.n_x));
    KS_TRY(check_sample(y, &n_y));
    KS_TRY(ks_alloc(2 * x->tasks, sizeof *runs, &runs));
    memcpy(runs, x->runs, x->tasks * sizeof *runs);
    memcpy(runs + x->tasks, y->runs, x->tasks * sizeof *runs);
    bootstrap.runs = runs;
    return ks_bootstrap_run(&bootstrap, &statistic, probability);
}

/* --- profiles --- */

static void evaluate_profile(const void *data, const size_t *index, double *work, double *out)
{
    const struct ks_profile *p = data;
    size_t runs = 0;

    (void)work;
    for (size_t m = 0; m < p->scores.tasks; m++)
        runs += p->scores.runs[m];
    for (size_t k = 0; k < p->n; k++) {
        out[k] = 0;
        for (size_t i = 0; i < runs; i++)
            out[k] += p->scores.value[index[i]] > p->tau[k];
        out[k] /= (double)runs;
    }
}

ks_status ks_profile(const struct ks_profile *p, struct ks_estimate *fraction)
{
    const struct ks_bootstrap bootstrap = {p->resamples, p->seed, p->scores.tasks, p->scores.runs};
    const struct ks_estimator statistic = {p->n, 0, p, evaluate_profile};
    size_t n;

    KS_TRY(check_sample(&p->scores, &n));
    return ks_bootstrap_run(&bootstrap, &statistic, fraction);
}

/* --- the runs that are compared --- */

/* The index in c->last of the first run of architecture `i`. */
static size_t first_run(const struct ks_comparison *c, size_t i)
{
    size_t first = 0;

    while (i-- > 0)
        first += c->runs[i];
    return first;
}

struct ks_sample ks_comparison_sample(const struct ks_comparison *c, size_t i)
{
    return (struct ks_sample){1, &c->runs[i], c->last + first_run(c, i)};
}

double ks_comparison_last(const struct ks_results *r, const struct ks_result *run)
{
    struct ks_study_place at = {run->architecture, run->seed, r->study->n_evaluations - 1};

    while (at.step > 0 && !(r->common_evaluation[at.step] && ks_study_has_return(r->study, at)))
        at.step--;
    return run->returns[at.step];
}

double ks_comparison_return(const struct ks_results *r, size_t architecture, size_t evaluation)
{
    const struct ks_result *run[KS_STUDY_SEEDS];
    const size_t n = ks_results_runs(r, architecture, run);
    double value[KS_STUDY_SEEDS];

    for (size_t i = 0; i < n; i++)
        value[i] = run[i]->returns[evaluation];
    return ks_iqm_drop(n, value);
}

ks_status ks_comparison_begin(const struct ks_results *r, size_t resamples, struct ks_comparison *c)
{
    *c = (struct ks_comparison){.results = r, .resamples = resamples};
    KS_TRY(ks_pool_alloc(&c->pool, r->n_runs, sizeof(const struct ks_result *), &c->run));
    return ks_pool_alloc(&c->pool, r->n_runs, sizeof *c->last, &c->last);
}

void ks_comparison_clear(struct ks_comparison *c)
{
    ks_pool_free(&c->pool);
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
