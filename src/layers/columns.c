/* slice [a:b], and input [a:b] as the first line of a description: y = columns a to b - 1 of x.
 *
 *   backward            x_bar     = y_bar in these columns, 0 in the others
 *   tangent forward     y_dot     = these columns of x_dot
 *   tangent backward    x_bar_dot = y_bar_dot in these columns, 0 in the others
 */
#include <string.h>

#include "core/memory.h"
#include "layers/copy.h"
#include "layers/layer.h"

struct settings {
    size_t from;
};

static ks_status configure(struct KS(layer) *l, struct ks_line *line)
{
    struct settings *s;
    size_t from, to;

    KS_TRY(ks_line_argument_slice(line, "", l->in, &from, &to));
    KS_TRY(ks_alloc(1, sizeof *s, &l->settings));
    s = l->settings;
    s->from = from;
    l->out = to - from;
    return KS_OK;
}

/* to = the layer's columns of from; NULL counts as zero */
static void take(const struct KS(layer) *l, size_t rows, const real *from, real *to)
{
    const struct settings *s = l->settings;

    from = from ? from + s->from : NULL;
    KS(copy_columns)(&(struct KS(column_copy)){rows, l->out, from, l->in, to, l->out});
}

/* to = from in the layer's columns, 0 in the others; to NULL: not computed */
static void put(const struct KS(layer) *l, size_t rows, const real *from, real *to)
{
    const struct settings *s = l->settings;

    if (!to)
        return;
    memset(to, 0, rows * l->in * sizeof *to);
    KS(copy_columns)(&(struct KS(column_copy)){rows, l->out, from, l->out, to + s->from, l->in});
}

static void forward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    take(l, p->rows, p->x, p->y);
}

static void backward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    put(l, p->rows, p->y_bar, p->x_bar);
}

static void tangent_forward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    take(l, p->rows, p->x_dot, p->y_dot);
}

static void tangent_backward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    put(l, p->rows, p->y_bar_dot, p->x_bar_dot);
}

static const char *const slice_examples[] = {"slice [1:4]", "slice [:2]", "slice [3:]", NULL};

const struct KS(layer_kind) KS(slice) = {
    .name = "slice",
    .examples = slice_examples,
    .head = true,
    .uncounted = true,
    .sums = KS_SUMS_LINEAR,
    .configure = configure,
    .forward = forward,
    .backward = backward,
    .tangent_forward = tangent_forward,
    .tangent_backward = tangent_backward,
};

static const char *const input_examples[] = {"input [1:4]", NULL};

const struct KS(layer_kind) KS(input) = {
    .name = "input",
    .examples = input_examples,
    .first = true,
    .uncounted = true,
    .sums = KS_SUMS_LINEAR,
    .configure = configure,
    .forward = forward,
    .backward = backward,
    .tangent_forward = tangent_forward,
    .tangent_backward = tangent_backward,
};
