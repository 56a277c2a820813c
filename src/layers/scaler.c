/* scaler (Lee et al., "Hyperspherical normalization for scalable deep reinforcement learning", ICML
 * 2025, arXiv 2502.15280): a learned factor c s per feature. The factor starts at `init`; the
 * parameter s starts at `scale`, which sets how fast the factor can change.
 *
 *   y = c s x,   c = init / scale
 *
 *   backward            s_bar += sum_rows c y_bar x        x_bar = c s y_bar
 *   tangent forward     y_dot = c (s x_dot + s_dot x)
 *   tangent backward    s_bar_dot += sum_rows c (y_bar_dot x + y_bar x_dot)
 *                       x_bar_dot = c (s y_bar_dot + s_dot y_bar)
 */
#include "layers/layer.h"

struct settings {
    real c;
};

static ks_status configure(struct KS(layer) *l, struct ks_line *line)
{
    double init = 1, scale = 1;
    struct settings *s = l->settings;

    KS_TRY(ks_line_option_number(line, "init", -1e12, 1e12, &init));
    KS_TRY(ks_line_option_number(line, "scale", 1e-12, 1e12, &scale));
    s->c = (real)(init / scale);
    l->out = l->in;
    l->param[l->n_params++] = (struct ks_array){.name = "scaler", .columns = l->in, .start = scale};
    l->uses = KS_USES_X | KS_USES_Y_BAR;
    return KS_OK;
}

static void forward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    real c = ((const struct settings *)l->settings)->c;
    size_t d = l->in;

    for (size_t i = 0; i < p->rows; i++)
        for (size_t j = 0; j < d; j++)
            p->y[i * d + j] = c * p->w[j] * p->x[i * d + j];
}

static void backward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    real c = ((const struct settings *)l->settings)->c;
    size_t d = l->in;

    for (size_t i = 0; i < p->rows && p->w_bar; i++)
        for (size_t j = 0; j < d; j++)
            p->w_bar[j] += c * p->y_bar[i * d + j] * p->x[i * d + j];
    for (size_t i = 0; i < p->rows && p->x_bar; i++)
        for (size_t j = 0; j < d; j++)
            p->x_bar[i * d + j] = c * p->w[j] * p->y_bar[i * d + j];
}

static void tangent_forward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    real c = ((const struct settings *)l->settings)->c;
    size_t d = l->in;

    for (size_t i = 0; i < p->rows; i++)
        for (size_t j = 0; j < d; j++) {
            real x_dot = p->x_dot ? p->x_dot[i * d + j] : 0;

            p->y_dot[i * d + j] = c * (p->w[j] * x_dot + p->w_dot[j] * p->x[i * d + j]);
        }
}

static void tangent_backward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    real c = ((const struct settings *)l->settings)->c;
    size_t d = l->in;

    for (size_t i = 0; i < p->rows && p->w_bar_dot; i++)
        for (size_t j = 0; j < d; j++) {
            real x_dot = p->x_dot ? p->x_dot[i * d + j] : 0;

            p->w_bar_dot[j] += c * (p->y_bar_dot[i * d + j] * p->x[i * d + j] +
                                    p->y_bar[i * d + j] * x_dot);
        }
    for (size_t i = 0; i < p->rows && p->x_bar_dot; i++)
        for (size_t j = 0; j < d; j++)
            p->x_bar_dot[i * d + j] = c * (p->w[j] * p->y_bar_dot[i * d + j] +
                                           p->w_dot[j] * p->y_bar[i * d + j]);
}

const struct KS(layer_kind) KS(scaler) = {
    .name = "scaler",
    .settings = sizeof(struct settings),
    .examples = (const char *const[]){"scaler", "scaler init=1.4 scale=0.3", NULL},
    .sums = KS_SUMS_LINEAR,
    .affine = true,
    KS_LAYER_FUNCTIONS,
};
