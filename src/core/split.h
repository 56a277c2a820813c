/* Matrix products in float32 from bfloat16 parts: x = x1 + x2 + x3, where x1 is x rounded to
 * bfloat16 (8 bits), x2 the rest rounded, x3 the rest of that. Three parts hold all 24 bits.
 *
 *   A B = A1 B1 + (A1 B2 + A2 B1) + (A1 B3 + A2 B2 + A3 B1)
 *
 * A product of two parts is exact in float32, and omitted products are at most about 2^-24 of
 * |a| |b|. Henry, Tang and Heinecke, "Leveraging the bfloat16 artificial intelligence datatype for
 * higher-precision computations", ARITH 2019.
 *
 * In blocks of 256 values of k, each row of A and column of B is scaled by a power of two to a
 * largest entry in [1, 2), and parts below 2^-56 are dropped. So sums are multiples of 2^-126, no
 * number is subnormal, and products may be fused with additions or not. Only the order of the
 * additions counts, which is fixed: bits depend on neither the kernel nor the number of threads. */
#ifndef KS_CORE_SPLIT_H
#define KS_CORE_SPLIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/products.h"

/* A strip holds 32 rows of A, or columns of B, over at most 256 values of k, as tiles of 16 rows or
 * columns by 32 values of k: one bfloat16 pair (2i, 2i+1 of k, low half first) per uint32_t. An A
 * tile is [row][pair], a B tile is [pair][column]. */
enum { KS_SPLIT_TILE = 16 * 16, KS_SPLIT_STRIP = 32, KS_SPLIT_DEPTH = 256, KS_SPLIT_PARTS = 3 };

/* sums [32, 32] = the product of a strip of A and one of B, [steps][3][2] tiles each. First all
 * products with a part other than the first, then the products of first parts. */
typedef void ks_split_kernel(size_t steps, const uint32_t *a, const uint32_t *b, float *sums);
ks_split_kernel ks_split_plain; /* any processor              */
ks_split_kernel ks_split_amx;   /* only if ks_split_has_amx() */

/* Whether processor, kernel and compiler support AMX's bfloat16 tiles. Asks Linux for them once. */
bool ks_split_has_amx(void);

/* Whether a product is large enough for tiles. Smaller ones are left to OpenBLAS. */
bool ks_split_suits(const struct ks_product *p);

/* C += op(A) op(B), or C = ..., by `kernel`. Blocks of operands that contain NaN, infinity or
 * numbers from 2^127 on are multiplied by sgemm. */
void ks_split_multiply(const struct ks_product *p, ks_split_kernel *kernel, const float *a,
                       const float *b, float *c);

#endif
