/* The rule with a node at x (Golub, Some modified matrix eigenvalue problems, SIAM Review 15, 1973)
 * has the nodes and weights of T extended by one row,
 *
 *   [ T            beta_m e_m ]        delta = sum_i r_i^2 / (theta_i - x),
 *   [ beta_m e_m'  x + delta  ]
 *
 * where r_i = beta_m |s_mi| are the residual bounds. As x approaches a Ritz value, delta
 * diverges, one node goes to infinity and its weight to zero; the limit is the Gauss rule of T
 * itself. */
#include "statistics/share_bounds.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lanczos/jacobi.h"

/* If |delta| exceeds this multiple of max |theta|, the Gauss rule of T is used. */
static const double DELTA_MOST = 1e6;

void ks_radau_free(struct ks_radau *r)
{
    if (!r)
        return;
    ks_pool_free(&r->pool);
    free(r);
}

ks_status ks_radau_new(size_t m, const double *alpha, const double *beta, bool ended,
                       struct ks_radau **radau)
{
    const struct ks_jacobi t = {m, alpha, beta};
    KS_OWNED_BY(ks_radau_free) struct ks_radau *r = NULL;

    assert(m > 0);
    *radau = NULL;
    KS_TRY(ks_alloc(1, sizeof *r, &r));
    KS_TRY(ks_pool_alloc(&r->pool, m, sizeof(double), &r->theta));
    KS_TRY(ks_pool_alloc(&r->pool, m, sizeof(double), &r->weight));
    KS_TRY(ks_pool_alloc(&r->pool, m, sizeof(double), &r->residual));
    KS_TRY(ks_pool_alloc(&r->pool, m, sizeof(double), &r->alpha));
    KS_TRY(ks_pool_alloc(&r->pool, m, sizeof(double), &r->beta));
    KS_TRY(ks_pool_alloc(&r->pool, m + 1, sizeof(double), &r->node));
    KS_TRY(ks_pool_alloc(&r->pool, m + 1, sizeof(double), &r->beside));
    KS_TRY(ks_pool_alloc(&r->pool, m + 1, sizeof(double), &r->scratch));
    r->m = m;
    r->ended = ended;
    memcpy(r->alpha, alpha, m * sizeof(double));
    memcpy(r->beta, beta, m * sizeof(double));
    KS_TRY(ks_jacobi_ritz(&t, r->theta, r->weight, r->residual));
    r->size = fmax(fabs(r->theta[0]), fabs(r->theta[m - 1]));
    *radau = r, r = NULL;
    return KS_OK;
}

/* One implicit QL sweep with Wilkinson's shift over rows low .. high of the tridiagonal matrix
 * (d on the diagonal, e beside it); s is the first row of the product of all rotations so far. */
static void sweep(size_t low, size_t high, double *d, double *e, double *s)
{
    double half = (d[low + 1] - d[low]) / (2 * e[low]);
    double shift = d[low] - e[low] / (half + copysign(hypot(half, 1), half));
    double bulge, g = d[high] - shift, sine = 1, cosine = 1, moved = 0;

    for (size_t i = high; i-- > low;) {
        double beside = cosine * e[i], first = s[i + 1], length, turned;

        bulge = sine * e[i];
        length = sqrt(bulge * bulge + g * g);
        e[i + 1] = length;
        if (length == 0) { /* the matrix decouples here */
            d[i + 1] -= moved;
            e[high] = 0;
            return;
        }
        sine = bulge / length;
        cosine = g / length;
        g = d[i + 1] - moved;
        turned = (d[i] - g) * sine + 2 * cosine * beside;
        moved = sine * turned;
        d[i + 1] = g + moved;
        g = cosine * turned - beside;
        s[i + 1] = sine * s[i] + cosine * first;
        s[i] = cosine * s[i] - sine * first;
    }
    d[low] -= moved;
    e[low] = g;
    e[high] = 0;
}

/* Golub and Welsch, Math. Comp. 23, 1969: the eigenvalues into d and the first components of the
 * eigenvectors into s, unordered, by the QL iteration (Bowdler et al., Numer. Math. 11, 1968).
 * LAPACK would compute complete eigenvectors, which is m times the work. QL rather than QR because
 * the large entry x + delta is the last one. e[n - 1] is scratch. */
static ks_status golub_welsch(size_t n, double *d, double *e, double *s)
{
    enum { SWEEPS = 60 }; /* for one eigenvalue; two are usual */

    memset(s, 0, n * sizeof *s);
    s[0] = 1;
    e[n - 1] = 0;
    for (size_t low = 0; low < n; low++) {
        size_t sweeps = 0, high;

        for (;;) {
            for (high = low; high + 1 < n; high++)
                if (fabs(e[high]) <= DBL_EPSILON * (fabs(d[high]) + fabs(d[high + 1])))
                    break;
            if (high == low)
                break;
            if (++sweeps > SWEEPS)
                return ks_fail(KS_NUMBER,
                               "the eigenvalues of a Jacobi matrix of order %zu did not "
                               "converge",
                               n);
            sweep(low, high, d, e, s);
        }
    }
    return KS_OK;
}

/* The bounds from the nodes and weights of a rule; the node closest to x counts as x. */
static struct ks_interval weight_below(size_t n, const double *node, const double *weight, double x)
{
    size_t at = 0;
    double less = 0;

    for (size_t i = 1; i < n; i++)
        if (fabs(node[i] - x) < fabs(node[at] - x))
            at = i;
    for (size_t i = 0; i < n; i++)
        if (i != at && node[i] < x)
            less += weight[i];
    return (struct ks_interval){less, less + weight[at]};
}

static struct ks_interval exact_below(const struct ks_radau *r, double x)
{
    struct ks_interval mu = {0, 0};

    for (size_t i = 0; i < r->m && r->theta[i] <= x; i++) {
        mu.upper += r->weight[i];
        if (r->theta[i] < x)
            mu.lower = mu.upper;
    }
    return mu;
}

/* The weight of the node x if x is outside the interval of the Ritz values, so that all other nodes
 * are on one side of it: the squared first component of the normalized eigenvector, which is (T -
 * x)^-1 beta_m e_m with -1 as its last component. The products s_1i s_mi alternate in sign. */
static double weight_outside(const struct ks_radau *r, double x)
{
    double first = 0, square = 1;

    for (size_t i = 0; i < r->m; i++) {
        double component = r->residual[i] / (r->theta[i] - x);

        first += (i % 2 == 0 ? 1 : -1) * sqrt(r->weight[i]) * component;
        square += component * component;
    }
    return first * first / square;
}

ks_status ks_radau_below(struct ks_radau *r, double x, struct ks_interval *mu)
{
    size_t m = r->m;
    double delta = 0;

    if (r->ended) {
        *mu = exact_below(r, x);
        return KS_OK;
    }
    for (size_t i = 0; i < m; i++)
        delta += r->residual[i] * r->residual[i] / (r->theta[i] - x);
    if (!(fabs(delta) <= DELTA_MOST * r->size)) { /* also if NaN, at a Ritz value */
        *mu = weight_below(m, r->theta, r->weight, x);
    } else if (x < r->theta[0]) {
        *mu = (struct ks_interval){0, weight_outside(r, x)};
    } else if (x > r->theta[m - 1]) {
        *mu = (struct ks_interval){1 - weight_outside(r, x), 1};
    } else {
        memcpy(r->node, r->alpha, m * sizeof(double));
        memcpy(r->beside, r->beta, m * sizeof(double));
        r->node[m] = x + delta;
        KS_TRY(golub_welsch(m + 1, r->node, r->beside, r->scratch));
        for (size_t i = 0; i <= m; i++)
            r->scratch[i] *= r->scratch[i];
        *mu = weight_below(m + 1, r->node, r->scratch, x);
    }
    return KS_OK;
}

ks_status ks_radau_within(struct ks_radau *r, double x, struct ks_interval *mu)
{
    struct ks_interval left, right;

    *mu = (struct ks_interval){0, 0};
    if (x < 0)
        return KS_OK;
    KS_TRY(ks_radau_below(r, x, &right));
    KS_TRY(ks_radau_below(r, -x, &left));
    if (r->ended)
        mu->lower = mu->upper = right.upper - left.lower;
    else
        *mu = (struct ks_interval){right.lower - left.upper, right.upper - left.lower};
    return KS_OK;
}
