/* dueling [atoms=M] (Wang et al., "Dueling network architectures", ICML 2016, equation 9; with
 * atoms Hessel et al., "Rainbow", AAAI 2018): x = [V, A_1, ..., A_K], blocks of M columns,
 *
 *   y_k = V + A_k - <A>        where <A> is the mean of A_1, ..., A_K
 *
 *   backward            V_bar = sum_k y_bar_k,   A_k_bar = y_bar_k - <y_bar>
 *   tangent forward     as forward, of x_dot
 *   tangent backward    as backward, of y_bar_dot
 */
#include "layers/layer.h"

enum { MAX_ATOMS = 1 << 16 };

struct settings {
    size_t atoms;
};

static ks_status configure(struct KS(layer) *l, struct ks_line *line)
{
    double atoms = 1;
    struct settings *s = l->settings;

    KS_TRY(ks_line_option_number(line, "atoms", 1, MAX_ATOMS, &atoms));
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
static void combine(const struct KS(layer) *l, const struct KS(pass) *p, const real *x, real *y)
{
    size_t m = ((const struct settings *)l->settings)->atoms, actions = l->out / m;

    for (size_t i = 0; i < p->rows * m; i++) {
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
static void distribute(const struct KS(layer) *l, const struct KS(pass) *p, const real *y_bar,
                       real *x_bar)
{
    size_t m = ((const struct settings *)l->settings)->atoms, actions = l->out / m;

    for (size_t i = 0; i < p->rows * m && x_bar; i++) {
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

const struct KS(layer_kind) KS(dueling) = {
    .name = "dueling",
    .settings = sizeof(struct settings),
    .examples = (const char *const[]){"dueling", "dueling atoms=2", NULL},
    .head = true,
    .sums = KS_SUMS_LINEAR,
    .configure = configure,
    .forward = KS(linear_forward),
    KS_LAYER_LINEAR(combine, distribute),
};
