/* All eigenvalues of an analyzed operator, from its dense matrix in float64. */
#ifndef KS_TEST_TRUTHS_H
#define KS_TEST_TRUTHS_H

#include <cblas.h>
#include <lapacke.h>

#include "analyses.h"
#include "statements.h"

/* The spectral norm of the difference between the operator in float64 and in float32. */
static inline double float32_error(size_t n, const double *matrix, const double *rounded)
{
    double *e = malloc(n * n * sizeof *e), *value = malloc(n * sizeof *value), unit = 0;

    for (size_t i = 0; i < n * n; i++)
        unit = fmax(unit, fabs(e[i] = rounded[i] - matrix[i]));
    for (size_t i = 0; i < n * n && unit > 0; i++)
        e[i] /= unit;
    LAPACKE_dsyevd(LAPACK_COL_MAJOR, 'N', 'U', (int)n, e, (int)n, value);
    unit *= fmax(fabs(value[0]), fabs(value[n - 1]));
    free(e);
    free(value);
    return unit;
}

/* All eigenvalues. Rounding in float64 may have moved them by about 1e-9 of the error in float32.
 * If a probe starts at the gradient, also the gradient's energy on the eigenvectors. */
static inline ks_status truth_find(struct analysis *o, struct truth *t)
{
    size_t n = o->selection->n;
    double *matrix = NULL, *rounded = NULL, *value = malloc(n * sizeof *value), unit = 0, float32,
           asymmetry;

    KS_TRY(analysis_matrix(o, false, &matrix, &asymmetry));
    KS_TRY(analysis_matrix(o, true, &rounded, &unit));
    unit = 0;
    float32 = float32_error(n, matrix, rounded);
    free(rounded);
    for (size_t i = 0; i < n * n; i++)
        unit = fmax(unit, fabs(matrix[i]));
    for (size_t i = 0; i < n * n && unit > 0; i++)
        matrix[i] /= unit;
    if (!isfinite(unit) ||
        LAPACKE_dsyevd(LAPACK_COL_MAJOR, 'V', 'U', (int)n, matrix, (int)n, value) != 0)
        return ks_fail(KS_NUMBER, "no truth");
    *t = truth_new(n, value, 1e-12);
    for (size_t i = 0; i < n; i++)
        t->value[i] *= unit, t->size[i] *= unit;
    t->abs_max *= unit;
    t->tolerance = 1e-12 * t->abs_max;
    t->tolerance = fmax(t->tolerance, 10 * asymmetry);
    if (isfinite(float32))
        t->tolerance = fmax(t->tolerance, 1e-7 * float32);
    /* Products along a normal are small remainders of much larger terms. */
    if (o->kind->spheres && o->null.product > 0)
        t->tolerance = fmax(t->tolerance, (o->single ? 1e-7 : 10) * o->null.product);
    t->float32 = float32;
    t->shift = o->space->shift;
    if (o->start) {
        double norm = cblas_dnrm2((int)n, o->start, 1);

        t->energy = calloc(n, sizeof(double));
        for (size_t i = 0; i < n; i++) {
            t->energy[i] = pow(cblas_ddot((int)n, matrix + i * n, 1, o->start, 1) / norm, 2);
            t->gradient_curvature += t->energy[i] * t->value[i];
        }
    }
    free(matrix);
    return KS_OK;
}

#endif
