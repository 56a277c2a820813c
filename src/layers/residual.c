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

/* sum = a + b; a or b NULL counts as zero; sum may alias a */
static void add(size_t n, const real *a, const real *b, real *sum)
{
    for (size_t i = 0; i < n; i++)
        sum[i] = (a ? a[i] : 0) + (b ? b[i] : 0);
}

/* Copies `bar` to `first` and `second`; either may be NULL, and `first` may alias `bar`. */
static void copy_twice(size_t n, const real *bar, real *first, real *second)
{
    for (size_t i = 0; i < n && second; i++)
        second[i] = bar[i];
    for (size_t i = 0; i < n && first && first != bar; i++)
        first[i] = bar[i];
}

static void forward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    add(p->rows * l->in, p->x, p->skip, p->y);
}

static void backward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    copy_twice(p->rows * l->in, p->y_bar, p->x_bar, p->skip_bar);
}

static void tangent_forward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    add(p->rows * l->in, p->x_dot, p->skip_dot, p->y_dot);
}

static void tangent_backward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    copy_twice(p->rows * l->in, p->y_bar_dot, p->x_bar_dot, p->skip_bar_dot);
}

const struct KS(layer_kind) KS(residual) = {
    .name = "residual",
    .examples = (const char *const[]){"residual {", NULL},
    .in_place = true,
    .container = true,
    .uncounted = true,
    .sums = KS_SUMS_COPIED,
    KS_LAYER_FUNCTIONS,
};
