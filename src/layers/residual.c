/* residual (He et al., CVPR 2016): a container, y = skip + x, where skip is the body's input and x
 * its output.
 *
 *   backward            x_bar     = skip_bar     = y_bar
 *   tangent forward     y_dot     = skip_dot + x_dot
 *   tangent backward    x_bar_dot = skip_bar_dot = y_bar_dot
 */
#include "layers/layer.h"

static ks_status configure(struct KS(layer) *l, struct ks_line *line)
{
    (void)line;
    l->out = l->in;
    return KS_OK;
}

/* y = x + skip; NULL counts as zero, y may be x */
static void add(const struct KS(layer) *l, const struct KS(pass) *p, const real *x, real *y)
{
    for (size_t i = 0; i < p->rows * l->in; i++)
        y[i] = (x ? x[i] : 0) + (p->skip ? p->skip[i] : 0);
}

/* x_bar = skip_bar = y_bar; NULL: not computed, x_bar may be y_bar */
static void copy_twice(const struct KS(layer) *l, const struct KS(pass) *p, const real *y_bar,
                       real *x_bar)
{
    for (size_t i = 0; i < p->rows * l->in && p->skip_bar; i++)
        p->skip_bar[i] = y_bar[i];
    for (size_t i = 0; i < p->rows * l->in && x_bar && x_bar != y_bar; i++)
        x_bar[i] = y_bar[i];
}

const struct KS(layer_kind) KS(residual) = {
    .name = "residual",
    .examples = (const char *const[]){"residual {", NULL},
    .in_place = true,
    .container = true,
    .uncounted = true,
    .sums = KS_SUMS_COPIED,
    .configure = configure,
    .forward = KS(linear_forward),
    KS_LAYER_LINEAR(add, copy_twice),
};
