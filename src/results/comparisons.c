/* The probability of improvement and performance profiles, each with one bootstrap. */
#include "results/comparisons.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"

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
