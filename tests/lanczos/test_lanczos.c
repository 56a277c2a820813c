/* Lanczos, its Jacobi matrix, quadrature and the exact spectrum, on operators with known answers.
 */
#include "lanczos/jacobi.h"

#include <omp.h>

#include "core/memory.h"
#include "core/rng.h"
#include "spectra.h"

enum { MOST = 20000 };
static double value[MOST]; /* eigenvalues of the diagonal operators */

static struct ks_lanczos *run(const struct ks_operator *a, size_t order, uint64_t seed)
{
    struct ks_lanczos *l = lanczos_of(a, order, false);

    ks_lanczos_start(l, seed, 0);
    while (l->steps < l->order && !l->exhausted)
        assert_ok(ks_lanczos_step(l));
    return l;
}

static struct ks_spectrum *estimate(const struct ks_operator *a, size_t order, size_t probes)
{
    struct ks_spectrum *s = spectrum_new();
    struct slq slq = {.order = order, .probes = probes, .seed = 7};

    assert_ok(slq_run(a, &slq, s));
    return s;
}

static void fill_uniform(size_t n, double low, double high)
{
    for (size_t i = 0; i < n; i++)
        value[i] = low + (high - low) * (double)i / (double)(n - 1);
}

/* [Q q_m]' [Q q_m] = I. */
static void check_orthonormal(const struct ks_lanczos *l)
{
    size_t n = l->n;

    for (size_t i = 0; i <= l->steps; i++)
        for (size_t j = 0; j <= i; j++)
            assert_close(dot(n, l->basis + i * n, l->basis + j * n), i == j, 1e-14);
}

/* [Q q_m]' [Q q_m] = I and A Q - Q T = beta q_m e', column by column. */
static void check_identities(const struct ks_operator *a, const struct ks_lanczos *l, double bound)
{
    size_t n = l->n, m = l->steps;
    double *image = hold(malloc(n * sizeof *image));

    check_orthonormal(l);
    for (size_t j = 0; j < m; j++) {
        const double *q = l->basis + j * n;

        assert_ok(ks_operator_apply(a, q, image));
        for (size_t k = 0; k < n; k++) {
            double before = j > 0 ? l->beta[j - 1] * q[k - n] : 0;

            assert_close(image[k], before + l->alpha[j] * q[k] + l->beta[j] * q[n + k], bound);
        }
    }
}

TEST(test_identities)
{
    struct ks_operator a = DIAGONAL(500, value);
    struct ks_lanczos *l;

    fill_uniform(500, -1, 3);
    value[499] = 1000;
    l = run(&a, 60, 1);
    assert_int_equal(l->steps, 60);
    check_identities(&a, l, 1e-12);
}

/* The identities hold for long vectors that are divided among threads and blocks, with a partial
 * block at the end. */
TEST(test_identities_of_long_vectors)
{
    struct diagonal d = {.n = 2 * 8192 + 517, .value = value};
    struct ks_operator a = diagonal_operator(&d);
    struct ks_lanczos *l, *again, *alone;
    int threads = omp_get_max_threads();

    fill_uniform(d.n, -1, 1);
    omp_set_num_threads(2);
    l = run(&a, 12, 3);
    assert_int_equal(l->slices, 2);
    check_identities(&a, l, 1e-14);
    again = run(&a, 12, 3);
    assert_memory_equal(l->alpha, again->alpha, 12 * sizeof(double));
    assert_memory_equal(l->beta, again->beta, 12 * sizeof(double));
    assert_memory_equal(l->basis, again->basis, 13 * d.n * sizeof(double));
    omp_set_num_threads(1);
    alone = run(&a, 12, 3);
    assert_true(relative_error(12, l->alpha, alone->alpha) < 1e-12);
    assert_true(relative_error(12, l->beta, alone->beta) < 1e-12);
    omp_set_num_threads(threads);
}

/* y = 1e-6 x_i (i + 1) / n + u (v' x) with u_i = sqrt(2 / n) cos(i), v_i = sqrt(2 / n) sin(i), both
 * of norm 1 nearly: the products lie along u, and are not those of a symmetric operator. */
static ks_status lopsided_product(void *self, const double *x, double *y)
{
    size_t n = *(const size_t *)self;
    double along = 0;

    for (size_t i = 0; i < n; i++)
        along += 2.0 / (double)n * sin((double)i) * x[i];
    for (size_t i = 0; i < n; i++)
        y[i] = 1e-6 * (double)(i + 1) / (double)n * x[i] + cos((double)i) * along;
    return KS_OK;
}

/* When nearly all of a product lies in the span of the basis, but not where the recurrence
 * subtracts it, the rounding errors of one pass of Gram-Schmidt are large relative to what remains.
 */
TEST(test_orthonormal_without_symmetry)
{
    size_t n = 500;
    struct ks_operator a = {.n = n, .apply = lopsided_product, .self = &n};
    struct ks_lanczos *l = run(&a, 8, 5);

    assert_int_equal(l->steps, 8);
    check_orthonormal(l);
}

/* The start vector is Gaussian, has norm 1, and depends on seed and probe. */
TEST(test_start)
{
    enum { N = 10000 };
    struct ks_lanczos *l;
    double fourth = 0, *first = hold(malloc(N * sizeof *first));
    struct ks_rng rng = ks_rng_start(5, 2);

    l = lanczos_of(&(struct ks_operator){.n = N}, 3, false);
    ks_lanczos_start(l, 5, 2);
    memcpy(first, l->basis, N * sizeof *first);
    for (size_t i = 0; i < N; i++)
        fourth += pow(first[i], 4) * N;
    assert_close(dot(N, first, first), 1, 1e-14);
    /* of a normal distribution; the standard error is sqrt(96 / N) = 0.1 */
    assert_close(fourth, 3, 0.3);
    assert_close(first[0] / first[1], ks_rng_normal(&rng) / ks_rng_normal(&rng),
                 1e-12 * fabs(first[0] / first[1]));
    ks_lanczos_start(l, 5, 3);
    /* the standard error is 1 / sqrt(N) = 0.01 */
    assert_close(dot(N, first, l->basis), 0, 0.05);
    ks_lanczos_start(l, 5, 2);
    assert_memory_equal(first, l->basis, N * sizeof *first);
}

/* m nodes integrate the start vector's moments sum_i q_i^2 lambda_i^k exactly up to k = 2m - 1, but
 * not beyond. */
TEST(test_moments)
{
    enum { N = 60, M = 6 };
    struct ks_operator a = DIAGONAL(N, value);
    double ritz[M], weight[M], residual[M];
    struct ks_lanczos *l;

    for (size_t i = 0; i < N; i++)
        value[i] = sin((double)i * (double)i); /* in [-1, 1] */
    l = run(&a, M, 4);
    assert_ok(ks_jacobi_ritz(&(struct ks_jacobi){M, l->alpha, l->beta}, ritz, weight, residual));
    for (int k = 0; k <= 2 * M; k++) {
        double moment = 0, quadrature = 0;

        for (size_t i = 0; i < N; i++)
            moment += l->basis[i] * l->basis[i] * pow(value[i], k);
        for (size_t i = 0; i < M; i++)
            quadrature += weight[i] * pow(ritz[i], k);
        if (k < 2 * M)
            assert_close(quadrature, moment, 1e-14);
        else
            assert_true(fabs(quadrature - moment) > 1e-6);
    }
}

TEST(test_laplacian)
{
    size_t n = 64;
    struct ks_operator a = laplacian_operator(&n);
    struct ks_spectrum *s = estimate(&a, 64, 2), *exact = spectrum_new();
    double sum = 0;

    assert_ok(ks_exact(&a, NULL, NULL, exact));
    assert_int_equal(exact->order, 64);
    assert_int_equal(exact->probes, 1);
    assert_null(exact->alpha);
    assert_null(exact->steps);
    for (size_t k = 0; k < 64; k++) {
        double expected = laplacian_eigenvalue(64, k + 1);

        assert_close(exact->ritz[k], expected, 1e-14);
        assert_close(exact->weight[k], 1. / 64, 1e-17);
        assert_close(exact->residual[k], 0, 0);
        for (size_t probe = 0; probe < 2; probe++)
            assert_close(s->ritz[probe * 64 + k], expected, 1e-12);
        sum += s->weight[k];
    }
    assert_close(sum, 1, 1e-14);
}

/* The number of iterations is at most n; after n of them the Krylov space is the whole space. */
TEST(test_whole_space)
{
    size_t n = 5;
    struct ks_operator a = laplacian_operator(&n);
    struct ks_lanczos *l = run(&a, 9, 1);

    assert_int_equal(l->order, 5);
    assert_int_equal(l->steps, 5);
    assert_true(l->exhausted);
    l = run(&a, 4, 1);
    assert_int_equal(l->steps, 4);
    assert_false(l->exhausted);
}

/* Each Ritz value has an eigenvalue within its residual bound. */
TEST(test_residual_bounds)
{
    size_t n = 300, m = 40;
    struct ks_operator a = laplacian_operator(&n);
    struct ks_spectrum *s = estimate(&a, m, 1);

    for (size_t i = 0; i < m; i++) {
        double nearest = INFINITY;

        for (size_t k = 1; k <= n; k++)
            nearest = fmin(nearest, fabs(s->ritz[i] - laplacian_eigenvalue(n, k)));
        assert_true(nearest <= s->residual[i] + 1e-14);
        assert_true(s->residual[i] < 1);
    }
}

/* Without reorthogonalization, the outlier would appear many times by m = 60. */
TEST(test_no_ghosts)
{
    struct ks_operator a = DIAGONAL(1000, value);
    struct ks_spectrum *s;
    size_t outliers = 0;

    fill_uniform(1000, 0, 1);
    value[137] = 1000;
    s = estimate(&a, 60, 1);
    for (size_t i = 0; i < 60; i++)
        outliers += s->ritz[i] > 1.5;
    assert_int_equal(outliers, 1);
    assert_close(s->ritz[59], 1000, 1e-10);
    assert_true(s->residual[59] < 1e-10);
}

/* Beside vectors V: [V W]' [V W] = I, and with C = (I - VV') A (I - VV') the recurrence C W - W T =
 * beta q e'. */
static void check_beside(const struct ks_operator *a, const struct ks_lanczos *l, double bound)
{
    const size_t n = l->n, rows = l->kept + l->steps + !l->exhausted;
    double *q = hold(malloc(rows * n * sizeof *q)), *image = hold(malloc(n * sizeof *image));

    for (size_t i = 0; i < rows; i++) {
        memcpy(q + i * n, ks_lanczos_widened(l, i), n * sizeof *q);
        for (size_t j = 0; j <= i; j++)
            assert_close(dot(n, q + i * n, q + j * n), i == j, bound);
    }
    for (size_t j = 0, row = l->kept; j < l->steps; j++, row++) {
        assert_ok(ks_operator_apply(a, q + row * n, image));
        for (size_t i = 0; i < l->kept; i++)
            cblas_daxpy((int)n, -dot(n, q + i * n, image), q + i * n, 1, image, 1);
        cblas_daxpy((int)n, -l->alpha[j], q + row * n, 1, image, 1);
        if (j > 0)
            cblas_daxpy((int)n, -l->beta[j - 1], q + (row - 1) * n, 1, image, 1);
        if (row + 1 < rows)
            cblas_daxpy((int)n, -l->beta[j], q + (row + 1) * n, 1, image, 1);
        assert_close(sqrt(dot(n, image, image)), 0, bound);
    }
}

/* After the first iteration's last step, after fewer, where its Krylov space has ended, and where
 * together they are all of R^n; in both precisions of the basis. */
TEST(test_beside)
{
    static const struct {
        size_t n, order, first, different, second; /* steps; different eigenvalues */
    } cases[] = {
        {500, 40, 40, 500, 40}, {500, 40, 13, 500, 40}, {500, 40, 7, 7, 7}, {30, 20, 20, 30, 10}};

    for (size_t k = 0; k < 2 * sizeof cases / sizeof *cases; k++) {
        struct ks_operator a = DIAGONAL(cases[k / 2].n, value);
        const bool single = k % 2;
        struct ks_lanczos *l;
        double norm2;

        for (size_t i = 0; i < a.n; i++)
            value[i] = (double)(i % cases[k / 2].different) / (double)cases[k / 2].different - 0.3;
        assert_ok(ks_lanczos_new_for_two(&a, cases[k / 2].order, single, &l));
        ks_lanczos_start(l, 3, 0);
        while (l->steps < cases[k / 2].first)
            assert_ok(ks_lanczos_step(l));
        ks_lanczos_start_beside(l, 3);
        assert_int_equal(l->kept, cases[k / 2].first);
        norm2 = l->start_norm * l->start_norm; /* chi-square, of as many degrees */
        assert_close(norm2, (double)(a.n - l->kept), 4 * sqrt(2 * (double)(a.n - l->kept)));
        while (l->steps < l->order && !l->exhausted)
            assert_ok(ks_lanczos_step(l));
        assert_int_equal(l->steps, cases[k / 2].second);
        check_beside(&a, l, single ? 4 * FLT_EPSILON : 1e-13);
        ks_lanczos_free(l);
    }
}

/* With `steps` different eigenvalues the Krylov space ends after as many iterations. Then the nodes
 * are eigenvalues, the quadrature is exact, and the remaining entries are NaN. */
static void check_breakdown(size_t n, size_t steps)
{
    enum { ORDER = 30 };
    struct ks_operator a = DIAGONAL(n, value);
    struct ks_spectrum *s = estimate(&a, ORDER, 2);

    for (size_t probe = 0; probe < 2; probe++) {
        double sum = 0, first_moment = 0, size = 0;

        assert_int_equal(s->steps[probe], steps);
        for (size_t i = 0; i < n; i++)
            size = fmax(size, fabs(value[i]));
        for (size_t i = probe * ORDER; i < probe * ORDER + steps; i++) {
            double nearest = INFINITY;

            for (size_t k = 0; k < n; k++)
                nearest = fmin(nearest, fabs(s->ritz[i] - value[k]));
            assert_close(nearest, 0, 1e-13 * size);
            sum += s->weight[i];
            first_moment += s->weight[i] * s->ritz[i];
        }
        assert_close(sum, 1, 1e-13);
        assert_close(first_moment, s->alpha[probe * ORDER], 1e-13 * size);
        for (size_t i = probe * ORDER + steps; i < (probe + 1) * ORDER; i++) {
            assert_true(isnan(s->alpha[i]) && isnan(s->beta[i]) && isnan(s->ritz[i]));
            assert_true(isnan(s->weight[i]) && isnan(s->residual[i]));
        }
    }
}

TEST(test_breakdowns)
{
    memset(value, 0, sizeof value);
    check_breakdown(50, 1); /* the zero matrix */
    for (size_t i = 0; i < 10000; i++)
        value[i] = -2.5;
    check_breakdown(10000, 1); /* a multiple of the identity */
    check_breakdown(1, 1);
    for (size_t i = 0; i < 10000; i++)
        value[i] = i % 3 == 0 ? 0.1 : 7.3;
    check_breakdown(10000, 2);
    check_breakdown(2, 2);
    for (size_t i = 0; i < 10000; i++)
        /* rank 11: 12 different eigenvalues, including zero */
        value[i] = i < 11 ? 1 + (double)i / 3 : 0;
    check_breakdown(10000, 12);
    check_breakdown(12, 12); /* the Krylov space ends at the dimension itself */
    for (size_t i = 0; i < 400; i++)
        value[i] = ((double)(i % 17) - 5) * 1e-9; /* another scale, both signs */
    check_breakdown(400, 17);
}

/* diag(5,4,3,0,...) + Z Z'/n (Papyan, JMLR 21, 2020): the outliers converge to the eigenvalues of
 * the dense matrix. */
TEST(test_spiked)
{
    enum { N = 200 };
    static double z[N][N], matrix[N * N];
    struct dense dense = {.n = N, .matrix = matrix};
    struct ks_operator a = dense_operator(&dense);
    struct ks_rng rng = ks_rng_start(11, 0);
    struct ks_spectrum *s, *exact = spectrum_new();

    for (size_t i = 0; i < N; i++)
        for (size_t j = 0; j < N; j++)
            z[i][j] = ks_rng_normal(&rng);
    for (size_t i = 0; i < N; i++)
        for (size_t j = 0; j < N; j++) {
            matrix[i * N + j] = i == j && i < 3 ? 5 - (double)i : 0;
            for (size_t k = 0; k < N; k++)
                matrix[i * N + j] += z[i][k] * z[j][k] / N;
        }
    assert_ok(ks_exact(&a, NULL, NULL, exact));
    s = estimate(&a, 60, 1);
    for (size_t k = 1; k <= 3; k++)
        assert_close(s->ritz[60 - k], exact->ritz[N - k], 1e-6);
    assert_close(s->ritz[59], exact->ritz[N - 1], 1e-12);
    /* There is no spurious Ritz value between the outliers and the bulk. */
    assert_true(s->ritz[60 - 4] <= exact->ritz[N - 4] + 1e-12);
}

/* Scaling by a power of two changes exponents only; scaling by another factor also changes
 * rounding. */
TEST(test_scaling)
{
    enum { N = 300, M = 25 };
    static double scaled[N];
    const double factors[] = {0x1p-20, 3e5, -1};
    struct diagonal d = {.n = N, .value = value}, e = {.n = N, .value = scaled};
    struct ks_operator a = diagonal_operator(&d), b = diagonal_operator(&e);
    struct ks_spectrum *s;

    fill_uniform(N, -0.3, 1);
    s = estimate(&a, M, 1);
    for (size_t f = 0; f < 3; f++) {
        double c = factors[f];
        struct ks_spectrum *t;

        for (size_t i = 0; i < N; i++)
            scaled[i] = c * value[i];
        t = estimate(&b, M, 1);
        for (size_t i = 0; i < M; i++) {
            size_t k = c > 0 ? i : M - 1 - i;

            assert_close(t->ritz[k], c * s->ritz[i], f == 0 ? 0 : fabs(c) * 1e-10);
            assert_close(t->weight[k], s->weight[i], f == 0 ? 0 : 1e-10);
        }
    }
}

TEST(test_jacobi_by_hand)
{
    const double alpha[] = {3, 3}, beta[] = {4, 12};
    const struct ks_jacobi one = {1, alpha, beta}, two = {2, alpha, beta};
    double ritz[2], weight[2], residual[2], sigma, bound;

    assert_ok(ks_jacobi_ritz(&two, ritz, weight, residual)); /* [3 4; 4 3]: -1 and 7 */
    assert_close(ritz[0], -1, 1e-14);
    assert_close(ritz[1], 7, 1e-14);
    for (size_t i = 0; i < 2; i++) {
        assert_close(weight[i], 0.5, 1e-15);
        assert_close(residual[i], 12 / sqrt(2), 1e-14);
    }
    assert_close(ks_jacobi_largest(&two, &bound), 7, 1e-14);
    assert_close(bound, 12 / sqrt(2), 1e-14);
    assert_ok(ks_jacobi_smallest(&one, &sigma)); /* the column (3, 4) */
    assert_close(sigma, 5, 1e-14);
    /* B = [3 4; 4 3; 0 12]: B'B = [25 24; 24 169], eigenvalues 97 -+ sqrt(72^2 + 24^2). */
    assert_ok(ks_jacobi_smallest(&two, &sigma));
    assert_close(sigma, sqrt(97 - sqrt(5760)), 1e-13);
}

TEST(test_failures)
{
    struct diagonal d = {.n = 100, .value = value};
    struct ks_operator a = diagonal_operator(&d);
    struct slq slq = {.order = 20, .probes = 3, .seed = 1};
    struct ks_spectrum *s = spectrum_new();

    fill_uniform(100, 1, 2);
    d.nan_at = 25; /* iteration 5 of the second probe */
    assert_fails(slq_run(&a, &slq, s), KS_NUMBER,
                 "step 5 of 20 (probe 1): the product holds a NaN");
    d = (struct diagonal){.n = 100, .value = value, .fail_at = 3};
    s = spectrum_new();
    assert_fails(slq_run(&a, &slq, s), KS_IO, "the operator's own words");
    d = (struct diagonal){.n = 100, .value = value, .nan_at = 4};
    s = spectrum_new();
    assert_fails(ks_exact(&a, NULL, NULL, s), KS_NUMBER, "product 4 of 100");
    d = (struct diagonal){.n = KS_EXACT_LIMIT + 1, .value = value};
    a.n = d.n;
    s = spectrum_new();
    assert_fails(ks_exact(&a, NULL, NULL, s), KS_USAGE, "8001");
    assert_int_equal(d.products, 0);
}

/* Each allocation in turn fails once. */
TEST(test_out_of_memory)
{
    struct ks_operator a = DIAGONAL(40, value);
    struct slq slq = {.order = 5, .probes = 2, .seed = 1};

    fill_uniform(40, 1, 2);
    for (int exact = 0; exact < 2; exact++) {
        struct starved turn = {.least = exact ? 2 : 4};

        while (starving(&turn)) {
            struct ks_spectrum *s = spectrum_new();

            turn.status = exact ? ks_exact(&a, NULL, NULL, s) : slq_run(&a, &slq, s);
        }
    }
}
