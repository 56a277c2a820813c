#include "lanczos/eigenpairs.h"

#include <math.h>
#include <stdlib.h>

#include <cblas.h>

#include "core/memory.h"
#include "lanczos/jacobi.h"

enum { PART = 32 }; /* the Ritz values are computed after each further thirty-second of the steps */

/* The eigenpairs of the Jacobi matrix, by descending modulus. */
struct ritz {
    size_t m;
    struct ritz_value {
        double value, residual;
        size_t index; /* of its vector */
    } * sorted;       /* [m]            */
    double *value;    /* [m], ascending */
    double *vector;   /* [m, m]         */
};

static void ritz_clear(struct ritz *r)
{
    free(r->sorted);
    free(r->value);
    free(r->vector);
    *r = (struct ritz){.m = 0};
}

static int compare(const void *a, const void *b)
{
    const struct ritz_value *x = a, *y = b;
    const double p = fabs(x->value), q = fabs(y->value);

    return p != q ? (p < q) - (p > q) : (x->index > y->index) - (x->index < y->index);
}

static ks_status find_ritz(const struct ks_lanczos *l, struct ritz *r)
{
    const struct ks_jacobi t = {l->steps, l->alpha, l->beta};

    ritz_clear(r);
    r->m = l->steps;
    KS_TRY(ks_alloc(r->m, sizeof *r->sorted, &r->sorted));
    KS_TRY(ks_alloc(r->m, sizeof *r->value, &r->value));
    KS_TRY(ks_alloc(r->m * r->m, sizeof *r->vector, &r->vector));
    KS_TRY(ks_jacobi_vectors(&t, r->value, r->vector));
    for (size_t i = 0; i < r->m; i++)
        r->sorted[i] = (struct ritz_value){
            r->value[i], l->beta[r->m - 1] * fabs(r->vector[i * r->m + r->m - 1]), i};
    qsort(r->sorted, r->m, sizeof *r->sorted, compare);
    return KS_OK;
}

/* How many of the first `count` pairs are within the tolerance. */
static size_t count_converged(const struct ritz *r, size_t count, double tolerance)
{
    size_t n = 0;

    for (size_t i = 0; i < count && i < r->m; i++)
        n += r->sorted[i].residual <= tolerance * fabs(r->sorted[i].value);
    return n;
}

static ks_status allocate(struct ks_eigenpairs *p)
{
    KS_TRY(ks_alloc(p->count, sizeof *p->value, &p->value));
    KS_TRY(ks_alloc(p->count, sizeof *p->residual, &p->residual));
    return ks_alloc(p->count * p->n, sizeof *p->vector, &p->vector);
}

/* The first `count` eigenvectors y = Q s of the operator from those of the Jacobi matrix. */
static ks_status form(const struct ks_lanczos *l, const struct ritz *r, size_t count,
                      struct ks_eigenpairs *p)
{
    ks_status status = KS_OK;
    double *slice = NULL;

    status = allocate(p);
    if (status == KS_OK)
        status = ks_alloc(l->length, sizeof *slice, &slice);
    KS_GO(ks_team_agree(l->team, status));
    for (size_t i = 0; i < count; i++) {
        double *y = p->vector + i * p->n, norm;

        p->value[i] = r->sorted[i].value;
        p->residual[i] = r->sorted[i].residual;
        ks_lanczos_combine(l, r->m, r->vector + r->sorted[i].index * r->m, slice);
        ks_team_gather(l->team, p->n, slice, y);
        norm = cblas_dnrm2((int)p->n, y, 1); /* 1 up to the rounding of a basis in float32 */
        cblas_dscal((int)p->n, 1 / norm, y, 1);
    }
done:
    free(slice);
    return status;
}

static ks_status refuse(const struct ks_lanczos *l, size_t count, size_t converged,
                        double tolerance)
{
    if (l->exhausted && l->steps < count)
        return ks_fail(KS_NUMBER,
                       "eigenvectors: expected at most %zu, found %zu: the Krylov space ends after "
                       "%zu Lanczos steps",
                       l->steps, count, l->steps);
    if (converged == count)
        return ks_fail(KS_NUMBER,
                       "eigenvectors: an eigenvalue whose modulus is larger by more than a factor "
                       "of %g cannot be excluded after %zu Lanczos steps: expected a larger order "
                       "or tolerance",
                       1 + tolerance, l->steps);
    return ks_fail(KS_NUMBER,
                   "eigenvectors: %zu of %zu have a relative residual of at most %g after %zu "
                   "Lanczos steps: expected a larger order or tolerance, or fewer eigenvectors",
                   converged, count, tolerance, l->steps);
}

ks_status ks_eigenpairs_find(const struct ks_operator *a, struct ks_lanczos *l,
                             const struct ks_eigenpairs_search *search, struct ks_eigenpairs *p)
{
    const size_t count = search->count;
    struct ritz r = {.m = 0};
    ks_status status = KS_OK;
    size_t next = count, converged = 0;
    bool found = false;

    *p = (struct ks_eigenpairs){.n = l->n, .count = count};
    while (!l->exhausted && l->steps < l->order && !found) {
        KS_GO(ks_lanczos_step(l, a));
        if (search->on_step)
            search->on_step(search->context, l);
        if (l->steps < next && l->steps < l->order && !l->exhausted)
            continue;
        KS_GO(ks_team_agree(l->team, find_ritz(l, &r)));
        converged = count_converged(&r, count, search->tolerance);
        found = converged == count &&
                (!search->is_enough || search->is_enough(search->context, l, r.value));
        next = l->steps + 1 + l->steps / PART;
    }
    p->steps = l->steps;
    if (!found) {
        status = refuse(l, count, converged, search->tolerance);
        goto done;
    }
    KS_GO(form(l, &r, count, p));
done:
    ritz_clear(&r);
    return status;
}

ks_status ks_eigenpairs_refine(const struct ks_operator *a, struct ks_eigenpairs *p)
{
    const int n = (int)p->n;
    ks_status status = KS_OK;
    double *image = NULL;

    KS_GO(ks_team_agree(a->team, ks_alloc(p->n, sizeof *image, &image)));
    for (size_t i = 0; i < p->count; i++) {
        const double *y = p->vector + i * p->n;
        double square = cblas_ddot(n, y, 1, y, 1);

        KS_GO(ks_operator_apply(a, y, image));
        p->value[i] = cblas_ddot(n, y, 1, image, 1) / square;
        cblas_daxpy(n, -p->value[i], y, 1, image, 1);
        p->residual[i] = cblas_dnrm2(n, image, 1) / sqrt(square);
        if (!isfinite(p->residual[i]))
            KS_GO(ks_fail(KS_NUMBER, "the product with eigenvector %zu holds a NaN or an infinity",
                          i));
    }
done:
    free(image);
    return status;
}

void ks_eigenpairs_clear(struct ks_eigenpairs *p)
{
    free(p->value);
    free(p->residual);
    free(p->vector);
    *p = (struct ks_eigenpairs){.n = 0};
}
