/* concat input[a:b]: y = [x, u], with u the columns a to b - 1 of the network's input
 * (DenseNet-style joins of the input: Sinha et al., "D2RL", arXiv 2010.09163; actions that enter
 * behind the first layer: Lillicrap et al., ICLR 2016). u is a constant.
 *
 *   backward            x_bar     = y_bar without the columns of u
 *   tangent forward     y_dot     = [x_dot, 0]
 *   tangent backward    x_bar_dot = y_bar_dot without the columns of u
 */
#include "core/memory.h"
#include "layers/copy.h"
#include "layers/layer.h"

struct settings {
    size_t from, inputs; /* u is input[from : from + l->out - l->in], of `inputs` columns */
};

static ks_status configure(struct KS(layer) *l, struct ks_line *line)
{
    struct settings *s;
    size_t from, to;

    KS_TRY(ks_line_argument_slice(line, "input", l->network_in, &from, &to));
    KS_TRY(ks_alloc(1, sizeof *s, &l->settings));
    s = l->settings;
    s->from = from;
    s->inputs = l->network_in;
    l->out = l->in + (to - from);
    return KS_OK;
}

/* to = [from, u]; from NULL counts as zero, and so does input NULL */
static void widen(const struct KS(layer) *l, size_t rows, const real *from, const real *input,
                  real *to)
{
    const struct settings *s = l->settings;
    struct KS(column_copy) first = {rows, l->in, from, l->in, to, l->out};
    struct KS(column_copy) last = {rows,      l->out - l->in, input ? input + s->from : NULL,
                                   s->inputs, to + l->in,     l->out};

    KS(copy_columns)(&first);
    KS(copy_columns)(&last);
}

/* to = from without the columns of u; to NULL: not computed */
static void narrow(const struct KS(layer) *l, size_t rows, const real *from, real *to)
{
    KS(copy_columns)(&(struct KS(column_copy)){rows, l->in, from, l->out, to, l->in});
}

static void forward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    widen(l, p->rows, p->x, p->input, p->y);
}

static void backward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    narrow(l, p->rows, p->y_bar, p->x_bar);
}

static void tangent_forward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    widen(l, p->rows, p->x_dot, NULL, p->y_dot);
}

static void tangent_backward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    narrow(l, p->rows, p->y_bar_dot, p->x_bar_dot);
}

static const char *const examples[] = {"concat input[1:4]", "concat input[2:]", NULL};

const struct KS(layer_kind) KS(concat) = {
    .name = "concat",
    .examples = examples,
    .reads_input = true,
    .sums = KS_SUMS_LINEAR,
    .configure = configure,
    .forward = forward,
    .backward = backward,
    .tangent_forward = tangent_forward,
    .tangent_backward = tangent_backward,
};
