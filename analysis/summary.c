/* The figures of a spectrum. theta_i, w_i, r_i: Ritz values (ascending), weights (sum 1) and
 * residual bounds of one probe. A figure is a function of one probe and a rule for several; a new
 * one is a function and a row of the table. */
#include "ks/summary.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ks/jacobi.h"
#include "ks/memory.h"

enum { PART = 30 }; /* figures are repeated at m = PART, 2 PART, ... */

/* What a figure is computed from. */
struct probe {
    size_t n;                                /* dimension of the operator                       */
    size_t steps;                            /* m                                               */
    const double *theta, *weight, *residual; /* [steps]                                        */
    double smallest; /* singular value of the extended Jacobi matrix; exact: smallest |theta|  */
    double abs_max;  /* max(|lambda_max|, |lambda_min|), over all probes                       */
};

static double lambda_max(const struct probe *p)
{
    return p->theta[p->steps - 1];
}

static double lambda_max_residual(const struct probe *p)
{
    return p->residual[p->steps - 1];
}

static double lambda_min(const struct probe *p)
{
    return p->theta[0];
}

static double lambda_min_residual(const struct probe *p)
{
    return p->residual[0];
}

static double largest_size(const struct probe *p) /* max |theta| */
{
    return fmax(fabs(p->theta[0]), fabs(p->theta[p->steps - 1]));
}

static double smallest_size(const struct probe *p) /* min |theta| */
{
    double size = INFINITY;

    for (size_t i = 0; i < p->steps; i++)
        size = fmin(size, fabs(p->theta[i]));
    return size;
}

static double kappa(const struct probe *p)
{
    return largest_size(p) / smallest_size(p);
}

/* |A x| >= smallest for every unit vector x of the Krylov space, and |A| >= max |theta|. */
static double kappa_lower_bound(const struct probe *p)
{
    return largest_size(p) / p->smallest;
}

/* The smallest |theta| up to which the weights reach the fraction q: from zero outwards, always the
 * nearer neighbour of the two sides. */
static double size_quantile(const struct probe *p, double q)
{
    static const double ROUNDING =
        1e-12; /* weights 1/10 reach 0.9 after 9, though they sum to less */
    size_t above = 0, below;
    double sum = 0, size = 0;

    while (above < p->steps && p->theta[above] < 0)
        above++;
    below = above; /* next: theta[above] upwards, theta[below - 1] downwards */
    while (sum < q - ROUNDING && (above < p->steps || below > 0)) {
        bool up = below == 0 || (above < p->steps && p->theta[above] <= -p->theta[below - 1]);
        size_t i = up ? above++ : --below;

        size = fabs(p->theta[i]);
        sum += p->weight[i];
    }
    return size;
}

static double kappa_q90(const struct probe *p)
{
    return p->abs_max / size_quantile(p, 0.9);
}

static double kappa_q50(const struct probe *p)
{
    return p->abs_max / size_quantile(p, 0.5);
}

/* m4 / m2^2 of the unweighted Ritz values, central; NaN where they are all alike. In units of the
 * largest, so that no power underflows. */
static double kurtosis(const struct probe *p)
{
    double m = (double)p->steps, unit = largest_size(p), centre = 0, m2 = 0, m4 = 0;

    for (size_t i = 0; i < p->steps; i++)
        centre += p->theta[i] / unit / m;
    for (size_t i = 0; i < p->steps; i++) {
        double square = (p->theta[i] / unit - centre) * (p->theta[i] / unit - centre);

        m2 += square / m;
        m4 += square * square / m;
    }
    return m4 / (m2 * m2);
}

static double kurtosis_excess(const struct probe *p)
{
    return kurtosis(p) - 3;
}

static double trace(const struct probe *p)
{
    double sum = 0;

    for (size_t i = 0; i < p->steps; i++)
        sum += p->weight[i] * p->theta[i];
    return (double)p->n * sum;
}

static double trace_square(const struct probe *p)
{
    double sum = 0;

    for (size_t i = 0; i < p->steps; i++)
        sum += p->weight[i] * p->theta[i] * p->theta[i];
    return (double)p->n * sum;
}

/* trace_square / lambda_abs_max^2, by ratios: a square alone can leave the range of a double. */
static double stable_rank(const struct probe *p)
{
    double sum = 0;

    for (size_t i = 0; i < p->steps; i++)
        sum += p->weight[i] * (p->theta[i] / p->abs_max) * (p->theta[i] / p->abs_max);
    return (double)p->n * sum;
}

static const struct figure {
    const char *name;
    double (*value)(const struct probe *p);
    /* Over several probes. OF_LARGEST, OF_SMALLEST: the value at the probe whose `key` is that. */
    enum { MEAN, MEDIAN, LARGEST, SMALLEST, OF_LARGEST, OF_SMALLEST } over;
    bool every_part; /* it depends on m: repeated for the leading parts */
    double (*key)(const struct probe *p);
} figures[] = {
    {"lambda_max", lambda_max, LARGEST, true, NULL},
    {"lambda_max_residual", lambda_max_residual, OF_LARGEST, true, lambda_max},
    {"lambda_min", lambda_min, SMALLEST, true, NULL},
    {"lambda_min_residual", lambda_min_residual, OF_SMALLEST, true, lambda_min},
    {"kappa", kappa, MEDIAN, true, NULL},
    {"kappa_lower_bound", kappa_lower_bound, LARGEST, true, NULL},
    {"kappa_q90", kappa_q90, MEAN, true, NULL},
    {"kappa_q50", kappa_q50, MEAN, true, NULL},
    {"kurtosis", kurtosis, MEAN, true, NULL},
    {"kurtosis_excess", kurtosis_excess, MEAN, true, NULL},
    {"trace", trace, MEAN, false, NULL},
    {"trace_square", trace_square, MEAN, false, NULL},
    {"stable_rank", stable_rank, MEAN, true, NULL},
};
enum { FIGURES = sizeof figures / sizeof figures[0] };

static int ascending(const void *a, const void *b) /* NaN last */
{
    double x = *(const double *)a, y = *(const double *)b;

    if (isnan(x) || isnan(y))
        return isnan(x) - isnan(y);
    return (x > y) - (x < y);
}

/* Sorts the values. */
static double median(size_t n, double *value)
{
    qsort(value, n, sizeof *value, ascending);
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
static size_t place_of_extreme(size_t n, const struct probe *probe,
                               double (*key)(const struct probe *), double sign)
{
    size_t best = 0;

    for (size_t i = 1; i < n; i++)
        if (sign * key(&probe[i]) > sign * key(&probe[best]))
            best = i;
    return best;
}

/* `value` [n]: the figure of each probe; its order is lost. */
static double combine(const struct figure *f, size_t n, const struct probe *probe, double *value)
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
    }
    assert(!"a figure without a rule");
    return NAN;
}

static void add(struct ks_spectrum *s, double value, const char *name, const char *suffix)
{
    struct ks_attribute *attribute = &s->summary[s->n_summary++];

    attribute->type = KS_ATTRIBUTE_NUMBER;
    attribute->number = value;
    snprintf(attribute->name, sizeof attribute->name, "%s%s", name, suffix);
}

/* Adds the figures of these probes; part: the order of the leading parts, 0 for the whole. */
static ks_status add_figures(struct ks_spectrum *s, struct probe *probe, size_t part)
{
    double *value = NULL, abs_max = 0;
    char suffix[32] = "";

    for (size_t i = 0; i < s->probes; i++)
        abs_max = fmax(abs_max, largest_size(&probe[i]));
    for (size_t i = 0; i < s->probes; i++)
        probe[i].abs_max = abs_max;
    if (part > 0)
        snprintf(suffix, sizeof suffix, "_m%zu", part);
    KS_TRY(ks_alloc(s->probes, sizeof *value, &value));
    for (const struct figure *f = figures; f < figures + FIGURES; f++) {
        double error = 0;

        if (part > 0 && !f->every_part)
            continue;
        for (size_t i = 0; i < s->probes; i++)
            value[i] = f->value(&probe[i]);
        if (s->probes > 1)
            error = standard_error(s->probes, value);
        add(s, combine(f, s->probes, probe, value), f->name, suffix);
        if (s->probes > 1 && part == 0 && !f->key)
            add(s, error, f->name, "_se");
    }
    free(value);
    return KS_OK;
}

static ks_status whole(struct ks_spectrum *s, size_t n, struct probe *probe)
{
    for (size_t i = 0; i < s->probes; i++) {
        size_t row = i * s->order;
        struct probe *p = &probe[i];

        *p = (struct probe){.n = n,
                            .steps = s->steps ? (size_t)s->steps[i] : s->order,
                            .theta = s->ritz + row,
                            .weight = s->weight + row,
                            .residual = s->residual + row};
        if (s->alpha)
            KS_TRY(ks_jacobi_smallest(p->steps, s->alpha + row, s->beta + row, &p->smallest));
        else
            p->smallest = smallest_size(p);
    }
    return add_figures(s, probe, 0);
}

static void make_uniform(size_t n, double *weight)
{
    for (size_t i = 0; i < n; i++)
        weight[i] = 1 / (double)n;
}

/* `nodes` [probes, 3, order] is room for the leading parts' quadrature. */
static ks_status leading_part(struct ks_spectrum *s, size_t n, size_t part, bool unweighted,
                              double *nodes, struct probe *probe)
{
    for (size_t i = 0; i < s->probes; i++) {
        size_t row = i * s->order, m = (size_t)s->steps[i] < part ? (size_t)s->steps[i] : part;
        double *theta = nodes + 3 * row, *weight = theta + s->order, *residual = weight + s->order;
        struct probe *p = &probe[i];

        *p = (struct probe){
            .n = n, .steps = m, .theta = theta, .weight = weight, .residual = residual};
        KS_TRY(ks_jacobi_ritz(m, s->alpha + row, s->beta + row, theta, weight, residual));
        KS_TRY(ks_jacobi_smallest(m, s->alpha + row, s->beta + row, &p->smallest));
        if (unweighted)
            make_uniform(m, weight);
    }
    return add_figures(s, probe, part);
}

ks_status ks_summary(struct ks_spectrum *s, size_t n, bool unweighted)
{
    ks_status status = KS_OK;
    size_t parts = s->alpha ? (s->order - 1) / PART : 0;
    struct probe *probe = NULL;
    double *nodes = NULL;

    assert(s->ritz && !s->summary);
    KS_GO(ks_alloc(FIGURES * (2 + parts), sizeof *s->summary, &s->summary));
    KS_GO(ks_alloc(s->probes, sizeof *probe, &probe));
    KS_GO(whole(s, n, probe));
    if (parts > 0)
        KS_GO(ks_alloc(3 * s->probes * s->order, sizeof *nodes, &nodes));
    for (size_t k = 1; k <= parts; k++)
        KS_GO(leading_part(s, n, k * PART, unweighted, nodes, probe));
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
    return ks_attribute_number(s->summary, s->n_summary, name);
}
