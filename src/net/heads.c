/* The loss of several heads: l = sum_h l_h(f_h, t_h). The outputs f_h of all heads stand side by
 * side in a row, and so do their targets t_h. The Hessian of l in the outputs is block diagonal. */
#include "net/loss.h"

#include <stdio.h>

static double gradient(const struct KS(loss) *l, const struct KS(outputs) *at, real scale,
                       real *f_bar)
{
    double value = 0;

    for (size_t i = 0; i < at->rows; i++) {
        size_t f = i * l->outputs, t = i * l->targets;

        for (size_t h = 0; h < l->n_heads; h++) {
            const struct KS(loss) *head = &l->head[h];
            const struct KS(outputs) row = {1, at->f + f, at->t + t};

            value += head->kind->gradient(head, &row, scale, f_bar ? f_bar + f : NULL);
            f += head->outputs;
            t += head->targets;
        }
    }
    return value;
}

static void curvature(const struct KS(loss) *l, const struct KS(outputs) *at, real *c)
{
    for (size_t i = 0; i < at->rows; i++) {
        size_t f = i * l->outputs, t = i * l->targets;

        for (size_t h = 0; h < l->n_heads; h++) {
            const struct KS(loss) *head = &l->head[h];
            const struct KS(outputs) row = {1, at->f + f, at->t + t};

            head->kind->curvature(head, &row, c + f);
            f += head->outputs;
            t += head->targets;
        }
    }
}

void KS(loss_name)(const struct KS(loss) *l, size_t size, char *name)
{
    size_t used = 0;

    snprintf(name, size, "%s", l->kind->name);
    for (size_t h = 0; h < l->n_heads && used < size; h++)
        used += (size_t)snprintf(name + used, size - used, "%s%s", h ? "+" : "",
                                 l->head[h].kind->name);
}

const struct KS(loss_kind)
    KS(heads) = {.name = "heads", .gradient = gradient, .curvature = curvature};
