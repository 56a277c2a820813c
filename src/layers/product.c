#include "layers/product.h"

#include <cblas.h>

#include "core/split.h"

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
