/* dropout input[a:b] [rate=P] (Srivastava et al., JMLR 15, 2014) with a stored mask: y = c u x per
 * feature, c = 1 / (1 - P), where u, of as many columns as x, is columns a to b - 1 of the
 * network's input: 0 for what was dropped, 1 for the rest. u is a constant.
 *
 *   backward            x_bar     = c u y_bar
 *   tangent forward     y_dot     = c u x_dot
 *   tangent backward    x_bar_dot = c u y_bar_dot
 *
 * Cache, per row: c u.
 */
#include "layers/layer.h"

struct settings {
    size_t from, inputs; /* u is input[from : from + l->in], of `inputs` columns */
    double factor;       /* c */
};

static ks_status configure(struct KS(layer) *l, struct ks_line *line)
{
    static const double MOST = 1 - 1e-6;
    double rate = 0;
    struct settings *s = l->settings;
    size_t from, to;

    KS_TRY(ks_line_argument_slice(line, "input", l->network_in, &from, &to));
    KS_TRY(ks_line_option_number(line, "rate", 0, MOST, &rate));
    if (to - from != l->in)
        return ks_line_fail(line, "dropout: expected a mask of %zu columns, found %zu", l->in,
                            to - from);
    s->from = from;
    s->inputs = l->network_in;
    s->factor = 1 / (1 - rate);
    l->out = l->in;
    l->cache_row = l->in;
    return KS_OK;
}

/* out = c u in; in NULL counts as zero, out NULL: not computed */
static void mask(const struct KS(layer) *l, const struct KS(pass) *p, const real *in, real *out)
{
    for (size_t i = 0; i < p->rows * l->in && out; i++)
        out[i] = in ? p->cache[i] * in[i] : 0;
}

static void forward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    const struct settings *s = l->settings;

    for (size_t i = 0; i < p->rows; i++)
        for (size_t j = 0; j < l->in; j++)
            p->cache[i * l->in + j] = (real)(s->factor *
                                             (double)p->input[i * s->inputs + s->from + j]);
    mask(l, p, p->x, p->y);
}

const struct KS(layer_kind) KS(dropout) = {
    .name = "dropout",
    .settings = sizeof(struct settings),
    .examples = (const char *const[]){"dropout input[0:6]", "dropout input[:] rate=0.25", NULL},
    .in_place = true,
    .reads_input = true,
    .configure = configure,
    .forward = forward,
    KS_LAYER_LINEAR(mask, mask),
};
