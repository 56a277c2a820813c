/* From an operator to nodes and weights: of stochastic Lanczos quadrature (Ubaru, Chen, Saad, SIAM
 * J. Matrix Anal. Appl. 38, 2017), the Gauss quadrature rule for the spectral measure of a start
 * vector, whose mean over random start vectors is the spectral density of the operator; and all
 * eigenvalues of a small operator, to check the estimates against. */
#include "lanczos/slq.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include <cblas.h>
#include <lapacke.h>

#include "core/memory.h"
#include "core/rng.h"
#include "lanczos/jacobi.h"

/* --- Lanczos --- */

/* The arrays of a spectrum's probes; `steps`: by Lanczos steps. */
struct room {
    struct ks_spectrum *s;
    bool steps;
};

static void lay_out_room(struct ks_arena *arena, void *object)
{
    const struct room *room = object;
    struct ks_spectrum *s = room->s;
    const size_t size = s->probes * s->order;

    s->ritz = KS_TAKE(arena, size, double);
    s->weight = KS_TAKE(arena, size, double);
    s->residual = KS_TAKE(arena, size, double);
    if (!room->steps)
        return;
    s->alpha = KS_TAKE(arena, size, double);
    s->beta = KS_TAKE(arena, size, double);
    s->start_norm2 = KS_TAKE(arena, s->probes, double);
    s->steps = KS_TAKE(arena, s->probes, int64_t);
}

ks_status ks_slq_room(struct ks_spectrum *s, size_t probes, size_t order)
{
    assert(probes > 0 && order > 0 && !s->ritz);
    s->probes = probes;
    s->order = order;
    KS_TRY(ks_arena_make(&s->arena, lay_out_room, &(struct room){s, true}));
    for (size_t i = 0; i < probes * order && !ks_counting(); i++)
        s->alpha[i] = s->beta[i] = s->ritz[i] = s->weight[i] = s->residual[i] = NAN;
    return KS_OK; /* after a breakdown the last entries stay NaN */
}

ks_status ks_slq_store(const struct ks_lanczos *l, size_t row, struct ks_spectrum *s)
{
    const struct ks_jacobi t = {l->steps, l->alpha, l->beta};
    size_t at = row * s->order;

    memcpy(s->alpha + at, l->alpha, l->steps * sizeof(double));
    memcpy(s->beta + at, l->beta, l->steps * sizeof(double));
    s->steps[row] = (int64_t)l->steps;
    s->start_norm2[row] = l->start_norm * l->start_norm;
    return ks_jacobi_ritz(&t, s->ritz + at, s->weight + at, s->residual + at);
}

/* --- all eigenvalues: the products A e_j give the dense matrix; LAPACK gets its symmetric part,
 * from which it differs by rounding --- */

static const uint64_t SEED = 0x6572726f72; /* of the start vector of the power iteration */
enum { ERROR_PRODUCTS = 12 };

struct dense {
    size_t n;
    double *unit, *matrix; /* [n]; [n, n], column by column */
};

static void lay_out(struct ks_arena *arena, void *object)
{
    struct dense *d = object;

    d->unit = KS_TAKE(arena, d->n, double);
    d->matrix = KS_TAKE(arena, d->n * d->n, double);
}

static ks_status fill(const struct ks_operator *a, ks_status (*on_product)(void *, size_t),
                      void *context, struct dense *d)
{
    size_t n = a->n;

    for (size_t j = 0; j < n; j++) {
        double *column = d->matrix + j * n;

        d->unit[j] = 1;
        KS_TRY(ks_operator_apply(a, d->unit, column));
        d->unit[j] = 0;
        for (size_t i = 0; i < n; i++)
            if (!isfinite(column[i]))
                return ks_fail(KS_NUMBER,
                               "product %zu of %zu with a unit vector holds a NaN or an infinity",
                               j + 1, n);
        if (on_product)
            KS_TRY(on_product(context, j + 1));
    }
    return KS_OK;
}

static ks_status find_eigenvalues(size_t n, double *matrix, double *eigenvalue)
{
    lapack_int info;

    for (size_t j = 0; j < n; j++)
        for (size_t i = 0; i < j; i++)
            matrix[i * n + j] = matrix[j * n + i] = (matrix[i * n + j] + matrix[j * n + i]) / 2;
    info = LAPACKE_dsyevd(LAPACK_COL_MAJOR, 'N', 'U', (lapack_int)n, matrix, (lapack_int)n,
                          eigenvalue);
    return info == 0 ? KS_OK
                     : ks_fail(KS_NUMBER, "LAPACK's dsyevd failed with info = %d", (int)info);
}

ks_status ks_exact_error(const struct ks_operator *a, const struct ks_operator *wide, double *error)
{
    struct ks_rng rng = ks_rng_start(SEED, 0);
    KS_CLEARED_BY(ks_arena_free) struct ks_arena arena = {.bytes = 0};
    double *v, *image, *exact, length = 1;
    int n = (int)a->n;

    *error = 0;
    KS_TRY(ks_arena_numbers(&arena, 3 * a->n, &v));
    if (ks_counting())
        return KS_OK;
    image = v + a->n;
    exact = image + a->n;
    for (size_t i = 0; i < a->n; i++)
        v[i] = ks_rng_normal(&rng);
    for (size_t k = 0; k < ERROR_PRODUCTS && length > 0; k++) {
        cblas_dscal(n, 1 / cblas_dnrm2(n, v, 1), v, 1);
        KS_TRY(ks_operator_apply(a, v, image));
        KS_TRY(ks_operator_apply(wide, v, exact));
        cblas_daxpy(n, -1, exact, 1, image, 1);
        length = cblas_dnrm2(n, image, 1);
        *error = fmax(*error, length);
        cblas_dcopy(n, image, 1, v, 1);
    }
    return KS_OK;
}

ks_status ks_exact(const struct ks_operator *a,
                   ks_status (*on_product)(void *context, size_t products), void *context,
                   struct ks_spectrum *s)
{
    KS_CLEARED_BY(ks_arena_free) struct ks_arena arena = {.bytes = 0};
    size_t n = a->n;
    struct dense d = {.n = n};

    assert(n > 0 && !s->ritz);
    if (n > KS_EXACT_LIMIT)
        return ks_fail(KS_USAGE,
                       "--exact: expected at most %d parameters, found %zu; leave it out to "
                       "estimate the spectrum",
                       KS_EXACT_LIMIT, n);
    s->probes = 1;
    s->order = n;
    KS_TRY(ks_arena_make(&arena, lay_out, &d));
    KS_TRY(ks_arena_make(&s->arena, lay_out_room, &(struct room){s, false}));
    if (ks_counting())
        return KS_OK;
    KS_TRY(fill(a, on_product, context, &d));
    KS_TRY(find_eigenvalues(n, d.matrix, s->ritz));
    for (size_t i = 0; i < n; i++)
        s->weight[i] = 1 / (double)n;
    return KS_OK;
}
