/* Lanczos (J. Res. Nat. Bur. Stand. 45, 1950) with full reorthogonalization:
 *
 *   w       = A q_j
 *   h       = [q_0 .. q_j]' w,   w -= [q_0 .. q_j] h      classical Gram-Schmidt, twice:
 *   g       = [q_0 .. q_j]' w,   w -= [q_0 .. q_j] g
 *   alpha_j = h_j + g_j,   beta_j = |w|,   q_{j+1} = w / beta_j
 *
 * Every new vector is orthogonalized twice against the whole basis, the current vector too (Giraud,
 * Langou, Rozloznik, van den Eshof, Numer. Math. 101, 2005: twice is enough). Without it the
 * outlying eigenvalues return as ghosts: test_no_ghosts.
 *
 * The basis is read from memory, and that is what a step costs beside the product. So w -= Q h and
 * the following Q' w share one sweep, in column blocks that stay in the cache: three sweeps a step.
 */
#include "ks/lanczos.h"

#include <assert.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include <cblas.h>
#include <omp.h>

#include "ks/memory.h"
#include "ks/rng.h"

enum {
    BLOCK = 512, /* columns of the basis at a time: 91 rows of them are 364 KiB */
    SLICE = 8192 /* numbers that are worth a thread */
};

/* Breakdown: beta <= BREAKDOWN |T|, that is 10^4 eps. Where the Krylov space ends, beta is not eps
 * |T|: rounding errors of earlier steps lie outside that space, and the recurrence makes them grow
 * with the number of steps, whatever n. Measured: 0.4 eps |T| with 3 different eigenvalues, 15 with
 * 9, 2000 with 17, 3000 at rank 11. A process that misses the end starts anew in noise; one that
 * stops here has Ritz values that are right to 2e-12 |T|. */
static const double BREAKDOWN = 1e4 * DBL_EPSILON;

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static double *vector(const struct ks_lanczos *l, size_t j)
{
    return l->basis + j * l->n;
}

/* Slice t of the vectors is [slice_start(l, t), slice_start(l, t + 1)). */
static size_t slice_start(const struct ks_lanczos *l, size_t t)
{
    return l->n / l->slices * t + smaller(t, l->n % l->slices);
}

ks_status ks_lanczos_new(size_t n, size_t order, struct ks_lanczos **lanczos)
{
    ks_status status = KS_OK;
    struct ks_lanczos *l = NULL;

    assert(n > 0 && order > 0);
    *lanczos = NULL;
    if (n > INT_MAX)
        return ks_fail(KS_RUN, "Lanczos: %zu parameters, BLAS counts to %d", n, INT_MAX);
    KS_TRY(ks_alloc(1, sizeof *l, &l));
    l->n = n;
    l->order = smaller(order, n);
    l->slices = smaller((size_t)omp_get_max_threads(), 1 + n / SLICE);
    KS_GO(ks_alloc(l->order, sizeof(double), &l->alpha));
    KS_GO(ks_alloc(l->order, sizeof(double), &l->beta));
    KS_GO(ks_alloc((l->slices + 2) * l->order, sizeof(double), &l->sums));
    if (n > SIZE_MAX / (l->order + 1)) {
        status = ks_fail(KS_MEMORY, "out of memory: a basis of %zu vectors of %zu", l->order + 1,
                         n);
        goto done;
    }
    KS_GO(ks_alloc((l->order + 1) * n, sizeof(double), &l->basis));
    *lanczos = l, l = NULL;
done:
    ks_lanczos_free(l);
    return status;
}

void ks_lanczos_free(struct ks_lanczos *l)
{
    if (!l)
        return;
    free(l->alpha);
    free(l->beta);
    free(l->sums);
    free(l->basis);
    free(l);
}

/* |v|, without overflow or underflow; not finite where v is not. */
static double norm(const struct ks_lanczos *l, const double *v)
{
    double *part = l->sums;

#pragma omp parallel for schedule(static) num_threads((int)l->slices)
    for (size_t t = 0; t < l->slices; t++) {
        size_t start = slice_start(l, t), end = slice_start(l, t + 1);

        part[t * l->order] = cblas_dnrm2((int)(end - start), v + start, 1);
    }
    for (size_t t = 0; t < l->slices; t++)
        if (!isfinite(part[t * l->order]))
            return NAN;
    return cblas_dnrm2((int)l->slices, part, (int)l->order);
}

static void divide(const struct ks_lanczos *l, double *v, double divisor)
{
#pragma omp parallel for schedule(static) num_threads((int)l->slices)
    for (size_t t = 0; t < l->slices; t++)
        for (size_t i = slice_start(l, t); i < slice_start(l, t + 1); i++)
            v[i] /= divisor;
}

void ks_lanczos_start(struct ks_lanczos *l, uint64_t seed, uint64_t probe)
{
    double *q = vector(l, 0);

    l->seed = seed;
    l->probe = probe;
    l->steps = 0;
    l->exhausted = false;
#pragma omp parallel for schedule(static) num_threads((int)l->slices)
    for (size_t t = 0; t < l->slices; t++) {
        struct ks_rng rng = ks_rng_start(seed, probe);

        rng.drawn = slice_start(l, t);
        for (size_t i = slice_start(l, t); i < slice_start(l, t + 1); i++)
            q[i] = ks_rng_normal(&rng);
    }
    divide(l, q, norm(l, q));
}

/* One sweep over Q = [q_0 .. q_{rows-1}], Q' being the first `rows` rows of the basis:
 * w -= Q `subtract` (not where it is NULL), then `project` = Q' w (likewise). */
static void sweep(const struct ks_lanczos *l, size_t rows, double *w, const double *subtract,
                  double *project)
{
    double *sums = l->sums;

#pragma omp parallel for schedule(static) num_threads((int)l->slices)
    for (size_t t = 0; t < l->slices; t++) {
        size_t end = slice_start(l, t + 1), columns;
        double *mine = sums + t * l->order;

        for (size_t i = 0; i < rows; i++)
            mine[i] = 0;
        for (size_t at = slice_start(l, t); at < end; at += columns) {
            columns = smaller(BLOCK, end - at);
            if (subtract)
                cblas_dgemv(CblasRowMajor, CblasTrans, (int)rows, (int)columns, -1, l->basis + at,
                            (int)l->n, subtract, 1, 1, w + at, 1);
            if (project)
                cblas_dgemv(CblasRowMajor, CblasNoTrans, (int)rows, (int)columns, 1, l->basis + at,
                            (int)l->n, w + at, 1, 1, mine, 1);
        }
    }
    for (size_t i = 0; project && i < rows; i++) {
        project[i] = 0;
        for (size_t t = 0; t < l->slices; t++) /* always in this order */
            project[i] += sums[t * l->order + i];
    }
}

/* Frobenius norm of the (j+1) x (j+1) Jacobi matrix. */
static double jacobi_norm(const struct ks_lanczos *l, size_t j)
{
    return hypot(cblas_dnrm2((int)j + 1, l->alpha, 1), sqrt(2) * cblas_dnrm2((int)j, l->beta, 1));
}

ks_status ks_lanczos_step(struct ks_lanczos *l, const struct ks_operator *a)
{
    size_t j = l->steps;
    double *w = vector(l, j + 1);
    double *h = l->sums + l->slices * l->order, *g = h + l->order;

    assert(a->n == l->n && j < l->order && !l->exhausted);
    KS_TRY(ks_operator_apply(a, vector(l, j), w));
    if (!isfinite(norm(l, w)))
        return ks_fail(KS_NUMBER,
                       "Lanczos step %zu of %zu (probe %llu): the product holds a NaN or "
                       "an infinity",
                       j + 1, l->order, (unsigned long long)l->probe);
    sweep(l, j + 1, w, NULL, h);
    sweep(l, j + 1, w, h, g);
    sweep(l, j + 1, w, g, NULL);
    l->alpha[j] = h[j] + g[j];
    l->beta[j] = norm(l, w);
    if (!isfinite(l->alpha[j]) || !isfinite(l->beta[j]))
        return ks_fail(KS_NUMBER, "Lanczos step %zu of %zu (probe %llu): overflow", j + 1, l->order,
                       (unsigned long long)l->probe);
    l->steps = j + 1;
    l->exhausted = l->steps == l->n || l->beta[j] <= BREAKDOWN * jacobi_norm(l, j);
    if (!l->exhausted)
        divide(l, w, l->beta[j]);
    return KS_OK;
}
