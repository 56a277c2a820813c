/* The table of layer kinds, from the list at the end of layer.h, and what kinds share. */
#include "core/memory.h"
#include "layers/layer.h"

#define ADDRESS(name) &KS(name),

const struct KS(layer_kind) *const KS(layer_kinds)[] = {KS_LAYER_KINDS(ADDRESS) NULL};

ks_status KS(layer_configure)(struct KS(layer) *l, struct ks_line *line)
{
    if (l->kind->settings > 0)
        KS_TRY(ks_alloc(1, l->kind->settings, &l->settings));
    return l->kind->configure ? l->kind->configure(l, line) : KS_OK;
}

void KS(linear_forward)(const struct KS(layer) *l, const struct KS(pass) *p)
{
    l->kind->map(l, p, p->x, p->y);
}

void KS(linear_backward)(const struct KS(layer) *l, const struct KS(pass) *p)
{
    l->kind->adjoint(l, p, p->y_bar, p->x_bar);
}

void KS(linear_tangent_forward)(const struct KS(layer) *l, const struct KS(pass) *p)
{
    struct KS(pass) q = *p;

    q.skip = p->skip_dot;
    l->kind->map(l, &q, p->x_dot, p->y_dot);
}

void KS(linear_tangent_backward)(const struct KS(layer) *l, const struct KS(pass) *p)
{
    struct KS(pass) q = *p;

    q.skip_bar = p->skip_bar_dot;
    l->kind->adjoint(l, &q, p->y_bar_dot, p->x_bar_dot);
}
