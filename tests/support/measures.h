/* The Lanczos recurrence for a diagonal operator and a given start vector, in the eigenbasis: known
 * spectral measures, for tests of the statements about them. */
#ifndef KS_TEST_MEASURES_H
#define KS_TEST_MEASURES_H

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include <cblas.h>

#include "core/rng.h"

struct lanczos_run {
    size_t n, most;      /* dimension; the largest number of iterations                      */
    const double *value; /* [n]: eigenvalues                                                 */
    const double *start; /* [n], of any norm                                                 */
    double breakdown;    /* stops if beta is below this fraction of the largest one          */
    double noise;        /* standard deviation of the error added to each entry of a product */
    struct ks_rng rng;   /* for the noise                                                    */
};

static inline double dot(size_t n, const double *a, const double *b)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static inline void orthogonalize(size_t n, size_t count, const double *basis, double *w)
{
    double *part = malloc(count * sizeof *part);

    if (!part)
        abort();
    for (size_t turn = 0; turn < 2; turn++) {
        cblas_dgemv(CblasRowMajor, CblasNoTrans, (int)count, (int)n, 1, basis, (int)n, w, 1, 0,
                    part, 1);
        cblas_dgemv(CblasRowMajor, CblasTrans, (int)count, (int)n, -1, basis, (int)n, part, 1, 1, w,
                    1);
    }
    free(part);
}

/* Lanczos with full reorthogonalization: returns the number of iterations; alpha and beta [most];
 * *ended: an invariant subspace was found. */
static inline size_t run_lanczos(struct lanczos_run *run, double *alpha, double *beta, bool *ended)
{
    size_t n = run->n, steps = 0;
    double *basis = malloc((run->most + 1) * n * sizeof *basis), size = 0;
    double norm = sqrt(dot(n, run->start, run->start));

    if (!basis)
        abort();
    for (size_t i = 0; i < n; i++)
        basis[i] = run->start[i] / norm;
    *ended = false;
    while (steps < run->most && !*ended) {
        double *q = basis + steps * n, *w = q + n;

        for (size_t i = 0; i < n; i++)
            w[i] = run->value[i] * q[i] +
                   (run->noise > 0 ? run->noise * ks_rng_normal(&run->rng) : 0);
        alpha[steps] = dot(n, q, w);
        orthogonalize(n, steps + 1, basis, w);
        beta[steps] = sqrt(dot(n, w, w));
        size = fmax(size, fmax(fabs(alpha[steps]), beta[steps]));
        *ended = beta[steps] <= run->breakdown * size;
        for (size_t i = 0; i < n; i++)
            w[i] /= beta[steps];
        steps++;
    }
    free(basis);
    return steps;
}

#endif
