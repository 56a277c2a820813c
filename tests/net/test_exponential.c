/* The block exponential: accuracy against long double, limits, and bits that do
 * not depend on the position within a block. */
#include "core/rng.h"
#include "net/loss.h"
#include "test.h"

/* exp(-LARGE) and exp(LARGE) are normal numbers. */
#ifdef KS_SINGLE
enum { LARGE = 80 };
#else
enum { LARGE = 700 };
#endif

TEST(test_accuracy)
{
    struct ks_rng rng = ks_rng_start(1, 0);
    real x[KS_EXP_BLOCK], y[KS_EXP_BLOCK];

    for (int trial = 0; trial < 2000; trial++) {
        for (int i = 0; i < KS_EXP_BLOCK; i++)
            x[i] = (real)(ks_rng_uniform(&rng, -1, 1) * (trial % 2 ? 1 : LARGE));
        KS(exp_block)(x, y);
        for (int i = 0; i < KS_EXP_BLOCK; i++) {
            long double exact = expl((long double)x[i]);

            assert_true(fabsl((long double)y[i] - exact) <= 4 * (long double)KS_EPSILON * exact);
        }
    }
}

/* The loss takes exp(0) to be 1. */
TEST(test_limits)
{
    static const real in[] = {0, -INFINITY, INFINITY, -800, 800, NAN};
    static const real out[] = {1, 0, INFINITY, 0, INFINITY, NAN};
    real x[KS_EXP_BLOCK], y[KS_EXP_BLOCK];

    for (int i = 0; i < KS_EXP_BLOCK; i++)
        x[i] = in[i % 6];
    KS(exp_block)(x, y);
    for (int i = 0; i < KS_EXP_BLOCK; i++)
        assert_true(isnan(out[i % 6]) ? isnan(y[i]) : y[i] == out[i % 6]);
}

/* Also in place, as its callers use it. */
TEST(test_position)
{
    struct ks_rng rng = ks_rng_start(2, 0);
    real x[KS_EXP_BLOCK], y[KS_EXP_BLOCK];

    for (int trial = 0; trial < 1000; trial++) {
        real value = (real)ks_rng_uniform(&rng, -20, 0);

        for (int i = 0; i < KS_EXP_BLOCK; i++)
            x[i] = value;
        KS(exp_block)(x, y);
        KS(exp_block)(x, x);
        for (int i = 0; i < KS_EXP_BLOCK; i++) {
            assert_true(y[i] == y[0]);
            assert_true(x[i] == y[0]);
        }
    }
}
