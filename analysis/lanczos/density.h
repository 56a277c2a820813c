/* The smoothed density of a spectrum. */
#ifndef KS_LANCZOS_DENSITY_H
#define KS_LANCZOS_DENSITY_H

#include "core/error.h"
#include "io/spectrum.h"

/* Fills n_grid, grid, density, symlog_grid and symlog_density from ritz and weight. Both grids hold
 * eigenvalues and both densities are per unit of eigenvalue, so that the trapezoidal rule gives 1
 * on each; the symmetric-log one is smoothed in s = asinh(x / x_0), where it is even, so that it
 * resolves every decade down to x_0, a millionth of the largest |eigenvalue|. Scaling the
 * eigenvalues by c scales the grids by c and the densities by 1/c, nothing else. */
ks_status ks_density(struct ks_spectrum *spectrum);

/* x_0 of this spectrum. */
double ks_density_unit(const struct ks_spectrum *spectrum);

/* The standard error over probes with random start vectors, of which there are two or more, of
 * symlog_density into error [n_grid]. */
ks_status ks_density_error(const struct ks_spectrum *spectrum, double *error);

#endif
