/* The Gauss-Radau bounds of a spectral measure: they hold, and they are attained. */
#include <lapacke.h>

#include "core/memory.h"
#include "trials.h"

enum { SIZE = 60 };

/* A discrete measure with nodes `value`, whose weights are the squares of `start`. */
static void fill_measure(size_t n, uint64_t seed, int kind, double *value, double *start)
{
    struct ks_rng rng = ks_rng_start(seed, (uint64_t)kind);

    for (size_t i = 0; i < n; i++) {
        value[i] = kind == 0   ? ks_rng_uniform(&rng, -1, 1)
                   : kind == 1 ? pow(10, -6 * (double)i / (double)n)
                   : kind == 2 ? ks_rng_normal(&rng) * 1e-3 + (i < 3 ? 1 + (double)i : 0)
                               : ks_rng_normal(&rng);
        start[i] = kind == 3 && i % 3 > 0 ? 1e-3 * ks_rng_normal(&rng) : ks_rng_normal(&rng);
    }
}

RELEASES(free_radau, ks_radau_free)

static struct ks_radau *radau_of(size_t n, const double *value, const double *start, size_t m)
{
    struct lanczos_run run = {
        .n = n, .most = m, .value = value, .start = start, .breakdown = 1e-13};
    double alpha[SIZE], beta[SIZE];
    bool ended;
    struct ks_radau *r;
    size_t steps = run_lanczos(&run, alpha, beta, &ended);

    assert_ok(ks_radau_new(steps, alpha, beta, ended, &r));
    return hold_object(r, free_radau);
}

struct interval {
    double low, high;
    bool open; /* without its ends */
};

/* The interval's share of the measure that has mass start[i]^2 at value[i]. */
static double share(size_t n, const double *value, const double *start, struct interval range)
{
    double sum = 0, all = 0;

    for (size_t i = 0; i < n; i++) {
        bool inside = value[i] > range.low && value[i] < range.high;
        bool closed = value[i] >= range.low && value[i] <= range.high;
        bool in = range.open ? inside : closed;

        all += start[i] * start[i];
        sum += in ? start[i] * start[i] : 0;
    }
    return sum / all;
}

/* One iteration, with mean a and variance b^2: mu((-inf, x)) is at most b^2 / (b^2 + (a - x)^2) for
 * x < a, and at least (x - a)^2 / (b^2 + (x - a)^2) for x > a (Cantelli). */
TEST(test_one_step)
{
    const double a = 3, b = 2;
    struct ks_radau *r;
    struct ks_interval mu;

    assert_ok(ks_radau_new(1, &a, &b, false, &r));
    assert_ok(ks_radau_below(r, 2, &mu));
    assert_close(mu.lower, 0, 0);
    assert_close(mu.upper, 4.0 / 5, 1e-15);
    assert_ok(ks_radau_below(r, 7, &mu));
    assert_close(mu.lower, 16.0 / 20, 1e-15);
    assert_close(mu.upper, 1, 0);
    assert_ok(ks_radau_below(r, 3, &mu)); /* x is the Ritz value */
    assert_close(mu.lower, 0, 0);
    assert_close(mu.upper, 1, 0);
    assert_ok(ks_radau_within(r, 7, &mu));
    assert_close(mu.lower, 16.0 / 20 - 4.0 / 104, 1e-15);
    assert_close(mu.upper, 1, 0);
    assert_ok(ks_radau_within(r, -1, &mu));
    assert_close(mu.upper, 0, 0);
    ks_radau_free(r);
}

/* Rounding moves nodes and changes bounds by at most this. */
static const double MOVED = 1e-13, ROUNDING = 1e-11;

static void check_holds(struct ks_radau *r, size_t n, const double *value, const double *start,
                        double x)
{
    double moved = MOVED * r->size;
    struct ks_interval mu;

    assert_ok(ks_radau_below(r, x, &mu));
    assert_true(mu.lower <=
                share(n, value, start, (struct interval){-INFINITY, x + moved, .open = true}) +
                    ROUNDING);
    assert_true(mu.upper >=
                share(n, value, start, (struct interval){-INFINITY, x - moved, .open = false}) -
                    ROUNDING);
    x = fabs(x);
    assert_ok(ks_radau_within(r, x, &mu));
    assert_true(mu.lower <=
                share(n, value, start, (struct interval){-x - moved, x + moved, .open = false}) +
                    ROUNDING);
    assert_true(mu.upper >=
                share(n, value, start, (struct interval){-x + moved, x - moved, .open = false}) -
                    ROUNDING);
}

/* Every measure is within its own bounds: at its nodes, between them, next to Ritz values and
 * outside, for all orders. */
TEST(test_bounds_hold)
{
    static const double near[] = {0, 1e-3, -1e-6, 1e-9, -1e-12, 1e-15};

    for (int kind = 0; kind < 4; kind++)
        for (size_t m = 1; m <= SIZE; m = m < 8 ? m + 1 : 2 * m - 5) {
            double value[SIZE], start[SIZE];
            struct ks_radau *r;

            fill_measure(SIZE, m, kind, value, start);
            r = radau_of(SIZE, value, start, m);
            for (size_t i = 0; i < SIZE; i++) {
                check_holds(r, SIZE, value, start, value[i]);
                check_holds(r, SIZE, value, start, (value[i] + value[(i * 7 + 1) % SIZE]) / 2);
                check_holds(r, SIZE, value, start, 3 * value[i]);
            }
            for (size_t i = 0; i < r->m; i++)
                for (size_t k = 0; k < 6; k++)
                    check_holds(r, SIZE, value, start, r->theta[i] + near[k] * r->size);
        }
}

/* The Gauss-Radau rule by a dense eigensolver: nodes, ascending, and first components. Returns
 * false if a node is so far out that a matrix reconstructed from the rule would be inaccurate. */
static bool rule_at(const struct ks_radau *r, double x, double *node, double *first)
{
    size_t n = r->m + 1;
    static double matrix[(SIZE + 1) * (SIZE + 1)];
    double delta = 0;

    memset(matrix, 0, sizeof matrix);
    for (size_t i = 0; i < r->m; i++) {
        delta += r->residual[i] * r->residual[i] / (r->theta[i] - x);
        matrix[i * n + i] = r->alpha[i];
        matrix[i * n + i + 1] = matrix[(i + 1) * n + i] = r->beta[i];
    }
    matrix[n * n - 1] = x + delta;
    assert_int_equal(
        LAPACKE_dsyev(LAPACK_COL_MAJOR, 'V', 'U', (lapack_int)n, matrix, (lapack_int)n, node), 0);
    for (size_t i = 0; i < n; i++)
        first[i] = matrix[i * n];
    return fabs(delta) < 10 * r->size;
}

/* The rule is a measure with the same Jacobi matrix and a node at x. Its weights below x and up to
 * x equal the bounds, so no bounds are tighter. (Measures whose eigenvalues converge are excluded:
 * a matrix reconstructed from weights of 1e-30 is inaccurate.) */
TEST(test_bounds_are_attained)
{
    size_t compared = 0;

    for (int kind = 0; kind < 4; kind += 3)
        for (size_t m = 1; m <= 9; m++)
            for (size_t trial = 0; trial < 12; trial++) {
                double value[SIZE], start[SIZE], node[SIZE], first[SIZE], x, less = 0;
                struct ks_radau *r, *again;
                struct ks_interval mu;
                size_t at = 0;

                fill_measure(SIZE, m, kind, value, start);
                r = radau_of(SIZE, value, start, m);
                x = r->theta[0] + ((double)trial - 0.9) / 9.7 * (r->theta[r->m - 1] - r->theta[0]);
                x = m == 1 ? r->theta[0] + ((double)trial - 5.5) * r->beta[0] : x;
                if (!rule_at(r, x, node, first))
                    continue;
                compared++;
                again = radau_of(m + 1, node, first, m);
                assert_int_equal(again->m, m);
                for (size_t j = 0; j < m; j++) {
                    assert_close(again->alpha[j], r->alpha[j], 1e-6 * r->size);
                    assert_close(again->beta[j], r->beta[j], 1e-6 * r->size);
                }
                while (at < m && node[at + 1] <= x + 1e-10 * r->size)
                    less += first[at] * first[at], at++;
                assert_close(node[at], x, 1e-11 * r->size);
                assert_ok(ks_radau_below(r, x, &mu));
                assert_close(mu.lower, less, 1e-11);
                assert_close(mu.upper, less + first[at] * first[at], 1e-11);
            }
    assert_true(compared > 100);
}

/* At a Ritz value the bounds are T's own weights; they are continuous and increasing. */
TEST(test_at_ritz_values)
{
    double value[SIZE], start[SIZE], below = 0;
    struct ks_radau *r;
    struct ks_interval last = {0, 0}, mu;

    fill_measure(SIZE, 3, 0, value, start);
    r = radau_of(SIZE, value, start, 14);
    for (size_t i = 0; i < r->m; i++) {
        for (int side = -1; side <= 1; side++) {
            assert_ok(ks_radau_below(r, r->theta[i] + side * 1e-7, &mu));
            assert_close(mu.lower, below, side == 0 ? 0 : 1e-4);
            assert_close(mu.upper, below + r->weight[i], side == 0 ? 1e-15 : 1e-4);
            assert_true(mu.lower >= last.lower - 1e-13 && mu.upper >= last.upper - 1e-13);
            last = mu;
        }
        below += r->weight[i];
    }
    for (double x = -1.2; x < 1.2; x += 1e-3) {
        last = mu;
        assert_ok(ks_radau_below(r, x, &mu));
        assert_true(x == -1.2 ||
                    (mu.lower >= last.lower - 1e-13 && mu.upper >= last.upper - 1e-13));
    }
}

/* Four different eigenvalues, one of them threefold: after four iterations the measure is known. */
TEST(test_ended)
{
    const double value[] = {-2, 1, 1, 1, 2.5, 0}, start[] = {1, 2, 1, 1, 2, 1};
    struct ks_radau *r = radau_of(6, value, start, 6);
    struct ks_interval mu;

    assert_int_equal(r->m, 4);
    assert_true(r->ended);
    for (size_t k = 0; k < 12; k++) {
        double x = -3 + 0.51 * (double)k;

        assert_ok(ks_radau_below(r, x, &mu));
        assert_close(mu.lower,
                     share(6, value, start, (struct interval){-INFINITY, x, .open = true}), 1e-14);
        assert_close(mu.upper, mu.lower, 0);
        assert_ok(ks_radau_within(r, fabs(x), &mu));
        assert_close(mu.lower,
                     share(6, value, start, (struct interval){-fabs(x), fabs(x), .open = false}),
                     1e-14);
        assert_close(mu.upper, mu.lower, 0);
    }
    for (double alpha = -2, beta = 0; alpha <= 2; alpha += 4) { /* both ends are in the interval */
        assert_ok(ks_radau_new(1, &alpha, &beta, true, &r));
        assert_ok(ks_radau_within(r, 2, &mu));
        assert_close(mu.lower, 1, 0);
        assert_ok(ks_radau_within(r, 1.999, &mu));
        assert_close(mu.upper, 0, 0);
        ks_radau_free(r);
    }
}

/* Scaling the operator does not change the bounds. */
TEST(test_scales)
{
    static const double scale[] = {1e-60, 1e60};
    double value[SIZE], scaled[SIZE], start[SIZE];
    struct ks_radau *r, *other;

    fill_measure(SIZE, 9, 1, value, start);
    r = radau_of(SIZE, value, start, 15);
    for (size_t s = 0; s < 2; s++) {
        for (size_t i = 0; i < SIZE; i++)
            scaled[i] = scale[s] * value[i];
        other = radau_of(SIZE, scaled, start, 15);
        for (double x = 1e-7; x < 2; x *= 1.7) {
            struct ks_interval mu, of;

            assert_ok(ks_radau_within(r, x, &mu));
            assert_ok(ks_radau_within(other, x * scale[s], &of));
            assert_close(of.lower, mu.lower, 1e-10);
            assert_close(of.upper, mu.upper, 1e-10);
        }
    }
}

TEST(test_memory)
{
    const double alpha[] = {1, 2}, beta[] = {0.5, 0.25};
    struct starved s = {.least = 9};
    struct ks_radau *r;

    while (starving(&s)) {
        s.status = ks_radau_new(2, alpha, beta, false, &r);
        assert_true(s.status == KS_OK || !r);
    }
    ks_radau_free(r);
    ks_radau_free(NULL);
}
