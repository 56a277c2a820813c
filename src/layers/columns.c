/* slice [a:b], and input [a:b] as the first line of a description: y = columns a to b - 1 of x.
 *
 *   backward            x_bar     = y_bar in these columns, 0 in the others
 *   tangent forward     y_dot     = these columns of x_dot
 *   tangent backward    x_bar_dot = y_bar_dot in these columns, 0 in the others
 */
#include <string.h>

#include "core/memory.h"
#include "layers/columns.h"
#include "layers/layer.h"

void KS(copy_columns)(const struct KS(column_copy) *copy)
{
    size_t bytes = copy->columns * sizeof(real);

    for (size_t i = 0; i < copy->rows && copy->to; i++)
        if (copy->from)
            memcpy(copy->to + i * copy->to_width, copy->from + i * copy->from_width, bytes);
        else
            memset(copy->to + i * copy->to_width, 0, bytes);
}

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

/* append: y = [x, C], the constant C as one more feature.
 *
 *   backward            x_bar     = y_bar without its last column
 *   tangent forward     y_dot     = [x_dot, 0]
 *   tangent backward    x_bar_dot = y_bar_dot without its last column
 */

struct append_settings {
    real constant;
};

static ks_status append_configure(struct KS(layer) *l, struct ks_line *line)
{
    double constant = 0;
    struct append_settings *s;

    KS_TRY(ks_line_argument_number(line, "a constant", -1e12, 1e12, &constant));
    KS_TRY(ks_alloc(1, sizeof *s, &l->settings));
    s = l->settings;
    s->constant = (real)constant;
    l->out = l->in + 1;
    return KS_OK;
}

/* to = [from, last]; from NULL counts as zero */
static void widen(const struct KS(layer) *l, size_t rows, const real *from, real last, real *to)
{
    KS(copy_columns)(&(struct KS(column_copy)){rows, l->in, from, l->in, to, l->out});
    for (size_t i = 0; i < rows; i++)
        to[i * l->out + l->in] = last;
}

/* to = from without its last column; to NULL: not computed */
static void narrow(const struct KS(layer) *l, size_t rows, const real *from, real *to)
{
    KS(copy_columns)(&(struct KS(column_copy)){rows, l->in, from, l->out, to, l->in});
}

static void append_forward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    const struct append_settings *s = l->settings;

    widen(l, p->rows, p->x, s->constant, p->y);
}

static void append_backward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    narrow(l, p->rows, p->y_bar, p->x_bar);
}

static void append_tangent_forward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    widen(l, p->rows, p->x_dot, 0, p->y_dot);
}

static void append_tangent_backward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    narrow(l, p->rows, p->y_bar_dot, p->x_bar_dot);
}

static const char *const examples[] = {"append 3", "append -0.5", NULL};

const struct KS(layer_kind) KS(append) = {
    .name = "append",
    .examples = examples,
    .sums = KS_SUMS_LINEAR,
    .configure = append_configure,
    .forward = append_forward,
    .backward = append_backward,
    .tangent_forward = append_tangent_forward,
    .tangent_backward = append_tangent_backward,
};

/* concat input[a:b]: y = [x, u], with u the columns a to b - 1 of the network's input
 * (DenseNet-style joins of the input: Sinha et al., "D2RL", arXiv 2010.09163; actions that enter
 * behind the first layer: Lillicrap et al., ICLR 2016). u is a constant.
 *
 *   backward            x_bar     = y_bar without the columns of u
 *   tangent forward     y_dot     = [x_dot, 0]
 *   tangent backward    x_bar_dot = y_bar_dot without the columns of u
 */

struct concat_settings {
    size_t from, inputs; /* u is input[from : from + l->out - l->in], of `inputs` columns */
};

static ks_status concat_configure(struct KS(layer) *l, struct ks_line *line)
{
    struct concat_settings *s;
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
static void concat_widen(const struct KS(layer) *l, size_t rows, const real *from,
                         const real *input, real *to)
{
    const struct concat_settings *s = l->settings;
    struct KS(column_copy) first = {rows, l->in, from, l->in, to, l->out};
    struct KS(column_copy) last = {rows,      l->out - l->in, input ? input + s->from : NULL,
                                   s->inputs, to + l->in,     l->out};

    KS(copy_columns)(&first);
    KS(copy_columns)(&last);
}

/* to = from without the columns of u; to NULL: not computed */
static void concat_narrow(const struct KS(layer) *l, size_t rows, const real *from, real *to)
{
    KS(copy_columns)(&(struct KS(column_copy)){rows, l->in, from, l->out, to, l->in});
}

static void concat_forward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    concat_widen(l, p->rows, p->x, p->input, p->y);
}

static void concat_backward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    concat_narrow(l, p->rows, p->y_bar, p->x_bar);
}

static void concat_tangent_forward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    concat_widen(l, p->rows, p->x_dot, NULL, p->y_dot);
}

static void concat_tangent_backward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    concat_narrow(l, p->rows, p->y_bar_dot, p->x_bar_dot);
}

static const char *const concat_examples[] = {"concat input[1:4]", "concat input[2:]", NULL};

const struct KS(layer_kind) KS(concat) = {
    .name = "concat",
    .examples = concat_examples,
    .reads_input = true,
    .sums = KS_SUMS_LINEAR,
    .configure = concat_configure,
    .forward = concat_forward,
    .backward = concat_backward,
    .tangent_forward = concat_tangent_forward,
    .tangent_backward = concat_tangent_backward,
};

/* dueling [atoms=M] (Wang et al., "Dueling network architectures", ICML 2016, equation 9; with
 * atoms Hessel et al., "Rainbow", AAAI 2018): x = [V, A_1, ..., A_K], blocks of M columns,
 *
 *   y_k = V + A_k - <A>        where <A> is the mean of A_1, ..., A_K
 *
 *   backward            V_bar = sum_k y_bar_k,   A_k_bar = y_bar_k - <y_bar>
 *   tangent forward     as forward, of x_dot
 *   tangent backward    as backward, of y_bar_dot
 */

enum { MAX_ATOMS = 1 << 16 };

struct dueling_settings {
    size_t atoms;
};

static ks_status dueling_configure(struct KS(layer) *l, struct ks_line *line)
{
    double atoms = 1;
    struct dueling_settings *s;

    KS_TRY(ks_line_option_number(line, "atoms", 1, MAX_ATOMS, &atoms));
    KS_TRY(ks_alloc(1, sizeof *s, &l->settings));
    s = l->settings;
    s->atoms = (size_t)atoms;
    if ((double)s->atoms != atoms || l->in % s->atoms != 0 || l->in < 2 * s->atoms)
        return ks_line_fail(line,
                            "dueling: expected a value and at least one advantage, 2 times %g "
                            "columns or more of that, found %zu columns",
                            atoms, l->in);
    l->out = l->in - s->atoms;
    return KS_OK;
}

/* y from x; x NULL counts as zero */
static void combine(const struct KS(layer) *l, size_t rows, const real *x, real *y)
{
    size_t m = ((const struct dueling_settings *)l->settings)->atoms, actions = l->out / m;

    for (size_t i = 0; i < rows * m; i++) {
        size_t row = i / m, atom = i % m;
        const real *value = x ? x + row * l->in + atom : NULL;
        real *q = y + row * l->out + atom, mean = 0;

        for (size_t k = 1; k <= actions && x; k++)
            mean += value[k * m] / (real)actions;
        for (size_t k = 0; k < actions; k++)
            q[k * m] = x ? value[0] + value[(k + 1) * m] - mean : 0;
    }
}

/* x_bar from y_bar; NULL: not computed */
static void distribute(const struct KS(layer) *l, size_t rows, const real *y_bar, real *x_bar)
{
    size_t m = ((const struct dueling_settings *)l->settings)->atoms, actions = l->out / m;

    for (size_t i = 0; i < rows * m && x_bar; i++) {
        size_t row = i / m, atom = i % m;
        const real *q_bar = y_bar + row * l->out + atom;
        real *value_bar = x_bar + row * l->in + atom, sum = 0;

        for (size_t k = 0; k < actions; k++)
            sum += q_bar[k * m];
        value_bar[0] = sum;
        for (size_t k = 0; k < actions; k++)
            value_bar[(k + 1) * m] = q_bar[k * m] - sum / (real)actions;
    }
}

static void dueling_forward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    combine(l, p->rows, p->x, p->y);
}

static void dueling_backward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    distribute(l, p->rows, p->y_bar, p->x_bar);
}

static void dueling_tangent_forward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    combine(l, p->rows, p->x_dot, p->y_dot);
}

static void dueling_tangent_backward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    distribute(l, p->rows, p->y_bar_dot, p->x_bar_dot);
}

static const char *const dueling_examples[] = {"dueling", "dueling atoms=2", NULL};

const struct KS(layer_kind) KS(dueling) = {
    .name = "dueling",
    .examples = dueling_examples,
    .head = true,
    .sums = KS_SUMS_LINEAR,
    .configure = dueling_configure,
    .forward = dueling_forward,
    .backward = dueling_backward,
    .tangent_forward = dueling_tangent_forward,
    .tangent_backward = dueling_tangent_backward,
};
