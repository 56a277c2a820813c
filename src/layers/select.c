/* select input[a:b]: y = sum_k u_k x_k, where x = [x_1, ..., x_K] has blocks of equal width and u,
 * of K = b - a columns, is columns a to b - 1 of the network's input. With one action as 1 and the
 * others as 0 in the input, it takes that action's value, as the loss of DQN does (Mnih et al.,
 * Nature 518, 2015). u is a constant.
 *
 *   backward            x_k_bar     = u_k y_bar
 *   tangent forward     y_dot       = sum_k u_k x_k_dot
 *   tangent backward    x_k_bar_dot = u_k y_bar_dot
 *
 * Cache, per row: u.
 */
#include <string.h>

#include "layers/layer.h"

struct settings {
    size_t from, inputs; /* u is input[from : from + cache_row], of `inputs` columns */
};

static ks_status configure(struct KS(layer) *l, struct ks_line *line)
{
    struct settings *s = l->settings;
    size_t from, to;

    KS_TRY(ks_line_argument_slice(line, "input", l->network_in, &from, &to));
    if (l->in % (to - from) != 0)
        return ks_line_fail(line, "select: expected a divisor of %zu columns, found %zu", l->in,
                            to - from);
    s->from = from;
    s->inputs = l->network_in;
    l->out = l->in / (to - from);
    l->cache_row = to - from;
    return KS_OK;
}

/* y from x; x NULL counts as zero */
static void add_up(const struct KS(layer) *l, const struct KS(pass) *p, const real *x, real *y)
{
    memset(y, 0, p->rows * l->out * sizeof *y);
    for (size_t i = 0; i < p->rows && x; i++)
        for (size_t j = 0; j < l->in; j++)
            y[i * l->out + j % l->out] += p->cache[i * l->cache_row + j / l->out] *
                                          x[i * l->in + j];
}

/* x_bar from y_bar; NULL: not computed */
static void spread(const struct KS(layer) *l, const struct KS(pass) *p, const real *y_bar,
                   real *x_bar)
{
    for (size_t i = 0; i < p->rows && x_bar; i++)
        for (size_t j = 0; j < l->in; j++)
            x_bar[i * l->in + j] = p->cache[i * l->cache_row + j / l->out] *
                                   y_bar[i * l->out + j % l->out];
}

static void forward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    const struct settings *s = l->settings;

    for (size_t i = 0; i < p->rows; i++)
        memcpy(p->cache + i * l->cache_row, p->input + i * s->inputs + s->from,
               l->cache_row * sizeof *p->cache);
    add_up(l, p, p->x, p->y);
}

const struct KS(layer_kind) KS(select) = {
    .name = "select",
    .settings = sizeof(struct settings),
    .examples = (const char *const[]){"select input[1:4]", "select input[2:4]", NULL},
    .reads_input = true,
    .head = true,
    .configure = configure,
    .forward = forward,
    KS_LAYER_LINEAR(add_up, spread),
};
