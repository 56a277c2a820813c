/* Tables of the spectra of one run per architecture: density.csv, ritz.csv, mass.csv,
 * staircase.csv, distribution.csv, orders.csv, operators.csv. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/number.h"
#include "lanczos/jacobi.h"
#include "lanczos/slq.h"
#include "report/tables.h"
#include "statistics/statistics.h"

/* --- density.csv --- */

/* The spectral density as a histogram whose cells are as wide as the Ritz values are apart.
 *
 * A kernel of fixed width draws a comb where Ritz values are farther apart than that: teeth and
 * gaps that say nothing of the eigenvalues. Here the weight of a Ritz value is spread evenly over
 * its cell, which ends half-way to its neighbours on the symmetric-log axis s = asinh(x / x_0), so
 * cells are wide where little is known, and there are no gaps. Cells end at the noise floor:
 * eigenvalues below it cannot be distinguished from zero, and mass.csv has their share. */

/* The cells of a probe, on the axis s. */
struct cells {
    size_t n;
    struct {
        double low, high, density; /* per unit of s */
    } * cell;                      /* [n]           */
};

/* The histogram of a spectrum. */
struct histogram {
    const struct ks_spectrum *s;
    double unit, floor; /* x_0; the noise floor, 0 where it is unknown */
    size_t probes, n_ends;
    struct cells *cells;  /* [probes]                                  */
    double *end;          /* [n_ends] the ends of all cells, ascending */
    struct ks_pool *pool; /* of the arrays                            */
};

/* The cells of the ascending Ritz values of a probe; those within `floor` of zero have none. The
 * outermost cells reach as far outward as inward; a single Ritz value has a cell of one unit. */
static ks_status find_cells(struct histogram *h, size_t probe)
{
    size_t row = probe * h->s->order, m = h->s->steps ? (size_t)h->s->steps[probe] : h->s->order;
    const double *theta = h->s->ritz + row, *weight = h->s->weight + row, unit = h->unit;
    double end = asinh(h->floor / unit);
    struct cells *c = &h->cells[probe];

    KS_TRY(ks_pool_alloc(h->pool, m, sizeof *c->cell, &c->cell));
    for (size_t i = 0; i < m; i++) {
        double s = asinh(theta[i] / unit);
        double below = i > 0 ? (s - asinh(theta[i - 1] / unit)) / 2 : -1;
        double above = i + 1 < m ? (asinh(theta[i + 1] / unit) - s) / 2 : -1;
        double low = s - (below >= 0 ? below : above >= 0 ? above : 0.5);
        double high = s + (above >= 0 ? above : below >= 0 ? below : 0.5);

        if (fabs(theta[i]) <= h->floor)
            continue;
        low = theta[i] > 0 ? fmax(low, end) : low;
        high = theta[i] < 0 ? fmin(high, -end) : high;
        if (!(high > low)) /* two equal Ritz values */
            continue;
        c->cell[c->n].low = low;
        c->cell[c->n].high = high;
        c->cell[c->n++].density = weight[i] / (high - low);
    }
    return KS_OK;
}

static double density_at(const struct cells *c, double s)
{
    for (size_t i = 0; i < c->n; i++)
        if (s >= c->cell[i].low && s < c->cell[i].high)
            return c->cell[i].density;
    return 0;
}

/* The mean over the probes at s, and its standard error (NaN for one probe). */
static void average(const struct histogram *h, double s, double *mean, double *error)
{
    double square = 0;
    size_t probes = h->probes;

    *mean = 0;
    for (size_t p = 0; p < probes; p++)
        *mean += density_at(&h->cells[p], s) / (double)probes;
    for (size_t p = 0; p < probes; p++)
        square += pow(density_at(&h->cells[p], s) - *mean, 2);
    *error = probes > 1 ? sqrt(square / ((double)probes * ((double)probes - 1))) : NAN;
}

/* Adds the average of the histograms: a row for each cell between neighbouring ends of cells of
 * all probes. Per decade: per unit of s times ln 10. */
static void add_average(const char *name, const struct histogram *h, struct ks_table *out)
{
    const double *end = h->end;

    for (size_t i = 0; i + 1 < h->n_ends; i++) {
        double mean, error, decade = log(10);

        if (!(end[i + 1] > end[i]))
            continue;
        average(h, (end[i] + end[i + 1]) / 2, &mean, &error);
        if (mean == 0)
            continue;
        ks_table_cells(out, KS_TEXT(name), KS_NUMBER(h->unit * sinh(end[i])),
                       KS_NUMBER(h->unit * sinh(end[i + 1])), KS_NUMBER(mean * decade),
                       KS_NUMBER(fmax(mean - error, isnan(error) ? error : 0) * decade),
                       KS_NUMBER((mean + error) * decade));
    }
}

ks_status ks_density_fill(const char *name, const struct ks_spectrum *s, struct ks_table *out)
{
    double floor = ks_statistic_value(s, KS_STAT_NOISE_FLOOR);
    KS_CLEARED_BY(ks_pool_free) struct ks_pool pool = {.n = 0};
    struct histogram h = {.s = s,
                          .pool = &pool,
                          .unit = ks_density_unit(s),
                          .floor = isnan(floor) ? 0 : floor,
                          .probes = ks_spectrum_random(s)};

    if (!(h.unit > 0))
        return KS_OK;
    KS_TRY(ks_pool_alloc(&pool, h.probes, sizeof *h.cells, &h.cells));
    KS_TRY(ks_pool_alloc(&pool, 2 * h.probes * s->order, sizeof *h.end, &h.end));
    for (size_t p = 0; p < h.probes; p++) {
        KS_TRY(find_cells(&h, p));
        for (size_t i = 0; i < h.cells[p].n; i++) {
            h.end[h.n_ends++] = h.cells[p].cell[i].low;
            h.end[h.n_ends++] = h.cells[p].cell[i].high;
        }
    }
    qsort(h.end, h.n_ends, sizeof *h.end, ks_ascending);
    add_average(name, &h, out);
    return KS_OK;
}

/* --- the other tables --- */

/* Of the standard analysis and of ks_tables_paper_curve, at all checkpoints. */
ks_status ks_ritz_fill(const struct ks_tables *t, struct ks_table *out)
{
    size_t analysis[] = {0, ks_tables_paper_curve(t)};

    for (size_t a = 0; a < (analysis[1] > 0 ? 2 : 1); a++)
        for (size_t i = 0; i < t->table->n_rows; i++)
            for (size_t k = 0; k < t->r->study->n_checkpoints; k++) {
                const struct ks_spectrum *s = ks_results_spectrum(t->r, ks_tables_run(t, i),
                                                                  analysis[a], k);

                for (size_t j = 0; s && j < ks_spectrum_random(s) * s->order; j++)
                    if (isfinite(s->ritz[j]))
                        ks_table_cells(out, KS_TEXT(ks_tables_architecture(t, i)->name),
                                       KS_TEXT(t->r->study->analysis[analysis[a]].name),
                                       KS_COUNT(t->r->study->checkpoint[k]), KS_NUMBER(s->ritz[j]));
            }
    return KS_OK;
}

/* The share of eigenvalues at zero and below, with 99% intervals, and what "at zero" means. */
ks_status ks_mass_fill(const char *name, const struct ks_spectrum *s, struct ks_table *out)
{
    ks_table_cells(out, KS_TEXT(name), KS_NUMBER(ks_statistic_value(s, KS_STAT_ZERO_MASS)),
                   KS_INTERVAL(ks_statistic_interval(s, KS_STAT_ZERO_MASS)),
                   KS_NUMBER(ks_statistic_value(s, KS_STAT_NEGATIVE_MASS)),
                   KS_INTERVAL(ks_statistic_interval(s, KS_STAT_NEGATIVE_MASS)),
                   KS_NUMBER(ks_statistic_value(s, KS_STAT_NOISE_FLOOR)));
    return KS_OK;
}

struct node {
    double value, weight; /* sorted by value, the first member */
};

/* The cumulative spectral weight: over the probes, the mean weight of Ritz values up to x. */
ks_status ks_staircase_fill(const char *name, const struct ks_spectrum *s, struct ks_table *out)
{
    KS_OWNED struct node *node = NULL;
    double sum = 0;
    size_t n = 0, probes = ks_spectrum_random(s);

    KS_TRY(ks_alloc(probes * s->order, sizeof *node, &node));
    for (size_t j = 0; j < probes * s->order; j++)
        if (isfinite(s->ritz[j]))
            node[n++] = (struct node){s->ritz[j], s->weight[j] / (double)probes};
    qsort(node, n, sizeof *node, ks_ascending);
    for (size_t j = 0; j < n; j++) {
        sum += node[j].weight;
        ks_table_cells(out, KS_TEXT(name), KS_NUMBER(node[j].value), KS_NUMBER(sum));
    }
    return KS_OK;
}

/* Numbers of eigenvalues: up to x for a negative x, above x for a positive one. */
ks_status ks_distribution_fill(const char *name, const struct ks_spectrum *s, struct ks_table *out)
{
    double n = ks_attribute_number(&s->attributes, "dimension");

    for (size_t j = 0; j < s->n_band; j++) {
        double lower = s->band_lower[j], upper = s->band_upper[j];
        bool above = s->band_at[j] > 0;

        ks_table_cells(out, KS_TEXT(name), KS_NUMBER(s->band_at[j]), KS_NUMBER(lower),
                       KS_NUMBER(upper), KS_NUMBER(round(n * (above ? 1 - upper : lower))),
                       KS_NUMBER(round(n * (above ? 1 - lower : upper))));
    }
    return KS_OK;
}

/* --- orders.csv: what the same spectrum would be after fewer Lanczos steps --- */

/* Kappa and its lower bound from the leading block of a probe's Jacobi matrix; work [3, m]. */
static ks_status leading_kappa(const struct ks_spectrum *s, size_t probe, size_t m, double *work,
                               double kappa[2])
{
    const struct ks_jacobi jacobi = {m, s->alpha + probe * s->order, s->beta + probe * s->order};
    double h = ks_statistic_value(s, KS_STAT_NOISE_FLOOR) / 2, sigma, largest = 0,
           smallest = INFINITY;

    KS_TRY(ks_jacobi_ritz(&jacobi, work, work + m, work + 2 * m));
    KS_TRY(ks_jacobi_smallest(&jacobi, &sigma));
    for (size_t i = 0; i < m; i++) {
        largest = fmax(largest, fabs(work[i]));
        smallest = fmin(smallest, fabs(work[i]));
    }
    kappa[0] = largest > 0 ? largest / smallest : NAN;
    kappa[1] = largest > 0 ? largest / (sigma + h) : NAN;
    return KS_OK;
}

/* Over the probes: the median of kappa, the largest lower bound, as analysis/README.md says. Both
 * are NaN if no probe has m steps. */
static ks_status kappa_at(const struct ks_spectrum *s, size_t m, double *work, double result[2])
{
    size_t n = 0;
    double *kappa = work + 3 * m;

    result[1] = NAN;
    for (size_t p = 0; p < ks_spectrum_random(s); p++) {
        double both[2];

        if ((size_t)s->steps[p] < m)
            continue;
        KS_TRY(leading_kappa(s, p, m, work, both));
        if (!isnan(both[0]))
            kappa[n++] = both[0];
        result[1] = fmax(result[1], both[1]);
    }
    qsort(kappa, n, sizeof *kappa, ks_ascending);
    result[0] = n > 0 ? ks_quantile(n, kappa, 0.5) : NAN;
    return KS_OK;
}

/* kappa_effective_bound of m steps, where the spectrum has it: certified at its full order, and
 * not certified at m = 30, 60, ... below. */
static double effective_bound(const struct ks_spectrum *s, size_t m)
{
    char name[48];

    if (m >= s->order)
        return ks_statistic_value(s, KS_STAT_KAPPA_EFFECTIVE_BOUND);
    snprintf(name, sizeof name, "%s_m%zu", ks_catalogue[KS_STAT_KAPPA_EFFECTIVE_BOUND].name, m);
    return ks_statistic(s, name);
}

ks_status ks_orders_fill(const char *name, const struct ks_spectrum *s, struct ks_table *out)
{
    KS_OWNED double *work = NULL;

    if (!s->alpha)
        return KS_OK;
    KS_TRY(ks_alloc(3 * s->order + s->probes, sizeof *work, &work));
    for (size_t m = 1; m <= s->order; m++) {
        double kappa[2];

        KS_TRY(kappa_at(s, m, work, kappa));
        ks_table_cells(out, KS_TEXT(name), KS_COUNT(m), KS_NUMBER(kappa[0]), KS_NUMBER(kappa[1]),
                       KS_NUMBER(effective_bound(s, m)), KS_NUMBER(ks_noise_limit(s)));
    }
    return KS_OK;
}

/* --- operators.csv --- */

/* The first analysis of that operator that this architecture has, else NULL. */
static const struct ks_spectrum *find_operator(const struct ks_tables *t, size_t row,
                                               const char *name)
{
    for (size_t k = 0; k < t->r->study->n_analyses; k++) {
        const struct ks_spectrum *s = ks_tables_spectrum(t, row, k);

        if (s && ks_results_operator(s) && strcmp(ks_results_operator(s), name) == 0 &&
            !ks_attribute_find(&s->attributes, "compat"))
            return s;
    }
    return NULL;
}

ks_status ks_operators_fill(const struct ks_tables *t, size_t row, struct ks_table *out)
{
    static const char *const names[] = {"hessian", "ggn", "residual"};
    enum { NAMES = sizeof names / sizeof *names };
    const struct ks_spectrum *s[NAMES];

    for (size_t k = 0; k < NAMES; k++)
        s[k] = find_operator(t, row, names[k]);
    for (size_t k = 0; k < NAMES && (s[1] || s[2]); k++)
        for (size_t j = 0; s[k] && j < ks_spectrum_random(s[k]) * s[k]->order; j++)
            if (isfinite(s[k]->ritz[j]))
                ks_table_cells(out, KS_TEXT(ks_tables_architecture(t, row)->name),
                               KS_TEXT(names[k]), KS_NUMBER(s[k]->ritz[j]),
                               KS_NUMBER(s[k]->weight[j]));
    return KS_OK;
}
