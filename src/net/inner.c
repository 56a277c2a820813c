/* The matrices M_i between the Jacobians of a row's outputs: loss.h. */
#include "net/loss.h"

void KS(loss_value)(const struct KS(loss) *l, size_t rows, const real *f, real *c)
{
    const size_t heads = l->n_heads > 0 ? l->n_heads : 1;

    for (size_t i = 0, at = 0; i < rows; i++)
        for (size_t h = 0; h < heads; h++) {
            const struct KS(loss) *head = l->n_heads > 0 ? &l->head[h] : l;

            if (head->kind->value)
                head->kind->value(head, f + at, c + at);
            for (size_t k = 0; k < head->outputs && !head->kind->value; k++)
                c[at + k] = 1;
            at += head->outputs;
        }
}

/* out = scale c c' v */
static void multiply_outer(size_t n, const real *c, real scale, const real *v, real *out)
{
    double sum = 0;

    for (size_t k = 0; k < n; k++)
        sum += (double)c[k] * (double)v[k];
    for (size_t k = 0; k < n; k++)
        out[k] = scale * (real)sum * c[k];
}

/* For a distribution, with v = f_dot: f_bar_dot_k = c_k (v_k - <v>), where <v> is the mean of v
 * with the weights c. If one weight is nearly 1, <v> is nearly that entry of v, and v_k - <v> would
 * cancel. Adding a constant to v changes nothing, so that entry is subtracted from v first. */
static void multiply_distribution(size_t n, const real *c, real scale, const real *v, real *out)
{
    real mean = 0, sum = 0, origin;
    size_t top = 0;

    for (size_t k = 1; k < n; k++)
        top = c[k] > c[top] ? k : top;
    origin = v[top];
    for (size_t k = 0; k < n; k++) {
        mean += c[k] * (v[k] - origin);
        sum += c[k];
    }
    mean = sum > 0 ? mean / sum : 0;
    for (size_t k = 0; k < n; k++)
        out[k] = scale * c[k] * (v[k] - origin - mean);
}

/* M of the columns from `first` on, which a loss without heads has, or a head, in rows of `stride`.
 */
static void multiply_columns(const struct KS(loss) *l, const struct KS(loss_inner) *inner,
                             size_t first, size_t stride, const real *f_dot, real *f_bar_dot)
{
    const size_t n = l->outputs, end = inner->rows * stride;
    const real *c = inner->c, scale = inner->scale;

    if (inner->kind == KS_INNER_HESSIAN && l->kind->distribution)
        for (size_t at = first; at < end; at += stride)
            multiply_distribution(n, c + at, scale, f_dot + at, f_bar_dot + at);
    else if (inner->kind == KS_INNER_GRADIENT || (inner->kind == KS_INNER_VALUE && l->kind->value))
        for (size_t at = first; at < end; at += stride)
            multiply_outer(n, c + at, scale, f_dot + at, f_bar_dot + at);
    else
        for (size_t at = first; at < end; at += stride)
            for (size_t k = at; k < at + n; k++)
                f_bar_dot[k] = scale * c[k] * f_dot[k];
}

/* The gradient of a row's loss is one vector, whatever heads the loss has. */
void KS(loss_multiply)(const struct KS(loss) *l, const struct KS(loss_inner) *inner,
                       const real *f_dot, real *f_bar_dot)
{
    const size_t heads = inner->kind == KS_INNER_GRADIENT ? 0 : l->n_heads;

    if (heads == 0)
        multiply_columns(l, inner, 0, l->outputs, f_dot, f_bar_dot);
    for (size_t h = 0, first = 0; h < heads; first += l->head[h++].outputs)
        multiply_columns(&l->head[h], inner, first, l->outputs, f_dot, f_bar_dot);
}
