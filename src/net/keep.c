/* net_keep copies what the tangent passes read, rounded to their precision. Where the passes allow
 * to subtract a constant from a column, it is subtracted first. Then the digits of the lower
 * precision describe the deviations from the constant. */
#include "net/net.h"

#include <math.h>

enum { COLUMNS = 256 };

/* A shift of the features [at, at + n) of a matrix y [rows, d]. It replaces y by (y - base) + rest,
 * where base is an entry of the column, so that base - rest is subtracted in all. With one number
 * in place of these two, a constant column would not become exactly zero. */
struct shift {
    size_t rows, d, at, n;
    double base[COLUMNS], rest[COLUMNS];
};

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static double shifted(const struct shift *a, size_t j, double y)
{
    return y - a->base[j] + a->rest[j];
}

/* The shift that subtracts the mean. */
static void find_mean(struct shift *a, const double *y)
{
    y += a->at;
    for (size_t j = 0; j < a->n; j++) {
        a->base[j] = y[j];
        a->rest[j] = 0;
    }
    for (size_t i = 0; i < a->rows; i++)
        for (size_t j = 0; j < a->n; j++)
            a->rest[j] -= y[i * a->d + j] - a->base[j];
    for (size_t j = 0; j < a->n; j++)
        a->rest[j] /= (double)a->rows;
}

/* The shift that keeps the signs (for KS_USES_SIGN). It subtracts a little less than the smallest
 * entry if all entries are positive, and nothing otherwise. Little precision is lost, because the
 * mean of nonnegative entries of which one is zero is at most sqrt(rows) standard deviations. */
static void find_positive(struct shift *a, const double *y)
{
    static const double MARGIN = 0.125, TINY = 1e-30;

    find_mean(a, y);
    y += a->at;
    for (size_t j = 0; j < a->n; j++) {
        double mean = a->base[j] - a->rest[j], smallest = a->base[j], margin;

        for (size_t i = 0; i < a->rows; i++)
            smallest = fmin(smallest, y[i * a->d + j]);
        margin = fmax(MARGIN * (mean - smallest), fmin(smallest, TINY));
        a->base[j] = smallest > margin ? smallest : 0;
        a->rest[j] = smallest > margin ? margin : 0;
    }
}

static void keep(size_t n, const double *from, size_t at, real *kept)
{
    if (at == KS_NOWHERE)
        return;
    for (size_t i = 0; i < n; i++)
        kept[at + i] = (real)from[i];
}

/* Keeps the output of layer i, shifted, and its means in the next layer's cache, with the same
 * shift. */
static void keep_shifted(const struct KS(net) *net, size_t i, const double *primal, real *kept)
{
    const struct KS(layer) *l = &net->arch->layer[i];
    const struct ks_layout *at = &net->at[i];
    const double *y = primal + at->y, *mean = primal + at[1].cache;
    struct shift a = {.rows = at->rows, .d = l->out};

    for (a.at = 0; a.at < l->out; a.at += COLUMNS) {
        a.n = least(l->out - a.at, COLUMNS);
        if (l->uses & KS_USES_SIGN)
            find_positive(&a, y);
        else
            find_mean(&a, y);
        for (size_t k = 0; k < a.rows; k++)
            for (size_t j = 0; j < a.n; j++)
                kept[at->kept_y + k * a.d + a.at + j] = (real)shifted(&a, j, y[k * a.d + a.at + j]);
        for (size_t j = 0; j < a.n && l[1].kind->caches_mean; j++)
            kept[at[1].kept_cache + a.at + j] = (real)shifted(&a, j, mean[a.at + j]);
    }
}

void KS(net_keep)(const struct KS(net) *net, const double *primal, const double *adjoint,
                  real *kept)
{
    for (size_t i = 0; i < net->arch->n_layers; i++) {
        const struct KS(layer) *l = &net->arch->layer[i];
        const struct ks_layout *at = &net->at[i];

        keep(at->rows * l->out, primal + at->y, at->kept_own, kept);
        keep(at->rows * l->cache_row + l->cache_fixed, primal + at->cache, at->kept_cache, kept);
        keep(at->rows * l->out, adjoint + at->y_bar, at->kept_y_bar, kept);
    }
    for (size_t i = 0; i < net->arch->n_layers; i++)
        if (net->at[i].shifted)
            keep_shifted(net, i, primal, kept);
}

void KS(net_centre)(size_t rows, size_t columns, double *x)
{
    struct shift a = {.rows = rows, .d = columns};

    for (a.at = 0; a.at < columns; a.at += COLUMNS) {
        a.n = least(columns - a.at, COLUMNS);
        find_mean(&a, x);
        for (size_t k = 0; k < rows; k++)
            for (size_t j = 0; j < a.n; j++)
                x[k * columns + a.at + j] = shifted(&a, j, x[k * columns + a.at + j]);
    }
}
