/* The block exponential, in both precisions: accuracy against long double, limits, and bits that do
 * not depend on the position within a block. */
#include <float.h>
#include <math.h>

#include "core/rng.h"
#include "net/exponential.h"
#include "test.h"

void ks_exp_block_f32(const float x[KS_EXP_BLOCK], float y[KS_EXP_BLOCK]);

static void test_accuracy(void **state)
{
    struct ks_rng rng = ks_rng_start(1, 0);
    double x[KS_EXP_BLOCK], y[KS_EXP_BLOCK];

    (void)state;
    for (int trial = 0; trial < 2000; trial++) {
        for (int i = 0; i < KS_EXP_BLOCK; i++)
            x[i] = ks_rng_uniform(&rng, -1, 1) * (trial % 2 ? 1 : 700);
        KS(exp_block)(x, y);
        for (int i = 0; i < KS_EXP_BLOCK; i++) {
            long double exact = expl((long double)x[i]);

            assert_true(fabsl((long double)y[i] - exact) <= 4 * (long double)DBL_EPSILON * exact);
        }
    }
}

static void test_accuracy_f32(void **state)
{
    struct ks_rng rng = ks_rng_start(1, 0);
    float x[KS_EXP_BLOCK], y[KS_EXP_BLOCK];

    (void)state;
    for (int trial = 0; trial < 2000; trial++) {
        for (int i = 0; i < KS_EXP_BLOCK; i++)
            x[i] = (float)(ks_rng_uniform(&rng, -1, 1) * (trial % 2 ? 1 : 80));
        ks_exp_block_f32(x, y);
        for (int i = 0; i < KS_EXP_BLOCK; i++) {
            double exact = exp((double)x[i]);

            assert_true(fabs((double)y[i] - exact) <= 4 * (double)FLT_EPSILON * exact);
        }
    }
}

/* The loss relies on exp(0) being 1 exactly, and on what becomes of infinities. */
static void test_limits_f32(void **state)
{
    static const float in[] = {0, -INFINITY, INFINITY, -200, 200, NAN};
    static const float out[] = {1, 0, INFINITY, 0, INFINITY, NAN};
    float x[KS_EXP_BLOCK], y[KS_EXP_BLOCK];

    (void)state;
    for (int i = 0; i < KS_EXP_BLOCK; i++)
        x[i] = in[i % 6];
    ks_exp_block_f32(x, y);
    for (int i = 0; i < KS_EXP_BLOCK; i++)
        assert_true(isnan(out[i % 6]) ? isnan(y[i]) : y[i] == out[i % 6]);
}

static void test_limits(void **state)
{
    static const double in[] = {0, -INFINITY, INFINITY, -800, 800, NAN};
    static const double out[] = {1, 0, INFINITY, 0, INFINITY, NAN};
    double x[KS_EXP_BLOCK], y[KS_EXP_BLOCK];

    (void)state;
    for (int i = 0; i < KS_EXP_BLOCK; i++)
        x[i] = in[i % 6];
    KS(exp_block)(x, y);
    for (int i = 0; i < KS_EXP_BLOCK; i++)
        assert_true(isnan(out[i % 6]) ? isnan(y[i]) : y[i] == out[i % 6]);
}

/* Also in place, as its callers use it. */
static void test_position(void **state)
{
    struct ks_rng rng = ks_rng_start(2, 0);
    double x[KS_EXP_BLOCK], y[KS_EXP_BLOCK];

    (void)state;
    for (int trial = 0; trial < 1000; trial++) {
        double value = ks_rng_uniform(&rng, -20, 0);

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accuracy), cmocka_unit_test(test_accuracy_f32),
        cmocka_unit_test(test_limits),   cmocka_unit_test(test_limits_f32),
        cmocka_unit_test(test_position),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
