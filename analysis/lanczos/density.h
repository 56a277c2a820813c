/* The spectral density, smoothed with a Gaussian kernel, on a linear and on a symmetric-log grid.
 */
#ifndef KS_LANCZOS_DENSITY_H
#define KS_LANCZOS_DENSITY_H

#include "core/error.h"
#include "io/spectrum.h"

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
