/* Golub and Welsch (Math. Comp. 23, 1969): the nodes of Gauss quadrature are the eigenvalues of the
 * Jacobi matrix, the weights the squared first components of its eigenvectors. */
#include "lanczos/jacobi.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cblas.h>
#include <lapacke.h>

#include "core/memory.h"

static ks_status lapack_status(const char *routine, lapack_int info)
{
    if (info == LAPACK_WORK_MEMORY_ERROR)
        return ks_fail(KS_MEMORY, "out of memory in LAPACK's %s", routine);
    return info == 0 ? KS_OK
                     : ks_fail(KS_NUMBER, "LAPACK's %s failed with info = %d", routine, (int)info);
}

ks_status ks_jacobi_vectors(const struct ks_jacobi *t, double *ritz, double *vector)
{
    const size_t m = t->m;
    KS_OWNED double *beside = NULL;

    assert(m > 0);
    KS_TRY(ks_alloc(m, sizeof *beside, &beside));
    memcpy(ritz, t->alpha, m * sizeof *ritz);
    memcpy(beside, t->beta, (m - 1) * sizeof *beside);
    return lapack_status("dstevd", LAPACKE_dstevd(LAPACK_COL_MAJOR, 'V', (lapack_int)m, ritz,
                                                  beside, vector, (lapack_int)m));
}

ks_status ks_jacobi_ritz(const struct ks_jacobi *t, double *ritz, double *weight, double *residual)
{
    const size_t m = t->m;
    KS_OWNED double *s = NULL;

    KS_TRY(ks_alloc(m * m, sizeof *s, &s));
    KS_TRY(ks_jacobi_vectors(t, ritz, s));
    for (size_t i = 0; i < m; i++) {
        weight[i] = s[i * m] * s[i * m];
        residual[i] = t->beta[m - 1] * fabs(s[i * m + m - 1]);
    }
    return KS_OK;
}

void ks_jacobi_multiply(const struct ks_jacobi *t, const double *s, double *out)
{
    const size_t m = t->m;

    for (size_t i = 0; i <= m; i++) {
        out[i] = i < m ? t->alpha[i] * s[i] : 0;
        if (i > 0)
            out[i] += t->beta[i - 1] * s[i - 1];
        if (i + 1 < m)
            out[i] += t->beta[i] * s[i + 1];
    }
}

/* Rotations make the band matrix bidiagonal (dgbbrd), and dbdsqr computes its singular values. Band
 * storage: column j of `band` holds the entries above, on and below the diagonal. */
ks_status ks_jacobi_smallest(const struct ks_jacobi *t, double *sigma)
{
    const size_t m = t->m;
    KS_OWNED double *band = NULL;
    KS_OWNED double *d = NULL;
    KS_OWNED double *e = NULL;
    double none[1];
    lapack_int columns = (lapack_int)m;

    KS_TRY(ks_alloc(3 * m, sizeof(double), &band));
    KS_TRY(ks_alloc(m, sizeof(double), &d));
    KS_TRY(ks_alloc(m, sizeof(double), &e));
    for (size_t j = 0; j < m; j++) {
        band[3 * j] = j > 0 ? t->beta[j - 1] : 0;
        band[3 * j + 1] = t->alpha[j];
        band[3 * j + 2] = t->beta[j];
    }
    KS_TRY(lapack_status("dgbbrd", LAPACKE_dgbbrd(LAPACK_COL_MAJOR, 'N', columns + 1, columns, 0, 1,
                                                  1, band, 3, d, e, none, 1, none, 1, none, 1)));
    KS_TRY(lapack_status("dbdsqr", LAPACKE_dbdsqr(LAPACK_COL_MAJOR, 'U', columns, 0, 0, 0, d, e,
                                                  none, 1, none, 1, none, 1)));
    *sigma = d[m - 1]; /* in descending order */
    return KS_OK;
}

/* dstemr (Dhillon, Parlett, Vomel, ACM TOMS 32, 2006) computes a single eigenpair. */
double ks_jacobi_largest(const struct ks_jacobi *t, double *residual)
{
    const size_t m = t->m;
    const lapack_int order = (lapack_int)m;
    lapack_int found = 0, accurate = 1, support[2];
    KS_OWNED double *d = NULL;
    double *e, *ritz, *s; /* [m] each, as d */

    *residual = NAN;
    if (ks_alloc(4 * m, sizeof *d, &d) != KS_OK)
        return NAN;
    e = d + m, ritz = e + m, s = ritz + m;
    memcpy(d, t->alpha, m * sizeof *d);
    memcpy(e, t->beta, (m - 1) * sizeof *e);
    if (LAPACKE_dstemr(LAPACK_COL_MAJOR, 'V', 'I', order, d, e, 0, 0, order, order, &found, ritz, s,
                       order, 1, support, &accurate) != 0 ||
        found != 1)
        return NAN;
    *residual = t->beta[m - 1] * fabs(s[m - 1]);
    return ritz[0];
}

/* --- off the known null space --- */

/* The pencil of ks_deflated_sigma is solved as a singular value problem, since forming T~' G T~
 * would lose half of the digits. With G = E diag(e) E' and B = V diag(g)^-1/2 for the eigenpairs
 * (g, V) of G_m that are kept,
 *
 *   sigma = least singular value of diag(e)^1/2 E' T~ B,   s = B z,  z its right singular vector.
 */
static const double KEPT = 1e-6; /* eigenvalues of G_m above this are kept */

/* All matrices are stored column by column. */
struct pencil {
    size_t m, kept;
    double *full;    /* [m+1, m+1] G, then its eigenvectors E                  */
    double *leading; /* [m, m] G_m, then its eigenvectors, then B in the last `kept` columns */
    double *value;   /* [m+1] eigenvalues                                      */
    double *tall;    /* [m+1, m] T~ B                                          */
    double *product; /* [m+1, m] E' T~ B, its rows scaled by e^1/2             */
    double *right;   /* [m+1, m+1] right singular vectors, transposed          */
};

static void lay_out(struct ks_arena *arena, void *object)
{
    struct pencil *p = object;
    const size_t m = p->m, size = m + 1;

    p->full = KS_TAKE(arena, size * size, double);
    p->leading = KS_TAKE(arena, m * m, double);
    p->value = KS_TAKE(arena, size, double);
    p->tall = KS_TAKE(arena, size * m, double);
    p->product = KS_TAKE(arena, size * m, double);
    p->right = KS_TAKE(arena, size * size, double);
    if (ks_counting()) /* LAPACKE_dgesdd allocates about so many numbers of its own */
        ks_arena_take(arena, 5 * size * size, sizeof(double));
}

/* Sets G and G_m. */
static void set_gram(const double *gram, struct pencil *p)
{
    const size_t m = p->m, size = m + 1;

    for (size_t j = 0; j < size; j++)
        for (size_t i = 0; i < size; i++)
            p->full[j * size + i] = (i == j) - (gram ? gram[j * size + i] : 0);
    for (size_t j = 0; j < m; j++)
        memcpy(p->leading + j * m, p->full + j * size, m * sizeof(double));
}

/* B, in the last `kept` columns of p->leading. */
static ks_status find_basis(struct pencil *p)
{
    size_t m = p->m;

    KS_TRY(lapack_status("dsyevd", LAPACKE_dsyevd(LAPACK_COL_MAJOR, 'V', 'U', (lapack_int)m,
                                                  p->leading, (lapack_int)m, p->value)));
    for (size_t j = 0; j < m; j++)
        if (p->value[j] > KEPT) {
            cblas_dscal((int)m, 1 / sqrt(p->value[j]), p->leading + j * m, 1);
            p->kept++;
        }
    return KS_OK;
}

/* p->product = diag(e)^1/2 E' T~ B */
static ks_status multiply_root(struct pencil *p)
{
    lapack_int size = (lapack_int)p->m + 1;

    KS_TRY(lapack_status(
        "dsyevd", LAPACKE_dsyevd(LAPACK_COL_MAJOR, 'V', 'U', size, p->full, size, p->value)));
    cblas_dgemm(CblasColMajor, CblasTrans, CblasNoTrans, size, (int)p->kept, size, 1, p->full, size,
                p->tall, size, 0, p->product, size);
    for (int i = 0; i < size; i++)
        cblas_dscal((int)p->kept, sqrt(fmax(p->value[i], 0)), p->product + i, size);
    return KS_OK;
}

ks_status ks_deflated_sigma(const struct ks_jacobi *t, const double *gram, double *sigma, double *s)
{
    KS_CLEARED_BY(ks_arena_free) struct ks_arena arena = {.bytes = 0};
    const size_t m = t->m;
    struct pencil p = {.m = m};
    lapack_int kept, size = (lapack_int)m + 1;

    KS_TRY(ks_arena_make(&arena, lay_out, &p));
    if (ks_counting())
        return KS_OK;
    *sigma = NAN;
    memset(s, 0, m * sizeof *s);
    set_gram(gram, &p);
    KS_TRY(find_basis(&p));
    if (p.kept == 0)
        return KS_OK;
    kept = (lapack_int)p.kept;
    for (size_t k = 0; k < p.kept; k++) /* T~ B */
        ks_jacobi_multiply(t, p.leading + (m - p.kept + k) * m, p.tall + k * (m + 1));
    KS_TRY(multiply_root(&p));
    KS_TRY(lapack_status("dgesdd", LAPACKE_dgesdd(LAPACK_COL_MAJOR, 'O', size, kept, p.product,
                                                  size, p.value, NULL, 1, p.right, kept)));
    *sigma = p.value[kept - 1];
    cblas_dgemv(CblasColMajor, CblasNoTrans, (int)m, kept, 1, p.leading + (m - p.kept) * m, (int)m,
                p.right + (kept - 1), kept, 0, s, 1);
    return KS_OK;
}
