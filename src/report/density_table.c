/* density.csv: the spectral density as a histogram whose cells are as wide as the Ritz values are
 * apart.
 *
 * A kernel of fixed width draws a comb where Ritz values are farther apart than that: teeth and
 * gaps that say nothing of the eigenvalues. Here the weight of a Ritz value is spread evenly over
 * its cell, which ends half-way to its neighbours on the symmetric-log axis s = asinh(x / x_0), so
 * cells are wide where little is known, and there are no gaps. Cells end at the noise floor:
 * eigenvalues below it cannot be distinguished from zero, and mass.csv has their share. */
#include <math.h>
#include <stdlib.h>

#include "core/memory.h"
#include "core/number.h"
#include "lanczos/density.h"
#include "report/plot_tables.h"
#include "statistics/statistics.h"

/* The cells of a probe, on the axis s. */
struct cells {
    size_t n;
    double *low, *high, *density; /* [n] per unit of s; owned */
};

static void free_cells(size_t probes, struct cells *cells)
{
    for (size_t p = 0; cells && p < probes; p++) {
        free(cells[p].low);
        free(cells[p].high);
        free(cells[p].density);
    }
    free(cells);
}

/* The cells of m ascending Ritz values; those within `floor` of zero have none. The outermost cells
 * reach as far outward as inward; a single Ritz value has a cell of one unit. */
static ks_status find_cells(size_t m, const double *theta, const double *weight, double unit,
                            double floor, struct cells *c)
{
    double end = asinh(floor / unit);

    KS_TRY(ks_alloc(m, sizeof *c->low, &c->low));
    KS_TRY(ks_alloc(m, sizeof *c->high, &c->high));
    KS_TRY(ks_alloc(m, sizeof *c->density, &c->density));
    for (size_t i = 0; i < m; i++) {
        double s = asinh(theta[i] / unit);
        double below = i > 0 ? (s - asinh(theta[i - 1] / unit)) / 2 : -1;
        double above = i + 1 < m ? (asinh(theta[i + 1] / unit) - s) / 2 : -1;
        double low = s - (below >= 0 ? below : above >= 0 ? above : 0.5);
        double high = s + (above >= 0 ? above : below >= 0 ? below : 0.5);

        if (fabs(theta[i]) <= floor)
            continue;
        low = theta[i] > 0 ? fmax(low, end) : low;
        high = theta[i] < 0 ? fmin(high, -end) : high;
        if (!(high > low)) /* two equal Ritz values */
            continue;
        c->low[c->n] = low;
        c->high[c->n] = high;
        c->density[c->n++] = weight[i] / (high - low);
    }
    return KS_OK;
}

static double density_at(const struct cells *c, double s)
{
    for (size_t i = 0; i < c->n; i++)
        if (s >= c->low[i] && s < c->high[i])
            return c->density[i];
    return 0;
}

/* The mean over the probes at s, and its standard error (NaN for one probe). */
static void average(size_t probes, const struct cells *cells, double s, double *mean, double *error)
{
    double square = 0;

    *mean = 0;
    for (size_t p = 0; p < probes; p++)
        *mean += density_at(&cells[p], s) / (double)probes;
    for (size_t p = 0; p < probes; p++)
        square += pow(density_at(&cells[p], s) - *mean, 2);
    *error = probes > 1 ? sqrt(square / ((double)probes * ((double)probes - 1))) : NAN;
}

/* Prints the average of the histograms: a row for each cell between neighbouring ends of cells of
 * all probes. Per decade: per unit of s times ln 10. */
static void print_average(const char *name, size_t n_ends, const double *end, double unit,
                          size_t probes, const struct cells *cells, FILE *out)
{
    for (size_t i = 0; i + 1 < n_ends; i++) {
        double mean, error, decade = log(10);

        if (!(end[i + 1] > end[i]))
            continue;
        average(probes, cells, (end[i] + end[i + 1]) / 2, &mean, &error);
        if (mean == 0)
            continue;
        fputs(name, out);
        ks_table_number(out, unit * sinh(end[i]));
        ks_table_number(out, unit * sinh(end[i + 1]));
        ks_table_number(out, mean * decade);
        ks_table_number(out, fmax(mean - error, isnan(error) ? error : 0) * decade);
        ks_table_number(out, (mean + error) * decade);
        putc('\n', out);
    }
}

static ks_status write_density(const char *name, const struct ks_spectrum *s, FILE *out)
{
    size_t probes = ks_spectrum_random(s), n_ends = 0;
    double unit = ks_density_unit(s), floor = ks_statistic_value(s, KS_STAT_NOISE_FLOOR),
           *end = NULL;
    struct cells *cells = NULL;
    ks_status status = KS_OK;

    KS_GO(ks_alloc(probes, sizeof *cells, &cells));
    KS_GO(ks_alloc(2 * probes * s->order, sizeof *end, &end));
    for (size_t p = 0; p < probes; p++) {
        size_t row = p * s->order, m = s->steps ? (size_t)s->steps[p] : s->order;

        KS_GO(find_cells(m, s->ritz + row, s->weight + row, unit, isnan(floor) ? 0 : floor,
                         &cells[p]));
        for (size_t i = 0; i < cells[p].n; i++) {
            end[n_ends++] = cells[p].low[i];
            end[n_ends++] = cells[p].high[i];
        }
    }
    qsort(end, n_ends, sizeof *end, ks_ascending);
    print_average(name, n_ends, end, unit, probes, cells, out);
done:
    free_cells(probes, cells);
    free(end);
    return status;
}

ks_status ks_density_write(const struct ks_tables *t, FILE *out)
{
    for (size_t i = 0; i < t->table->n_rows; i++) {
        const struct ks_spectrum *s = ks_table_spectrum(t, i, 0);

        if (s && ks_density_unit(s) > 0)
            KS_TRY(write_density(ks_table_architecture(t, i)->name, s, out));
    }
    return KS_OK;
}
