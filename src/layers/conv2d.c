/* conv2d: Y = W * X + b, a cross-correlation of images, as in PyTorch's Conv2d (LeCun et al.,
 * Proceedings of the IEEE 86, 1998; in critics from pixels: Yarats et al., "DrQ-v2", ICLR 2022). A
 * row of x is an image: channels x height x width, the width running fastest; a row of y is one,
 * too, with a channel per filter. Row (c k + i) k + j of the kernel [channels k k, filters] is
 * entry (c, i, j) of all filters: PyTorch's weight [filters, channels, k, k] as a matrix,
 * transposed.
 *
 * For one row x, P(x) [channels k k, places] has a column for each place of the output: the patch
 * of x there, with zeros outside the image. P is linear, and P' adds patches up to an image. With y
 * as a matrix [filters, places]:
 *
 *   forward             y = W' P(x) + b 1'
 *   backward            W_bar += P(x) y_bar'     b_bar += y_bar 1     x_bar = P'(W y_bar)
 *   tangent forward     y_dot = W' P(x_dot) + W_dot' P(x) + b_dot 1'
 *   tangent backward    W_bar_dot += P(x_dot) y_bar' + P(x) y_bar_dot'
 *                       b_bar_dot += y_bar_dot 1
 *                       x_bar_dot = P'(W y_bar_dot + W_dot y_bar)
 *
 * The matrix of patches is k k times as large as the image, so it is made for one row at a time,
 * and copied by lines of the output.
 *
 * Cache and tangent cache: room for it.
 */
#include <string.h>

#include "layers/arrays.h"
#include "layers/layer.h"

enum { MAX_FILTERS = 1 << 12, MAX_SIDE = 1 << 12, MAX_COLUMNS = 1 << 20 };
static const double ORTHOGONAL_GAIN = 1.4142135623730951; /* sqrt(2): He et al., ICCV 2015 */

struct settings {
    bool bias;
    struct ks_image in, out;
    size_t size, stride, padding; /* of a filter: its height and width */
    size_t patch, places;         /* rows and columns of P(x)          */
};

/* Takes an option that is an integer. */
static ks_status option_size(struct ks_line *line, const char *name, size_t low, size_t *value)
{
    double number = (double)*value;

    KS_TRY(ks_line_option_number(line, name, (double)low, MAX_SIDE, &number));
    *value = (size_t)number;
    if ((double)*value != number)
        return ks_line_fail(line, "%s: expected an integer, found %g", name, number);
    return KS_OK;
}

/* The image that a row of x holds: as the line says, or as the layer before made it. */
static ks_status read_image(const struct KS(layer) *l, struct ks_line *line, struct ks_image *image)
{
    *image = l->in_image;
    KS_TRY(option_size(line, "channels", 1, &image->channels));
    KS_TRY(option_size(line, "height", 1, &image->height));
    KS_TRY(option_size(line, "width", 1, &image->width));
    if (image->channels * image->height * image->width != l->in)
        return ks_line_fail(line,
                            "conv2d: expected channels, height and width of an image of %zu "
                            "features, found %zu x %zu x %zu",
                            l->in, image->channels, image->height, image->width);
    return KS_OK;
}

static ks_status read_filters(struct KS(layer) *l, struct ks_line *line, struct settings *s)
{
    size_t height, width;

    s->stride = 1;
    KS_TRY(option_size(line, "size", 1, &s->size));
    KS_TRY(option_size(line, "stride", 1, &s->stride));
    KS_TRY(option_size(line, "padding", 0, &s->padding));
    height = s->in.height + 2 * s->padding, width = s->in.width + 2 * s->padding;
    if (s->size == 0 || s->size > height || s->size > width)
        return ks_line_fail(line, "conv2d: expected size=K of at most %zu, found %zu",
                            height < width ? height : width, s->size);
    s->out.height = (height - s->size) / s->stride + 1;
    s->out.width = (width - s->size) / s->stride + 1;
    s->patch = s->in.channels * s->size * s->size;
    s->places = s->out.height * s->out.width;
    l->out = s->out.channels * s->places;
    if (l->out > MAX_COLUMNS)
        return ks_line_fail(line, "conv2d: expected at most %d outputs, found %zu", MAX_COLUMNS,
                            l->out);
    return KS_OK;
}

static ks_status configure(struct KS(layer) *l, struct ks_line *line)
{
    size_t filters;
    struct settings *s = l->settings;

    KS_TRY(ks_line_argument_size(line, "filters", 1, MAX_FILTERS, &filters));
    s->bias = true;
    KS_TRY(ks_line_option_flag(line, "bias", &s->bias));
    s->out.channels = filters;
    KS_TRY(read_image(l, line, &s->in));
    KS_TRY(read_filters(l, line, s));
    l->out_image = s->out;
    l->param[l->n_params++] = (struct ks_array){.name = "kernel",
                                                .rows = s->patch,
                                                .columns = filters,
                                                .orthogonal = true,
                                                .start = ORTHOGONAL_GAIN};
    if (s->bias)
        l->param[l->n_params++] = (struct ks_array){.name = "bias", .columns = filters};
    l->cache_fixed = s->patch * s->places;
    l->uses = KS_USES_X | KS_USES_Y_BAR;
    return KS_OK;
}

/* A row of P(x): entry (channel, i, j) of all patches. Of each line of the output, the columns from
 * `first` to before `end` are inside of the image, and lie there from `column` on, `stride` apart.
 */
struct patch_row {
    size_t channel, i, first, end, column;
};

static struct patch_row find_row(const struct settings *s, size_t row)
{
    const size_t j = row % s->size, stride = s->stride, width = s->in.width + s->padding;
    const size_t before = s->padding > j ? s->padding - j : 0;
    struct patch_row r = {.channel = row / (s->size * s->size),
                          .i = row / s->size % s->size,
                          .first = (before + stride - 1) / stride};

    r.end = j < width ? (width - j + stride - 1) / stride : 0;
    r.end = r.end > s->out.width ? s->out.width : r.end;
    r.first = r.first < r.end ? r.first : r.end;
    r.column = r.first * stride + j - s->padding;
    return r;
}

/* Where the row's columns of a line of the output start in an image x; NULL: outside of it. */
static const real *find_line(const struct settings *s, const struct patch_row *r, size_t out_line,
                             const real *x)
{
    const size_t line = out_line * s->stride + r->i;

    if (line < s->padding || line - s->padding >= s->in.height || r->first == r->end)
        return NULL;
    return x + (r->channel * s->in.height + line - s->padding) * s->in.width + r->column;
}

/* Copies and adds n numbers that are `stride` apart in the image. */
static void copy_line(size_t n, size_t stride, const real *restrict x, real *restrict patches)
{
    if (stride == 1)
        memcpy(patches, x, n * sizeof *x);
    else
        for (size_t j = 0; j < n; j++)
            patches[j] = x[j * stride];
}

static void add_line(size_t n, size_t stride, const real *restrict patches, real *restrict x)
{
    if (stride == 1) /* a loop of its own becomes vector instructions */
        for (size_t j = 0; j < n; j++)
            x[j] += patches[j];
    else
        for (size_t j = 0; j < n; j++)
            x[j * stride] += patches[j];
}

/* patches = P(x) */
static void gather(const struct settings *s, const real *restrict x, real *restrict patches)
{
    const size_t width = s->out.width;

    if (s->padding > 0)
        memset(patches, 0, s->patch * s->places * sizeof *patches);
    for (size_t row = 0; row < s->patch; row++) {
        const struct patch_row r = find_row(s, row);

        for (size_t i = 0; i < s->out.height; i++, patches += width) {
            const real *from = find_line(s, &r, i, x);

            if (from)
                copy_line(r.end - r.first, s->stride, from, patches + r.first);
        }
    }
}

/* x = P'(patches) */
static void scatter(const struct settings *s, const real *restrict patches, real *restrict x)
{
    const size_t width = s->out.width;

    memset(x, 0, s->in.channels * s->in.height * s->in.width * sizeof *x);
    for (size_t row = 0; row < s->patch; row++) {
        const struct patch_row r = find_row(s, row);

        for (size_t i = 0; i < s->out.height; i++, patches += width) {
            real *to = (real *)find_line(s, &r, i, x);

            if (to)
                add_line(r.end - r.first, s->stride, patches + r.first, to);
        }
    }
}

/* y += W' patches */
static void add_filtered(const struct settings *s, enum ks_products products, const real *w,
                         const real *patches, real *y)
{
    const size_t filters = s->out.channels, places = s->places;

    KS(multiply)
    (&(struct ks_product){.products = products,
                          .m = filters,
                          .n = places,
                          .k = s->patch,
                          .a_stride = filters,
                          .a_transposed = true,
                          .b_stride = places,
                          .c_stride = places},
     w, patches, y);
}

/* w += patches y' */
static void add_outer(const struct settings *s, enum ks_products products, const real *patches,
                      const real *y, real *w)
{
    const size_t filters = s->out.channels, places = s->places;

    KS(multiply)
    (&(struct ks_product){.products = products,
                          .m = s->patch,
                          .n = filters,
                          .k = places,
                          .a_stride = places,
                          .b_stride = places,
                          .b_transposed = true,
                          .c_stride = filters},
     patches, y, w);
}

/* patches = W y, or if it does not `set` them, patches += W y */
static struct ks_product of_patches(const struct settings *s, enum ks_products products, bool sets)
{
    return (struct ks_product){.products = products,
                               .sets = sets,
                               .m = s->patch,
                               .n = s->places,
                               .k = s->out.channels,
                               .a_stride = s->out.channels,
                               .b_stride = s->places,
                               .c_stride = s->places};
}

/* y = b 1', zero without a bias; w: the parameters or their tangents */
static void set_bias(const struct settings *s, const real *w, real *y)
{
    const real *b = w + s->patch * s->out.channels;

    for (size_t i = 0; i < s->out.channels; i++)
        for (size_t j = 0; j < s->places; j++)
            y[i * s->places + j] = s->bias ? b[i] : 0;
}

/* b_bar += y_bar 1; w_bar: the adjoints of the parameters or their tangents */
static void add_bias_bar(const struct settings *s, const real *y_bar, real *w_bar)
{
    real *b_bar = w_bar + s->patch * s->out.channels;

    for (size_t i = 0; i < s->out.channels && s->bias; i++)
        for (size_t j = 0; j < s->places; j++)
            b_bar[i] += y_bar[i * s->places + j];
}

static void forward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    const struct settings *s = l->settings;

    for (size_t i = 0; i < p->rows; i++) {
        gather(s, p->x + i * l->in, p->cache);
        set_bias(s, p->w, p->y + i * l->out);
        add_filtered(s, p->products, p->w, p->cache, p->y + i * l->out);
    }
}

static void backward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    const struct settings *s = l->settings;
    const struct ks_product set = of_patches(s, p->products, true);

    for (size_t i = 0; i < p->rows; i++) {
        const real *y_bar = p->y_bar + i * l->out;

        if (p->w_bar) {
            gather(s, p->x + i * l->in, p->cache);
            add_outer(s, p->products, p->cache, y_bar, p->w_bar);
            add_bias_bar(s, y_bar, p->w_bar);
        }
        if (p->x_bar) {
            KS(multiply)(&set, p->w, y_bar, p->cache);
            scatter(s, p->cache, p->x_bar + i * l->in);
        }
    }
}

static void tangent_forward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    const struct settings *s = l->settings;

    for (size_t i = 0; i < p->rows; i++) {
        real *y_dot = p->y_dot + i * l->out;

        set_bias(s, p->w_dot, y_dot);
        gather(s, p->x + i * l->in, p->cache_dot);
        add_filtered(s, p->products, p->w_dot, p->cache_dot, y_dot);
        if (p->x_dot) {
            gather(s, p->x_dot + i * l->in, p->cache_dot);
            add_filtered(s, p->products, p->w, p->cache_dot, y_dot);
        }
    }
}

/* What row i adds to the tangents of the parameters' adjoints. */
static void tangent_of_parameters(const struct KS(layer) *l, const struct KS(pass) *p, size_t i)
{
    const struct settings *s = l->settings;

    if (p->x_dot && !p->gauss_newton) {
        gather(s, p->x_dot + i * l->in, p->cache_dot);
        add_outer(s, p->products, p->cache_dot, p->y_bar + i * l->out, p->w_bar_dot);
    }
    gather(s, p->x + i * l->in, p->cache_dot);
    add_outer(s, p->products, p->cache_dot, p->y_bar_dot + i * l->out, p->w_bar_dot);
    add_bias_bar(s, p->y_bar_dot + i * l->out, p->w_bar_dot);
}

static void tangent_backward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    const struct settings *s = l->settings;
    const struct ks_product set = of_patches(s, p->products, true),
                            add = of_patches(s, p->products, false);

    for (size_t i = 0; i < p->rows; i++) {
        if (p->w_bar_dot)
            tangent_of_parameters(l, p, i);
        if (!p->x_bar_dot)
            continue;
        KS(multiply)(&set, p->w, p->y_bar_dot + i * l->out, p->cache_dot);
        if (!p->gauss_newton)
            KS(multiply)(&add, p->w_dot, p->y_bar + i * l->out, p->cache_dot);
        scatter(s, p->cache_dot, p->x_bar_dot + i * l->in);
    }
}

const struct KS(layer_kind) KS(conv2d) = {
    .name = "conv2d",
    .settings = sizeof(struct settings),
    .examples =
        (const char *const[]){
            "conv2d 2 size=2 channels=1 height=2 width=3",
            "conv2d 3 size=3 stride=2 padding=1 channels=1 height=3 width=2",
            "conv2d 2 size=1 channels=3 height=1 width=2 bias=no",
            "conv2d 2 size=2 padding=1 channels=2 height=1 width=3",
            NULL,
        },
    .sums = KS_SUMS_LINEAR,
    KS_LAYER_FUNCTIONS,
};
