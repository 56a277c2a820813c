#include "results/aggregate.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/number.h"

double ks_iqm(size_t n, double *values)
{
    size_t cut = n / 4;
    double sum = 0;

    if (n == 0)
        return NAN;
    for (size_t i = 0; i < n; i++)
        if (isnan(values[i]))
            return NAN;
    qsort(values, n, sizeof *values, ks_ascending);
    for (size_t i = cut; i < n - cut; i++)
        sum += values[i];
    return sum / (double)(n - 2 * cut);
}

double ks_iqm_drop(size_t n, double *values)
{
    size_t kept = 0;

    for (size_t i = 0; i < n; i++)
        if (!isnan(values[i]))
            values[kept++] = values[i];
    return ks_iqm(kept, values);
}

/* Returns equal neighbours and exact positions without subtracting: inf - inf would be NaN. */
double ks_quantile(size_t n, const double *sorted, double q)
{
    double h = (double)(n - 1) * q, fraction = h - floor(h);
    size_t i = (size_t)h;

    if (fraction == 0 || i + 1 >= n || sorted[i] == sorted[i + 1])
        return sorted[i];
    return sorted[i] + fraction * (sorted[i + 1] - sorted[i]);
}

double ks_curve_area(size_t n, const double *t, const double *y)
{
    double area = 0;

    for (size_t i = 1; i < n; i++)
        area += 0.5 * (y[i] + y[i - 1]) * (t[i] - t[i - 1]);
    return area / (t[n - 1] - t[0]);
}

/* --- the bootstrap --- */

uint64_t ks_splitmix(uint64_t seed, uint64_t k)
{
    uint64_t z = seed + (k + 1) * 0x9E3779B97F4A7C15u;

    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

/* The high half of the 128-bit product u n, from four 32-bit products. */
size_t ks_splitmix_index(uint64_t seed, uint64_t k, size_t n)
{
    uint64_t u = ks_splitmix(seed, k), m = n, low32 = 0xFFFFFFFFu;
    uint64_t low = (u & low32) * (m & low32), middle = (u >> 32) * (m & low32) + (low >> 32);
    uint64_t other = (u & low32) * (m >> 32) + (middle & low32);

    return (size_t)((u >> 32) * (m >> 32) + (middle >> 32) + (other >> 32));
}

size_t ks_bootstrap_runs(const struct ks_bootstrap *bootstrap)
{
    size_t runs = 0;

    for (size_t m = 0; m < bootstrap->strata; m++)
        runs += bootstrap->runs[m];
    return runs;
}

/* Draw number k = b S + N_1 + .. + N_{m-1} + i for slot i of stratum m. */
void ks_bootstrap_draw(const struct ks_bootstrap *bootstrap, size_t resample, size_t *index)
{
    uint64_t k = (uint64_t)resample * ks_bootstrap_runs(bootstrap);
    size_t first = 0;

    for (size_t m = 0; m < bootstrap->strata; m++) {
        for (size_t i = 0; i < bootstrap->runs[m]; i++)
            *index++ = first + ks_splitmix_index(bootstrap->seed, k++, bootstrap->runs[m]);
        first += bootstrap->runs[m];
    }
}

static bool has_interval(const struct ks_bootstrap *bootstrap)
{
    for (size_t m = 0; m < bootstrap->strata; m++)
        if (bootstrap->runs[m] > 1)
            return bootstrap->resamples > 0;
    return false;
}

/* The percentile interval of one output; sorts value [resamples]. */
static void set_interval(const struct ks_bootstrap *bootstrap, double *value,
                         struct ks_estimate *estimate)
{
    double tail = 0.5 * (1 - KS_BOOTSTRAP_LEVEL);

    for (size_t b = 0; b < bootstrap->resamples; b++)
        if (isnan(value[b]))
            return;
    qsort(value, bootstrap->resamples, sizeof *value, ks_ascending);
    estimate->in.lower = ks_quantile(bootstrap->resamples, value, tail);
    estimate->in.upper = ks_quantile(bootstrap->resamples, value, 1 - tail);
}

/* Scratch of one thread. */
struct slot {
    struct ks_pool pool; /* the arrays. Owned */
    size_t *index;
    double *work, *out;
};

static ks_status slot_new(size_t runs, const struct ks_estimator *estimator, struct slot *slot)
{
    KS_TRY(ks_pool_alloc(&slot->pool, runs, sizeof *slot->index, &slot->index));
    KS_TRY(ks_pool_alloc(&slot->pool, estimator->work, sizeof *slot->work, &slot->work));
    return ks_pool_alloc(&slot->pool, estimator->outputs, sizeof *slot->out, &slot->out);
}

/* Evaluates all resamples in parallel into values [outputs, resamples]. */
static ks_status resample(const struct ks_bootstrap *bootstrap,
                          const struct ks_estimator *estimator, double *values)
{
    size_t runs = ks_bootstrap_runs(bootstrap), n = bootstrap->resamples;
    ks_status status = KS_OK;

#pragma omp parallel
    {
        KS_OWNS_POOL struct slot slot = {0};
        ks_status mine = slot_new(runs, estimator, &slot);

#pragma omp for
        for (size_t b = 0; b < n; b++) {
            if (mine != KS_OK)
                continue;
            ks_bootstrap_draw(bootstrap, b, slot.index);
            estimator->evaluate(estimator->data, slot.index, slot.work, slot.out);
            for (size_t k = 0; k < estimator->outputs; k++)
                values[k * n + b] = slot.out[k];
        }
        if (mine != KS_OK) {
#pragma omp critical(ks_bootstrap)
            status = mine;
        }
    }
    return status == KS_OK ? KS_OK : ks_fail(status, "bootstrap: out of memory");
}

ks_status ks_bootstrap_run(const struct ks_bootstrap *bootstrap,
                           const struct ks_estimator *estimator, struct ks_estimate *estimates)
{
    size_t runs = ks_bootstrap_runs(bootstrap), outputs = estimator->outputs;
    KS_OWNS_POOL struct slot slot = {0};
    KS_OWNED double *values = NULL;

    KS_TRY(slot_new(runs, estimator, &slot));
    for (size_t i = 0; i < runs; i++)
        slot.index[i] = i;
    estimator->evaluate(estimator->data, slot.index, slot.work, slot.out);
    for (size_t k = 0; k < outputs; k++)
        estimates[k] = (struct ks_estimate){slot.out[k], {NAN, NAN}};
    if (!has_interval(bootstrap))
        return KS_OK;
    KS_TRY(ks_alloc(outputs * bootstrap->resamples, sizeof *values, &values));
    KS_TRY(resample(bootstrap, estimator, values));
    for (size_t k = 0; k < outputs; k++)
        set_interval(bootstrap, values + k * bootstrap->resamples, &estimates[k]);
    return KS_OK;
}

/* --- the IQM at each step and the area under it --- */

/* A value and its run. */
struct ranked {
    double value; /* sorted by it: ks_ascending */
    size_t run;
};

/* A resample holds every run some number of times. With the runs of each step in order beforehand,
 * its IQM needs one pass over them instead of a sort; the sum is the same to the last bit. */
struct curve {
    struct ks_pool pool; /* the arrays. Owned */
    const struct ks_scores *scores;
    size_t runs;
    size_t *kept;         /* [steps] runs whose value is not NaN                   */
    struct ranked *order; /* [steps, runs] by ascending value, those with NaN last */
};

static ks_status curve_new(const struct ks_scores *s, size_t runs, struct curve *curve)
{
    *curve = (struct curve){.scores = s, .runs = runs};
    KS_TRY(ks_pool_alloc(&curve->pool, s->steps, sizeof *curve->kept, &curve->kept));
    KS_TRY(ks_pool_alloc(&curve->pool, s->steps * runs, sizeof *curve->order, &curve->order));
    for (size_t t = 0; t < s->steps; t++) {
        struct ranked *order = curve->order + t * runs;

        for (size_t i = 0; i < runs; i++) {
            order[i] = (struct ranked){s->value[i * s->steps + t], i};
            curve->kept[t] += !isnan(order[i].value);
        }
        qsort(order, runs, sizeof *order, ks_ascending);
    }
    return KS_OK;
}

/* The IQM of `n` values in ascending order, each of which occurs count[run] times. */
static double counted_iqm(size_t n, const struct ranked *order, const double *count)
{
    double all = 0, skip, left, sum = 0;

    for (size_t k = 0; k < n; k++)
        all += count[order[k].run];
    if (all == 0)
        return NAN;
    skip = floor(all / 4);
    left = all - 2 * skip;
    all = left;
    for (size_t k = 0; k < n && left > 0; k++) {
        const double drawn = count[order[k].run], skipped = fmin(skip, drawn);
        const size_t taken = (size_t)fmin(drawn - skipped, left);

        skip -= skipped, left -= (double)taken;
        for (size_t i = 0; i < taken; i++)
            sum += order[k].value;
    }
    return sum / all;
}

/* work [runs]: how often each run was drawn. */
static void evaluate_curve(const void *data, const size_t *index, double *work, double *out)
{
    const struct curve *curve = data;
    const struct ks_scores *s = curve->scores;

    memset(work, 0, curve->runs * sizeof *work);
    for (size_t i = 0; i < curve->runs; i++)
        work[index[i]]++;
    for (size_t t = 0; t < s->steps; t++)
        out[t] = counted_iqm(curve->kept[t], curve->order + t * curve->runs, work);
    out[s->steps] = s->steps > 1 ? ks_curve_area(s->steps, s->step, out) : NAN;
}

ks_status ks_iqm_curve(const struct ks_scores *scores, size_t resamples, uint64_t seed,
                       struct ks_estimate *curve, struct ks_estimate *area)
{
    struct ks_bootstrap bootstrap = {resamples, seed, scores->strata, scores->runs};
    KS_OWNS_POOL struct curve data = {0};
    struct ks_estimator estimator = {scores->steps + 1, ks_bootstrap_runs(&bootstrap), &data,
                                     evaluate_curve};
    KS_OWNED struct ks_estimate *estimates = NULL;

    KS_TRY(curve_new(scores, ks_bootstrap_runs(&bootstrap), &data));
    KS_TRY(ks_alloc(scores->steps + 1, sizeof *estimates, &estimates));
    KS_TRY(ks_bootstrap_run(&bootstrap, &estimator, estimates));
    memcpy(curve, estimates, scores->steps * sizeof *curve);
    if (area)
        *area = estimates[scores->steps];
    return KS_OK;
}
