/* The table of figures: which there are, how those of several probes become one number; and all of
 * them again for leading parts of the Jacobi matrices. A new figure is a function in probe.h and a
 * row here. */
#include "ks/summary.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ks/jacobi.h"
#include "ks/memory.h"
#include "ks/null.h"
#include "ks/order.h"
#include "ks/probe.h"

enum { PART = 30 }; /* figures are repeated at m = PART, 2 PART, ... */

/* The noise floor where null directions were measured, in units of what was measured. What was
 * measured is typical of rounding and no bound: known zeros of dense matrices come out at up to 3.4
 * units, with all operators, both precisions, ten seeds, small critics as training leaves them and
 * others (test_noise.c: 2.9). */
static const double MARGIN = 4;

/* The noise floor in units of eps lambda_abs_max: of the products' eps where no null direction was
 * measured, of the basis' eps in any case. Rounding moves eigenvalues by at most the norm of the
 * error of the operator: up to 7 units for critics of dog-trot in float32, 1 for the golden ones;
 * Lanczos in float64 leaves a zero eigenvalue within 4 (test_zeros_stay_below_the_noise_floor,
 * test_noise_floor_of_float32). */
static const double NOISE = 16;

/* Figures of what is known beside the probes. */

static double noise_floor(const struct ks_probe *p)
{
    return p->known->noise_floor;
}

static double null_dimension(const struct ks_probe *p)
{
    return p->known->null_dimension;
}

static double null_residual(const struct ks_probe *p)
{
    return p->known->null_residual;
}

static double dead_dimension(const struct ks_probe *p)
{
    return p->known->dead_dimension;
}

static const struct figure {
    const char *name;
    double (*value)(const struct ks_probe *p);
    /* Over several probes. OF_LARGEST, OF_SMALLEST: the value at the probe whose `key` is that.
     * KNOWN: no probe decides it. */
    enum { MEAN, MEDIAN, LARGEST, SMALLEST, OF_LARGEST, OF_SMALLEST, KNOWN } over;
    bool every_part; /* it depends on m: repeated for the leading parts */
    double (*key)(const struct ks_probe *p);
} figures[] = {
    {"lambda_max", ks_probe_lambda_max, LARGEST, true, NULL},
    {"lambda_max_residual", ks_probe_lambda_max_residual, OF_LARGEST, true, ks_probe_lambda_max},
    {"lambda_max_upper", ks_probe_lambda_max_upper, LARGEST, true, NULL},
    {"lambda_min", ks_probe_lambda_min, SMALLEST, true, NULL},
    {"lambda_min_residual", ks_probe_lambda_min_residual, OF_SMALLEST, true, ks_probe_lambda_min},
    {"kappa", ks_probe_kappa, MEDIAN, true, NULL},
    {"kappa_lower_bound", ks_probe_kappa_lower_bound, LARGEST, true, NULL},
    {"kappa_effective_bound", ks_probe_kappa_effective_bound, LARGEST, true, NULL},
    {"kappa_q90", ks_probe_kappa_q90, MEAN, true, NULL},
    {"kappa_q50", ks_probe_kappa_q50, MEAN, true, NULL},
    {"kurtosis", ks_probe_kurtosis, MEAN, true, NULL},
    {"kurtosis_excess", ks_probe_kurtosis_excess, MEAN, true, NULL},
    {"kurtosis_spectral", ks_probe_kurtosis_spectral, MEAN, true, NULL},
    {"trace", ks_probe_trace, MEAN, false, NULL},
    {"trace_square", ks_probe_trace_square, MEAN, false, NULL},
    {"stable_rank", ks_probe_stable_rank, MEAN, true, NULL},
    {"outliers", ks_probe_outliers, MEAN, true, NULL},
    {"outlier_gap", ks_probe_outlier_gap, MEAN, true, NULL},
    {"noise_floor", noise_floor, KNOWN, true, NULL},
    {"zero_mass", ks_probe_zero_mass, MEAN, true, NULL},
    {"negative_mass", ks_probe_negative_mass, MEAN, true, NULL},
    {"null_dimension", null_dimension, KNOWN, false, NULL},
    {"null_residual", null_residual, KNOWN, true, NULL},
    {"dead_dimension", dead_dimension, KNOWN, false, NULL},
};
enum { FIGURES = sizeof figures / sizeof figures[0] };

/* What the published code's process (--compat xqc) has no basis for. The first four speak of all n
 * eigenvalues, of which uniform weights say nothing. The others are bounds that hold for vectors
 * which are orthonormal: one pass in float32 does not keep them so once the Krylov space has ended,
 * and kappa_lower_bound comes out above the condition number (test_no_bounds). */
static double (*const of_the_standard_process[])(const struct ks_probe *p) = {
    ks_probe_trace,
    ks_probe_trace_square,
    ks_probe_stable_rank,
    ks_probe_kurtosis_spectral,
    ks_probe_lambda_max_upper,
    ks_probe_kappa_lower_bound,
    ks_probe_kappa_effective_bound,
};
enum { LEFT_OUT = sizeof of_the_standard_process / sizeof of_the_standard_process[0] };

static bool needs_standard_process(const struct figure *f)
{
    for (size_t i = 0; i < LEFT_OUT; i++)
        if (f->value == of_the_standard_process[i])
            return true;
    return false;
}

/* Sorts the values. */
static double median(size_t n, double *value)
{
    qsort(value, n, sizeof *value, ks_ascending);
    return n % 2 == 1 ? value[n / 2] : (value[n / 2 - 1] + value[n / 2]) / 2;
}

static double mean(size_t n, const double *value)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += value[i];
    return sum / (double)n;
}

/* Of the mean of n >= 2 values: sqrt(sum (x - mean)^2 / (n (n - 1))). */
static double standard_error(size_t n, const double *value)
{
    double centre = mean(n, value), sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += (value[i] - centre) * (value[i] - centre);
    return sqrt(sum / ((double)n * ((double)n - 1)));
}

/* The largest (sign 1) or smallest (sign -1) of the keys decides. */
static size_t place_of_extreme(size_t n, const struct ks_probe *probe,
                               double (*key)(const struct ks_probe *), double sign)
{
    size_t best = 0;

    for (size_t i = 1; i < n; i++)
        if (sign * key(&probe[i]) > sign * key(&probe[best]))
            best = i;
    return best;
}

/* `value` [n]: the figure of each probe; its order is lost. */
static double combine(const struct figure *f, size_t n, const struct ks_probe *probe, double *value)
{
    switch (f->over) {
    case MEAN:
        return mean(n, value);
    case MEDIAN:
        return median(n, value);
    case LARGEST:
        return value[place_of_extreme(n, probe, f->value, 1)];
    case SMALLEST:
        return value[place_of_extreme(n, probe, f->value, -1)];
    case OF_LARGEST:
        return value[place_of_extreme(n, probe, f->key, 1)];
    case OF_SMALLEST:
        return value[place_of_extreme(n, probe, f->key, -1)];
    case KNOWN:
        return value[0];
    }
    assert(!"a figure without a rule");
    return NAN;
}

static ks_status add(struct ks_spectrum *s, double value, const char *name, const char *suffix)
{
    char whole[KS_ATTRIBUTE_NAME];

    snprintf(whole, sizeof whole, "%s%s", name, suffix);
    return ks_attribute_add_number(&s->summary, whole, value);
}

/* Measurements on null directions replace the products' eps: the size of their products, and what a
 * product of the largest size would put into their space. Where both are exactly zero,
 * no rounding was measured. */
static double find_noise_floor(const struct ks_summary_terms *terms, double abs_max)
{
    const struct ks_null *null = terms->null;
    bool measured = null && null->dimension > 0 && (null->product > 0 || null->leak > 0);

    return fmax(measured ? MARGIN * fmax(null->product, null->leak * abs_max)
                         : NOISE * terms->epsilon * abs_max,
                NOISE * terms->basis_epsilon * abs_max);
}

/* The null space is where the architecture implies one and the weight decay adds nothing, and on
 * dead coordinates. */
static struct ks_known find_known(const struct ks_spectrum *s, const struct ks_probe *probe,
                                  const struct ks_summary_terms *terms)
{
    const struct ks_null *null = terms->null;
    struct ks_known known = {.n = terms->n,
                             .probes = s->probes,
                             .unweighted = terms->unweighted,
                             .null_dimension = NAN,
                             .null_residual = NAN,
                             .dead_dimension = NAN};

    for (size_t i = 0; i < s->probes; i++)
        known.abs_max = fmax(known.abs_max, ks_probe_largest_size(&probe[i]));
    known.noise_floor = find_noise_floor(terms, known.abs_max);
    if (!null)
        return known;
    known.null_dimension = (double)null->dimension;
    known.dead_dimension = (double)null->dead;
    known.null_residual = null->product / known.abs_max;
    if (terms->shift == 0)
        known.null = null->dimension + null->dead;
    return known;
}

/* Adds the figures of these probes; part: the order of the leading parts, 0 for the whole. */
static ks_status add_figures(struct ks_spectrum *s, const struct ks_summary_terms *terms,
                             struct ks_probe *probe, size_t part)
{
    const bool published = terms->unweighted && s->alpha; /* else the spectrum is exact */
    struct ks_known known = find_known(s, probe, terms);
    ks_status status = KS_OK;
    double *value = NULL;
    char suffix[32] = "";

    for (size_t i = 0; i < s->probes; i++)
        probe[i].known = &known;
    if (part > 0)
        snprintf(suffix, sizeof suffix, "_m%zu", part);
    KS_GO(ks_alloc(s->probes, sizeof *value, &value));
    for (const struct figure *f = figures; f < figures + FIGURES; f++) {
        double error = 0;

        if ((part > 0 && !f->every_part) || (published && needs_standard_process(f)))
            continue;
        for (size_t i = 0; i < s->probes; i++)
            value[i] = f->value(&probe[i]);
        if (s->probes > 1)
            error = standard_error(s->probes, value);
        KS_GO(add(s, combine(f, s->probes, probe, value), f->name, suffix));
        if (s->probes > 1 && part == 0 && !f->key && f->over != KNOWN)
            KS_GO(add(s, error, f->name, "_se"));
    }
done:
    free(value);
    return status;
}

static ks_status whole(struct ks_spectrum *s, const struct ks_summary_terms *terms,
                       struct ks_probe *probe)
{
    for (size_t i = 0; i < s->probes; i++) {
        size_t row = i * s->order;
        struct ks_probe *p = &probe[i];

        *p = (struct ks_probe){.steps = s->steps ? (size_t)s->steps[i] : s->order,
                               .theta = s->ritz + row,
                               .weight = s->weight + row,
                               .residual = s->residual + row,
                               .beta = s->beta ? s->beta + row : NULL};
        if (s->alpha)
            KS_TRY(ks_jacobi_smallest(p->steps, s->alpha + row, s->beta + row, &p->smallest));
        else
            p->smallest = ks_probe_smallest_size(p);
    }
    return add_figures(s, terms, probe, 0);
}

static void make_uniform(size_t n, double *weight)
{
    for (size_t i = 0; i < n; i++)
        weight[i] = 1 / (double)n;
}

/* `nodes` [probes, 3, order] is room for the leading parts' quadrature. */
static ks_status leading_part(struct ks_spectrum *s, const struct ks_summary_terms *terms,
                              size_t part, double *nodes, struct ks_probe *probe)
{
    for (size_t i = 0; i < s->probes; i++) {
        size_t row = i * s->order, m = (size_t)s->steps[i] < part ? (size_t)s->steps[i] : part;
        double *theta = nodes + 3 * row, *weight = theta + s->order, *residual = weight + s->order;
        struct ks_probe *p = &probe[i];

        *p = (struct ks_probe){.steps = m,
                               .theta = theta,
                               .weight = weight,
                               .residual = residual,
                               .beta = s->beta + row};
        KS_TRY(ks_jacobi_ritz(m, s->alpha + row, s->beta + row, theta, weight, residual));
        KS_TRY(ks_jacobi_smallest(m, s->alpha + row, s->beta + row, &p->smallest));
        if (terms->unweighted)
            make_uniform(m, weight);
    }
    return add_figures(s, terms, probe, part);
}

ks_status ks_summary(struct ks_spectrum *s, const struct ks_summary_terms *terms)
{
    ks_status status = KS_OK;
    size_t parts = s->alpha ? (s->order - 1) / PART : 0;
    struct ks_probe *probe = NULL;
    double *nodes = NULL;

    assert(s->ritz && s->summary.n == 0);
    KS_GO(ks_alloc(s->probes, sizeof *probe, &probe));
    KS_GO(whole(s, terms, probe));
    if (parts > 0)
        KS_GO(ks_alloc(3 * s->probes * s->order, sizeof *nodes, &nodes));
    for (size_t k = 1; k <= parts; k++)
        KS_GO(leading_part(s, terms, k * PART, nodes, probe));
done:
    free(probe);
    free(nodes);
    return status;
}

void ks_summary_unweight(struct ks_spectrum *s)
{
    for (size_t i = 0; i < s->probes; i++)
        make_uniform(s->steps ? (size_t)s->steps[i] : s->order, s->weight + i * s->order);
}

double ks_summary_get(const struct ks_spectrum *s, const char *name)
{
    return ks_attribute_number(&s->summary, name);
}
