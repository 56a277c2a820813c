/* The Lanczos process for a diagonal operator and a given start vector, in its eigenbasis: spectral
 * measures that are known, for the tests of what is said about them. */
#ifndef KS_TEST_MEASURES_H
#define KS_TEST_MEASURES_H

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "ks/rng.h"

/* m steps at most, with full reorthogonalization, from `start` [n], which need not have norm 1:
 * alpha, beta [m]. Gives the steps; *ended where beta fell below `breakdown` times the largest
 * coefficient. `noise` [n] (NULL: none) is added to each product, scaled by a normal number. */
struct lanczos_run {
    size_t n, most;
    const double *value, *start;
    double breakdown;
    double noise; /* standard deviation of what is added to each entry of a product */
    struct ks_rng rng;
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
    for (size_t turn = 0; turn < 2; turn++)
        for (size_t k = 0; k < count; k++) {
            double part = dot(n, basis + k * n, w);

            for (size_t i = 0; i < n; i++)
                w[i] -= part * basis[k * n + i];
        }
}

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
