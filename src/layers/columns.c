/* Layers that take or add columns.
 *
 *   slice [a:b]         y = columns a to b - 1 of x; input [a:b] is a slice that is a description's
 *                       first line
 *   append C            y = [x, C], the constant C as one more feature
 *   concat input[a:b]   y = [x, u], with u the columns a to b - 1 of the network's input, which are
 *                       constants (DenseNet-style joins of the input: Sinha et al., "D2RL", arXiv
 *                       2010.09163; actions that enter behind the first layer: Lillicrap et al.,
 *                       ICLR 2016)
 *
 *   backward            x_bar     = y_bar in the columns of x that y has, 0 in the others
 *   tangent forward     y_dot     = these columns of x_dot, 0 in the added columns
 *   tangent backward    x_bar_dot = y_bar_dot in the columns of x that y has, 0 in the others
 */
#include <string.h>

#include "layers/arrays.h"
#include "layers/layer.h"

/* y = [x[from : from + kept], added columns]; the added columns are input[input_from : ], or if
 * `inputs` is 0 the constant. */
struct settings {
    size_t from, kept;
    size_t input_from, inputs; /* `inputs`: columns of the network's input */
    real constant;
};

static ks_status slice_configure(struct KS(layer) *l, struct ks_line *line)
{
    struct settings *s = l->settings;
    size_t from, to;

    KS_TRY(ks_line_argument_slice(line, "", l->in, &from, &to));
    *s = (struct settings){.from = from, .kept = to - from};
    l->out = s->kept;
    return KS_OK;
}

static ks_status append_configure(struct KS(layer) *l, struct ks_line *line)
{
    double constant = 0;
    struct settings *s = l->settings;

    KS_TRY(ks_line_argument_number(line, "a constant", -1e12, 1e12, &constant));
    *s = (struct settings){.kept = l->in, .constant = (real)constant};
    l->out = l->in + 1;
    return KS_OK;
}

static ks_status concat_configure(struct KS(layer) *l, struct ks_line *line)
{
    struct settings *s = l->settings;
    size_t from, to;

    KS_TRY(ks_line_argument_slice(line, "input", l->network_in, &from, &to));
    *s = (struct settings){.kept = l->in, .input_from = from, .inputs = l->network_in};
    l->out = l->in + (to - from);
    return KS_OK;
}

/* y = [the kept columns of x, zeros] */
static void take(const struct KS(layer) *l, const struct KS(pass) *p, const real *x, real *y)
{
    const struct settings *s = l->settings;

    x = x ? x + s->from : NULL;
    ks_copy_columns((struct KS(column_copy)){p->rows, s->kept, x, l->in, y, l->out});
    ks_copy_columns(
        (struct KS(column_copy)){p->rows, l->out - s->kept, NULL, 0, y + s->kept, l->out});
}

/* x_bar = y_bar in the kept columns, 0 in the others */
static void put(const struct KS(layer) *l, const struct KS(pass) *p, const real *y_bar, real *x_bar)
{
    const struct settings *s = l->settings;

    if (!x_bar)
        return;
    if (s->kept < l->in)
        memset(x_bar, 0, p->rows * l->in * sizeof *x_bar);
    ks_copy_columns(
        (struct KS(column_copy)){p->rows, s->kept, y_bar, l->out, x_bar + s->from, l->in});
}

static void forward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    const struct settings *s = l->settings;

    take(l, p, p->x, p->y);
    if (s->inputs > 0)
        ks_copy_columns((struct KS(column_copy)){p->rows, l->out - s->kept,
                                                 p->input + s->input_from, s->inputs,
                                                 p->y + s->kept, l->out});
    for (size_t i = 0; i < p->rows && s->inputs == 0; i++)
        for (size_t j = s->kept; j < l->out; j++)
            p->y[i * l->out + j] = s->constant;
}

#define FUNCTIONS                                                                                  \
    .settings = sizeof(struct settings), .sums = KS_SUMS_LINEAR, .forward = forward,               \
    KS_LAYER_LINEAR(take, put)

const struct KS(layer_kind) KS(slice) = {
    .name = "slice",
    .examples = (const char *const[]){"slice [1:4]", "slice [:2]", "slice [3:]", NULL},
    .head = true,
    .uncounted = true,
    .configure = slice_configure,
    FUNCTIONS,
};

const struct KS(layer_kind) KS(input) = {
    .name = "input",
    .examples = (const char *const[]){"input [1:4]", NULL},
    .first = true,
    .uncounted = true,
    .configure = slice_configure,
    FUNCTIONS,
};

const struct KS(layer_kind) KS(append) = {
    .name = "append",
    .examples = (const char *const[]){"append 3", "append -0.5", NULL},
    .configure = append_configure,
    FUNCTIONS,
};

const struct KS(layer_kind) KS(concat) = {
    .name = "concat",
    .examples = (const char *const[]){"concat input[1:4]", "concat input[2:]", NULL},
    .reads_input = true,
    .configure = concat_configure,
    FUNCTIONS,
};
