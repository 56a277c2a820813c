/* Forms the vectors to be certified from the Lanczos vectors of each probe. */
#include "statistics/certificate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cblas.h>

#include "core/memory.h"
#include "lanczos/jacobi.h"

enum { CHUNK = 2048 }; /* dead coordinates at a time */

ks_status ks_certificates_new(size_t order, struct ks_certificates *c)
{
    size_t columns;

    c->prefixes = (order - 1) / c->prefix;
    columns = c->prefixes + 1;
    if (c->basis && c->basis->dimension == 0)
        c->basis = NULL;
    for (size_t i = 0; i < KS_CERTIFICATES; i++) {
        KS_TRY(ks_alloc(c->n, sizeof(double), &c->vector[i].y));
        KS_TRY(ks_alloc(c->n, sizeof(double), &c->vector[i].image));
    }
    KS_TRY(ks_alloc(c->probes * columns, sizeof *c->sigma, &c->sigma));
    KS_TRY(ks_alloc(c->probes * columns, sizeof *c->length, &c->length));
    for (size_t i = 0; i < c->probes * columns; i++)
        c->sigma[i] = c->length[i] = NAN;
    return ks_alloc(c->probes + 1, sizeof *c->null_weight, &c->null_weight);
}

void ks_certificates_clear(struct ks_certificates *c)
{
    for (size_t i = 0; i < KS_CERTIFICATES; i++) {
        free(c->vector[i].y);
        free(c->vector[i].image);
    }
    free(c->sigma);
    free(c->length);
    free(c->null_weight);
}

double ks_certificates_bytes(size_t n)
{
    return 2 * KS_CERTIFICATES * (double)n * sizeof(double);
}

/* The small matrices and vectors of one probe. */
struct forming {
    struct ks_certificates *c;
    const struct ks_lanczos *l;
    size_t rows;    /* number of Lanczos vectors: steps, plus one unless the Krylov space ended */
    double *gram;   /* [steps + 1, steps + 1] C'C                                         */
    double *theta;  /* [steps] Ritz values                                                */
    double *s;      /* [steps, steps] eigenvectors of the Jacobi matrix, one per column   */
    double *flat;   /* [steps] the coefficients s of y_3                                  */
    double *c_row;  /* [directions] coefficients in Z                                     */
    double *weight; /* [steps + 1] of a combination                                      */
    struct ks_pool pool; /* all of these                                                  */
};

static ks_status allocate(struct forming *f)
{
    size_t m = f->l->steps, size = m + 1;

    KS_TRY(ks_pool_alloc(&f->pool, size * size, sizeof(double), &f->gram));
    KS_TRY(ks_pool_alloc(&f->pool, m, sizeof(double), &f->theta));
    KS_TRY(ks_pool_alloc(&f->pool, m * m, sizeof(double), &f->s));
    KS_TRY(ks_pool_alloc(&f->pool, m, sizeof(double), &f->flat));
    KS_TRY(ks_pool_alloc(&f->pool, f->c->basis ? f->c->basis->n_directions : 0, sizeof(double),
                         &f->c_row));
    return ks_pool_alloc(&f->pool, size, sizeof(double), &f->weight);
}

/* f->gram += the term of C'C from the explicit directions. */
static ks_status add_directions(struct forming *f)
{
    const struct ks_null_basis *b = f->c->basis;
    size_t size = f->l->steps + 1, d = b->n_directions;
    double *all = NULL; /* [rows, directions] */
    ks_status status = KS_OK;

    KS_GO(ks_alloc(f->rows * d, sizeof *all, &all));
    for (size_t j = 0; j < f->rows; j++) {
        ks_null_basis_multiply(b, ks_lanczos_widened(f->l, j), all + j * d);
        ks_null_basis_solve(b, all + j * d);
    }
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)f->rows, (int)f->rows, (int)d, 1, all,
                (int)d, all, (int)d, 1, f->gram, (int)size);
done:
    free(all);
    return status;
}

/* f->gram += the term of C'C from the dead coordinates, where the coefficients are the entries of
 * the Lanczos vectors. */
static ks_status add_dead(struct forming *f)
{
    const struct ks_null_basis *b = f->c->basis;
    size_t size = f->l->steps + 1;
    double *block = NULL, *sum = NULL; /* [rows, CHUNK], [size, size] */
    ks_status status = KS_OK;

    KS_GO(ks_alloc(f->rows * CHUNK, sizeof *block, &block));
    KS_GO(ks_alloc(size * size, sizeof *sum, &sum));
    for (size_t at = 0; at < b->n_dead; at += CHUNK) {
        size_t n = b->n_dead - at < CHUNK ? b->n_dead - at : CHUNK;

        for (size_t j = 0; j < f->rows; j++) {
            const double *q = ks_lanczos_widened(f->l, j);

            for (size_t i = 0; i < n; i++)
                block[j * CHUNK + i] = q[b->dead[at + i]];
        }
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)f->rows, (int)f->rows, (int)n, 1,
                    block, CHUNK, block, CHUNK, 1, sum, (int)size);
    }
    cblas_daxpy((int)(size * size), 1, sum, 1, f->gram, 1);
done:
    free(block);
    free(sum);
    return status;
}

static ks_status find_gram(struct forming *f)
{
    if (!f->c->basis)
        return KS_OK;
    KS_TRY(add_directions(f));
    if (f->c->basis->n_dead > 0)
        KS_TRY(add_dead(f));
    f->c->null_weight[f->l->probe] = fmin(f->gram[0], 1);
    return KS_OK;
}

/* Computes sigma from the prefixes and from all steps; f->flat is the vector of the last one. */
static ks_status find_sigma(struct forming *f)
{
    const struct ks_lanczos *l = f->l;
    const struct ks_certificates *c = f->c;
    const size_t size = l->steps + 1, at = l->probe * (c->prefixes + 1);
    double *block = NULL; /* [m + 1, m + 1]: the leading block of the Gram matrix */
    ks_status status = KS_OK;

    KS_GO(ks_alloc(size * size, sizeof *block, &block));
    for (size_t k = 0; k <= c->prefixes; k++) {
        const bool all = k == c->prefixes || (k + 1) * c->prefix > l->steps;
        const struct ks_jacobi t = {all ? l->steps : (k + 1) * c->prefix, l->alpha, l->beta};

        for (size_t i = 0; i <= t.m; i++)
            memcpy(block + i * (t.m + 1), f->gram + i * size, (t.m + 1) * sizeof *block);
        KS_GO(ks_deflated_sigma(&t, c->basis ? block : NULL, &c->sigma[at + k], f->flat));
        c->length[at + k] = cblas_dnrm2((int)t.m, f->flat, 1);
    }
done:
    free(block);
    return status;
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
    struct forming f = {.c = c, .l = l, .rows = l->steps + !l->exhausted};
    const struct ks_jacobi t = {l->steps, l->alpha, l->beta};
    size_t m = l->steps;
    ks_status status = KS_OK;

    KS_GO(allocate(&f));
    KS_GO(find_gram(&f));
    KS_GO(find_sigma(&f));
    KS_GO(ks_jacobi_vectors(&t, f.theta, f.s));
    form(&f, KS_Y_LARGEST, -f.theta[m - 1], f.s + (m - 1) * m, false);
    form(&f, KS_Y_SMALLEST, f.theta[0], f.s, false);
    form(&f, KS_Y_FLAT, c->sigma[l->probe * (c->prefixes + 1) + c->prefixes], f.flat, true);
done:
    ks_pool_free(&f.pool);
    return status;
}
