/* The eigenvalues of the one-dimensional Laplacian by Lanczos, and its spectrum by stochastic
 * Lanczos quadrature. The matrix is known by its products alone: (A x)_i = 2 x_i - x_{i-1} -
 * x_{i+1}, with x_0 = x_{n+1} = 0, whose eigenvalues are 2 - 2 cos(k pi / (n + 1)), k = 1 .. n.
 *
 *   cc laplacian.c $(pkg-config --cflags --libs kappascope) -lm      (C11; or c++, C++11) */
#include <math.h>
#include <stdio.h>

#include <kappascope.h>

enum { N = 40, PROBES = 4 };

static int multiply(void *context, const double *x, double *y)
{
    const size_t n = *(const size_t *)context;

    for (size_t i = 0; i < n; i++)
        y[i] = 2 * x[i] - (i > 0 ? x[i - 1] : 0) - (i + 1 < n ? x[i + 1] : 0);
    return 0;
}

static double eigenvalue(int k)
{
    return 2 - 2 * cos(k * acos(-1.0) / (N + 1));
}

/* The number of Ritz values that are wrong: after n steps each is an eigenvalue. */
static int run(struct kappascope_operator *a, struct kappascope_spectrum **s)
{
    double alpha[N], beta[N], ritz[N], weight[N], residual[N];
    struct kappascope_lanczos_options lanczos = {N, NULL, 1, 0}; /* order, start, seed, probe */
    struct kappascope_recurrence t = {alpha, beta, NULL, 0};
    struct kappascope_rule rule = {ritz, weight, residual};
    struct kappascope_slq_options slq;
    int wrong = 0;

    if (kappascope_lanczos(a, &lanczos, &t) != KAPPASCOPE_OK || t.steps != N ||
        kappascope_ritz(N, alpha, beta, &rule) != KAPPASCOPE_OK)
        return 1;
    for (int k = 1; k <= N; k++)
        wrong += !(fabs(ritz[k - 1] - eigenvalue(k)) < 1e-12);
    kappascope_slq_defaults(&slq);
    slq.order = 20;
    slq.probes = PROBES;
    if (kappascope_slq(a, &slq, s) != KAPPASCOPE_OK)
        return 1;
    /* Twenty steps do not find the largest eigenvalue, but it lies between its two bounds. */
    wrong += !(kappascope_spectrum_statistic(*s, "lambda_max") <= eigenvalue(N) + 1e-12);
    wrong += !(kappascope_spectrum_statistic(*s, "lambda_max_upper") >= eigenvalue(N));
    return wrong;
}

int main(void)
{
    size_t n = N;
    struct kappascope_operator *a = NULL;
    struct kappascope_spectrum *s = NULL;
    int wrong = 1;

    kappascope_blas_one_thread();
    if (kappascope_operator_from_product(n, multiply, &n, &a) == KAPPASCOPE_OK)
        wrong = run(a, &s);
    if (wrong)
        fprintf(stderr, "%d values are wrong; last error: '%s'\n", wrong, kappascope_error());
    else
        printf("condition number: at least %.4g, and is %.4g\n",
               kappascope_spectrum_statistic(s, "kappa_effective_bound"),
               eigenvalue(N) / eigenvalue(1));
    kappascope_spectrum_free(s);
    kappascope_operator_free(a);
    return wrong != 0;
}
