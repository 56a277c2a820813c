/* The losses of a critic: one table row and three functions each. */
#include "ks/loss.h"

#include <math.h>
#include <stddef.h>

/* mse: l = (f - t)^2 / 2,   dl/df = f - t,   d2l/df2 = 1. */

static ks_status mse_configure(struct ks_loss *l, struct ks_line *line)
{
    if (l->outputs != 1)
        return ks_line_fail(line, "mse: expected a last dense of 1 column, found %zu", l->outputs);
    return KS_OK;
}

static double mse_gradient(const struct ks_loss *l, size_t rows, const real *f, const real *t,
                           real scale, real *f_bar)
{
    double sum = 0;

    for (size_t i = 0; i < rows; i++) {
        real e = f[i] - t[i];

        sum += 0.5 * (double)e * (double)e;
        if (f_bar)
            f_bar[i] = scale * (real)l->weight * e;
    }
    return l->weight * sum;
}

static void mse_curvature(const struct ks_loss *l, size_t rows, const real *f, const real *t,
                          real scale, const real *f_dot, real *f_bar_dot)
{
    (void)f, (void)t;
    for (size_t i = 0; i < rows; i++)
        f_bar_dot[i] = scale * (real)l->weight * f_dot[i];
}

/* ce: l = - sum_k t_k log p_k,   p = softmax(f).   Targets are taken literally, S = sum_k t_k:
 *
 *   dl/df = S p - t,   (d2l/df2) v = S (p v - p <p, v>).
 */

static ks_status ce_configure(struct ks_loss *l, struct ks_line *line)
{
    if (!ks_line_has(line, "min") || !ks_line_has(line, "max"))
        return ks_line_fail(line, "ce: needs min=V and max=V");
    KS_TRY(ks_line_number(line, "min", -1e12, 1e12, &l->min));
    KS_TRY(ks_line_number(line, "max", -1e12, 1e12, &l->max));
    if (!(l->min < l->max))
        return ks_line_fail(line, "ce: expected min < max, found %g and %g", l->min, l->max);
    if (l->outputs < 2)
        return ks_line_fail(line, "ce: expected a last dense of at least 2 columns, found %zu",
                            l->outputs);
    return KS_OK;
}

/* log sum_k exp(f_k), without overflow */
static real log_sum_exp(size_t n, const real *f)
{
    size_t top = 0;
    double rest = 0; /* sum of exp(f_k - max) over all k but that of the maximum */

    for (size_t k = 1; k < n; k++)
        top = f[k] > f[top] ? k : top;
    for (size_t k = 0; k < n; k++)
        rest += k == top ? 0 : exp((double)(f[k] - f[top]));
    return f[top] + (real)log1p(rest);
}

void KS(softmax)(size_t rows, size_t columns, const real *f, real *p)
{
    for (size_t i = 0; i < rows; i++) {
        real lse = log_sum_exp(columns, f + i * columns);

        for (size_t k = 0; k < columns; k++)
            p[i * columns + k] = (real)exp((double)(f[i * columns + k] - lse));
    }
}

static double ce_gradient(const struct ks_loss *l, size_t rows, const real *f, const real *t,
                          real scale, real *f_bar)
{
    size_t n = l->outputs;
    double value = 0;

    for (size_t i = 0; i < rows; i++) {
        const real *fi = f + i * n, *ti = t + i * n;
        real lse = log_sum_exp(n, fi), sum = 0;

        for (size_t k = 0; k < n; k++) {
            sum += ti[k];
            value -= (double)ti[k] * (double)(fi[k] - lse);
        }
        for (size_t k = 0; k < n && f_bar; k++)
            f_bar[i * n + k] = scale * (real)l->weight *
                               (sum * (real)exp((double)(fi[k] - lse)) - ti[k]);
    }
    return l->weight * value;
}

static void ce_curvature(const struct ks_loss *l, size_t rows, const real *f, const real *t,
                         real scale, const real *f_dot, real *f_bar_dot)
{
    size_t n = l->outputs;

    for (size_t i = 0; i < rows; i++) {
        const real *v = f_dot + i * n;
        real *out = f_bar_dot + i * n, mean = 0, sum = 0;

        KS(softmax)(1, n, f + i * n, out);
        for (size_t k = 0; k < n; k++) {
            mean += out[k] * v[k];
            sum += t[i * n + k];
        }
        for (size_t k = 0; k < n; k++)
            out[k] *= scale * (real)l->weight * sum * (v[k] - mean);
    }
}

static const char *const mse_examples[] = {"loss mse", "loss mse weight=0.5", NULL};
static const struct ks_loss_kind mse = {"mse", mse_examples, mse_configure, mse_gradient,
                                        mse_curvature};

static const char *const ce_examples[] = {"loss ce min=-5 max=5", "loss ce min=0 max=3 weight=2",
                                          NULL};
static const struct ks_loss_kind ce = {"ce", ce_examples, ce_configure, ce_gradient, ce_curvature};

const struct ks_loss_kind *const KS(loss_kinds)[] = {&mse, &ce, NULL};
