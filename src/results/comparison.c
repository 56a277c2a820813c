#include "results/comparison.h"

#include <math.h>

#include "core/memory.h"

/* --- probability of improvement --- */

/* data: x and y, whose runs follow those of x in the index. */
static void evaluate_pair(const void *data, const size_t *index, double *work, double *out)
{
    const struct ks_sample *const *both = data, *x = both[0], *y = both[1];
    double sum = 0;

    (void)work;
    for (size_t i = 0; i < x->runs; i++)
        for (size_t j = 0; j < y->runs; j++) {
            double a = x->value[index[i]], b = y->value[index[x->runs + j] - x->runs];

            sum += a > b ? 1 : a == b ? 0.5 : a < b ? 0 : NAN;
        }
    *out = sum / ((double)x->runs * (double)y->runs);
}

ks_status ks_improvement(const struct ks_sample *x, const struct ks_sample *y, size_t resamples,
                         uint64_t seed, struct ks_estimate *probability)
{
    const struct ks_bootstrap bootstrap = {resamples, seed, 2, (size_t[]){x->runs, y->runs}};
    const struct ks_sample *const both[] = {x, y};
    const struct ks_estimator statistic = {1, 0, both, evaluate_pair};

    return ks_bootstrap_run(&bootstrap, &statistic, probability);
}

/* --- profiles --- */

static void evaluate_profile(const void *data, const size_t *index, double *work, double *out)
{
    const struct ks_profile *p = data;

    (void)work;
    for (size_t k = 0; k < p->n; k++) {
        out[k] = 0;
        for (size_t i = 0; i < p->scores.runs; i++) {
            const double score = p->scores.value[index[i]];

            out[k] += isnan(score) ? NAN : score > p->tau[k];
        }
        out[k] /= (double)p->scores.runs;
    }
}

ks_status ks_profile(const struct ks_profile *p, struct ks_estimate *fraction)
{
    const struct ks_bootstrap bootstrap = {p->resamples, p->seed, 1, &p->scores.runs};
    const struct ks_estimator statistic = {p->n, 0, p, evaluate_profile};

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
    return (struct ks_sample){c->runs[i], c->last + first_run(c, i)};
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
    const struct ks_runs runs = ks_results_runs(r, architecture);
    double value[KS_STUDY_SEEDS];

    for (size_t i = 0; i < runs.n; i++)
        value[i] = runs.run[i]->returns[evaluation];
    return ks_iqm_drop(runs.n, value);
}

ks_status ks_comparison_begin(const struct ks_results *r, size_t resamples, struct ks_comparison *c)
{
    *c = (struct ks_comparison){.results = r, .resamples = resamples};
    KS_TRY(ks_pool_alloc(&c->pool, r->n_runs, sizeof(const struct ks_result *), &c->run));
    return ks_pool_alloc(&c->pool, r->n_runs, sizeof *c->last, &c->last);
}

void ks_comparison_add(struct ks_comparison *c, size_t n, const struct ks_result *const *run)
{
    size_t before = first_run(c, c->n);

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
        const struct ks_runs runs = ks_results_runs(r, order[i]);

        ks_comparison_add(c, runs.n, runs.run);
    }
    return KS_OK;
}
