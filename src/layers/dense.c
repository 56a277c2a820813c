/* dense: Y = X W + 1 b', W [in / G, out]; group g of the outputs reads group g of the inputs. W is
 * a parameter, or with norm=weight or norm=spectral a function of parameters (kernel_norm.h).
 *
 *   backward            W_bar += X' Y_bar         b_bar += Y_bar' 1      X_bar = Y_bar W'
 *   tangent forward     Y_dot = X_dot W + X W_dot + 1 b_dot'
 *   tangent backward    W_bar_dot += X_dot' Y_bar + X' Y_bar_dot
 *                       b_bar_dot += Y_bar_dot' 1
 *                       X_bar_dot = Y_bar_dot W' + Y_bar W_dot'
 */
#include <string.h>

#include "layers/arrays.h"
#include "layers/kernel_norm.h"

struct settings {
    bool bias;
    size_t groups;
    size_t bias_at;                     /* where b starts in the parameters    */
    const struct KS(kernel_norm) *norm; /* NULL: W is the start of the parameters */
};

static const char *const projections[] = {"none", "unit", "unit-kernel", NULL};
enum { PROJECT_NONE, PROJECT_UNIT, PROJECT_UNIT_KERNEL };
static const char *const norms[] = {"none", "weight", "spectral", NULL};
enum { NORM_NONE, NORM_WEIGHT, NORM_SPECTRAL };
enum { MAX_WIDTH = 1 << 16 };
static const double ORTHOGONAL_GAIN = 1.4142135623730951; /* sqrt(2): He et al., ICCV 2015 */

/* Adds what a norm of the kernel has besides the kernel. */
static ks_status configure_norm(struct KS(layer) *l, struct ks_line *line, size_t project)
{
    struct settings *s = l->settings;
    size_t norm = NORM_NONE;

    KS_TRY(ks_line_option_choice(line, "norm", norms, &norm));
    if (norm == NORM_NONE)
        return KS_OK;
    if (project != PROJECT_NONE)
        return ks_line_fail(line, "dense: norm=%s contradicts project=%s", norms[norm],
                            projections[project]);
    if (norm == NORM_SPECTRAL && s->groups > 1)
        return ks_line_fail(line, "dense: norm=spectral contradicts groups=%zu", s->groups);
    s->norm = norm == NORM_WEIGHT ? &KS(weight_norm) : &KS(spectral_norm);
    s->norm->configure(l);
    l->normed = true;
    return KS_OK;
}

static ks_status configure(struct KS(layer) *l, struct ks_line *line)
{
    size_t project = PROJECT_NONE, kernel_rows;
    double groups = 1;
    struct settings *s = l->settings;

    KS_TRY(ks_line_argument_size(line, "width", 1, MAX_WIDTH, &l->out));
    s->bias = true;
    KS_TRY(ks_line_option_flag(line, "bias", &s->bias));
    KS_TRY(ks_line_option_choice(line, "project", projections, &project));
    KS_TRY(ks_line_option_number(line, "groups", 1, MAX_WIDTH, &groups));
    s->groups = (size_t)groups;
    if ((double)s->groups != groups || l->in % s->groups != 0 || l->out % s->groups != 0)
        return ks_line_fail(line, "groups: expected a divisor of %zu and %zu, found %g", l->in,
                            l->out, groups);
    kernel_rows = l->in / s->groups;
    l->param[l->n_params++] = (struct ks_array){.name = "kernel",
                                                .rows = kernel_rows,
                                                .columns = l->out,
                                                .orthogonal = true,
                                                .start = ORTHOGONAL_GAIN};
    KS_TRY(configure_norm(l, line, project));
    s->bias_at = (kernel_rows + l->n_params - 1) * l->out;
    if (s->bias)
        l->param[l->n_params++] = (struct ks_array){.name = "bias", .columns = l->out};
    if (project != PROJECT_NONE)
        l->sphere_rows = kernel_rows + (project == PROJECT_UNIT && s->bias ? 1 : 0);
    l->uses = KS_USES_X | KS_USES_Y_BAR;
    return KS_OK;
}

/* The kernel and its tangent. */
static const real *kernel(const struct KS(layer) *l, const struct KS(pass) *p)
{
    return ((const struct settings *)l->settings)->norm ? p->cache : p->w;
}

static const real *kernel_dot(const struct KS(layer) *l, const struct KS(pass) *p)
{
    return ((const struct settings *)l->settings)->norm ? p->cache_dot : p->w_dot;
}

/* A group's part of X starts at column x = g in/G, its part of W, b and Y at column y = g out/G. */
struct group {
    size_t x, y, in, out;
};

static struct group group(const struct KS(layer) *l, size_t g)
{
    const struct settings *s = l->settings;
    size_t in = l->in / s->groups, out = l->out / s->groups;

    return (struct group){g * in, g * out, in, out};
}

/* Y += X W, group by group. Products are added to results that were set before: memset and an
 * addition by OpenBLAS are faster than its overwriting. Sizes fit an int: configure limits the
 * widths; the checkpoint reader and the training settings limit the rows. */
static void add_product(const struct KS(layer) *l, const struct KS(pass) *p, const real *x,
                        const real *w, real *y)
{
    const struct settings *s = l->settings;

    for (size_t g = 0; g < s->groups; g++) {
        struct group q = group(l, g);

        KS(multiply)
        (&(struct ks_product){.products = p->products,
                              .m = p->rows,
                              .n = q.out,
                              .k = q.in,
                              .a_stride = l->in,
                              .b_stride = l->out,
                              .c_stride = l->out},
         x + q.x, w + q.y, y + q.y);
    }
}

/* X += Y W'. */
static void add_product_transposed(const struct KS(layer) *l, const struct KS(pass) *p,
                                   const real *y, const real *w, real *x)
{
    const struct settings *s = l->settings;

    for (size_t g = 0; g < s->groups; g++) {
        struct group q = group(l, g);

        KS(multiply)
        (&(struct ks_product){.products = p->products,
                              .m = p->rows,
                              .n = q.in,
                              .k = q.out,
                              .a_stride = l->out,
                              .b_stride = l->out,
                              .b_transposed = true,
                              .c_stride = l->in},
         y + q.y, w + q.y, x + q.x);
    }
}

/* W += X' Y. */
static void add_outer(const struct KS(layer) *l, const struct KS(pass) *p, const real *x,
                      const real *y, real *w)
{
    const struct settings *s = l->settings;

    for (size_t g = 0; g < s->groups; g++) {
        struct group q = group(l, g);

        KS(multiply)
        (&(struct ks_product){.products = p->products,
                              .m = q.in,
                              .n = q.out,
                              .k = p->rows,
                              .a_stride = l->in,
                              .a_transposed = true,
                              .b_stride = l->out,
                              .c_stride = l->out},
         x + q.x, y + q.y, w + q.y);
    }
}

/* b += Y' 1. */
static void add_column_sums(size_t rows, size_t columns, const real *restrict y, real *restrict b)
{
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++)
            b[j] += y[i * columns + j];
}

/* Sets every row of Y to the bias, which is at w + bias_at; without a bias to zero. */
static void set_to_bias(const struct KS(layer) *l, size_t rows, const real *w, real *y)
{
    const struct settings *s = l->settings;

    if (!s->bias)
        memset(y, 0, rows * l->out * sizeof *y);
    for (size_t i = 0; i < rows && s->bias; i++)
        memcpy(y + i * l->out, w + s->bias_at, l->out * sizeof *y);
}

/* X = Y W'. */
static void set_to_product_transposed(const struct KS(layer) *l, const struct KS(pass) *p,
                                      const real *y, const real *w, real *x)
{
    memset(x, 0, p->rows * l->in * sizeof *x);
    add_product_transposed(l, p, y, w, x);
}

static void forward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    const struct settings *s = l->settings;

    if (s->norm)
        s->norm->forward(l, p);
    set_to_bias(l, p->rows, p->w, p->y);
    add_product(l, p, p->x, kernel(l, p), p->y);
}

/* The second matrix of a cache (kernel_norm.h), set to zero. */
static real *clear_kernel_bar(const struct KS(layer) *l, real *cache)
{
    size_t size = l->param[0].rows * l->out;

    memset(cache + size, 0, size * sizeof *cache);
    return cache + size;
}

static void backward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    const struct settings *s = l->settings;

    if (s->norm && l->frozen == 0) { /* the tangents need W_bar, wanted or not */
        add_outer(l, p, p->x, p->y_bar, clear_kernel_bar(l, p->cache));
        s->norm->backward(l, p);
    } else if (p->w_bar)
        add_outer(l, p, p->x, p->y_bar, p->w_bar);
    if (p->w_bar && s->bias)
        add_column_sums(p->rows, l->out, p->y_bar, p->w_bar + s->bias_at);
    if (p->x_bar)
        set_to_product_transposed(l, p, p->y_bar, kernel(l, p), p->x_bar);
}

static void tangent_forward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    const struct settings *s = l->settings;

    if (s->norm)
        s->norm->tangent_forward(l, p);
    set_to_bias(l, p->rows, p->w_dot, p->y_dot);
    add_product(l, p, p->x, kernel_dot(l, p), p->y_dot);
    if (p->x_dot)
        add_product(l, p, p->x_dot, kernel(l, p), p->y_dot);
}

static void tangent_of_parameters(const struct KS(layer) *l, const struct KS(pass) *p)
{
    const struct settings *s = l->settings;
    real *kernel_bar_dot = s->norm ? clear_kernel_bar(l, p->cache_dot) : p->w_bar_dot;

    if (p->x_dot && !p->gauss_newton)
        add_outer(l, p, p->x_dot, p->y_bar, kernel_bar_dot);
    add_outer(l, p, p->x, p->y_bar_dot, kernel_bar_dot);
    if (s->norm)
        s->norm->tangent_backward(l, p);
    if (s->bias)
        add_column_sums(p->rows, l->out, p->y_bar_dot, p->w_bar_dot + s->bias_at);
}

static void tangent_backward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    if (p->w_bar_dot)
        tangent_of_parameters(l, p);
    if (p->x_bar_dot) {
        set_to_product_transposed(l, p, p->y_bar_dot, kernel(l, p), p->x_bar_dot);
        if (!p->gauss_newton)
            add_product_transposed(l, p, p->y_bar, kernel_dot(l, p), p->x_bar_dot);
    }
}

const struct KS(layer_kind) KS(dense) = {
    .name = "dense",
    .settings = sizeof(struct settings),
    .examples =
        (const char *const[]){
            "dense 6",
            "dense 5 bias=no",
            "dense 4 project=unit",
            "dense 4 bias=no project=unit-kernel groups=2",
            "dense 9 groups=3",
            "dense 5 norm=weight",
            "dense 4 norm=weight groups=2 bias=no",
            "dense 5 norm=spectral",
            "dense 4 norm=spectral bias=no",
            NULL,
        },
    .head = true,
    .sums = KS_SUMS_LINEAR,
    KS_LAYER_FUNCTIONS,
};
