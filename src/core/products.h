/* How the float32 matrix products of layers are computed: by OpenBLAS's sgemm, or from bfloat16
 * parts of their operands (split.h), which is faster where the processor has AMX. */
#ifndef KS_CORE_PRODUCTS_H
#define KS_CORE_PRODUCTS_H

#include <stdbool.h>
#include <stddef.h>

enum ks_products {
    KS_PRODUCTS_BLAS,
    KS_PRODUCTS_SPLIT3, /* of three parts: as accurate as sgemm                 */
    KS_PRODUCTS_AUTO    /* a wish, of which ks_products_choose makes SPLIT3 or BLAS */
};

/* Their names in that order, ended by NULL. */
extern const char *const ks_products_names[];

/* What is computed on this processor: for AUTO, SPLIT3 if it has AMX, else BLAS; else `wish`. */
enum ks_products ks_products_choose(enum ks_products wish);

/* A one-line warning if parts are multiplied without AMX, which is slower than BLAS; else NULL. */
const char *ks_products_warning(enum ks_products products);

/* Shapes of C += op(A) op(B), row-major: op(A) [m, k], op(B) [k, n], C [m, n]. A stride is the
 * number of entries between the starts of two rows, as stored. */
struct ks_product {
    enum ks_products products; /* of float32, not AUTO; float64: always BLAS */
    size_t m, n, k;
    size_t a_stride, b_stride, c_stride;
    bool a_transposed, b_transposed; /* A is stored as [k, m], B as [n, k]   */
    bool sets;                       /* C = op(A) op(B)                      */
};

#endif
