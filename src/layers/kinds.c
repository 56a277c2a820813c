/* The table of layer kinds, from the list at the end of layer.h, and what kinds share. */
#include <cblas.h>

#include "core/memory.h"
#include "core/split.h"
#include "layers/arrays.h"
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

void KS(multiply)(const struct ks_product *p, const real *a, const real *b, real *c)
{
#ifdef KS_SINGLE
    if (p->products != KS_PRODUCTS_BLAS && ks_split_suits(p)) {
        ks_split_multiply(p, ks_split_has_amx() ? ks_split_amx : ks_split_plain, a, b, c);
        return;
    }
#endif
    KS_BLAS(gemm)
    (CblasRowMajor, p->a_transposed ? CblasTrans : CblasNoTrans,
     p->b_transposed ? CblasTrans : CblasNoTrans, (int)p->m, (int)p->n, (int)p->k, 1, a,
     (int)p->a_stride, b, (int)p->b_stride, p->sets ? 0 : 1, c, (int)p->c_stride);
}
