/* From an operator to the nodes and weights of its spectral density: by stochastic Lanczos
 * quadrature, or from all eigenvalues of a small operator. Both fill the same fields of a spectrum.
 */
#ifndef KS_LANCZOS_SLQ_H
#define KS_LANCZOS_SLQ_H

#include <stddef.h>

#include "core/error.h"
#include "io/spectrum.h"
#include "lanczos/lanczos.h"
#include "operators/operator.h"

/* Room for `probes` probes of `order` steps in an empty spectrum: probes, order, alpha, beta,
 * steps, ritz, weight, residual and start_norm2. KS_MEMORY. */
ks_status ks_slq_room(struct ks_spectrum *spectrum, size_t probes, size_t order);
/* The steps of a probe and its Ritz values, as row `row` of the spectrum. KS_MEMORY, KS_NUMBER. */
ks_status ks_slq_store(const struct ks_lanczos *lanczos, size_t row, struct ks_spectrum *spectrum);

enum { KS_EXACT_LIMIT = 8000 }; /* a dense matrix of 512 MB, some minutes of LAPACK */

/* All eigenvalues, from n products and LAPACK: one probe of order n with weights 1/n and residuals
 * 0; alpha, beta and steps stay NULL. `on_product` (may be NULL) is called after each product.
 * KS_USAGE if n > KS_EXACT_LIMIT; KS_NUMBER, KS_MEMORY. */
ks_status ks_exact(const struct ks_operator *a,
                   ks_status (*on_product)(void *context, size_t products), void *context,
                   struct ks_spectrum *spectrum);

/* *error = a lower bound of |a - wide|, for the same operator in float32 and float64: the largest
 * |(a - wide) v| / |v| in twelve steps of the power iteration. Fails as the operators do. */
ks_status ks_exact_error(const struct ks_operator *a, const struct ks_operator *wide,
                         double *error);

/* Fills n_grid, grid, density, symlog_grid and symlog_density from ritz and weight. Both grids are
 * in units of the eigenvalues and both densities per unit of eigenvalue, so the trapezoidal rule
 * gives 1 on each. The symmetric-log grid is equidistant in s = asinh(x / x_0), and so is the width
 * of its kernel: it resolves every decade down to x_0, a millionth of the largest |eigenvalue|.
 * Scaling the eigenvalues by c scales the grids by c and the densities by 1/c, and changes nothing
 * else. KS_MEMORY. */
ks_status ks_density(struct ks_spectrum *spectrum);

/* x_0 of this spectrum, in units of the eigenvalues. */
double ks_density_unit(const struct ks_spectrum *spectrum);

#endif
