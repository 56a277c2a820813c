/* Golub and Welsch (Math. Comp. 23, 1969): the nodes of Gauss quadrature are the eigenvalues of the
 * Jacobi matrix, the weights the squared first components of its eigenvectors. */
#include "lanczos/jacobi.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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
    double *beside = NULL;
    lapack_int info;

    assert(m > 0);
    KS_TRY(ks_alloc(m, sizeof *beside, &beside));
    memcpy(ritz, t->alpha, m * sizeof *ritz);
    memcpy(beside, t->beta, (m - 1) * sizeof *beside);
    info = LAPACKE_dstevd(LAPACK_COL_MAJOR, 'V', (lapack_int)m, ritz, beside, vector,
                          (lapack_int)m);
    free(beside);
    return lapack_status("dstevd", info);
}

ks_status ks_jacobi_ritz(const struct ks_jacobi *t, double *ritz, double *weight, double *residual)
{
    const size_t m = t->m;
    ks_status status = KS_OK;
    double *s = NULL;

    KS_GO(ks_alloc(m * m, sizeof *s, &s));
    KS_GO(ks_jacobi_vectors(t, ritz, s));
    for (size_t i = 0; i < m; i++) {
        weight[i] = s[i * m] * s[i * m];
        residual[i] = t->beta[m - 1] * fabs(s[i * m + m - 1]);
    }
done:
    free(s);
    return status;
}

/* Rotations make the band matrix bidiagonal (dgbbrd), and dbdsqr computes its singular values. Band
 * storage: column j of `band` holds the entries above, on and below the diagonal. */
ks_status ks_jacobi_smallest(const struct ks_jacobi *t, double *sigma)
{
    const size_t m = t->m;
    ks_status status = KS_OK;
    double *band = NULL, *d = NULL, *e = NULL, none[1];
    lapack_int columns = (lapack_int)m;

    KS_GO(ks_alloc(3 * m, sizeof(double), &band));
    KS_GO(ks_alloc(m, sizeof(double), &d));
    KS_GO(ks_alloc(m, sizeof(double), &e));
    for (size_t j = 0; j < m; j++) {
        band[3 * j] = j > 0 ? t->beta[j - 1] : 0;
        band[3 * j + 1] = t->alpha[j];
        band[3 * j + 2] = t->beta[j];
    }
    KS_GO(lapack_status("dgbbrd", LAPACKE_dgbbrd(LAPACK_COL_MAJOR, 'N', columns + 1, columns, 0, 1,
                                                 1, band, 3, d, e, none, 1, none, 1, none, 1)));
    KS_GO(lapack_status("dbdsqr", LAPACKE_dbdsqr(LAPACK_COL_MAJOR, 'U', columns, 0, 0, 0, d, e,
                                                 none, 1, none, 1, none, 1)));
    *sigma = d[m - 1]; /* in descending order */
done:
    free(band);
    free(d);
    free(e);
    return status;
}

/* dstemr (Dhillon, Parlett, Vomel, ACM TOMS 32, 2006) computes a single eigenpair. */
double ks_jacobi_largest(const struct ks_jacobi *t, double *work, double *residual)
{
    const size_t m = t->m;
    const lapack_int order = (lapack_int)m;
    double *d = work, *e = d + m, *ritz = e + m, *s = ritz + m, *own = s + m;
    lapack_int *integers = (lapack_int *)(own + 18 * m), *support = integers + 10 * m;
    lapack_int found = 0, accurate = 1;

    memcpy(d, t->alpha, m * sizeof(double));
    memcpy(e, t->beta, (m - 1) * sizeof(double));
    *residual = NAN;
    if (LAPACKE_dstemr_work(LAPACK_COL_MAJOR, 'V', 'I', order, d, e, 0, 0, order, order, &found,
                            ritz, s, order, 1, support, &accurate, own, 18 * order, integers,
                            10 * order) != 0 ||
        found != 1)
        return NAN;
    *residual = t->beta[m - 1] * fabs(s[m - 1]);
    return ritz[0];
}
