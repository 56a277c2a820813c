/* append: y = [x, C], the constant C as one more feature.
 *
 *   backward            x_bar     = y_bar without its last column
 *   tangent forward     y_dot     = [x_dot, 0]
 *   tangent backward    x_bar_dot = y_bar_dot without its last column
 */
#include "core/memory.h"
#include "layers/copy.h"
#include "layers/layer.h"

struct settings {
    real constant;
};

static ks_status configure(struct KS(layer) *l, struct ks_line *line)
{
    double constant = 0;
    struct settings *s;

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

static void forward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    const struct settings *s = l->settings;

    widen(l, p->rows, p->x, s->constant, p->y);
}

static void backward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    narrow(l, p->rows, p->y_bar, p->x_bar);
}

static void tangent_forward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    widen(l, p->rows, p->x_dot, 0, p->y_dot);
}

static void tangent_backward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    narrow(l, p->rows, p->y_bar_dot, p->x_bar_dot);
}

static const char *const examples[] = {"append 3", "append -0.5", NULL};

const struct KS(layer_kind) KS(append) = {
    .name = "append",
    .examples = examples,
    .sums = KS_SUMS_LINEAR,
    .configure = configure,
    .forward = forward,
    .backward = backward,
    .tangent_forward = tangent_forward,
    .tangent_backward = tangent_backward,
};
