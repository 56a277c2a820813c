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

/* y = [skip, x]; NULL counts as zero */
static void join(const struct KS(layer) *l, const struct KS(pass) *p, const real *x, real *y)
{
    size_t in = l->in, out = l->out;

    ks_copy_columns((struct KS(column_copy)){p->rows, in, p->skip, in, y, out});
    ks_copy_columns((struct KS(column_copy)){p->rows, out - in, x, out - in, y + in, out});
}

/* [skip_bar, x_bar] = y_bar; NULL: not computed */
static void separate(const struct KS(layer) *l, const struct KS(pass) *p, const real *y_bar,
                     real *x_bar)
{
    size_t in = l->in, out = l->out;

    ks_copy_columns((struct KS(column_copy)){p->rows, in, y_bar, out, p->skip_bar, in});
    ks_copy_columns((struct KS(column_copy)){p->rows, out - in, y_bar + in, out, x_bar, out - in});
}

const struct KS(layer_kind) KS(branch) = {
    .name = "branch",
    .examples = (const char *const[]){"branch {", NULL},
    .container = true,
    .joins = true,
    .uncounted = true,
    .configure = configure,
    .forward = KS(linear_forward),
    KS_LAYER_LINEAR(join, separate),
};
