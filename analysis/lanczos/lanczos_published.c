/* The Lanczos iteration of the published code (github.com/danielpalenicek/xqc,
 * xqc/logging/metrics/hessian_eigenspectrum.py, adapted from github.com/google/spectral-density):
 *
 *   w       = A q_j - beta_{j-1} q_{j-1}
 *   alpha_j = w' q_j,   w -= alpha_j q_j
 *   w      -= (w' q_i) q_i,   i = 0 .. j-1     modified Gram-Schmidt, one pass, without q_j
 *   beta_j  = |w|,      q_{j+1} = w / beta_j
 *
 * Vectors and coefficients are float32, as in the published code. Sums over a vector are
 * computed in float64 and then rounded to float32, because the order of the published code's
 * float32 sums depends on the machine. There is no breakdown test: the iteration ends early only if
 * beta_j is exactly zero, as then q_{j+1} does not exist (the published code divides zero by zero).
 */
#include "lanczos/lanczos.h"

#include <assert.h>
#include <math.h>

/* w -= c q; returns w' p, or w' w where p is NULL. */
static double subtract_slice(size_t n, float c, const float *q, const float *p, float *w)
{
    double sum = 0;

    assert(w || n == 0);
#pragma omp simd reduction(+ : sum)
    for (size_t i = 0; i < n; i++) {
        float x = w[i] - c * q[i];

        w[i] = x;
        sum += (double)x * (double)(p ? p[i] : x);
    }
    return sum;
}

/* Subtracts in all slices. Each coefficient depends on the complete subtraction before
 * it, so there is one sweep per vector; the fused sweep reads w once instead of twice. */
static double subtract(const struct ks_lanczos *l, float c, const float *q, const float *p,
                       float *w)
{
    double sum = 0;

#pragma omp parallel for schedule(static) num_threads((int)l->slices)
    for (size_t t = 0; t < l->slices; t++) {
        size_t start = ks_lanczos_slice(l, t), n = ks_lanczos_slice(l, t + 1) - start;

        l->sums[t] = subtract_slice(n, c, q + start, p ? p + start : NULL, w + start);
    }
    for (size_t t = 0; t < l->slices; t++) /* in a fixed order, for the same bits */
        sum += l->sums[t];
    return sum;
}

static void round_vector(const struct ks_lanczos *l, const double *from, float *to)
{
#pragma omp parallel for schedule(static) num_threads((int)l->slices)
    for (size_t t = 0; t < l->slices; t++)
        for (size_t i = ks_lanczos_slice(l, t); i < ks_lanczos_slice(l, t + 1); i++)
            to[i] = (float)from[i];
}

static void divide(const struct ks_lanczos *l, float divisor, float *w)
{
#pragma omp parallel for schedule(static) num_threads((int)l->slices)
    for (size_t t = 0; t < l->slices; t++)
        for (size_t i = ks_lanczos_slice(l, t); i < ks_lanczos_slice(l, t + 1); i++)
            w[i] /= divisor;
}

/* Turns A q_j, in w, into beta_j q_{j+1}; returns beta_j. */
static float orthogonalize(const struct ks_lanczos *l, size_t j, float *w, float *alpha)
{
    const float *q = l->rounded, *last = q + j * l->n;
    const float before = j > 0 ? (float)l->beta[j - 1] : 0;
    float c = (float)subtract(l, before, j > 0 ? last - l->n : last, last, w);

    *alpha = c;
    for (size_t i = 0; i < j; i++) {
        const float *next = q + i * l->n;

        c = (float)subtract(l, c, last, next, w);
        last = next;
    }
    return (float)sqrt(subtract(l, c, last, NULL, w));
}

void ks_lanczos_published_step(struct ks_lanczos *l, const double *product)
{
    size_t j = l->steps;
    float *w = l->rounded + (j + 1) * l->n, alpha, beta;

    assert(l->basis_f32 && l->published);
    round_vector(l, product, w);
    beta = orthogonalize(l, j, w, &alpha);
    l->alpha[j] = (double)alpha;
    l->beta[j] = (double)beta;
    divide(l, beta, w);
}
