/* Spearman's correlation over architectures, and permutation and sign-flip tests, against values
 * computed by hand. */
#include "test.h"

#include "core/number.h"
#include "results/correlation.h"

/* --- points --- */

enum { ARCHITECTURES = 4, RUNS = 3, WIDTH = 2, ALL = ARCHITECTURES * RUNS };
static const size_t THREE[ARCHITECTURES] = {RUNS, RUNS, RUNS, RUNS};
static const double X[ALL * WIDTH] = {1, 2, 3, 4, 5, 60, /* IQM of 1 2 3 4 5 60: 3.5 */
                                      2, 2, 2, 2, 2, 2,  7, 8, 9, 1, 12, 13, 3, 4, 5, 6, 17, 18};
static const double Y[ALL] = {5, 6, 7, 9, 1, 8, 2, 3, 1, 4, 4, 4};

static const struct ks_points POINTS = {ARCHITECTURES, THREE, WIDTH, X, Y};

TEST(test_points_by_hand)
{
    double x[ARCHITECTURES], y[ARCHITECTURES];

    assert_ok(ks_points_find(&POINTS, x, y));
    assert_close(x[0], 3.5, 0);
    assert_close(x[1], 2, 0);
    assert_close(x[2], 9, 0); /* IQM of 1 7 8 9 12 13: the mean of 7 to 12 */
    assert_close(x[3], 8, 0); /* IQM of 3 4 5 6 17 18: the mean of 4 to 17 */
    assert_close(y[0], 6, 0);
    assert_close(y[1], 6, 0);
    assert_close(y[2], 2, 0);
    assert_close(y[3], 4, 0);
}

/* Every resample gives the same correlation as the points themselves. */
TEST(test_interval_of_points)
{
    enum { B = 300 };
    const struct ks_bootstrap draws = {B, 5, ARCHITECTURES, THREE};
    struct ks_estimate rho;
    double drawn[B], x[ALL * WIDTH], y[ALL], at_x[ARCHITECTURES], at_y[ARCHITECTURES], expected;

    for (size_t b = 0; b < B; b++) {
        struct ks_points points = {ARCHITECTURES, THREE, WIDTH, x, y};
        size_t index[ALL];

        ks_bootstrap_draw(&draws, b, index);
        for (size_t i = 0; i < ALL; i++) {
            memcpy(x + i * WIDTH, X + index[i] * WIDTH, WIDTH * sizeof *x);
            y[i] = Y[index[i]];
        }
        assert_ok(ks_points_find(&points, at_x, at_y));
        assert_ok(ks_spearman(ARCHITECTURES, at_x, at_y, &drawn[b]));
    }
    qsort(drawn, B, sizeof *drawn, ks_ascending);
    assert_ok(ks_points_find(&POINTS, at_x, at_y));
    assert_ok(ks_spearman(ARCHITECTURES, at_x, at_y, &expected));
    assert_ok(ks_spearman_points(&POINTS, B, 5, &rho));
    assert_close(rho.value, expected, 1e-15);
    assert_close(rho.in.lower, ks_quantile(B, drawn, 0.05), 1e-12);
    assert_close(rho.in.upper, ks_quantile(B, drawn, 0.95), 1e-12);
    assert_true(rho.in.lower < rho.value && rho.value <= rho.in.upper);
}

TEST(test_undefined_points)
{
    const size_t one[] = {1, 1, 1}, two[] = {2, 1, 1};
    const double x[] = {1, 3, 4, 5}, nan[] = {1, NAN, 2, 3}, y[] = {1, 1, 1, 1};
    struct ks_points points = {3, one, 1, x, x};
    struct ks_estimate rho;

    assert_ok(ks_spearman_points(&points, 100, 0, &rho)); /* one run each */
    assert_close(rho.value, 1, 1e-15);
    assert_true(isnan(rho.in.lower) && isnan(rho.in.upper));
    points.runs = two;
    assert_ok(ks_spearman_points(&points, 100, 0, &rho));
    assert_false(isnan(rho.in.lower) || isnan(rho.in.upper));
    /* a resample of the first architecture may contain only NaN, which leaves two points */
    points.x = nan;
    assert_ok(ks_spearman_points(&points, 100, 0, &rho));
    assert_close(rho.value, 1, 1e-15);
    assert_true(isnan(rho.in.lower) && isnan(rho.in.upper));
    points = (struct ks_points){3, one, 1, x, y}; /* constant */
    assert_ok(ks_spearman_points(&points, 0, 0, &rho));
    assert_true(isnan(rho.value));
    points = (struct ks_points){2, one, 1, x, x}; /* two points */
    assert_ok(ks_spearman_points(&points, 0, 0, &rho));
    assert_true(isnan(rho.value));
}

/* --- permutations --- */

static double permuted(size_t n, const double *x, const double *y)
{
    double p = 0;

    assert_ok(ks_spearman_test(n, x, y, &p));
    return p;
}

/* Exact probabilities over n! permutations, as in published tables of Spearman's rho. n = 4: |rho|
 * = 1 in 2 of 24, at least 0.8 in 8; n = 5: at least 0.9 in 10 of 120. */
TEST(test_exact_permutations)
{
    const double x[] = {1, 2, 3, 4, 5, 6, 7, 8}, almost[] = {1, 2, 4, 3, 5};

    assert_close(permuted(4, x, x), 2 / 24., 1e-15);
    assert_close(permuted(4, x, almost), 8 / 24., 1e-15);
    assert_close(permuted(5, x, almost), 10 / 120., 1e-15);
    assert_close(permuted(3, x, x), 2 / 6., 1e-15);
    assert_close(permuted(8, x, x), 2 / 40320., 1e-15);
}

/* Two-sided: x and its reverse have the same p. Permutations that differ only in ties count once:
 * of the 12 orders of 1 1 2 3, one is in the order of x and one is its mirror image, which is as
 * extreme. */
TEST(test_sides_and_ties)
{
    const double x[] = {1, 2, 3, 4}, reverse[] = {4, 3, 2, 1}, tied[] = {1, 1, 2, 3};

    assert_close(permuted(4, x, reverse), 2 / 24., 1e-15);
    assert_close(permuted(4, x, tied), 2 / 12., 1e-15);
    assert_true(isnan(permuted(2, x, x)));
    assert_true(isnan(permuted(4, x, (double[]){1, 1, 1, 1})));
}

/* More than eight points: a random sample of the permutations. The expected values come from
 * 400,000 permutations by another generator (NumPy's PCG64). */
TEST(test_random_permutations)
{
    const double x[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12},
                 y[] = {3, 1, 2, 6, 5, 4, 12, 8, 9, 7, 11, 10}, /* rho = 0.8182, p about 0.0019 */
        z[] = {2, 9, 4, 6, 1, 12, 8, 3, 10, 5, 11, 7};          /* rho = 0.3566, p about 0.257 */

    assert_close(permuted(12, x, x), 1e-5, 1e-15);
    assert_close(permuted(12, x, y), 0.0019, 0.0005);
    assert_close(permuted(12, x, z), 0.257, 0.006);
}

/* By hand: nine numbers, one permutation by the draws 5, ..., 12 of seed 4. */
TEST(test_one_random_permutation)
{
    double drawn[] = {2, 1, 4, 3, 6, 5, 9, 8, 7}, permuted_here[9];
    size_t draw = 5;

    memcpy(permuted_here, drawn, sizeof drawn);
    for (size_t i = 8; i > 0; i--) {
        size_t k = ks_splitmix_index(4, draw++, i + 1);
        double kept = drawn[i];

        drawn[i] = drawn[k];
        drawn[k] = kept;
    }
    ks_permute_at_random(9, 4, 5, permuted_here);
    assert_memory_equal(permuted_here, drawn, sizeof drawn);
}

/* --- signs --- */

TEST(test_sign_flips)
{
    const double same[] = {1, 2, 3}, mixed[] = {3, -1, 2}, equal[] = {0.1, 0.1, -0.1};
    double many[30];

    assert_close(ks_sign_flip_test(3, same), 1 / 8., 0);
    assert_close(ks_sign_flip_test(3, mixed), 2 / 8., 0); /* 6, 4; then 2, 0, ... */
    assert_close(ks_sign_flip_test(3, equal), 4 / 8., 0);
    assert_close(ks_sign_flip_test(2, (double[]){-1, -2}), 1, 0);
    assert_close(ks_sign_flip_test(2, (double[]){0, 0}), 1, 0);
    assert_true(isnan(ks_sign_flip_test(0, same)));
    assert_true(isnan(ks_sign_flip_test(2, (double[]){1, NAN})));
    assert_true(isnan(ks_sign_flip_test(2, (double[]){1, INFINITY})));
    for (size_t i = 0; i < 30; i++)
        many[i] = 1 + (double)i;
    assert_close(ks_sign_flip_test(30, many), 1e-5, 0); /* all of one sign: no other has this sum */
    assert_close(ks_sign_flip_test(20, many), ldexp(1, -20), 0);
    for (size_t i = 0; i < 30; i++)
        many[i] = i % 2 ? 1 : -1;
    assert_close(ks_sign_flip_test(30, many), 0.5722, 0.005); /* a sum of zero: P(S >= 0) */
}
