/* relu: y = max(x, 0) + shift elementwise, derivative 0 at 0.
 *
 *   with h = [x > 0]:
 *   backward            x_bar     = h y_bar
 *   tangent forward     y_dot     = h x_dot
 *   tangent backward    x_bar_dot = h y_bar_dot        (h' = 0 almost everywhere)
 */
#include <string.h>

#include "layers/arrays.h"
#include "layers/layer.h"

struct settings {
    real shift;
};

static ks_status configure(struct KS(layer) *l, struct ks_line *line)
{
    double shift = 0;
    struct settings *s = l->settings;

    KS_TRY(ks_line_option_number(line, "shift", -1e6, 1e6, &shift));
    s->shift = (real)shift;
    l->out = l->in;
    /* Without a shift the sign of y shows whether x > 0, and y is stored for the next layer anyway.
     * With a shift, x + shift may round to shift. */
    l->uses = shift == 0 ? KS_USES_Y | KS_USES_SIGN : KS_USES_X;
    return KS_OK;
}

static void forward(const struct KS(layer) *l, const struct KS(pass) *p)
{
    const struct settings *s = l->settings;

    for (size_t i = 0; i < p->rows * l->in; i++)
        p->y[i] = (p->x[i] > 0 ? p->x[i] : 0) + s->shift;
}

/* out = h in; out may alias in. in NULL counts as zero, out NULL: not computed */
static void mask(const struct KS(layer) *l, const struct KS(pass) *p, const real *in, real *out)
{
    const real *x = l->uses & KS_USES_Y ? p->y : p->x; /* y > 0 where x > 0 */

    if (out && in)
        ks_gate(p->rows * l->in, x, in, out);
    else if (out)
        memset(out, 0, p->rows * l->in * sizeof *out);
}

const struct KS(layer_kind) KS(relu) = {
    .name = "relu",
    .settings = sizeof(struct settings),
    .examples = (const char *const[]){"relu", "relu shift=-0.3", NULL},
    .in_place = true,
    .gates = true,
    .role = KS_ACTIVATION,
    .configure = configure,
    .forward = forward,
    KS_LAYER_LINEAR(mask, mask),
};
