/* Computes the statistics of the catalogue, for the full run and again for the prefixes of the
 * steps. */
#include "statistics/statistics.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/memory.h"
#include "core/number.h"
#include "lanczos/jacobi.h"
#include "statistics/certificate.h"
#include "statistics/shares.h"

static double mean(size_t n, const double *value)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += value[i];
    return sum / (double)n;
}

/* The standard error of the mean of n >= 2 values: sqrt(sum (x - mean)^2 / (n (n - 1))). */
static double standard_error(size_t n, const double *value)
{
    double centre = mean(n, value), sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += (value[i] - centre) * (value[i] - centre);
    return sqrt(sum / ((double)n * ((double)n - 1)));
}

/* The value whose key is the largest (sign 1) or smallest (sign -1): the value itself, or with
 * `probe` an end of its spectrum. */
static double extreme(size_t n, const double *value, const struct ks_probe *probe, int sign)
{
    double best = NAN, largest = -INFINITY;

    for (size_t i = 0; i < n; i++) {
        const double key = sign * (probe ? ks_probe_end(&probe[i], sign) : value[i]);

        if (i == 0 || key > largest)
            best = value[i], largest = key;
    }
    return best;
}

/* Combines value [n], one number per probe; the order of the values is lost. */
static double combine(const struct ks_statistic *f, size_t n, const struct ks_probe *probe,
                      double *value)
{
    switch (f->over) {
    case KS_OVER_MEAN:
        return mean(n, value);
    case KS_OVER_MEDIAN:
        return ks_median(n, value);
    case KS_OVER_LARGEST:
        return extreme(n, value, NULL, 1);
    case KS_OVER_SMALLEST:
        return extreme(n, value, NULL, -1);
    case KS_OVER_OF_END:
        return extreme(n, value, probe, f->end);
    case KS_OVER_SHARED:
        return value[0];
    }
    assert(!"a statistic without a rule");
    return NAN;
}

/* Around the mean over the probes, or around what its own vectors gave. */
static void add_trace_interval(struct ks_spectrum *s, const struct ks_trace_samples *samples,
                               const struct ks_bounds *bounds, const struct ks_probe *probe)
{
    const double trace = ks_statistic_value(s, KS_STAT_TRACE);
    const double error = samples ? samples->error : ks_trace_error(bounds, probe);

    ks_statistic_add_interval(s, KS_STAT_TRACE, "",
                              (struct ks_interval){trace - error, trace + error});
}

/* For the loss itself, where there are minibatches that the run has not seen. */
static void add_loss_intervals(struct ks_spectrum *s, const struct ks_bounds *bounds,
                               const struct ks_probe *probe)
{
    double upper = NAN, lower = NAN;

    if (!bounds->certified || bounds->certificates->held_out < KS_LEAST_HELD_OUT)
        return;
    for (size_t i = 0; i < bounds->probes; i++) {
        upper = fmax(upper, ks_probe_loss_outer(&probe[i], 1));
        lower = fmin(lower, ks_probe_loss_outer(&probe[i], -1));
    }
    ks_statistic_add_interval(s, KS_STAT_LAMBDA_MAX_LOSS, "",
                              (struct ks_interval){ks_probe_loss_inner(probe, 1), upper});
    ks_statistic_add_interval(s, KS_STAT_LAMBDA_MIN_LOSS, "",
                              (struct ks_interval){lower, ks_probe_loss_inner(probe, -1)});
}

/* What needs weights, or an orthonormal basis. `suffix`: "" of the full run. */
static ks_status add_intervals(struct ks_spectrum *s, const struct ks_statistics_inputs *inputs,
                               const struct ks_bounds *bounds, const struct ks_probe *probe,
                               const char *suffix)
{
    if (!*suffix) {
        add_trace_interval(s, inputs->trace, bounds, probe);
        add_loss_intervals(s, bounds, probe);
    }
    if (!*suffix && !inputs->draft) {
        KS_TRY(ks_intervals_add_gradient(s, bounds, inputs->gradient));
        KS_TRY(ks_band_add(s, bounds, probe));
    }
    KS_TRY(ks_intervals_add(s, bounds, probe, suffix));
    ks_statistic_add(s, KS_STAT_KAPPA_EFFECTIVE_BOUND, suffix, ks_effective_bound(bounds, probe));
    return KS_OK;
}

/* Adds the statistics of these probes; `prefix` is the number of their first steps, 0 for the full
 * run. */
static ks_status add_statistics(struct ks_spectrum *s, const struct ks_statistics_inputs *inputs,
                                struct ks_probe *probe, size_t prefix)
{
    const bool published = inputs->published && s->alpha; /* without alpha it is exact */
    const size_t probes = ks_spectrum_random(s);
    struct ks_bounds bounds = ks_bounds_find(inputs, !s->alpha, probes, probe,
                                             prefix > 0 ? prefix / KS_STATISTICS_PREFIX - 1
                                                        : SIZE_MAX);
    KS_OWNED double *value = NULL;
    char suffix[32] = "";

    for (size_t i = 0; i < probes; i++)
        probe[i].bounds = &bounds;
    if (prefix > 0)
        snprintf(suffix, sizeof suffix, "_m%zu", prefix);
    KS_TRY(ks_alloc(probes, sizeof *value, &value));
    for (enum ks_statistic_id id = 0; id < KS_STATISTICS; id++) {
        const struct ks_statistic *f = &ks_catalogue[id];
        const struct ks_trace_samples *samples = id == KS_STAT_TRACE ? inputs->trace : NULL;
        double error = 0;

        if ((!f->value && !f->of_end) || (prefix > 0 && !f->every_prefix) ||
            (published && f->not_published) ||
            (!bounds.outliers_isolated && id == KS_STAT_KURTOSIS_SPECTRAL))
            continue;
        for (size_t i = 0; i < probes; i++)
            value[i] = f->of_end ? f->of_end(&probe[i], f->end) : f->value(&probe[i]);
        if (probes > 1)
            error = standard_error(probes, value);
        ks_statistic_add(s, id, suffix,
                         samples ? samples->value : combine(f, probes, probe, value));
        if (probes > 1 && prefix == 0 && f->over == KS_OVER_MEAN)
            ks_statistic_add(s, id, "_se", samples ? samples->se : error);
    }
    if (!published)
        KS_TRY(add_intervals(s, inputs, &bounds, probe, suffix));
    return s->statistics.status;
}

static ks_status full_run(struct ks_spectrum *s, const struct ks_statistics_inputs *inputs,
                          struct ks_probe *probe)
{
    for (size_t i = 0; i < ks_spectrum_random(s); i++) {
        size_t row = i * s->order;
        struct ks_probe *p = &probe[i];

        *p = (struct ks_probe){.steps = ks_spectrum_steps(s, i),
                               .theta = s->ritz + row,
                               .weight = s->weight + row,
                               .residual = s->residual + row,
                               .beta = s->beta ? s->beta + row : NULL};
        p->ended = s->alpha && (p->steps < s->order || p->steps == inputs->n);
        if (s->alpha)
            KS_TRY(ks_jacobi_smallest(&(struct ks_jacobi){p->steps, s->alpha + row, s->beta + row},
                                      &p->smallest));
        else
            p->smallest = ks_probe_smallest_size(p);
    }
    return add_statistics(s, inputs, probe, 0);
}

static void make_uniform(size_t n, double *weight)
{
    for (size_t i = 0; i < n; i++)
        weight[i] = 1 / (double)n;
}

/* The statistics of the first `prefix` steps. nodes [probes, 3, order] is scratch for the Ritz
 * values, weights and residuals. */
static ks_status prefix_statistics(struct ks_spectrum *s, const struct ks_statistics_inputs *inputs,
                                   size_t prefix, double *nodes, struct ks_probe *probe)
{
    for (size_t i = 0; i < ks_spectrum_random(s); i++) {
        size_t row = i * s->order, m = (size_t)s->steps[i] < prefix ? (size_t)s->steps[i] : prefix;
        double *theta = nodes + 3 * row, *weight = theta + s->order, *residual = weight + s->order;
        const struct ks_jacobi t = {m, s->alpha + row, s->beta + row};
        struct ks_probe *p = &probe[i];

        *p = (struct ks_probe){.steps = m,
                               .theta = theta,
                               .weight = weight,
                               .residual = residual,
                               .beta = s->beta + row,
                               .ended = m < prefix || m == inputs->n};
        KS_TRY(ks_jacobi_ritz(&t, theta, weight, residual));
        KS_TRY(ks_jacobi_smallest(&t, &p->smallest));
        if (inputs->published)
            make_uniform(m, weight);
    }
    return add_statistics(s, inputs, probe, prefix);
}

ks_status ks_statistics(struct ks_spectrum *s, const struct ks_statistics_inputs *inputs)
{
    size_t prefixes = s->alpha && !inputs->draft ? (s->order - 1) / KS_STATISTICS_PREFIX : 0;
    KS_OWNED struct ks_probe *probe = NULL;
    KS_OWNED double *nodes = NULL;

    assert(s->ritz && s->statistics.n == 0);
    KS_TRY(ks_alloc(s->probes, sizeof *probe, &probe));
    KS_TRY(full_run(s, inputs, probe));
    if (prefixes > 0)
        KS_TRY(ks_alloc(3 * s->probes * s->order, sizeof *nodes, &nodes));
    for (size_t k = 1; k <= prefixes; k++)
        KS_TRY(prefix_statistics(s, inputs, k * KS_STATISTICS_PREFIX, nodes, probe));
    return KS_OK;
}

void ks_statistics_unweight(struct ks_spectrum *s)
{
    for (size_t i = 0; i < s->probes; i++)
        make_uniform(ks_spectrum_steps(s, i), s->weight + i * s->order);
}

/* Statistics as texts for a reader. */

static bool has(const struct ks_spectrum *s, const char *column)
{
    return column && ks_attribute_find(&s->statistics, column);
}

bool ks_statistic_present(const struct ks_spectrum *s, enum ks_statistic_id id)
{
    const struct ks_statistic *row = &ks_catalogue[id];

    return has(s, row->name) || has(s, row->lower) || has(s, row->upper);
}

static void print_value(enum ks_statistic_id id, double value, char text[KS_STATISTIC_TEXT])
{
    const enum ks_statistic_kind kind = ks_catalogue[id].kind;

    if (isnan(value) && ks_catalogue[id].unknown)
        snprintf(text, KS_STATISTIC_TEXT, "%s", ks_catalogue[id].unknown);
    else if (isnan(value) || (kind == KS_IS_BOUND && !(value > 1)))
        snprintf(text, KS_STATISTIC_TEXT, "not resolved");
    else if (isinf(value))
        snprintf(text, KS_STATISTIC_TEXT, "infinite");
    else if (kind == KS_IS_BOUND)
        snprintf(text, KS_STATISTIC_TEXT, "at least %.4g", ks_round_down(value, 4));
    else if (kind == KS_IS_WHOLE)
        snprintf(text, KS_STATISTIC_TEXT, "%.0f", value);
    else
        snprintf(text, KS_STATISTIC_TEXT, "%.4g", value);
}

/* An extreme eigenvalue is bounded from one side by a certificate and from the other one by the
 * Jacobi matrices. Both bounds are rounded so that they stay bounds. */
static void print_extreme(bool largest, struct ks_interval i, char text[KS_STATISTIC_TEXT])
{
    if (largest)
        snprintf(text, KS_STATISTIC_TEXT, "%.4g, at most %.4g", ks_round_down(i.lower, 4),
                 ks_round_up(i.upper, 4));
    else
        snprintf(text, KS_STATISTIC_TEXT, "%.4g, at least %.4g", ks_round_up(i.upper, 4),
                 ks_round_down(i.lower, 4));
}

/* Counts are printed in full. Nothing is known of an interval from its smallest possible number to
 * an upper end that is not resolved. */
static void print_interval(enum ks_statistic_id id, double value, struct ks_interval i,
                           char text[KS_STATISTIC_TEXT])
{
    const double least = ks_statistic_is_ratio(id) ? 1 : 0;
    const bool known = !isnan(i.lower) && !(isnan(i.upper) && !(i.lower > least));
    char interval[KS_INTERVAL_TEXT];

    ks_interval_text(known ? i : (struct ks_interval){NAN, NAN}, KS_BRACKETS, interval);
    if (ks_catalogue[id].kind == KS_IS_COUNT && isfinite(i.lower + i.upper))
        snprintf(text, KS_STATISTIC_TEXT, "%.0f [%.0f, %.0f]", value, i.lower, i.upper);
    else if (isfinite(value) && isfinite(i.lower + i.upper))
        snprintf(text, KS_STATISTIC_TEXT, "%.3g %s", value, interval);
    else
        snprintf(text, KS_STATISTIC_TEXT, "%s", interval);
}

void ks_statistic_text(const struct ks_spectrum *s, enum ks_statistic_id id,
                       char text[KS_STATISTIC_TEXT])
{
    const struct ks_statistic *row = &ks_catalogue[id];
    const struct ks_interval i = ks_statistic_interval(s, id);
    const double value = ks_statistic_value(s, id);

    if (row->kind == KS_IS_EXTREME && isfinite(i.lower) && isfinite(i.upper))
        print_extreme(id == KS_STAT_LAMBDA_MAX, i, text);
    else if (id == KS_STAT_LAMBDA_MAX || !has(s, row->lower) || (isnan(value) && row->unknown))
        print_value(id, value, text);
    else
        print_interval(id, value, i, text);
}

struct ks_cell ks_statistic_cell(const struct ks_spectrum *s, enum ks_statistic_id id)
{
    const struct ks_interval i = ks_statistic_interval(s, id);
    const double value = ks_statistic_value(s, id);
    char text[KS_STATISTIC_TEXT];

    if (!ks_statistic_present(s, id))
        return ks_cell_printed("-", NAN);
    ks_statistic_text(s, id, text);
    return ks_cell_printed(text, !isnan(value) ? value : !isnan(i.lower) ? i.lower : i.upper);
}

void ks_statistics_describe(const struct ks_spectrum *s, struct ks_document *d)
{
    ks_document_columns(d, "", "statistic<, value, meaning<");
    for (const enum ks_statistic_id *id = ks_catalogue_for_readers; *id < KS_STATISTICS; id++)
        if (ks_statistic_present(s, *id))
            ks_document_cells(d, ks_cell_name(ks_catalogue[*id].name), ks_statistic_cell(s, *id),
                              ks_cell_text(ks_catalogue[*id].words));
}
