/* Forms the vectors to be certified from the Lanczos vectors of each probe. */
#include "statistics/certificate.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cblas.h>
#include <lapacke.h>

#include "lanczos/jacobi.h"

enum { CHUNK = 2048 }; /* dead coordinates at a time */

static void lay_out(struct ks_arena *arena, void *object)
{
    struct ks_certificates *c = object;
    const size_t columns = c->prefixes + 1;

    for (size_t i = 0; i < KS_CERTIFICATES; i++) {
        c->vector[i].y = KS_TAKE(arena, c->n, double);
        c->vector[i].image = KS_TAKE(arena, c->n, double);
    }
    c->sigma = KS_TAKE(arena, c->probes * columns, double);
    c->length = KS_TAKE(arena, c->probes * columns, double);
    c->null_weight = KS_TAKE(arena, c->probes + 2, double);
}

ks_status ks_certificates_new(size_t order, struct ks_certificates *c)
{
    c->prefixes = order > 0 ? (order - 1) / c->prefix : 0;
    if (c->basis && c->basis->dimension == 0)
        c->basis = NULL;
    KS_TRY(ks_arena_make(&c->arena, lay_out, c));
    for (size_t i = 0; i < c->probes * (c->prefixes + 1) && !ks_counting(); i++)
        c->sigma[i] = c->length[i] = NAN;
    return KS_OK;
}

void ks_certificates_clear(struct ks_certificates *c)
{
    ks_arena_free(&c->arena);
}

/* The small matrices and vectors of one probe. */
struct forming {
    struct ks_certificates *c;
    const struct ks_lanczos *l;
    size_t steps, directions; /* of the probe; of the null space, 0: no basis is known         */
    bool dead;       /* there are dead coordinates                                         */
    size_t rows;     /* number of Lanczos vectors: steps, plus one unless the Krylov space ended */
    double *gram;    /* [steps + 1, steps + 1] C'C                                         */
    double *block;   /* [steps + 1, steps + 1]: the leading block of it                    */
    double *theta;   /* [steps] Ritz values                                                */
    double *s;       /* [steps, steps] eigenvectors of the Jacobi matrix, one per column   */
    double *flat;    /* [steps] the coefficients s of y_3                                  */
    double *c_row;   /* [directions] coefficients in Z                                     */
    double *c_rows;  /* [steps + 1, directions] of the Lanczos vectors                     */
    double *entries; /* [steps + 1, CHUNK] of the Lanczos vectors at dead coordinates     */
    double *sum;     /* [steps + 1, steps + 1] the term of C'C from dead coordinates        */
    double *weight;  /* [steps + 1] of a combination                                      */
};

static void lay_out_forming(struct ks_arena *arena, void *object)
{
    struct forming *f = object;
    const size_t m = f->steps, size = m + 1;

    f->gram = KS_TAKE(arena, size * size, double);
    f->block = KS_TAKE(arena, size * size, double);
    f->theta = KS_TAKE(arena, m, double);
    f->s = KS_TAKE(arena, m * m, double);
    f->flat = KS_TAKE(arena, m, double);
    f->c_row = KS_TAKE(arena, f->directions, double);
    f->c_rows = KS_TAKE(arena, size * f->directions, double);
    f->entries = KS_TAKE(arena, f->dead ? size * CHUNK : 0, double);
    f->sum = KS_TAKE(arena, f->dead ? size * size : 0, double);
    f->weight = KS_TAKE(arena, size, double);
}

/* f->gram += the term of C'C from the explicit directions. */
static void add_directions(struct forming *f)
{
    const struct ks_null_basis *b = f->c->basis;
    const int rows = (int)f->rows, d = (int)f->directions;

    for (size_t j = 0; j < f->rows; j++) {
        double *row = f->c_rows + j * f->directions;

        ks_null_basis_multiply(b, ks_lanczos_widened(f->l, j), row);
        ks_null_basis_solve(b, row);
    }
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, rows, rows, d, 1, f->c_rows, d, f->c_rows,
                d, 1, f->gram, (int)f->steps + 1);
}

/* f->gram += the term of C'C from the dead coordinates, where the coefficients are the entries of
 * the Lanczos vectors. */
static void add_dead(struct forming *f)
{
    const struct ks_null_basis *b = f->c->basis;
    const size_t size = f->steps + 1;

    for (size_t at = 0; at < b->n_dead; at += CHUNK) {
        size_t n = b->n_dead - at < CHUNK ? b->n_dead - at : CHUNK;

        for (size_t j = 0; j < f->rows; j++) {
            const double *q = ks_lanczos_widened(f->l, j);

            for (size_t i = 0; i < n; i++)
                f->entries[j * CHUNK + i] = q[b->dead[at + i]];
        }
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)f->rows, (int)f->rows, (int)n, 1,
                    f->entries, CHUNK, f->entries, CHUNK, 1, f->sum, (int)size);
    }
    cblas_daxpy((int)(size * size), 1, f->sum, 1, f->gram, 1);
}

static void find_gram(struct forming *f)
{
    if (!f->c->basis)
        return;
    add_directions(f);
    if (f->dead)
        add_dead(f);
}

/* What is known of the null space beside V = [v_1 .. v_k], the vectors of the first probe: N = Z'V
 * has the singular values sigma_i and, with the eigenvectors g_i of N'N, the left singular vectors
 * N g_i / sigma_i. The directions of Z along those with sigma_i > KS_NULL_TOUCHED are not known
 * beside V. Their weight is taken from that of the next vector q, with x = N'Z'q. Of the others,
 * v_k has at most a part of (sum sigma_i^2 g_ik^2)^(1/2), to which the rounding of N'N is added.
 * f->gram is N'N, with x as its last column and |Z'q|^2 at its end; f->steps is k. */
static ks_status find_beside(struct forming *f, struct ks_certificates *c)
{
    const size_t k = f->steps, size = k + 1;
    const double *x = f->gram + k * size;
    double weight = x[k], last = (double)k * DBL_EPSILON;
    lapack_int info;

    c->null_touched = 0;
    info = LAPACKE_dsyevd(LAPACK_COL_MAJOR, 'V', 'U', (lapack_int)k, f->gram, (lapack_int)size,
                          f->theta);
    if (info == LAPACK_WORK_MEMORY_ERROR)
        return ks_fail(KS_MEMORY, "out of memory in LAPACK's dsyevd");
    if (info != 0)
        return ks_fail(KS_NUMBER, "LAPACK's dsyevd failed with info = %d", (int)info);
    for (size_t i = 0; i < k; i++) {
        const double *g = f->gram + i * size, along = cblas_ddot((int)k, g, 1, x, 1);

        if (f->theta[i] > KS_NULL_TOUCHED * KS_NULL_TOUCHED) {
            weight -= along * along / f->theta[i];
            c->null_touched++;
        } else
            last += fmax(f->theta[i], 0) * g[k - 1] * g[k - 1];
    }
    c->null_weight[1] = fmin(fmax(weight, 0), 1);
    c->null_last = sqrt(last);
    return KS_OK;
}

/* Computes sigma from the prefixes and from all steps; f->flat is the vector of the last one. */
static ks_status find_sigma(struct forming *f)
{
    const struct ks_lanczos *l = f->l;
    const struct ks_certificates *c = f->c;
    const size_t size = l->steps + 1, at = l->probe * (c->prefixes + 1);

    if (ks_counting())
        return ks_deflated_sigma(&(struct ks_jacobi){.m = l->steps}, NULL, NULL, NULL);
    for (size_t k = 0; k <= c->prefixes; k++) {
        const bool all = k == c->prefixes || (k + 1) * c->prefix > l->steps;
        const struct ks_jacobi t = {all ? l->steps : (k + 1) * c->prefix, l->alpha, l->beta};

        for (size_t i = 0; i <= t.m; i++)
            memcpy(f->block + i * (t.m + 1), f->gram + i * size, (t.m + 1) * sizeof *f->block);
        KS_TRY(ks_deflated_sigma(&t, c->basis ? f->block : NULL, &c->sigma[at + k], f->flat));
        c->length[at + k] = cblas_dnrm2((int)t.m, f->flat, 1);
    }
    return KS_OK;
}

/* v <- (I - P_Z) v */
static void remove_null(struct forming *f, double *v)
{
    if (!f->c->basis)
        return;
    ks_null_basis_multiply(f->c->basis, v, f->c_row);
    ks_null_basis_solve(f->c->basis, f->c_row);
    ks_null_basis_remove(f->c->basis, f->c_row, v);
}

/* Sets certificate `which` to Q_m s, projected off the null space if `off`, if its criterion is the
 * smallest so far. */
static void form(struct forming *f, int which, double criterion, const double *s, bool off)
{
    const struct ks_jacobi t = {f->l->steps, f->l->alpha, f->l->beta};
    struct ks_certificate *y = &f->c->vector[which];

    if (isnan(criterion) || (y->formed && !(criterion < y->criterion)))
        return;
    y->formed = true;
    y->criterion = criterion;
    ks_lanczos_combine(f->l, f->l->steps, s, y->y);
    ks_jacobi_multiply(&t, s, f->weight); /* A Q_m s = Q_{m+1} T~ s */
    ks_lanczos_combine(f->l, f->rows, f->weight, y->image);
    if (off) {
        remove_null(f, y->y);
        remove_null(f, y->image);
    }
}

ks_status ks_certificates_take(struct ks_certificates *c, const struct ks_lanczos *l)
{
    KS_CLEARED_BY(ks_arena_free) struct ks_arena arena = {.bytes = 0};
    const struct ks_jacobi t = {l->steps, l->alpha, l->beta};
    const size_t m = l->kept > 0 ? l->kept : l->steps;
    struct forming f = {.c = c,
                        .l = l,
                        .steps = m,
                        .directions = c->basis ? c->basis->n_directions : 0,
                        .dead = c->basis && c->basis->n_dead > 0,
                        .rows = m + (l->kept > 0 || !l->exhausted)};

    KS_TRY(ks_arena_make(&arena, lay_out_forming, &f));
    if (!ks_counting())
        find_gram(&f);
    if (l->kept > 0)
        return c->basis && !ks_counting() ? find_beside(&f, c) : KS_OK;
    if (!ks_counting())
        c->null_weight[l->probe] = fmin(f.gram[0], 1);
    KS_TRY(find_sigma(&f));
    if (ks_counting())
        return KS_OK;
    KS_TRY(ks_jacobi_vectors(&t, f.theta, f.s));
    form(&f, KS_Y_LARGEST, -f.theta[m - 1], f.s + (m - 1) * m, false);
    form(&f, KS_Y_SMALLEST, f.theta[0], f.s, false);
    form(&f, KS_Y_FLAT, c->sigma[l->probe * (c->prefixes + 1) + c->prefixes], f.flat, true);
    return KS_OK;
}
