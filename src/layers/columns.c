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
 *
 * and at the end of the file dueling, which combines columns. */
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

/* y = [x[from : from + kept], added columns]; the added columns are input[input_from : ], or if
 * `inputs` is 0 the constant. */
struct settings {
    size_t from, kept;
    size_t input_from, inputs; /* `inputs`: columns of the network's input */
    real constant;
};

static ks_status slice_configure(struct KS(layer) *l, struct ks_line *line)
{
    struct settings *s;
    size_t from, to;

    KS_TRY(ks_line_argument_slice(line, "", l->in, &from, &to));
    KS_TRY(ks_alloc(1, sizeof *s, &l->settings));
    s = l->settings;
    *s = (struct settings){.from = from, .kept = to - from};
    l->out = s->kept;
    return KS_OK;
}

static ks_status append_configure(struct KS(layer) *l, struct ks_line *line)
{
    double constant = 0;
    struct settings *s;

    KS_TRY(ks_line_argument_number(line, "a constant", -1e12, 1e12, &constant));
    KS_TRY(ks_alloc(1, sizeof *s, &l->settings));
    s = l->settings;
    *s = (struct settings){.kept = l->in, .constant = (real)constant};
    l->out = l->in + 1;
    return KS_OK;
}

static ks_status concat_configure(struct KS(layer) *l, struct ks_line *line)
{
    struct settings *s;
    size_t from, to;

    KS_TRY(ks_line_argument_slice(line, "input", l->network_in, &from, &to));
    KS_TRY(ks_alloc(1, sizeof *s, &l->settings));
    s = l->settings;
    *s = (struct settings){.kept = l->in, .input_from = from, .inputs = l->network_in};
    l->out = l->in + (to - from);
    return KS_OK;
}

/* to = [the kept columns of from, added]. `from` or `added` NULL counts as zeros. */
static void take(const struct KS(layer) *l, size_t rows, const real *from, const real *added,
                 real *to)
{
    const struct settings *s = l->settings;

    from = from ? from + s->from : NULL;
    KS(copy_columns)(&(struct KS(column_copy)){rows, s->kept, from, l->in, to, l->out});
    KS(copy_columns)
    (&(struct KS(column_copy)){rows, l->out - s->kept, added, s->inputs, to + s->kept, l->out});
}

/* to = from in the kept columns, 0 in the others; to NULL: not computed */
static void put(const struct KS(layer) *l, size_t rows, const real *from, real *to)
{
    const struct settings *s = l->settings;

    if (!to)
        return;
    if (s->kept < l->in)
        memset(to, 0, rows * l->in * sizeof *to);
    KS(copy_columns)(&(struct KS(column_copy)){rows, s->kept, from, l->out, to + s->from, l->in});
}

static void forward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    const struct settings *s = l->settings;

    take(l, p->rows, p->x, s->inputs > 0 ? p->input + s->input_from : NULL, p->y);
    for (size_t i = 0; i < p->rows && s->inputs == 0; i++)
        for (size_t j = s->kept; j < l->out; j++)
            p->y[i * l->out + j] = s->constant;
}

static void backward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    put(l, p->rows, p->y_bar, p->x_bar);
}

static void tangent_forward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    take(l, p->rows, p->x_dot, NULL, p->y_dot);
}

static void tangent_backward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    put(l, p->rows, p->y_bar_dot, p->x_bar_dot);
}

static const char *const slice_examples[] = {"slice [1:4]", "slice [:2]", "slice [3:]", NULL};
static const char *const input_examples[] = {"input [1:4]", NULL};
static const char *const append_examples[] = {"append 3", "append -0.5", NULL};
static const char *const concat_examples[] = {"concat input[1:4]", "concat input[2:]", NULL};

#define FUNCTIONS                                                                                  \
    .sums = KS_SUMS_LINEAR, .forward = forward, .backward = backward,                              \
    .tangent_forward = tangent_forward, .tangent_backward = tangent_backward

const struct KS(layer_kind) KS(slice) = {
    .name = "slice",
    .examples = slice_examples,
    .head = true,
    .uncounted = true,
    .configure = slice_configure,
    FUNCTIONS,
};

const struct KS(layer_kind) KS(input) = {
    .name = "input",
    .examples = input_examples,
    .first = true,
    .uncounted = true,
    .configure = slice_configure,
    FUNCTIONS,
};

const struct KS(layer_kind) KS(append) = {
    .name = "append",
    .examples = append_examples,
    .configure = append_configure,
    FUNCTIONS,
};

const struct KS(layer_kind) KS(concat) = {
    .name = "concat",
    .examples = concat_examples,
    .reads_input = true,
    .configure = concat_configure,
    FUNCTIONS,
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
