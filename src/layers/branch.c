/* branch: a container, y = [skip, x], where skip is the body's input and x its output. A row of
 * branches becomes branches side by side, since the parser lets the body of each see only what the
 * first one sees, and drops that behind the last one (parse_branch in net/arch.c).
 *
 *   backward            [skip_bar, x_bar]         = y_bar
 *   tangent forward     y_dot                     = [skip_dot, x_dot]
 *   tangent backward    [skip_bar_dot, x_bar_dot] = y_bar_dot
 */
#include "layers/arrays.h"
#include "layers/layer.h"

static ks_status configure(struct KS(layer) *l, struct ks_line *line)
{
    (void)line;
    l->out = 2 * l->in; /* the parser corrects it when it knows the width of the body */
    return KS_OK;
}

/* A matrix of `columns` columns: the columns of y from `at` on. NULL counts as zero, or is not
 * computed. */
static void put(const struct KS(layer) *l, size_t rows, const real *part, size_t at, real *y)
{
    size_t columns = at == 0 ? l->in : l->out - l->in;

    ks_copy_columns((struct KS(column_copy)){rows, columns, part, columns, y + at, l->out});
}

static void take(const struct KS(layer) *l, size_t rows, const real *y, size_t at, real *part)
{
    size_t columns = at == 0 ? l->in : l->out - l->in;

    ks_copy_columns((struct KS(column_copy)){rows, columns, y + at, l->out, part, columns});
}

static void forward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    put(l, p->rows, p->skip, 0, p->y);
    put(l, p->rows, p->x, l->in, p->y);
}

static void backward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    take(l, p->rows, p->y_bar, 0, p->skip_bar);
    take(l, p->rows, p->y_bar, l->in, p->x_bar);
}

static void tangent_forward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    put(l, p->rows, p->skip_dot, 0, p->y_dot);
    put(l, p->rows, p->x_dot, l->in, p->y_dot);
}

static void tangent_backward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    take(l, p->rows, p->y_bar_dot, 0, p->skip_bar_dot);
    take(l, p->rows, p->y_bar_dot, l->in, p->x_bar_dot);
}

const struct KS(layer_kind) KS(branch) = {
    .name = "branch",
    .examples = (const char *const[]){"branch {", NULL},
    .container = true,
    .joins = true,
    .uncounted = true,
    KS_LAYER_FUNCTIONS,
};
