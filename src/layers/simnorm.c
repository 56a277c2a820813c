/* simnorm [dim=8] (Hansen, Su & Wang, "TD-MPC2", ICLR 2024, equation 5): the features of a row in
 * groups of `dim`, a softmax of each. With <u> the sum of u over a group:
 *
 *   y = e^x / <e^x>
 *   backward            x_bar     = y (y_bar - <y y_bar>)
 *   tangent forward     y_dot     = y (x_dot - <y x_dot>)
 *   tangent backward    x_bar_dot = y_dot (y_bar - <y y_bar>)
 *                                 + y (y_bar_dot - <y_dot y_bar + y y_bar_dot>)
 */
#include <math.h>

#include "layers/layer.h"

enum { MAX_DIM = 1 << 16 };

static ks_status configure(struct KS(layer) *l, struct ks_line *line)
{
    double dim = 8;

    KS_TRY(ks_line_option_number(line, "dim", 1, MAX_DIM, &dim));
    if ((double)(size_t)dim != dim || l->in % (size_t)dim != 0)
        return ks_line_fail(line, "simnorm: expected a dim that divides %zu, found %g", l->in, dim);
    l->groups = l->in / (size_t)dim;
    l->out = l->in;
    l->uses = KS_USES_Y | KS_USES_Y_BAR;
    return KS_OK;
}

static size_t group(const struct KS(layer) *l)
{
    return l->in / l->groups;
}

static real dot(size_t n, const real *a, const real *b)
{
    real sum = 0;

    for (size_t j = 0; j < n; j++)
        sum += a[j] * b[j];
    return sum;
}

static void forward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    size_t n = group(l);

    for (size_t at = 0; at < p->rows * l->in; at += n) {
        real largest = p->x[at];
        double sum = 0;

        for (size_t j = 1; j < n; j++)
            largest = p->x[at + j] > largest ? p->x[at + j] : largest;
        for (size_t j = 0; j < n; j++) {
            double e = exp((double)(p->x[at + j] - largest));

            p->y[at + j] = (real)e;
            sum += e;
        }
        for (size_t j = 0; j < n; j++)
            p->y[at + j] = (real)((double)p->y[at + j] / sum);
    }
}

/* out = y (in - <y in>); in NULL counts as zero, out NULL: not computed */
static void project(const struct KS(layer) *l, const struct KS(pass) *p, const real *in, real *out)
{
    size_t n = group(l);

    for (size_t at = 0; at < p->rows * l->in && out; at += n) {
        real mean = in ? dot(n, p->y + at, in + at) : 0;

        for (size_t j = 0; j < n; j++)
            out[at + j] = in ? p->y[at + j] * (in[at + j] - mean) : 0;
    }
}

/* One group; x_dot NULL counts as zero. */
static void tangent_backward_group(size_t n, const struct KS(pass) *p, size_t at)
{
    const real *y = p->y + at, *y_bar = p->y_bar + at, *y_bar_dot = p->y_bar_dot + at;
    const real *x_dot = p->x_dot ? p->x_dot + at : NULL;
    real mean = dot(n, y, y_bar), mean_dot = dot(n, y, y_bar_dot);
    real x_mean = x_dot ? dot(n, y, x_dot) : 0;

    for (size_t j = 0; j < n && x_dot; j++)
        mean_dot += y[j] * (x_dot[j] - x_mean) * y_bar[j];
    for (size_t j = 0; j < n; j++) {
        real y_dot = x_dot ? y[j] * (x_dot[j] - x_mean) : 0;

        p->x_bar_dot[at + j] = y_dot * (y_bar[j] - mean) + y[j] * (y_bar_dot[j] - mean_dot);
    }
}

static void tangent_backward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    for (size_t at = 0; at < p->rows * l->in && p->x_bar_dot; at += group(l))
        tangent_backward_group(group(l), p, at);
}

const struct KS(layer_kind) KS(simnorm) = {
    .name = "simnorm",
    .examples = (const char *const[]){"simnorm dim=3", "simnorm dim=6", NULL},
    .sums = KS_SUMS_ROWS,
    .map = project,
    .adjoint = project,
    .configure = configure,
    .forward = forward,
    .backward = KS(linear_backward),
    .tangent_forward = KS(linear_tangent_forward),
    .tangent_backward = tangent_backward,
};
